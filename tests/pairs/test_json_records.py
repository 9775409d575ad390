"""Judgements in JSON: dedupe's pairs and Label Studio's tasks, and what is said of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from likewise.errors import InputError
from likewise.pairs import Pairs
from pair_files import rows, write


def read(folder: Path, content: Any, **options: Any) -> Pairs:
    return Pairs.read(write(folder, json.dumps(content), "x.json"), **options)


class TestDedupe:
    def test_records_by_id_by_field_or_whole(self, tmp_path: Path) -> None:
        def pair(a: str, b: str) -> list[dict[str, str]]:
            return [{"id": a, "name": f"n{a}"}, {"id": b, "name": f"n{b}"}]

        content = {
            "distinct": [pair("a", "b")],
            "match": [{"__class__": "tuple", "__value__": pair("b", "c")}],
        }
        assert rows(read(tmp_path, content)) == [("a", "b", False), ("b", "c", True)]
        assert rows(read(tmp_path, content, item="name"))[0] == ("na", "nb", False)
        whole = {"distinct": [], "match": [[{"b": 1, "ä": 2}, {"b": 3}]]}
        assert rows(read(tmp_path, whole)) == [('{"b": 1, "ä": 2}', '{"b": 3}', True)]

    @pytest.mark.parametrize(
        ("content", "options", "words"),
        [
            ({"match": []}, {}, r"^x\.json: lacks the field distinct; the fields there are match"),
            ({"match": [], "distinct": 1}, {}, r"^x\.json: the field distinct must be a list"),
            ({"match": [[1]], "distinct": []}, {}, r"^x\.json, match 0: a pair must hold two"),
            ({"match": [], "distinct": [[1, 2], {}]}, {}, r"^x\.json, distinct 1: a pair must"),
            ({"match": [[{"a": 1, "b": 2}, {}]], "distinct": []}, {"item": "c"},
             r"^x\.json: a record lacks the field c; it has a, b\.$"),
            ({"match": [[1, 2]], "distinct": []}, {"item": "c"}, r"the field c; it has none\.$"),
        ],
    )  # fmt: skip
    def test_mistakes(self, tmp_path: Path, content: Any, options: dict, words: str) -> None:
        with pytest.raises(InputError, match=words):
            read(tmp_path, content, **options)


def choice(value: str | None, name: str = "answer", **more: Any) -> dict[str, Any]:
    chosen = [] if value is None else [value]
    entry = {"type": "choices", "from_name": name, "value": {"choices": chosen}}
    return {"result": [{"type": "labels"}, entry], **more}


def task(*annotations: dict[str, Any], **data: Any) -> dict[str, Any]:
    return {"data": data or {"p": "a", "q": "b"}, "annotations": list(annotations)}


class TestLabelStudio:
    def test_tasks(self, tmp_path: Path) -> None:
        tasks = [
            task(
                choice("Same", completed_by=3),
                choice("Different", completed_by={"id": 4, "email": "x@y"}),
                choice("Same", completed_by={"id": 5}, was_cancelled=True),
                choice(None, completed_by={"id": 6, "email": ""}),
            ),
            task(choice("no"), p="/data/local-files/?d=in/c", q="b", n=3),
        ]
        found = read(tmp_path, tasks)
        assert rows(found) == [
            ("a", "b", True, "3"), ("a", "b", False, "x@y"), ("in/c", "b", False, ""),
        ]  # fmt: skip
        assert found.dropped == 2

    def test_fields_by_name(self, tmp_path: Path) -> None:
        both = {"result": choice("no", "one")["result"] + choice("yes", "two")["result"]}
        tasks = [task(both, p="a", q="b", r="c")]
        found = read(tmp_path, tasks, left="r", right="p", same="two")
        assert rows(found) == [("c", "a", True, "")]
        with pytest.raises(
            InputError, match=r"task 0: there are several Choices \(one, two\); say"
        ):
            read(tmp_path, tasks, left="r", right="p")
        with pytest.raises(
            InputError, match=r"task 0: two items are needed, but its data has p, q, r"
        ):
            read(tmp_path, tasks, same="two")

    @pytest.mark.parametrize(
        ("tasks", "words"),
        [
            ([task()], r"^x\.json holds no annotation: label some tasks and export again"),
            ([{"annotations": []}], r"^x\.json, task 0: lacks the field data; .* annotations"),
            ([{"annotations": [], "data": 1}], r"task 0: the field data must be an object"),
            ([task(), {"data": {"p": "a", "q": "b"}}], r"task 1: lacks the field annotations"),
            ([task({})], r"task 0, annotation: lacks the field result; the fields there are none"),
            ([task({"result": [{"type": "choices"}]})], r"task 0, choices: lacks the field value"),
            ([task({"result": [{"type": "choices", "value": {"choices": 1}}]})],
             r"task 0, choices: the field choices must be a list"),
            ([{"data": {"n": 1}, "annotations": [1]}], r"needed, but its data has n;"),
            ([task(1)], r"task 0, annotation: lacks the field result; the fields there are none"),
        ],
    )  # fmt: skip
    def test_mistakes(self, tmp_path: Path, tasks: Any, words: str) -> None:
        with pytest.raises(InputError, match=words):
            read(tmp_path, tasks)

    def test_what_is_no_list_of_tasks(self, tmp_path: Path) -> None:
        with pytest.raises(
            InputError, match=r"^x\.json is not Label Studio's export: it is not a li"
        ):
            read(tmp_path, {"a": 1}, format="label-studio")
        with pytest.raises(InputError, match=r"its data has nothing; say which"):
            read(tmp_path, [{"data": {}, "annotations": []}])


class TestFlat:
    HEAD = "id,p,q,answer,annotator,annotation_id,lead_time\n"

    def test_columns_are_told_by_what_they_hold(self, tmp_path: Path) -> None:
        text = self.HEAD + '1,?d=a,b,Same,ann,1,2\n2,b,c,"{""choices"": [""no""]}",bob,2,2\n'
        found = Pairs.read(write(tmp_path, text))
        assert rows(found) == [("a", "b", True, "ann"), ("b", "c", False, "bob")]
        row = {"p": "a", "q": "b", "r": '["yes"]', "annotation_id": 1, "lead_time": 2}
        plain = read(tmp_path, [row])
        assert (rows(plain), plain.annotator) == ([("a", "b", True)], None)
        named = read(tmp_path, [row | {"s": "no"}], left="q", right="p", same="s")
        assert rows(named) == [("b", "a", False)]

    @pytest.mark.parametrize(
        ("row", "words"),
        [
            ({"p": "a", "q": "b", "r": "maybe"},
             r"^x\.json does not say which field is the answer; the fields there are p, q, r; say"),
            ({"p": "a", "q": "yes", "r": "no"}, r"which field is the answer"),
            ({"p": "a", "q": "b", "s": "c", "r": "no"},
             r"^x\.json does not say which two fields are the items; there are p, q, s; say which"),
        ],
    )  # fmt: skip
    def test_fields_in_doubt(self, tmp_path: Path, row: dict[str, str], words: str) -> None:
        with pytest.raises(InputError, match=words):
            read(tmp_path, [row | {"annotation_id": 1, "lead_time": 2}])


class TestZooniverse:
    def export(self, folder: Path, subject: str, answer: str) -> Path:
        def quoted(text: str) -> str:
            return '"' + text.replace('"', '""') + '"'

        row = ",".join(["ann", quoted(answer), quoted(subject)])
        return write(folder, f"user_name,annotations,subject_data\n{row}\n")

    GOOD = '{"7": {"retired": null, "#p": "a", "//q": "b", "n": 3}}'

    @pytest.mark.parametrize(
        ("subject", "answer", "options", "expected"),
        [
            (GOOD, '[{"task": "T0", "value": "Yes"}]', {}, ("a", "b", True, "ann")),
            (GOOD, '[{"task": "T0", "value": ["no"]}]', {}, ("a", "b", False, "ann")),
            ('{"left": "c", "right": 3, "more": "d"}', '[{"task": "T0", "value": "no"}]', {},
             ("c", "3", False, "ann")),
            (GOOD, '[{"task": "T0", "value": "x"}, {"task": "T1", "value": "yes"}]',
             {"same": "T1"}, ("a", "b", True, "ann")),
            (GOOD, '[{"task": "T0", "task_label": "Same?", "value": "no"}, {"task": "T1"}]',
             {"same": "Same?"}, ("a", "b", False, "ann")),
            (GOOD, '[{"task": "T0", "value": "no"}]', {"left": "q", "right": "p"},
             ("b", "a", False, "ann")),
        ],
    )  # fmt: skip
    def test_subjects_and_tasks(
        self, tmp_path: Path, subject: str, answer: str, options: dict, expected: tuple
    ) -> None:
        assert rows(Pairs.read(self.export(tmp_path, subject, answer), **options)) == [expected]

    @pytest.mark.parametrize(
        ("subject", "answer", "words"),
        [
            ("[]", "[]", r"^x\.csv, line 2: subject_data must be a JSON object"),
            ("", "[]", r"line 2: subject_data must be a JSON object"),
            ('{"p": "a"}', "[]", r"line 2: two items are needed, but subject_data has p; say"),
            (GOOD, "[]", r"line 2: annotations must be a list of tasks with a value each"),
            (GOOD, "", r"line 2: annotations must be a list of tasks"),
            (GOOD, '[{"task": "T0"}]', r"line 2: the task of annotations lacks its value"),
            (GOOD, '[{"task": "T0"}, {"task": "T1"}]', r"several tasks \(T0, T1\); say which with"),
            ("{", "[]", r"^subject_data is not valid JSON"),
            (GOOD, "[", r"^annotations is not valid JSON"),
            (GOOD, '[{"task": "T0", "value": ["yes", "no"]}]', r"no judgement: all 1 answers"),
        ],
    )  # fmt: skip
    def test_mistakes(self, tmp_path: Path, subject: str, answer: str, words: str) -> None:
        with pytest.raises(InputError, match=words):
            Pairs.read(self.export(tmp_path, subject, answer))
