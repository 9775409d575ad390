"""Files in the formats that other tools document: each read, and each wrong one told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.errors import InputError
from likewise.pairs import Pairs
from likewise.pairs.formats import read_pairs


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def named(pairs: Pairs) -> list[tuple[str, str, bool]]:
    """The judgements with the items' own names."""
    assert pairs.item_ids is not None
    left, right = pairs.item_ids[pairs.left].tolist(), pairs.item_ids[pairs.right].tolist()
    return list(zip(left, right, pairs.same.tolist(), strict=True))


class TestSplink:
    # As in Splink's own fake_1000_labels.csv.
    LABELS = (
        "unique_id_l,source_dataset_l,unique_id_r,source_dataset_r,clerical_match_score\n"
        "0,fake_1000,1,fake_1000,1.0\n"
        "0,fake_1000,4,fake_1000,0.0\n"
        "2,fake_1000,3,fake_1000,1.0\n"
    )

    def test_documented_file(self, tmp_path: Path) -> None:
        pairs = read_pairs(write(tmp_path / "labels.csv", self.LABELS))
        np.testing.assert_array_equal(pairs.left, [0, 0, 2])
        np.testing.assert_array_equal(pairs.right, [1, 4, 3])
        np.testing.assert_array_equal(pairs.same, [True, False, True])
        assert pairs.weight is None
        assert pairs.item_ids is None

    def test_several_sources_name_items_as_splink_does(self, tmp_path: Path) -> None:
        text = self.LABELS + "0,other,1,fake_1000,1\n"
        pairs = read_pairs(write(tmp_path / "labels.csv", text))
        assert named(pairs)[-1] == ("other-__-0", "fake_1000-__-1", True)
        assert named(pairs)[0] == ("fake_1000-__-0", "fake_1000-__-1", True)

    def test_a_blank_source_or_id_is_named(self, tmp_path: Path) -> None:
        for row, name in (("0,,1,b,1", "source_dataset"), (",a,1,b,1", "unique_id")):
            path = write(tmp_path / "labels.csv", f"{self.LABELS}0,other,1,b,1\n{row}\n")
            with pytest.raises(InputError, match=rf"line 6: {name}.* is blank"):
                read_pairs(path)

    def test_a_score_between_is_a_weighted_answer(self, tmp_path: Path) -> None:
        text = "unique_id_l,unique_id_r,clerical_match_score\na,b,0.9\nb,c,0.5\na,c,0.25\n"
        pairs = read_pairs(write(tmp_path / "labels.csv", text))
        assert named(pairs) == [("a", "b", True), ("a", "c", False)]
        np.testing.assert_allclose(pairs.weight, [0.8, 0.5], rtol=1e-6)
        assert pairs.dropped == 1

    def test_wrong_files(self, tmp_path: Path) -> None:
        path = write(tmp_path / "labels.csv", "unique_id_l,unique_id_r,score\n0,1,1\n")
        with pytest.raises(InputError, match=r"labels\.csv lacks the column clerical_match_score"):
            read_pairs(path)
        text = "unique_id_l,unique_id_r,clerical_match_score\n0,1,1\n0,2,7\n"
        with pytest.raises(InputError, match=r"line 3: clerical_match_score is 7"):
            read_pairs(write(tmp_path / "labels.csv", text))


