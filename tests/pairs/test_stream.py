"""Judgements that stay on disk: the figures of those in memory, whatever the size of a piece."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from likewise.errors import InputError
from likewise.inference.propagation.belief_propagation import infer
from likewise.inference.propagation.graph import Graph
from likewise.inference.propagation.streamed import mean_field_pass
from likewise.noise.channels import RateChannel
from likewise.pairs import (
    Pairs,
    description,
    edges,
    stream,
    streamed_description,
    streamed_index,
    triangles,
)
from likewise.pairs.stream import JudgementStream
from likewise.pairs.streamed_description import describe_file, describe_stream


def columns(rows: int = 3000, items: int = 120, seed: int = 0) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    left = rng.integers(items, size=rows)
    right = (left + 1 + rng.integers(items - 1, size=rows)) % items
    same = (left % 4 == right % 4) ^ (rng.random(rows) < 0.1)
    words = np.array(["different", "same", "unsure"])
    answer = np.where(rng.random(rows) < 0.03, 2, same)
    return {
        "left": left,
        "right": right,
        "same": words[answer].tolist(),
        "annotator": [f"person {k}" for k in rng.integers(7, size=rows)],
        "weight": np.where(rng.random(rows) < 0.02, 0.0, 1.0),
    }


def write(path: Path, given: dict[str, object]) -> Path:
    pq.write_table(pa.table(given), path, row_group_size=500)
    return path


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is small here is sampled as what is large would be."""
    monkeypatch.setattr(triangles, "MAX_DENSE_ITEMS", 0)
    sampling = partial(triangles.count_triangles, max_paths=0)
    monkeypatch.setattr(description, "count_triangles", sampling)


@pytest.mark.usefixtures("sampled")
@pytest.mark.parametrize("without", [(), ("weight",), ("annotator", "weight")])
@pytest.mark.parametrize("bucket", [1 << 25, 250])
def test_a_description_is_that_of_judgements_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: int, without: tuple[str, ...]
) -> None:
    given = {name: c for name, c in columns().items() if name not in without}
    file = write(tmp_path / "rows.parquet", given)
    monkeypatch.setattr(streamed_index, "BUCKET", bucket)
    expected = Pairs.read(file).describe(4)
    found = JudgementStream.open(file)
    assert found is not None
    assert describe_stream(found, 4).to_dict() == expected.to_dict()


@pytest.mark.usefixtures("sampled")
def test_pieces_change_nothing_but_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "rows.parquet", columns())
    expected = Pairs.read(file).describe(4).to_dict()
    monkeypatch.setattr(stream, "PIECE", 600)
    monkeypatch.setattr(streamed_index, "SPLIT", 100)
    found = JudgementStream.open(file)
    assert found is not None
    given = describe_stream(found, 4).to_dict()
    for name in set(expected) - {"triangles", "noise", "verdict"}:
        assert given[name] == expected[name], name
    assert given["triangles"]["closed"] == pytest.approx(expected["triangles"]["closed"], rel=0.05)


def test_few_items_that_nothing_joins(tmp_path: Path) -> None:
    given = {"left": [0, 2, 0, 0], "right": [1, 3, 1, 5], "same": [True, True, True, False]}
    found = JudgementStream.open(write(tmp_path / "rows.parquet", given))
    assert found is not None
    told = describe_stream(found)
    assert (told.items, told.items_judged, told.components, told.unlinked) == (6, 5, 2, 2)
    assert (told.repeats, told.inside, told.loops) == (1, 0, 1)


def test_a_compacted_folder_is_described_as_its_rows_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("duckdb")
    from likewise.pairs.compact.build import Job, compact

    given = columns()
    del given["weight"]
    file = write(tmp_path / "rows.parquet", given)
    compact(Job((file,), tmp_path / "small"))
    expected = Pairs.read(file).describe(4).to_dict()
    # Which of a person's answers to one question came first is not kept: alpha moves a little.
    agreement = expected.pop("agreement")
    found = describe_file(tmp_path / "small", n_classes=4).to_dict()
    assert found.pop("agreement") == pytest.approx(agreement, rel=0.02)
    assert found == expected
    monkeypatch.setattr(streamed_description, "WORTHWHILE", 1)
    given = describe_file(tmp_path / "small", n_classes=4).to_dict()
    for name in set(expected) - {"triangles", "noise", "verdict"}:
        assert given[name] == expected[name], name


