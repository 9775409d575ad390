"""Judgements shared out over processes: between them they have what one process has."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.inference.graph_beliefs import graph_beliefs, thinned
from likewise.pairs import Pairs
from likewise.pairs.shards import (
    PairShard,
    exchange_of,
    own_items,
    read_shard,
    total_of,
    whole,
    within,
)

Result = TypeVar("Result")


class Threads:
    """An exchange between threads, which stand for processes."""

    def __init__(self, rank: int, world: int, barrier: threading.Barrier, board: list) -> None:
        self.rank, self.world, self._barrier, self._board = rank, world, barrier, board

    def gather_rows(self, local: NDArray) -> NDArray:
        self._board[self.rank] = local
        self._barrier.wait(60)
        found = np.concatenate(self._board)
        self._barrier.wait(60)
        return found


def on_ranks(world: int, work: Callable[[Threads], Result]) -> list[Result]:
    """What each of ``world`` ranks makes of it."""
    barrier, board = threading.Barrier(world), [np.empty(0)] * world
    results: dict[int, Result] = {}
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = work(Threads(rank, world, barrier, board))
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise next(e for e in errors if not isinstance(e, threading.BrokenBarrierError))
    return [results[rank] for rank in range(world)]


def noisy(n_items: int = 203, per_item: int = 60, weighted: bool = False) -> Pairs:
    rng = np.random.default_rng(0)
    z = rng.integers(4, size=n_items)
    clean = Pairs.from_labels(z, per_item, rng)
    same = rng.random(len(clean)) < np.where(clean.same, 0.9, 0.05)
    weight = rng.choice([0.0, 0.5, 2.0], len(clean)) if weighted else None
    return Pairs(clean.left, clean.right, same, weight=weight, n_items=n_items)


def cut(pairs: Pairs, exchange: Threads) -> PairShard:
    return PairShard.of(pairs, exchange, lambda: pairs)


@pytest.mark.parametrize("world", [1, 2, 3, 4])
def test_every_item_has_one_owner_and_all_its_judgements_there(world: int) -> None:
    pairs = noisy()
    shards = on_ranks(world, lambda exchange: cut(pairs, exchange))
    owned = [own_items(203, shard.exchange) for shard in shards]
    assert [i for block in owned for i in range(203)[block]] == list(range(203))
    for shard, block in zip(shards, owned):
        mine = within(pairs.left, block) | within(pairs.right, block)
        np.testing.assert_array_equal(shard.left, pairs.left[mine])
        np.testing.assert_array_equal(shard.same, pairs.same[mine])
        assert total_of(shard) == len(pairs)
        assert whole(shard) is pairs
        assert exchange_of(shard) is shard.exchange


@pytest.mark.parametrize("contradicted", [False, True])
def test_chains_over_several_processes_are_followed(contradicted: bool) -> None:
    """0-9, 9-1, 1-8: no process sees the whole chain."""
    chain = [0, 9, 1, 8, 2, 7]
    left, right = [*chain[:-1], 3, 0], [*chain[1:], 4, 3]
    same = [True] * 6 + [False]
    if contradicted:
        left, right, same = [*left, 7], [*right, 0], [*same, False]
    pairs = Pairs(left, right, same, n_items=10)
    found = on_ranks(
        3,
        lambda exchange: (cut(pairs, exchange).components(), cut(pairs, exchange).is_consistent()),
    )
    for components, consistent in found:
        np.testing.assert_array_equal(components, pairs.components())
        assert consistent is (not contradicted)


@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_beliefs_and_rates_are_those_of_one_process(world: int, weighted: bool) -> None:
    pairs = noisy(weighted=weighted)
    alone = graph_beliefs(pairs, 4, seed=0)
    assert alone is not None
    assert alone.decided > 0.9
    for found in on_ranks(world, lambda exchange: graph_beliefs(cut(pairs, exchange), 4, seed=0)):
        assert found is not None
        np.testing.assert_allclose(found.evidence, alone.evidence, atol=1e-6)
        assert found.channel.a == pytest.approx(alone.channel.a, abs=1e-9)
        assert found.channel.b == pytest.approx(alone.channel.b, abs=1e-9)


def test_the_same_judgements_are_thinned_away_everywhere() -> None:
    pairs = noisy(per_item=100)
    few = thinned(pairs, np.random.default_rng(0), per_item=20)
    assert 2 * len(few) / 203 == pytest.approx(20, rel=0.15)

    def thin(exchange: Threads) -> Pairs:
        return thinned(cut(pairs, exchange), np.random.default_rng(0), per_item=20)

    for rank, shard in enumerate(on_ranks(2, thin)):
        assert isinstance(shard, PairShard)
        assert total_of(shard) == len(few)
        block = slice(*(203 * k // 2 for k in (rank, rank + 1)))
        mine = within(few.left, block) | within(few.right, block)
        np.testing.assert_array_equal(shard.left, few.left[mine])


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.parquet"])
def test_files_are_read_in_shards(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = noisy()
    pairs.write(tmp_path / name)
    most = []
    made = Pairs.__init__

    def counted(self: Pairs, *args: object, **options: object) -> None:
        made(self, *args, **options)
        most.append(len(self))

    monkeypatch.setattr(Pairs, "__init__", counted)
    shards = on_ranks(4, lambda exchange: read_shard(tmp_path / name, exchange, n_items=203))
    assert max(most) < 0.55 * len(pairs)  # 7 of 16: no process has held them all
    for shard in shards:
        assert isinstance(shard, PairShard)
        expected = cut(pairs, Threads(0, 1, threading.Barrier(1), [0]))
        assert shard.total == len(pairs)
        mine = within(pairs.left, own_items(203, shard.exchange))
        mine |= within(pairs.right, own_items(203, shard.exchange))
        np.testing.assert_array_equal(shard.right, expected.right[mine])


def test_a_wrong_row_is_named_as_in_the_whole_file(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("left,right,same\n0,1,1\n0,2,0\n5,99,1\n")
    with pytest.raises(InputError, match="99"):
        on_ranks(2, lambda exchange: read_shard(tmp_path / "pairs.csv", exchange, n_items=10))


def test_several_people_are_told_apart_with_all_judgements(tmp_path: Path) -> None:
    base = noisy()
    people = [f"p{k % 3}" for k in range(len(base))]
    Pairs(base.left, base.right, base.same, people, n_items=203).write(tmp_path / "pairs.csv")
    for found in on_ranks(2, lambda e: read_shard(tmp_path / "pairs.csv", e, n_items=203)):
        assert not isinstance(found, PairShard)
        assert len(found) == len(base)