class TestZingg:
    def table(self, **changes: list[Any]) -> pa.Table:
        columns: dict[str, list[Any]] = {
            "z_zid": [10, 11, 12, 13, 14, 10],
            "z_cluster": ["1:7", "1:7", "1:1", "1:2", "1:1", "1:2"],
            "z_isMatch": [1, 1, 0, 2, 0, 2],
            "fname": ["ann", "anne", "bob", "cy", "rob", "ann"],
        }
        return pa.table(columns | changes)

    def test_documented_folder_of_marked_pairs(self, tmp_path: Path) -> None:
        marked = tmp_path / "marked"
        marked.mkdir()
        pq.write_table(self.table(), marked / "part-0.parquet")
        pairs = read_pairs(marked, item_ids=[10, 11, 12, 13, 14])
        assert named(pairs) == [("10", "11", True), ("12", "14", False)]
        assert pairs.dropped == 1

    def test_training_samples_as_csv_with_their_own_ids(self, tmp_path: Path) -> None:
        text = (
            "z_cluster,z_isMatch,id,fname\n0,1,rec-1,ann\n0,1,rec-2,anne\n1,0,rec-1,a\n1,0,rec-9,b"
        )
        pairs = read_pairs(write(tmp_path / "training.csv", text))
        assert named(pairs) == [("rec-1", "rec-2", True), ("rec-1", "rec-9", False)]
        for option in ("item", "left"):
            by_name = read_pairs(tmp_path / "training.csv", **{option: "fname"})
            assert named(by_name) == [("ann", "anne", True), ("a", "b", False)]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"z_cluster": ["a", "a", "a", "b", "b", "c"]}, "z_cluster a has 3 rows"),
            ({"z_isMatch": [1, 0, 0, 2, 0, 2]}, "row 1: z_isMatch differs from the other row"),
            ({"z_isMatch": [1, 1, 5, 2, 5, 2]}, "row 2: z_isMatch is '5', which is none of"),
        ],
    )
    def test_wrong_rows(self, tmp_path: Path, changes: dict[str, list[Any]], message: str) -> None:
        pq.write_table(self.table(**changes), tmp_path / "marked.parquet")
        with pytest.raises(InputError, match=message):
            read_pairs(tmp_path / "marked.parquet")

    def test_who_marked_them(self, tmp_path: Path) -> None:
        people = ["ann", "ann", "bob", "cy", "bob", "cy"]
        pq.write_table(self.table(annotator=people), tmp_path / "marked.parquet")
        pairs = read_pairs(tmp_path / "marked.parquet")
        assert pairs.annotator_names is not None
        assert pairs.annotator_names[pairs.annotator].tolist() == ["ann", "bob"]

    @pytest.mark.parametrize("missing", ["z_cluster", "z_isMatch"])
    def test_a_missing_field_is_named(self, tmp_path: Path, missing: str) -> None:
        pq.write_table(self.table().drop_columns(missing), tmp_path / "marked.parquet")
        with pytest.raises(InputError, match=f"lacks the column {missing}"):
            read_pairs(tmp_path / "marked.parquet")

    def test_no_column_names_the_item(self, tmp_path: Path) -> None:
        pq.write_table(self.table().drop_columns("z_zid"), tmp_path / "marked.parquet")
        with pytest.raises(InputError, match=r"lacks the column id; .* item= \(--left\)"):
            read_pairs(tmp_path / "marked.parquet")


class TestDedupe:
    @staticmethod
    def pair(left: dict[str, str], right: dict[str, str]) -> dict[str, Any]:
        return {"__class__": "tuple", "__value__": [left, right]}

    def training(self) -> dict[str, Any]:
        joe, jo, ann = ({"name": name, "zip": "0"} for name in ("joe", "jo", "ann"))
        return {
            "distinct": [self.pair(joe, ann)],
            "match": [self.pair(joe, jo), [jo, joe]],
        }

    def test_documented_file(self, tmp_path: Path) -> None:
        pairs = read_pairs(write(tmp_path / "training.json", self.training()), item="name")
        assert named(pairs) == [("joe", "ann", False), ("joe", "jo", True), ("jo", "joe", True)]

    def test_records_without_an_id_are_named_by_their_content(self, tmp_path: Path) -> None:
        pairs = read_pairs(write(tmp_path / "training.json", self.training()))
        assert pairs.n_items == 3
        assert named(pairs)[0][1] == '{"name": "ann", "zip": "0"}'

    def test_records_with_an_id(self, tmp_path: Path) -> None:
        content = {"distinct": [], "match": [self.pair({"id": "r1", "n": "a"}, {"id": "r2"})]}
        assert named(read_pairs(write(tmp_path / "t.json", content))) == [("r1", "r2", True)]

    def test_wrong_files(self, tmp_path: Path) -> None:
        with pytest.raises(
            InputError, match="lacks the field match; the fields there are distinct"
        ):
            read_pairs(write(tmp_path / "t.json", {"distinct": []}))
        with pytest.raises(InputError, match="match 0: a pair must hold two records"):
            read_pairs(write(tmp_path / "t.json", {"distinct": [], "match": [[{}]]}))
        with pytest.raises(InputError, match="a record lacks the field ssn; it has name, zip"):
            read_pairs(write(tmp_path / "t.json", self.training()), item="ssn")
        with pytest.raises(InputError, match="lacks the field distinct; the fields there are none"):
            read_pairs(write(tmp_path / "t.json", []), format="dedupe")


