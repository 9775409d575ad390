"""The stages of `compact`, one by one: packed numbers, sources, the survey, parts and folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import InputError
from likewise.pairs import Pairs
from likewise.pairs.compact import packing, parts, sources, survey
from likewise.pairs.compact.build import Job, compact
from likewise.pairs.compact.folder import CompactFolder, Counts
from likewise.pairs.compact.packing import Packing, by_bucket, merged
from likewise.pairs.compact.survey import Survey
from likewise.pairs.formats.long import ColumnNames, Items
from pair_files import rows, write

duckdb = pytest.importorskip("duckdb")


class TestPacking:
    @given(st.data())
    def test_a_judgement_comes_back_from_its_number(self, data: st.DataObject) -> None:
        n_items = data.draw(st.sampled_from([2, 3, 8, 9, 1000, 1 << 20]))
        n_people = data.draw(st.sampled_from([0, 1, 2, 5, 300]))
        packed = Packing.for_table(n_items, n_people, data.draw(st.sampled_from([1, 10**8])))
        low = data.draw(st.integers(0, n_items - 2))
        high = data.draw(st.integers(low + 1, n_items - 1))
        person = data.draw(st.integers(0, max(n_people - 1, 0)))
        said = data.draw(st.booleans())
        query = f"SELECT {packed.bucket_sql('l')}, {packed.key_sql('l', 'h', 'p', 's')} FROM "
        query += f"(SELECT {low}::INTEGER l, {high}::INTEGER h, {person}::INTEGER p, {said} s)"
        bucket, key = duckdb.sql(query).fetchall()[0]
        assert bucket < packed.n_buckets
        found = packed.unpack(np.array([key], np.uint64), bucket)
        expected = {"left": [low], "right": [high], "same": [said]}
        expected |= {"annotator": [person]} if n_people else {}
        assert {name: column.tolist() for name, column in found.items()} == expected
        kinds = {name: column.dtype for name, column in found.items()}
        assert kinds.pop("same") == np.dtype(bool)
        assert set(kinds.values()) == {np.dtype(np.int32)}

    @pytest.mark.parametrize(
        ("table", "bits"),
        [
            ((2, 0, 1), (1, 0, 0)),
            ((4, 1, 1), (2, 1, 0)),
            ((5, 2, 1), (3, 1, 0)),
            ((1 << 20, 3, 1 << 23), (20, 2, 0)),
            ((1 << 20, 3, (1 << 23) + 1), (20, 2, 1)),
            ((1 << 20, 3, 1 << 26), (20, 2, 3)),
            ((2, 0, 1 << 30), (1, 0, 1)),
            ((1 << 20, 0, 1 << 40), (20, 0, 12)),
            ((1 << 31, 0, 1), (31, 0, 0)),
            ((1 << 31, 1 << 13, 1), (31, 13, 12)),
        ],
    )
    def test_where_the_bits_are(self, table: tuple[int, int, int], bits: tuple[int, ...]) -> None:
        found = Packing.for_table(*table)
        assert (found.item_bits, found.person_bits, found.bucket_bits) == bits
        assert found.n_buckets == 1 << bits[2]

    def test_more_than_a_number_can_tell(self) -> None:
        words = r"^2,147,483,648 items and 16,384 people are more than one judgement's number can"
        with pytest.raises(InputError, match=words):
            Packing.for_table(1 << 31, 1 << 14, 1)

    @given(st.lists(st.integers(0, 4)))
    def test_rows_by_bucket(self, buckets: list[int]) -> None:
        place = np.arange(len(buckets))
        found = by_bucket(np.array(buckets, np.uint16), [place, place * 2.0], 5)
        assert [number for number, _ in found] == sorted(set(buckets))
        for number, (one, two) in found:
            assert one.tolist() == [k for k, bucket in enumerate(buckets) if bucket == number]
            assert two.tolist() == [2.0 * k for k in one]

    @given(st.lists(st.integers(0, 6)))
    def test_repeats_are_merged(self, values: list[int]) -> None:
        ordered = sorted(values)
        distinct, first = merged(np.array(ordered, np.uint64))
        assert distinct.tolist() == sorted(set(values))
        assert first.tolist() == [ordered.index(value) for value in sorted(set(values))]


class TestParts:
    def test_counts_and_weights_of_repeats(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(parts, "ROW_GROUP", 2)
        packed = Packing(item_bits=3, person_bits=2, bucket_bits=1)

        def key(low: int, high: int, person: int, same: int) -> int:
            return low << 6 | high << 3 | person << 1 | same

        one, two, three = key(0, 5, 1, 1), key(1, 7, 0, 0), key(2, 7, 3, 1)
        files = [([one, three], [0.5, 1.0]), ([one, two, one], [0.25, 2.0, 4.0])]
        work = tmp_path / "work"
        for k, (keys, weights) in enumerate(files):
            (work / f"rows-{k}").mkdir(parents=True)
            np.array(keys, np.uint64).tofile(work / f"rows-{k}" / "00001.key")
            np.array(weights, np.float64).tofile(work / f"rows-{k}" / "00001.weight")
        expected = {"left": [4, 5, 6], "right": [5, 7, 7], "same": [True, False, True]}
        expected |= {"annotator": [1, 0, 3], "count": [3, 1, 1]}
        for weighted in (True, False):
            part = tmp_path / f"{weighted}.parquet"
            assert parts.write_part(work, 1, packed, weighted, part) == 3
            more = {"weight": [4.75, 2.0, 1.0]} if weighted else {}
            assert pq.read_table(part).to_pydict() == expected | more
            assert pq.read_metadata(part).num_row_groups == 2
            assert parts.write_part(work, 1, packed, weighted, part) == 3
        assert parts.write_part(work, 0, packed, True, tmp_path / "none.parquet") == 0
        names = ["left", "right", "same", "annotator", "count", "weight"]
        assert pq.read_schema(tmp_path / "none.parquet").names == names

    def test_an_item_with_itself(self) -> None:
        with pytest.raises(
            InputError, match=r"^item number 7 is compared with itself; remove such"
        ):
            parts._refuse_self_pairs(np.array([1, 7, 8]), np.array([2, 7, 8]))


def made(folder: Path, text: str, **options: Any) -> CompactFolder:
    return compact(Job((write(folder, text, "rows.csv"),), folder / "small", **options))


class TestFolders:
    TEXT = "left,right,same,annotator\nb,a,1,x\na,b,1,x\na,c,0,\nb,c,?,x\n"

    def test_what_is_told_of_it(self, tmp_path: Path) -> None:
        told: list[str] = []
        path = write(tmp_path, self.TEXT)
        folder = compact(Job((path,), tmp_path / "in" / "small"), told.append)
        assert told == [
            "found 4 rows, 1 of them without an answer",
            "found 3 items and 2 people",
            "numbered 1 of 1 pieces",
            "merged 1 of 1 parts",
        ]
        assert folder.counts == Counts(4, 1, 3, 2, 3, 2)
        about = json.loads((tmp_path / "in" / "small" / "compact.json").read_text())
        assert about["made_of"] == {
            "inputs": [{"name": "x.csv", "bytes": path.stat().st_size}],
            "query": None,
            "columns": {name: name for name in ("left", "right", "same", "annotator", "weight")},
            "format": None,
        }
        assert (about["version"], about["weighted"]) == (1, False)
        assert not (tmp_path / "in" / "small" / ".unfinished").exists()
        assert CompactFolder.open(tmp_path / "in" / "small") == folder
        assert rows(folder.read()) == [("a", "b", True, "x", 2.0), ("a", "c", False, "", 1.0)]

    def test_without_repeats_there_are_no_weights(self, tmp_path: Path) -> None:
        folder = made(tmp_path, "left,right,same\nb,a,1\na,c,0\n")
        read = folder.read(Items(["c", "b", "a"]))
        assert (read.weight, read.annotator) == (None, None)
        assert (read.left.tolist(), read.right.tolist()) == ([2, 2], [1, 0])

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"version": 2}, r"does not know \(format 2, not 1\); compact the table again"),
            ({"counts": {"rows": 1}}, r"compact\.json lacks its counts; compact the table again"),
            ({"counts": None}, "lacks its counts"),
        ],
    )
    def test_a_manifest_that_does_not_fit(self, tmp_path: Path, change: Any, words: str) -> None:
        made(tmp_path, self.TEXT)
        path = tmp_path / "small" / "compact.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
        with pytest.raises(InputError, match=words):
            CompactFolder.open(tmp_path / "small")

    @pytest.mark.parametrize("name", ["left", "right", "annotator"])
    def test_codes_without_a_name(self, tmp_path: Path, name: str) -> None:
        folder = made(tmp_path, self.TEXT)
        (part,) = (tmp_path / "small" / "judgements").iterdir()
        table = pq.read_table(part)
        place = table.column_names.index(name)
        last = {"left": 3, "right": 3, "annotator": 2}[name]
        for code, fine in ((last - 1, True), (last, False), (-1, False)):
            column = pa.array([code] * 2, pa.int32())
            pq.write_table(table.set_column(place, name, column), part)
            if not fine:
                with pytest.raises(
                    InputError, match=f"is damaged: {name} refers to a name that is"
                ):
                    folder.read()
        pq.write_table(pa.concat_tables([table, table]), part)
        with pytest.raises(InputError, match=r"does not hold the 2 rows that it tells of; compact"):
            folder.read()


class TestSources:
    def test_columns_by_other_names_and_kinds(self, tmp_path: Path) -> None:
        names = ColumnNames("p q", "r", "s", "who", "w")
        text = '"p q";r;s;who;w\na;b;1;x;0.5\nb;a;1;x;0.25\n'
        folder = made(tmp_path, text, names=names)
        assert rows(folder.read()) == [("a", "b", True, "x", 0.75)]
        records = [dict(zip(("p q", "r", "s", "who", "w"), ("c", "a", 0, "y", 2)))]
        path = write(tmp_path, json.dumps(records), "x.json")
        both = compact(Job((tmp_path / "rows.csv", path), tmp_path / "both", names=names))
        assert rows(both.read()) == [("a", "b", True, "x", 0.75), ("a", "c", False, "y", 2.0)]

    @pytest.mark.parametrize(
        ("text", "options", "words"),
        [
            ("left,right,same\na,b,1\n", {"names": ColumnNames(annotator="who")},
             r"^rows\.csv lacks the column who\.$"),
            ("left,right,same\na,b,1\n", {"names": ColumnNames(left="p")}, r"csv lacks the col"),
            ("left,right,same\na,b,1\n", {"memory": "much"}, r"^DuckDB cannot read the judg"),
        ],
    )  # fmt: skip
    def test_mistakes(self, tmp_path: Path, text: str, options: dict, words: str) -> None:
        with pytest.raises(InputError, match=words):
            made(tmp_path, text, **options)

    def test_queries(self, tmp_path: Path) -> None:
        query = "SELECT 'a' AS \"left\", 'b' AS \"right\", true AS same;  "
        assert rows(compact(Job((), tmp_path / "q", query=query)).read()) == [("a", "b", True)]
        words = r"^the query lacks the column right, same; the columns there are left; say which is"
        with pytest.raises(InputError, match=words):
            compact(Job((), tmp_path / "r", query="SELECT 'a' AS \"left\""))
        path = write(tmp_path, "left,right,same\na,b,1\n")
        with pytest.raises(InputError, match=r"^give files to compact, or --query, and not both"):
            compact(Job((path,), tmp_path / "r", query=query))
        with pytest.raises(InputError, match=r"^there is no file .*none"):
            compact(Job((tmp_path / "none",), tmp_path / "r"))

    def test_slices_of_a_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        table = pa.table({"left": [0, 1, 2, 3, 4], "right": [1, 2, 3, 4, 0], "same": [True] * 5})
        pq.write_table(table, tmp_path / "x.parquet")
        connection = sources.connect(tmp_path, "1GB", 1)

        def counts(size: int) -> list[int]:
            monkeypatch.setattr(sources, "SLICE_ROWS", size)
            paths = [tmp_path / "x.parquet"]
            found = sources.open_sources(connection, paths, None, ColumnNames(), None)
            queries = [f"SELECT count(*) FROM {source.table}" for source in found]
            return [connection.execute(query).fetchall()[0][0] for query in queries]

        assert counts(5) == [5]
        assert counts(2) == [2, 2, 1]
        assert connection.execute("SELECT current_setting('threads')").fetchall() == [(1,)]
        told = connection.execute("SELECT current_setting('temp_directory')").fetchall()[0][0]
        assert told == str(tmp_path / "spill")
        for name in ("preserve_insertion_order", "enable_progress_bar"):
            said = connection.execute(f"SELECT current_setting('{name}')").fetchall()
            assert said == [(False,)]
        connection.close()
        assert sources.literal("it's") == "'it''s'"


class TestSurvey:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("a,b,1\na,b,maybe\n", r"^rows\.csv: same is 'maybe', which is none of"),
            ("a,b,1\n,b,1\n", r"^rows\.csv: left or right is blank in a row, but must be an item"),
            ("1,2,1\n3,4,0\n5,x,1\n", r"^rows\.csv: an item is 'x', not a whole number like most"),
            ("-3,2,1\n", r"^rows\.csv: an item is -3, but item indices start at 0"),
            ("1,2147483647,1\n", r"^rows\.csv: an item is 2147483647, too large for an item's pos"),
            ("a,b,?\n", r"^there is no judgement in the input: all 1 answers are blank or unsure"),
            ("", r"^there is no judgement in the input\.$"),
        ],
    )
    def test_mistakes(self, tmp_path: Path, text: str, words: str) -> None:
        with pytest.raises(InputError, match=words):
            made(tmp_path, f"left,right,same\n{text}")

    @pytest.mark.parametrize(
        ("weights", "words"),
        [
            (["1", "-1"], r"^rows\.csv: 1 weights are blank, negative or no numbers"),
            (["-1", "-2"], r"^rows\.csv: 2 weights are blank, negative or no numbers"),
            (["inf", "1"], r"1 weights are blank"),
            (["0", "0"], r"^rows\.csv: every judgement has weight 0, so none counts"),
        ],
    )
    def test_weights_that_are_none(self, tmp_path: Path, weights: list[str], words: str) -> None:
        lines = "".join(f"a,b,1,{weight}\n" for weight in weights)
        with pytest.raises(InputError, match=words):
            made(tmp_path, f"left,right,same,weight\n{lines}")

    def test_several_inputs_are_named_together(self, tmp_path: Path) -> None:
        one = write(tmp_path, "left,right,same\na,b,1\n", "one.csv")
        two = write(tmp_path, "left,right,same\na,b,maybe\n", "two.csv")
        with pytest.raises(InputError, match=r"^one\.csv or another of 2 inputs: same is 'maybe'"):
            compact(Job((one, two), tmp_path / "small"))

    @pytest.mark.parametrize(
        ("left", "ids", "items"),
        [
            (pa.array([0, 7]), "positions", 8),
            (pa.array(["0", "7"]), "written positions", 8),
            (pa.array(["0.0", "7"]), "written positions", 8),
            (pa.array(["007", "x"]), "names", 3),
            (pa.array(["1" * 19, "2" * 19]), "names", 3),
        ],
    )
    def test_how_items_are_named(
        self, tmp_path: Path, left: pa.Array, ids: str, items: int
    ) -> None:
        right = pa.array([1, 1]) if ids == "positions" else pa.array(["1", "1"])
        table = pa.table({"left": left, "right": right, "same": ["Yes", "no"]})
        pq.write_table(table, tmp_path / "x.parquet")
        connection = sources.connect(tmp_path, "1GB", None)
        paths = [tmp_path / "x.parquet"]
        found = sources.open_sources(connection, paths, None, ColumnNames(), None)
        told = survey.survey(connection, found, tmp_path, lambda _: None)
        connection.close()
        assert (told.ids, told.items, told.annotators) == (ids, items, 0)
        assert (told.same_words, told.different_words) == (["Yes"], ["no"])
        assert (told.rows, told.dropped, told.judgements) == (2, 0, 2)
        assert (told.weighted, told.hashed) == (False, ids == "names")

    def test_what_was_found_is_kept(self) -> None:
        found = Survey(3, 1, ["1"], ["0"], "names", 2, 1, True, False)
        values = {name: getattr(found, name) for name in Survey.__dataclass_fields__}
        assert Survey.from_dict(values) == found
        del values["items"]
        with pytest.raises(InputError, match=r"^survey\.json lacks items; remove the folder"):
            Survey.from_dict(values)


def test_another_job_is_not_gone_on_with(tmp_path: Path) -> None:
    path = write(tmp_path, "left,right,same\na,b,1\n")
    out = tmp_path / "small"
    compact(Job((path,), out))
    with pytest.raises(InputError, match=r"small holds another compacted table; choose another"):
        compact(Job((path,), out, names=ColumnNames(annotator="who")))
    (tmp_path / "full").mkdir()
    write(tmp_path / "full", "x", "x.txt")
    with pytest.raises(InputError, match="full already holds something"):
        compact(Job((path,), tmp_path / "full"))
    begun = tmp_path / "begun" / ".unfinished"
    begun.mkdir(parents=True)
    write(begun, "{}", "job.json")
    with pytest.raises(InputError, match=r"begun holds what a killed run of another job left; ch"):
        compact(Job((path,), tmp_path / "begun"))
    assert packing.BUCKET_ROWS == 1 << 23
    assert len(Pairs.read(out)) == 1
