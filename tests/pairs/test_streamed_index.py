"""Answers about pairs, sorted in buckets on disk, beside dictionaries; streams in pieces."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.errors import InputError
from likewise.pairs import Pairs, stream, streamed_index
from likewise.pairs.formats.long import ColumnNames
from likewise.pairs.stream import JudgementStream, Piece
from likewise.pairs.streamed_description import describe_file
from likewise.pairs.streamed_index import StreamedPairIndex

N = 9


def pieces(named: bool) -> list[Piece]:
    rng = np.random.default_rng(0)
    found = []
    for size in (40, 0, 25):
        left = rng.integers(N, size=size).astype(np.int32)
        right = ((left + rng.integers(1, N, size=size)) % N).astype(np.int32)
        people = rng.integers(3, size=size).astype(np.int32) if named else None
        found.append(Piece(left, right, rng.random(size) < 0.5, people))
    return found


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("bucket", [1 << 25, 20, 1])
def test_buckets_tell_what_a_dictionary_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: int, named: bool
) -> None:
    monkeypatch.setattr(streamed_index, "BUCKET", bucket)
    monkeypatch.setattr(streamed_index, "SPLIT", 7)
    index = StreamedPairIndex(tmp_path, N, 65)
    answers = defaultdict(list)
    columns: list[list[np.ndarray]] = [[], [], [], []]
    for piece in pieces(named):
        index.add(piece)
        for i, j, same in zip(piece.left.tolist(), piece.right.tolist(), piece.same.tolist()):
            answers[min(i, j), max(i, j)].append(same)
        for kept, column in zip(columns, (piece.left, piece.right, piece.same, piece.annotator)):
            kept.append(column)
    written = {path.suffix for path in tmp_path.iterdir()}
    assert written == ({".key", ".person"} if named else {".key"})
    a, b = np.triu_indices(N, 1)
    found = index.ask(index.code(b, a))
    expected = [np.mean(answers[pair]) if pair in answers else np.nan for pair in zip(a, b)]
    np.testing.assert_array_equal(found.shares, expected)
    both = sum(len(set(said)) == 2 for said in answers.values())
    assert (found.distinct, found.both) == (len(answers), both)
    left, right, same = (np.concatenate(column) for column in columns[:3])
    people = np.concatenate(columns[3]).astype(str) if named else None
    assert found.agreement == Pairs(left, right, same, people, n_items=N).describe().agreement
    assert list(tmp_path.iterdir()) == []


def parquet(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path, row_group_size=2)
    return path


class TestStreams:
    def test_pieces_of_at_least_so_many_rows(self, tmp_path: Path) -> None:
        path = parquet(tmp_path / "x.parquet", left=range(5), right=range(1, 6), same=[True] * 5)
        found = JudgementStream.open(path)
        assert found is not None
        found._table.batch_rows = 1
        assert [len(piece) for piece in found.pieces(2)] == [2, 2, 1]
        assert [len(piece) for piece in found.pieces()] == [5]
        assert found.rows == 5
        assert len(found.read()) == 5

    def test_what_the_first_pass_tells(self, tmp_path: Path) -> None:
        path = parquet(
            tmp_path / "x.parquet",
            p=[0, 1, 2, 3, 0], q=[1, 2, 3, 7, 2], r=["yes", "no", "?", "1", "same"],
            who=["b", None, "a", "b", "b"], w=[1.0, 0.0, 1.0, 0.5, 2.0],
        )  # fmt: skip
        names = ColumnNames("p", "q", "r", "who", "w")
        found = JudgementStream.open(path, names)
        assert found is not None
        seen = found.seen
        assert (seen.judgements, seen.same, seen.n_items) == (3, 3, 8)
        assert (seen.annotators, seen.dropped, seen.weightless) == (3, 1, 1)
        read = found.read()
        assert (read.left.tolist(), read.right.tolist()) == ([0, 3, 0], [1, 7, 2])
        assert (read.annotator.tolist(), read.dropped, read.n_items) == ([1, 1, 1], 1, 8)
        assert JudgementStream.open(path) is None

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"left": [0, None, 2]}, r"^x\.parquet, row 1: left is blank"),
            ({"right": [1, 2, -5]}, r"^x\.parquet, row 2: right is -5, but item"),
            ({"right": [1, 2, 2]}, r"^x\.parquet, row 2: item 2 is compared with itself"),
            ({"right": [1, 2, 2**40]}, r"row 2: right is 1099511627776, too large"),
            ({"same": ["1", "0", "x"]}, r"row 2: same is 'x'"),
            ({"same": ["1", "0", "-1"]}, r"same is 0 while other answers are -1"),
        ],
    )
    def test_mistakes_name_the_row_of_the_file(
        self, tmp_path: Path, change: dict[str, list], words: str
    ) -> None:
        given = {"left": [0, 1, 2], "right": [1, 2, 3], "same": ["1", "0", "1"]} | change
        found = JudgementStream.open(parquet(tmp_path / "x.parquet", **given))
        assert found is not None
        found._table.batch_rows = 2
        with pytest.raises(InputError, match=words):
            found.seen  # noqa: B018

    def test_nothing_that_counts(self, tmp_path: Path) -> None:
        none = pa.array([], pa.int32())
        path = parquet(tmp_path / "x.parquet", left=none, right=none, same=pa.array([], pa.bool_()))
        found = JudgementStream.open(path)
        assert found is not None
        with pytest.raises(InputError, match=r"^x\.parquet holds no judgement"):
            found.read()

    def test_files_are_described_as_they_are_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = parquet(tmp_path / "x.parquet", p=[0, 1, 0], right=[1, 2, 2], same=[1, 1, 0])
        expected = Pairs.read(path, left="p").describe(2)
        assert describe_file(path, {"left": "p"}, 2) == expected
        monkeypatch.setattr("likewise.pairs.streamed_description.WORTHWHILE", 3)
        streamed = describe_file(path, {"left": "p"}, 2)
        assert streamed.triangles.sampled
        assert (streamed.inside, streamed.loops) == (expected.inside, expected.loops)
        monkeypatch.setattr("likewise.pairs.streamed_description.WORTHWHILE", 4)
        assert describe_file(path, {"left": "p"}, 2) == expected
        assert stream.PIECE == 1 << 25