def annotation(choice: str | None, person: Any = 1, control: str = "same", **more: Any) -> Any:
    """An annotation as Label Studio documents it."""
    result = {
        "id": "Dx_aB91ISN",
        "from_name": control,
        "to_name": "image1",
        "type": "choices",
        "value": {"choices": [choice]},
    }
    return {
        "id": 1001,
        "completed_by": person,
        "was_cancelled": False,
        "ground_truth": False,
        "result": [] if choice is None else [result],
        **more,
    }


class TestLabelStudio:
    def tasks(self) -> list[dict[str, Any]]:
        upload = "/data/upload/3/1f2e3d4c-cat.jpg"
        return [
            {
                "id": 1,
                "data": {"image1": upload, "image2": "/data/local-files/?d=pets/dog.jpg"},
                "annotations": [
                    annotation("Different"),
                    annotation("Same", {"id": 2, "email": "eve@example.org"}),
                    annotation("Same", was_cancelled=True),
                ],
            },
            {
                "id": 2,
                "data": {"image1": "pets/dog.jpg", "image2": "wolf.jpg", "meta": {"x": 1}},
                "annotations": [annotation("Not sure"), annotation(None), annotation("Same")],
            },
        ]

    def test_documented_export(self, tmp_path: Path) -> None:
        path = write(tmp_path / "export.json", self.tasks())
        pairs = read_pairs(path, item_ids=["cat.jpg", "dog.jpg", "wolf.jpg"])
        expected = [
            ("cat.jpg", "dog.jpg", False),
            ("cat.jpg", "dog.jpg", True),
            ("dog.jpg", "wolf.jpg", True),
        ]
        assert named(pairs) == expected
        assert pairs.dropped == 3
        names = pairs.annotator_names[pairs.annotator]
        np.testing.assert_array_equal(names, ["1", "eve@example.org", "1"])

    def test_an_unknown_choice(self, tmp_path: Path) -> None:
        tasks = [{"data": {"a": "x", "b": "y"}, "annotations": [annotation("Purple")]}]
        with pytest.raises(InputError, match=r"e\.json, annotation 0: same is 'Purple'"):
            read_pairs(write(tmp_path / "e.json", tasks))

    @pytest.mark.parametrize(
        ("task", "message"),
        [
            ({"annotations": []}, "task 0: lacks the field data; the fields there are annotations"),
            ({"data": {"image1": "a"}, "annotations": []}, "two items are needed.* has image1"),
            ({"data": {"a": "x", "b": "y"}, "annotations": []}, "holds no annotation"),
        ],
    )
    def test_a_missing_field_is_named(
        self, tmp_path: Path, task: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(InputError, match=message):
            read_pairs(write(tmp_path / "e.json", [task]))

    def test_which_fields_and_which_choices(self, tmp_path: Path) -> None:
        both = annotation("Blurred", control="quality")
        both["result"] += annotation("Same", control="kind")["result"]
        task = {"data": {"a": "x", "b": "y", "c": "text"}, "annotations": [both]}
        path = write(tmp_path / "e.json", [task])
        with pytest.raises(InputError, match="two items are needed, but its data has a, b, c"):
            read_pairs(path)
        with pytest.raises(InputError, match=r"several Choices \(quality, kind\)"):
            read_pairs(path, left="a", right="b")
        assert named(read_pairs(path, left="a", right="b", same="kind")) == [("x", "y", True)]
