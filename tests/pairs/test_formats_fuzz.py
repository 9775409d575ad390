"""Whatever bytes a file holds: judgements, or one sentence on what is wrong; nothing else."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likewise.errors import InputError, RowError
from likewise.io.dictionary import MISSING, CodedBuilder
from likewise.pairs import Pairs
from likewise.pairs.formats import read_links, read_pairs

NAMES = ["left", "right", "same", "annotator", "weight", "unique_id_l", "unique_id_r"]
NAMES += ["clerical_match_score", "source_dataset_l", "z_cluster", "z_isMatch", "id", "other"]
VALUES = [
    "0",
    "1",
    "-1",
    "2",
    "1.5",
    "",
    "same",
    "différent",
    "unsure",
    "1e999",
    "nan",
    "a.jpg",
    '"',
]
VALUES += ["99999999999999999999", "2147483648", "'", "\\", "a\tb", "true", "-0", "007", "\ufffe"]

common = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)


def outcome(read: Callable[[], Pairs]) -> Pairs | str:
    """The judgements, or the sentence; any other exception fails the test."""
    try:
        return read()
    except InputError as error:
        return str(error)


def check(path: Path, content: bytes, **options: Any) -> None:
    path.write_bytes(content)
    found = outcome(lambda: read_pairs(path, **options))
    if isinstance(found, str):
        assert found
        assert "\n" not in found
    else:
        assert len(found) > 0


@common
@given(
    content=st.binary(max_size=300),
    suffix=st.sampled_from([".csv", ".parquet", ".db", ".json", ""]),
)
def test_any_bytes(tmp_path: Path, content: bytes, suffix: str) -> None:
    check(tmp_path / f"p{suffix}", content)


@common
@given(
    header=st.lists(st.sampled_from(NAMES), min_size=1, max_size=6),
    rows=st.lists(st.lists(st.sampled_from(VALUES), min_size=1, max_size=6), max_size=6),
    named=st.booleans(),
)
def test_tables_of_odd_cells(
    tmp_path: Path, header: list[str], rows: list[list[str]], named: bool
) -> None:
    text = "\n".join(",".join(row) for row in [header, *rows])
    options = {"item_ids": ["0", "1", "a.jpg", "007"]} if named else {"n_items": 10}
    check(tmp_path / "p.csv", text.encode("utf-8", "surrogatepass"), **options)


@common
@given(
    start=st.sampled_from(
        [
            b"left,right,same\n0,1,1\n1,2,0\n",
            b'{"distinct": [[{"a": 1}, {"a": 2}]], "match": [[{"a": 1}, {"a": 3}]]}',
            b'[{"data": {"a": "x", "b": "y"}, "annotations": [{"result": []}]}]',
            b'[{"left": 0, "right": 1, "same": true}]',
        ]
    ),
    cut=st.integers(0, 80),
    junk=st.binary(max_size=12),
)
def test_damaged_text(tmp_path: Path, start: bytes, cut: int, junk: bytes) -> None:
    check(tmp_path / "p", start[:cut] + junk + start[cut:])


@common
@given(position=st.integers(0, 10**6), junk=st.binary(min_size=1, max_size=4))
def test_damaged_parquet(tmp_path: Path, position: int, junk: bytes) -> None:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"left": [0, 1], "right": [1, 2], "same": ["yes", "no"]}), buffer)
    content = bytearray(buffer.getvalue())
    place = position % len(content)
    content[place : place + len(junk)] = junk
    check(tmp_path / "p.parquet", bytes(content))


@pytest.mark.parametrize("wrong", [2, -2])
def test_a_text_that_the_file_does_not_hold(wrong: int) -> None:
    """A damaged dictionary-encoded column refers to words beyond its dictionary."""
    words = pa.array(["yes", "no"])
    builder = CodedBuilder()
    whole = pa.array([0, 1, None], pa.int32())
    builder.append(pa.DictionaryArray.from_arrays(whole, words))
    damaged = pa.array([1, wrong], pa.int32())
    with pytest.raises(RowError, match="damaged") as caught:
        builder.append(pa.DictionaryArray.from_arrays(damaged, words, safe=False))
    assert caught.value.row == 4
    assert builder.finish().codes.tolist() == [1, 0, MISSING]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(VALUES),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*NAMES, "data", "annotations", "result", "value", "choices", "type"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@common
@given(
    content=json_values
    | st.fixed_dictionaries({"distinct": json_values, "match": json_values})
    | st.lists(st.fixed_dictionaries({"data": json_values, "annotations": json_values}), max_size=3)
    | st.lists(
        st.fixed_dictionaries({"left": json_values, "right": json_values, "same": json_values}),
        max_size=3,
    ),
    format=st.sampled_from([None, "dedupe", "label-studio", "pairs", "zingg", "splink"]),
)
def test_json_of_any_shape(tmp_path: Path, content: Any, format: str | None) -> None:
    check(tmp_path / "p.json", json.dumps(content).encode(), format=format)


@common
@given(content=st.binary(max_size=100))
def test_links_of_any_bytes(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "links"
    path.write_bytes(content)
    found = outcome(lambda: read_links(must=path))
    assert not isinstance(found, str) or "\n" not in found


def test_deeply_nested_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(b"[" * 200_000)
    with pytest.raises(InputError, match="nested deeper than"):
        read_pairs(path)
