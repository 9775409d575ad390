"""Graded answers, by the middle of their scale or by a threshold."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.errors import InputError
from likewise.pairs import Pairs
from pair_files import rows, write


class TestGrades:
    def test_durel(self, tmp_path: Path) -> None:
        text = "identifier1\tidentifier2\tannotator\tjudgment\n"
        text += "a\tb\tann\t4\na\tc\tbob\t1.0\nb\tc\tann\t3\n"
        text += "b\td\tann\t2,5\nc\td\tbob\t0\na\td\tbob\t-\n"
        found = Pairs.read(write(tmp_path, text))
        assert rows(found) == [
            ("a", "b", True, "ann", 1.0),
            ("a", "c", False, "bob", 1.0),
            ("b", "c", True, "ann", 0.3333),
        ]
        assert found.dropped == 3
        by = Pairs.read(write(tmp_path, text), threshold=2.5)
        assert rows(by) == [
            ("a", "b", True, "ann"), ("a", "c", False, "bob"), ("b", "c", True, "ann"),
            ("b", "d", False, "ann"),
        ]  # fmt: skip

    def test_any_grades_by_a_threshold(self, tmp_path: Path) -> None:
        path = write(tmp_path, "p,q,score,who\na,b,7.5,x\nb,c,-3,y\na,c,unsure,x\na,d,7,x\n")
        found = Pairs.read(path, left="p", right="q", same="score", annotator="who", threshold=7)
        assert rows(found) == [
            ("a", "b", True, "x"),
            ("b", "c", False, "y"),
            ("a", "d", False, "x"),
        ]
        assert found.dropped == 1

    @pytest.mark.parametrize(
        ("text", "options", "words"),
        [
            ("left,right,same\na,b,1\na,c,x\n", {"threshold": 1},
             r"x\.csv, line 3: same is 'x', which is not a number"),
            ("left,right,same\na,b,inf\n", {"threshold": 1}, "line 2: same is 'inf', which"),
            ("identifier1,identifier2,judgment\na,b,5\n", {},
             r"line 2: judgment is '5', which is not a grade from 1 to 4"),
            ("identifier1,identifier2,judgment\na,b,0.5\n", {}, "is '0.5', which is not a grade"),
            ("identifier1,identifier2\na,b\n", {}, r"x\.csv lacks the column judgment"),
            ("left,right\na,b\n", {"threshold": 1, "format": "pairs"},
             r"lacks the column same; .*say which is which with left="),
            ("INPUT:a,INPUT:b,OUTPUT:c\na,b,1\n", {"threshold": 1},
             r"a threshold is for graded answers, which toloka does not write"),
        ],
    )  # fmt: skip
    def test_mistakes(self, tmp_path: Path, text: str, options: dict, words: str) -> None:
        with pytest.raises(InputError, match=words):
            Pairs.read(write(tmp_path, text), **options)
