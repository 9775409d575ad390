"""Results of crowds for hire: which columns, which answers, whose work counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from likewise.errors import InputError
from likewise.pairs import Pairs
from pair_files import rows, write


def read(folder: Path, text: str, **options: Any) -> Pairs:
    return Pairs.read(write(folder, text), **options)


class TestTurk:
    HEAD = "WorkerId,AssignmentStatus,Input.p,Input.q"

    def test_work_that_was_refused_does_not_count(self, tmp_path: Path) -> None:
        text = f"{self.HEAD},Answer.same\nann,Approved,a,b,yes\nbob, REJECTED ,a,b,no\ncy,,b,c,no\n"
        found = read(tmp_path, text)
        assert rows(found) == [("a", "b", True, "ann"), ("b", "c", False, "cy")]
        assert found.dropped == 1
        plain = read(tmp_path, "Input.p,Input.q,Answer.x\na,b,same\n")
        assert (rows(plain), plain.annotator) == ([("a", "b", True)], None)

    def test_columns_by_name(self, tmp_path: Path) -> None:
        text = "Input.p,Input.q,Input.r,Answer.x,Answer.y\na,b,c,yes,no\n"
        assert rows(read(tmp_path, text, left="r", right="Input.p", same="y")) == [
            ("c", "a", False)
        ]
        usual = "Input.left,Input.right,Input.r,Answer.same,Answer.y\na,b,c,yes,no\n"
        assert rows(read(tmp_path, usual)) == [("a", "b", True)]
        with pytest.raises(InputError, match=r"^x\.csv has no column z, nor Input\.z; the columns"):
            read(tmp_path, text, left="z", right="p")
        with pytest.raises(InputError, match=r"has no column z, nor Input\.z"):
            read(tmp_path, text, left="p", right="z")
        words = r"^x\.csv looks like results of Mechanical Turk, of which two columns Input\.+ must"
        with pytest.raises(
            InputError, match=rf"{words} .* Input\.p, Input\.q, Input\.r; say which"
        ):
            read(tmp_path, text)
        words = (
            r"^x\.csv looks like results of Mechanical Turk, of which a column Answer\.+ must be"
        )
        with pytest.raises(
            InputError, match=rf"{words} .* Answer\.x, Answer\.y; say which with same"
        ):
            read(tmp_path, text, left="p", right="q")

    @pytest.mark.parametrize("question", ["same", "other"])
    def test_a_column_for_each_choice(self, tmp_path: Path, question: str) -> None:
        head = f"{self.HEAD},Answer.{question}.yes,Answer.{question}.no\n"
        found = read(tmp_path, f"{head}x,,a,b,TRUE,false\nx,,b,c,,1\nx,,a,c,false,false\n")
        assert rows(found) == [("a", "b", True, "x"), ("b", "c", False, "x")]
        assert found.dropped == 1
        words = rf"line 3: several of Answer\.{question}\.yes, Answer\.{question}\.no are chosen"
        with pytest.raises(InputError, match=words):
            read(tmp_path, f"{head}x,,a,b,true,false\nx,,b,c,true,true\n")

    @pytest.mark.parametrize(
        ("answer", "same"),
        [
            ('[{"same": {"yes": true, "no": false}}]', True),
            ('{"same": "no"}', False),
            (' ["yes"]', True),
            ('{"q": [{"yes": false, "no": true}]}', False),
            ('{"yes": false, "no": false}', None),
            ('{"yes": true, "no": true}', None),
            ('{"same": null}', None),
            ('{"same": 1}', True),
            ("yes", True),
        ],
    )
    def test_answers_written_as_json(self, tmp_path: Path, answer: str, same: bool | None) -> None:
        quoted = '"' + answer.replace('"', '""') + '"'
        text = "Input.p,Input.q,Answer.taskAnswers\nb,c,no\na,b," + quoted + "\n"
        found = read(tmp_path, text)
        expected = [("b", "c", False)] + ([] if same is None else [("a", "b", same)])
        assert rows(found) == expected

    def test_an_answer_of_several_choices(self, tmp_path: Path) -> None:
        text = 'Input.p,Input.q,Answer.taskAnswers\na,b,"[1, 2]"\n'
        with pytest.raises(InputError, match=r"^an answer holds more than one choice: \[1, 2\]\.$"):
            read(tmp_path, text)


class TestToloka:
    HEAD = "INPUT:p,INPUT:q,OUTPUT:r,GOLDEN:r,ASSIGNMENT:worker_id,ASSIGNMENT:status\n"
    ROWS = (
        "a,b,yes,,ann,APPROVED\na,c,no,no,ann,APPROVED\na,c,yes,no,bob,APPROVED\n"
        "b,c,no,,bob,SKIPPED\nb,c,no,,cy,EXPIRED\nb,c,no,,dan,Rejected\nb,d,yes,yes,ann,\n"
    )

    def test_control_tasks_are_left_out(self, tmp_path: Path) -> None:
        found = read(tmp_path, self.HEAD + self.ROWS)
        assert rows(found) == [("a", "b", True, "ann")]

    def test_known_answers_where_they_are_asked_for(self, tmp_path: Path) -> None:
        found = read(tmp_path, self.HEAD + self.ROWS, gold=True)
        assert (rows(found), found.annotator) == ([("a", "c", False), ("b", "d", True)], None)
        numbers = read(
            tmp_path, self.HEAD + "5,6,no,no,x,\n5,6,no,no,y,\n1,2,no,yes,x,\n", gold=True
        )
        assert (numbers.left.tolist(), numbers.same.tolist()) == ([5, 1], [False, True])
        with pytest.raises(
            InputError, match=r"^x\.csv holds no known answer: no GOLDEN: column is"
        ):
            read(tmp_path, self.HEAD + "a,b,yes,,ann,\n", gold=True)
        with pytest.raises(InputError, match=r"holds no known answer"):
            read(tmp_path, "INPUT:p,INPUT:q,OUTPUT:r\na,b,yes\n", gold=True)

    def test_several_questions(self, tmp_path: Path) -> None:
        head = "INPUT:p,INPUT:q,OUTPUT:same,OUTPUT:sure,GOLDEN:same,GOLDEN:sure\n"
        found = read(tmp_path, head + "a,b,yes,no,,\nb,c,no,no,yes,no\n")
        assert rows(found) == [("a", "b", True)]
        assert rows(read(tmp_path, head + "b,c,no,no,yes,no\n", gold=True)) == [("b", "c", True)]
