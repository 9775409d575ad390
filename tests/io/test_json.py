"""JSON from strangers: size, depth, repeated fields, numbers and text that nobody can use."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from likewise.cli import run
from likewise.errors import InputError
from likewise.io import json as io_json
from likewise.io.json import MAX_DEPTH, parse_json, plain, read_json, read_json_object
from likewise.pairs import Pairs
from likewise.runs import files
from likewise.serialization.description import read_description


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 900, 100_000])
def test_depth_is_bounded_whether_or_not_the_parser_gives_up(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "model.json"
    path.write_text(f'{{"kind": "likewise-classifier", "history": {nested(depth)}}}')
    for reader in (read_json, read_json_object, files.read_json):
        with pytest.raises(InputError, match="nested deeper than 60 levels"):
            reader(path)
    with pytest.raises(InputError, match="nested deeper"):
        read_description(tmp_path)
    with pytest.raises(InputError, match="nested deeper"):
        Pairs.read(path)


def test_a_deep_model_is_a_sentence_at_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.json").write_text(nested(900))
    (tmp_path / "weights.safetensors").write_bytes(b"")
    np.save(tmp_path / "x.npy", np.zeros((2, 2)))
    assert run(["predict", str(tmp_path), str(tmp_path / "x.npy")]) == 2
    said = capsys.readouterr().err
    assert "nested deeper" in said
    assert "unexpected" not in said


def test_as_deep_as_allowed_is_read() -> None:
    assert parse_json(nested(MAX_DEPTH), "x") is not None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "has the field 'c' twice"),
        ('{"a": NaN}', "holds NaN, which is not JSON"),
        ("[-Infinity]", "holds -Infinity"),
        ("[1e999]", r"a\.json holds a number too large for any computer[.;]"),
        ("[[1e999], [[]], {}]", "too large for any computer"),
        ('[{"a": ["\\ud800"]}, [1], [2]]', "cannot hold half a character"),
        ("[1" + "0" * 400 + "]", "too large for any computer"),
        ("[1" + "0" * 5000 + "]", "not valid JSON, or is cut short: Exceeds"),
        ('["\\ud800"]', r"a\.json cannot hold half a character \(a lone surrogate\)[.;]"),
        ('{"\\udfff": 1}', "cannot hold half a character"),
        ("{", "not valid JSON, or is cut short"),
        ("", "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        ("[1]".encode("utf-16"), "not valid JSON"),  # which Python's own parser would take
    ],
)
def test_what_nobody_can_use_is_refused(tmp_path: Path, text: str | bytes, words: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=words):
        read_json(path)
    with pytest.raises(InputError, match=r"; fetch it again\.$"):
        read_json(path, hint="fetch it again")


def test_other_programs_may_write_nan() -> None:
    assert parse_json('[NaN, Infinity, "ä"]', "x", foreign=True) == [None, None, "ä"]


def test_the_size_is_looked_at_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_text("[" + " " * 3_000_000 + "]")
    monkeypatch.setattr(io_json.json, "loads", lambda *_, **__: pytest.fail("parsed"))
    with pytest.raises(InputError, match="has 3 MiB, more than the 1 MiB of JSON"):
        read_json(path, max_bytes=2**20)
    with pytest.raises(InputError, match="missing"):
        read_json(tmp_path / "none.json")
    with pytest.raises(InputError, match="device"):
        read_json(Path("/dev/zero"))


def test_the_top_must_be_an_object(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[]")
    with pytest.raises(InputError, match=r"a\.json is not what .* it holds no JSON object"):
        read_json_object(path)
    path.write_text('\ufeff{"a": 1}', encoding="utf-8")
    assert read_json_object(path) == {"a": 1}


def test_values_are_made_fit_for_json() -> None:
    value = {
        1: (np.float32(0.5), np.arange(2), math.nan),
        "p": Path("a"),
        "x": np.array([math.inf]),
        "n": None,
        "b": True,
    }
    found = {"1": [0.5, [0, 1], None], "p": "a", "x": [None], "n": None, "b": True}
    assert plain(value) == found
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == found


@pytest.mark.parametrize("name", ["a.jsonl", "a.NDJSON", "a.json"])
def test_an_object_a_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text('\n{"a": 1} \n\n{"a": NaN}\n')
    assert read_json(path, lines=True, foreign=True) == [{"a": 1}, {"a": None}]
    with pytest.raises(InputError, match=r"line 4 holds NaN, which is not JSON; write null\.$"):
        read_json(path, lines=True, hint="write null")
    with pytest.raises(InputError, match="not valid JSON"):
        read_json(path, foreign=True)


@pytest.mark.parametrize("text", ['{"a": 1}', '{"a":\n 1}', '[{"a": 1},\n{"a": 2}]', "[\n1]"])
def test_one_value_over_lines_is_one_value(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    assert read_json(path, lines=True) == json.loads(text)


def test_sizes_and_fields_at_their_limits(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[1]")
    assert read_json(path, max_bytes=3) == [1]
    with pytest.raises(InputError, match=r"of JSON that are read; fetch it again\.$"):
        read_json(path, max_bytes=2, hint="fetch it again")
    with pytest.raises(InputError, match=r"of JSON that are read\.$"):
        read_json(path, max_bytes=2)
    assert parse_json(str(2**1023 - 1), "x") == 2**1023 - 1
    assert parse_json("1e999", "x", foreign=True) == math.inf
    with pytest.raises(InputError, match="x holds a number too large"):
        parse_json(str(2**1023), "x", foreign=True)
    with pytest.raises(InputError, match=f"has the field '{'b' * 80}' twice in one object"):
        parse_json(f'{{"a": 1, "{"b" * 99}": 1, "{"b" * 99}": 2}}', "x")


def test_a_message_names_its_source_and_the_parsers_reason() -> None:
    with pytest.raises(InputError) as caught:
        parse_json("[1,", "x.json", hint="fetch it again")
    expected = "x.json is not valid JSON, or is cut short: Expecting value; fetch it again."
    assert str(caught.value) == expected
    with pytest.raises(InputError, match=r"^x\.json is nested deeper than 60 levels; cut it\.$"):
        parse_json(nested(62), "x.json", hint="cut it")
    assert io_json.parse_json_object(b'{"a": [null]}', "x.json") == {"a": [None]}
    with pytest.raises(InputError, match=r"^x\.json is not what Likewise writes there"):
        io_json.parse_json_object("[]", "x.json")


def test_what_has_no_form_in_json() -> None:
    with pytest.raises(TypeError, match=r"^set has no form in JSON$"):
        plain({"a": [set()]})
    assert plain("half \ud800") == "half ?"
    assert io_json.plain_object({"a": (1,)}) == {"a": [1]}


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.NDJSON"])
def test_a_name_says_that_one_line_is_a_list_of_one(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text('{"a": 1}\n')
    assert read_json(path, lines=True) == [{"a": 1}]
    assert read_json(path) == {"a": 1}


def test_lines_are_known_by_the_first_of_them(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 1}\n[2]\n{"b": 3}\n')
    assert read_json(path, lines=True) == [{"a": 1}, [2], {"b": 3}]


def test_every_reader_names_its_file_and_passes_on_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[NaN")
    for reader in (read_json, read_json_object):
        with pytest.raises(InputError, match=r"a\.json holds NaN, which is not JSON\.$"):
            reader(path)
        with pytest.raises(InputError, match=r"a\.json holds NaN, .*; fetch it again\.$"):
            reader(path, hint="fetch it again")
    path.write_text("[NaN]")
    assert read_json(path, foreign=True) == [None]
    for parse in (parse_json, io_json.parse_json_object):
        with pytest.raises(InputError, match=r"^x holds NaN, which is not JSON\.$"):
            parse("[NaN]", "x")
