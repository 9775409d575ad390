"""Judgements shared out over processes: between them they have what one process has."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from likewise.errors import InputError
from likewise.inference.propagation.graph_beliefs import graph_beliefs, thinned
from likewise.methods.problem import check_judgements
from likewise.pairs import Pairs
from likewise.pairs.closure import count_closed, may_be_sorts
from likewise.pairs.shards import (
    PairShard,
    exchange_of,
    own_items,
    read_shard,
    same_of,
    total_of,
    whole,
    with_all_people,
    within,
)
from rank_threads import Threads, on_ranks


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


def by_people(folder: Path) -> Pairs:
    """Judgements of three people, of whom one judges the first items alone, in pairs.csv."""
    base = noisy()
    person = np.where(base.left < 30, "b", np.where(np.arange(len(base)) % 2, "c", "a"))
    pairs = Pairs(base.left, base.right, base.same, person, n_items=203)
    pairs.write(folder / "pairs.csv")
    return pairs


def test_a_shard_knows_everybody_by_the_same_number(tmp_path: Path) -> None:
    pairs = by_people(tmp_path)
    for found in on_ranks(4, lambda e: read_shard(tmp_path / "pairs.csv", e, n_items=203)):
        assert isinstance(found, PairShard)
        own = own_items(203, found.exchange)
        mine = within(pairs.left, own) | within(pairs.right, own)
        assert found.annotator_names.tolist() == ["a", "b", "c"]
        np.testing.assert_array_equal(found.annotator, pairs.annotator[mine])


def test_people_whom_one_process_never_meets_are_known_to_it() -> None:
    """Numbered as in the whole file, by the order of their names."""
    names = np.array(["\u017c", "a\nline", "b"])
    left, right, person = np.array([0, 1, 4, 5]), np.array([1, 2, 5, 6]), np.array([0, 0, 1, 2])

    def own_part(exchange: Threads) -> PairShard:
        mine = within(left, own_items(8, exchange))
        part = Pairs(left[mine], right[mine], [1, 0], names[person[mine]], n_items=8)
        return with_all_people(cut(part, exchange))

    for rank, found in enumerate(on_ranks(2, own_part)):
        assert found.annotator_names.tolist() == ["a\nline", "b", "\u017c"]
        assert found.annotator.tolist() == [[2, 2], [0, 1]][rank]


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.parquet"])
def test_a_process_without_judgements_goes_along(name: str, tmp_path: Path) -> None:
    names = ["a", "b", "a", "b"]
    Pairs([0, 1, 2, 0], [1, 2, 3, 3], [1, 0, 1, 0], names, n_items=8).write(tmp_path / name)

    def read(exchange: Threads) -> Pairs:
        shard = read_shard(tmp_path / name, exchange, n_items=8)
        check_judgements(shard, "given")
        assert (total_of(shard), same_of(shard)) == (4, 2)
        return shard

    found = on_ranks(2, read)
    assert [len(shard) for shard in found] == [4, 0]
    for shard in found:
        assert isinstance(shard, PairShard)
        assert shard.annotator_names.tolist() == ["a", "b"]


def test_sorts_are_read_whole(tmp_path: Path) -> None:
    """Every process sees parts of them only, which are no sorts."""
    rng = np.random.default_rng(0)
    lefts, rights, people = [], [], []
    for person in range(30):
        shown = rng.choice(60, 8, replace=False)
        i, j = np.triu_indices(8, 1)
        lefts, rights = [*lefts, shown[i]], [*rights, shown[j]]
        people += [f"p{person:02}"] * len(i)
    left, right = np.concatenate(lefts), np.concatenate(rights)
    pairs = Pairs(left, right, left % 3 == right % 3, people, n_items=60)
    pairs.write(tmp_path / "pairs.csv")
    assert may_be_sorts(pairs)
    for found in on_ranks(3, lambda e: read_shard(tmp_path / "pairs.csv", e, n_items=60)):
        assert not isinstance(found, PairShard)
        assert len(found) == len(pairs)


def test_single_questions_are_no_sorts(tmp_path: Path) -> None:
    pairs = by_people(tmp_path)
    assert not may_be_sorts(pairs)
    tried, closed = count_closed(pairs, slice(0, 203))
    assert tried > 300
    assert closed == 0


@pytest.mark.parametrize("block", [slice(0, 12), slice(0, 5), slice(4, 12)])
def test_closed_judgements_are_counted_as_by_a_slow_loop(block: slice) -> None:
    rng = np.random.default_rng(0)
    left = rng.integers(12, size=60)
    right = (left + rng.integers(1, 12, size=60)) % 12
    pairs = Pairs(left, right, left > right, rng.integers(4, size=60), n_items=12)
    judged = set(zip(pairs.annotator, left, right)) | set(zip(pairs.annotator, right, left))

    def others(person: int, item: int, but: int) -> set[int]:
        return {k for k in range(12) if (person, item, k) in judged} - {but}

    tried = closed = 0
    for one, a, b in zip(pairs.annotator, left, right):
        if block.start <= min(a, b) and max(a, b) < block.stop:
            tried += 1
            closed += others(one, a, b) == others(one, b, a) != set()
    assert count_closed(pairs, block) == (tried, closed)