def test_ids_that_must_be_looked_up_are_no_stream(tmp_path: Path) -> None:
    text = columns(50) | {"left": [f"a{k}" for k in range(50)]}
    assert JudgementStream.open(write(tmp_path / "text.parquet", text)) is None
    (tmp_path / "rows.csv").write_text("left,right,same\n0,1,1\n")
    assert JudgementStream.open(tmp_path / "rows.csv") is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"left": [0, 2, -1]}, "row 2: left is -1, but item indices start at 0"),
        ({"left": [0, 3, 2]}, "row 1: item 3 is compared with itself"),
        ({"left": [0, None, 2]}, "row 1: left is blank"),
        ({"left": [0, 1, 2**40]}, "too large for an item's position"),
        ({"same": ["yes", "maybe", "no"]}, "row 1: same is 'maybe'"),
        ({"same": ["-1", "1", "0"]}, "same is 0 while other answers are -1"),
    ],
)
def test_mistakes_are_found_in_the_first_pass(
    tmp_path: Path, change: dict[str, list[object]], said: str
) -> None:
    given = {"left": [0, 1, 2], "right": [1, 3, 0], "same": ["yes", "no", "no"]}
    table = pa.table(given | change)
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=1)
    found = JudgementStream.open(tmp_path / "rows.parquet")
    assert found is not None
    with pytest.raises(InputError, match=said):
        _ = found.seen


def test_a_pass_of_mean_field_is_that_of_judgements_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = columns()
    del given["weight"]
    file = write(tmp_path / "rows.parquet", given)
    monkeypatch.setattr(stream, "PIECE", 700)
    found = JudgementStream.open(file)
    assert found is not None
    source = torch.Generator().manual_seed(0)
    log_prior = torch.randn(found.seen.n_items, 4, generator=source).log_softmax(1)
    graph, channel = Graph.from_pairs(Pairs.read(file)), RateChannel(0.7, 0.05)
    expected = infer(
        log_prior, graph, channel, method="mean_field", iterations=1, damping=0.0, tolerance=0.0
    )
    passed = mean_field_pass(log_prior, found, channel)
    assert torch.allclose(passed, expected.belief, atol=1e-5)
    assert not torch.allclose(passed, log_prior.exp(), atol=0.1)


def test_components_in_pieces_are_those_of_all_at_once() -> None:
    rng = np.random.default_rng(1)
    left, right = rng.integers(400, size=(2, 300))
    joined = streamed_description._Components(400)
    for part in edges.chunks(300, 40):
        same = np.ones(len(left[part]), bool)
        joined.join(stream.Piece(left[part], right[part], same, None))
    whole = edges.components(left, right, 400)
    assert joined.count == whole.max() + 1
    assert len(np.unique(np.stack([joined.ids, whole]), axis=1).T) == joined.count


N_EQUAL = 200_000


def write_equal_rows(path: Path, group: int) -> None:
    given = {"left": np.zeros(N_EQUAL, np.int32), "right": np.ones(N_EQUAL, np.int32)}
    pq.write_table(pa.table(given | {"same": np.ones(N_EQUAL, bool)}), path, row_group_size=group)


def test_what_is_never_held_at_once_is_not_refused_for_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_equal_rows(tmp_path / "rows.parquet", group=1000)
    monkeypatch.setenv("LIKEWISE_MAX_GB", "0.0005")
    found = JudgementStream.open(tmp_path / "rows.parquet")
    assert found is not None
    assert found.seen.judgements == N_EQUAL
    with pytest.raises(InputError, match="LIKEWISE_MAX_GB"):
        Pairs.read(tmp_path / "rows.parquet")


def test_a_row_group_too_large_for_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_equal_rows(tmp_path / "rows.parquet", group=N_EQUAL)
    monkeypatch.setenv("LIKEWISE_MAX_GB", "0.0005")
    found = JudgementStream.open(tmp_path / "rows.parquet")
    assert found is not None
    with pytest.raises(InputError, match="LIKEWISE_MAX_GB"):
        _ = found.seen
