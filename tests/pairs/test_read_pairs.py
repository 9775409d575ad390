"""Reading judgements: every option reaches its place, every mistake gets its sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from likewise.errors import InputError
from likewise.pairs import Pairs
from pair_files import rows, write

IDS = ["a", "b", "c", "d"]


class TestReading:
    @pytest.mark.parametrize(
        ("text", "name", "options", "words"),
        [
            ("left,right,same\na,b,1\n", "x.csv", {"format": "xml"},
             r"^format must be one of pairs, splink, .*durel, but is 'xml'"),
            ("left,right,same\na,b,1\n", "x.csv", {"format": "dedupe"},
             r"^x\.csv is a table, but dedupe writes JSON"),
            ("left,right,same\na,b,\na,c,?\n", "x.csv", {},
             r"^x\.csv holds no judgement: all 2 answers are blank or unsure\.$"),
            ("left,right,same\n", "x.csv", {}, r"^x\.csv holds no judgement\.$"),
            ('{"a": 1}', "x.json", {}, r"^x\.json is JSON, but neither dedupe's"),
            ('{"a": 1}', "x.json", {"format": "pairs"}, r"^x\.json is not a list of records"),
            ("left,right,same\na,b,1\n", "x.csv", {"annotator": "who"},
             r"^x\.csv lacks the column who; the columns there are left, right, same"),
            ("left,right,same\na,b,1\n", "x.csv", {"weight": "w"}, r"lacks the column w;"),
            ("left,right,same\na,b,1\n", "x.csv", {"right": "left"},
             r"^left, right, same, annotator and weight must be different columns"),
            ("left,right\na,b\n", "x.csv", {}, r"lacks the column same; .*--same\), or which"),
            ("left,right,same\na,b,1\n", "x.csv", {"n_items": 3},
             r"^the judgements name 2 items, such as 'a', but there are 3 items that have no"),
        ],
    )  # fmt: skip
    def test_sentences(
        self, tmp_path: Path, text: str, name: str, options: dict, words: str
    ) -> None:
        with pytest.raises(InputError, match=words):
            Pairs.read(write(tmp_path, text, name), **options)

    def test_every_column_by_another_name(self, tmp_path: Path) -> None:
        path = write(tmp_path, "p,q,r,s,t\na,b,1,x,0.5\na,c,0,y,2\nb,c,,y,2\n")
        names = {"left": "p", "right": "q", "same": "r", "annotator": "s", "weight": "t"}
        found = Pairs.read(path, **names)
        assert rows(found) == [("a", "b", True, "x", 0.5), ("a", "c", False, "y", 2.0)]
        assert (found.dropped, found.unknown, found.shortened) == (1, 0, 0)
        lines = "".join(json.dumps(dict(zip("pqrst", r))) + "\n" for r in [("a", "b", 1, "x", 0.5)])
        assert rows(Pairs.read(write(tmp_path, lines, "x.jsonl"), **names)) == [
            ("a", "b", True, "x", 0.5)
        ]

    def test_what_python_writes_for_no_number_is_no_answer(self, tmp_path: Path) -> None:
        text = '[{"left": "a", "right": "b", "same": NaN}, {"left": "a", "right": "b", "same": 1}]'
        found = Pairs.read(write(tmp_path, text, "x.json"))
        assert (rows(found), found.dropped) == ([("a", "b", True)], 1)

    def test_named_numbers_and_counts(self, tmp_path: Path) -> None:
        path = write(tmp_path, "left,right,same\n7,9,1\n")
        assert Pairs.read(path).n_items == 10
        assert Pairs.read(path, n_items=12).n_items == 12
        named = Pairs.read(path, named=True)
        assert (named.n_items, named.item_ids.tolist()) == (2, ["7", "9"])
        looked = Pairs.read(path, item_ids=["9", "8", "7"])
        assert (looked.left.tolist(), looked.right.tolist(), looked.n_items) == ([2], [0], 3)

    def test_items_that_are_gone(self, tmp_path: Path) -> None:
        path = write(tmp_path, "left,right,same\na,b,1\na,z,1\nb,a,?\nb,c,0\n")
        with pytest.warns(
            UserWarning, match=r"^1 of 4 judgements were left out, .* name 1 items .*'z'"
        ):
            found = Pairs.read(path, item_ids=IDS, may_lack=True)
        assert rows(found) == [("a", "b", True), ("b", "c", False)]
        assert (found.unknown, found.dropped) == (1, 1)
        with pytest.raises(
            InputError, match=r"^x\.csv, line 3: right is 'z', which is none of the 4"
        ):
            Pairs.read(path, item_ids=IDS)

    @pytest.mark.parametrize(
        ("text", "name", "options", "place"),
        [
            ('[{"left": "a", "right": "z", "same": 1}]', "x.json", {}, "record 0"),
            ('{"distinct": [], "match": [["a", "z"]]}', "x.json", {"item": None}, "pair 0"),
            ('[{"data": {"p": "a", "q": "z"}, "annotations": [{"result": []}]}]', "x.json", {},
             "annotation 0"),
            ('[{"annotation_id": 1, "lead_time": 1, "p": "a", "q": "z", "r": "no"}]', "x.json", {},
             "annotation 0"),
            ('user_name,annotations,subject_data\nx,"[{""value"": ""no""}]","{""p"": ""a"", ""q"": '
             '""z""}"\n', "x.csv", {}, "classification 0"),
        ],
    )  # fmt: skip
    def test_the_place_of_a_row(
        self, tmp_path: Path, text: str, name: str, options: dict, place: str
    ) -> None:
        with pytest.raises(InputError, match=rf"^x\.\w+, {place}: (left|right) is "):
            Pairs.read(write(tmp_path, text, name), item_ids=IDS, **options)
