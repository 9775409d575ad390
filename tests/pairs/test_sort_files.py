"""Sorts into piles, in every form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from likewise.errors import InputError
from likewise.pairs import Pairs
from likewise.pairs.formats import sorts
from pair_files import rows, write

IDS = ["a", "b", "c", "d"]


class TestSorts:
    BOTH = (
        ("a", "b", True, "ann"), ("a", "c", False, "ann"), ("b", "c", False, "ann"),
        ("a", "d", True, "bob"),
    )  # fmt: skip

    @pytest.mark.parametrize(
        ("text", "options"),
        [
            ("item,ann,bob\na,1,x\nb,1,\nc,2,\nd,,x\n", {"format": "sorts"}),
            ("key,ann,bob\na,1,x\nb,1,\nc,2,\nd,,x\n", {"format": "sorts", "item": "key"}),
            ("item,annotator,pile\na,ann,1\nb,ann,1\nc,ann,2\na,bob,x\nd,bob,x\nb,bob,\n", {}),
            ("key,annotator,pile\na,ann,1\nb,ann,1\nc,ann,2\na,bob,x\nd,bob,x\n",
             {"format": "sorts", "item": "key"}),
            ("item,who,pile\na,ann,1\nb,ann,1\nc,ann,2\na,bob,x\nd,bob,x\n", {"annotator": "who"}),
        ],
    )  # fmt: skip
    def test_tables(self, tmp_path: Path, text: str, options: dict[str, str]) -> None:
        found = Pairs.read(write(tmp_path, text), item_ids=IDS, **options)
        assert sorted(rows(found)) == sorted(self.BOTH)

    @pytest.mark.parametrize(
        "content",
        [
            {"ann": [["a", "b"], ["c"]], "bob": [["a", "d"]]},
            [
                {"annotator": "ann", "piles": [["a", "b"], ["c"]]},
                {"annotator": "bob", "piles": [["a", "d"]]},
            ],
        ],
    )
    def test_json(self, tmp_path: Path, content: Any) -> None:
        path = write(tmp_path, json.dumps(content), "x.json")
        assert rows(Pairs.read(path, item_ids=IDS)) == list(self.BOTH)

    def test_a_sort_of_nobody(self, tmp_path: Path) -> None:
        for text, name in (
            ('[["a", "b"], ["c"]]', "x.json"),
            ('[{"piles": [["a", "b"], ["c"]]}]', "x.json"),
            ("item,pile\na,1\nb,1\nc,2\n", "x.csv"),
        ):
            found = Pairs.read(write(tmp_path, text, name))
            assert rows(found) == [("a", "b", True), ("a", "c", False), ("b", "c", False)]
            assert found.annotator is None
        numbers = Pairs.read(write(tmp_path, "[[0, 1], [2]]", "x.json"))
        assert (numbers.item_ids, numbers.left.tolist()) == (None, [0, 0, 1])

    def test_padded_numbers_beside_others_are_names(self, tmp_path: Path) -> None:
        text = "item,annotator,pile\n123,ann,x\n009,ann,x\n10,ann,y\n124,ann,y\n"
        found = Pairs.read(write(tmp_path, text, "x.csv"))
        assert found.item_ids is not None
        assert found.item_ids.tolist() == ["009", "10", "123", "124"]
        known = Pairs.read(tmp_path / "x.csv", item_ids=["123", "10", "009", "124"])
        assert set(known.left.tolist()) <= {0, 1, 2, 3}
        assert known.n_items == 4

    @pytest.mark.parametrize(
        ("text", "name", "words"),
        [
            (
                "key,ann\na,1\n",
                "x.csv",
                r"x\.csv lacks the column item, which .* key, ann; say which",
            ),
            ("item\na\n", "x.csv", r"x\.csv has no column of a person beside item"),
            ("item,ann\na,1\nb,\n", "x.csv", r"x\.csv holds no sort of two items or more"),
            ("item,ann\na,1\n,1\n", "x.csv", r"x\.csv, line 3: item is blank"),
            ("item,ann\na,1\na,2\n", "x.csv", r"x\.csv puts 'a' into a pile twice by ann\."),
            ("item,pile\na,1\na,2\n", "x.csv", r"x\.csv puts 'a' into a pile twice\."),
            ("item,pile\na,1\n,2\n", "x.csv", r"x\.csv, line 3: item is blank"),
            ('{"ann": [["a", "b"], ["a"]]}', "x.json", r"x\.json, ann: 'a' lies in two piles"),
            ('{"ann": "a"}', "x.json", r"x\.json, ann: a sort must be a list of piles"),
            ('[{"piles": [["a"]]}, {}]', "x.json", r"x\.json, sort 1: lacks the field piles"),
            ('[{"piles": [["a", "a"]]}]', "x.json", r"x\.json, sort 0: 'a' lies in two piles"),
            ('[["a", "a"]]', "x.json", r"x\.json, the sort: 'a' lies in two piles"),
        ],
    )
    def test_mistakes(self, tmp_path: Path, text: str, name: str, words: str) -> None:
        with pytest.raises(InputError, match=f"^{words}"):
            Pairs.read(write(tmp_path, text, name), format="sorts")

    def test_too_many_judgements(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = write(tmp_path, '{"ann": [["a", "b", "c"]], "bob": [["a"], ["b"]]}', "x.json")
        monkeypatch.setattr(sorts, "MAX_JUDGEMENTS", 4)
        assert len(Pairs.read(path)) == 4
        monkeypatch.setattr(sorts, "MAX_JUDGEMENTS", 3)
        with pytest.raises(
            InputError, match=r"^the sorts of x\.json are 4 judgements, more than 3;"
        ):
            Pairs.read(path)

    @pytest.mark.parametrize(
        ("content", "is_it"),
        [
            ({"a": [["x"]]}, True), ({}, False), ({"a": [["x"]], "b": 1}, False), ([], False),
            ([["x", 1]], True), ([["x"], "y"], False), ([{"piles": 1}], True), ("x", False),
            ([{"piles": 1}, {"left": 1}], False), ([["x", None]], False), ({"a": []}, False),
        ],
    )  # fmt: skip
    def test_which_json_it_is(self, content: Any, is_it: bool) -> None:
        assert sorts.is_piles(content) == is_it
