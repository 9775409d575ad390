"""Partitions from judgements alone: against slow references, and where the answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import betaln, expit, logit
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_info

from group_cases import partitions
from likewise.inference.partition import Partition, find_labels, infer_partition, search
from likewise.inference.partition.agreement import agreed_partition
from likewise.inference.partition.answers import (
    Answers,
    Rates,
    _without_own,
    fit_rates,
    log_likelihood,
    two_rates,
)
from likewise.inference.partition.blocks import Blocks, CellPrior
from likewise.inference.partition.fitting import fit_partition
from likewise.inference.partition.model import joining_log_prior, size_log_prior
from likewise.inference.partition.moves import Mover
from likewise.inference.partition.one_thread import on_one_thread
from likewise.inference.partition.pair_prior import logistic_log_odds, pair_similarities
from likewise.inference.partition.pairs import effective_counts
from likewise.inference.partition.search import WeightedGraph, canonical, contract, objective, split


def random_graph(rng: np.random.Generator, n: int, share: float = 0.8) -> WeightedGraph:
    left, right = np.triu_indices(n, 1)
    kept = rng.random(len(left)) < share
    return WeightedGraph.build(left[kept], right[kept], rng.standard_normal(int(kept.sum())), n)


def slow_objective(graph: WeightedGraph, labels: np.ndarray, size_prior: np.ndarray) -> float:
    total = 0.0
    for i, j, w in zip(graph.left, graph.right, graph.edge_weight):
        if labels[i] == labels[j]:
            total += w
    for group in set(labels.tolist()):
        total += size_prior[sum(1 for g in labels if g == group)]
    return total


def crowd(
    rng: np.random.Generator, truth: np.ndarray, n_pairs: int, repeats: int, swapped: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Answers of 30 people, right nine times in ten; the first ``swapped`` say the opposite."""
    left, right = np.triu_indices(len(truth), 1)
    chosen = np.repeat(rng.choice(len(left), n_pairs, replace=False), repeats)
    left, right = left[chosen], right[chosen]
    who = rng.integers(30, size=len(left))
    same = (truth[left] == truth[right]) ^ (rng.random(len(left)) < 0.1) ^ (who < swapped)
    return left, right, same, who


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_objective_equals_a_loop(rng: np.random.Generator) -> None:
    graph, prior = random_graph(rng, 9), np.append(0.0, rng.standard_normal(9))
    labels = canonical(rng.integers(4, size=9))
    expected = slow_objective(graph, labels, prior)
    assert objective(graph, labels, prior) == pytest.approx(expected)


def test_gains_are_differences_of_the_objective(rng: np.random.Generator) -> None:
    graph, prior = random_graph(rng, 9, 1.0), np.append(0.0, rng.standard_normal(9))
    labels = canonical(np.array([0, 0, 1, 1, 1, 2, 2, 0, 1]))
    mover = Mover(graph, labels, prior, fixed=False)
    _, gain = mover.gains(4)
    for target in (0, 2, 3):  # two groups, and the empty one
        moved = labels.copy()
        moved[4] = target
        change = objective(graph, moved, prior) - objective(graph, labels, prior)
        assert gain[target] - gain[1] == pytest.approx(change)


def test_sparse_and_dense_gains_agree(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, prior = random_graph(rng, 12), np.zeros(13)
    labels = canonical(rng.integers(4, size=12))
    _, dense = Mover(graph, labels, prior, fixed=False).gains(5)
    monkeypatch.setattr("likewise.inference.partition.moves.MAX_TABLE", 0)
    groups, gain = Mover(graph, labels, prior, fixed=False).gains(5)
    assert groups is not None
    np.testing.assert_allclose(gain, dense[groups])


@pytest.mark.parametrize("seed", range(5))
def test_search_finds_the_best_of_all_partitions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, prior = random_graph(rng, 6), np.zeros(7)
    best = max(slow_objective(graph, np.array(p), prior) for p in partitions(6))
    found = -np.inf
    for _ in range(4):
        mover = Mover(graph, contract(graph, np.arange(6), prior), prior, fixed=False)
        mover.anneal(rng, 1.0, 20)
        merged = split(graph, contract(graph, mover.labels, prior), prior)
        found = max(found, objective(graph, merged, prior))
    assert found == pytest.approx(best)


def test_contract_and_split_never_lose(rng: np.random.Generator) -> None:
    graph, prior = random_graph(rng, 30), np.zeros(31)
    labels = canonical(rng.integers(6, size=30))
    value = objective(graph, labels, prior)
    assert objective(graph, contract(graph, labels, prior), prior) >= value - 1e-9
    assert objective(graph, split(graph, labels, prior), prior) >= value - 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_after_contraction_no_merge_gains(seed: int) -> None:
    """Also not one that gains only since its groups have grown: large groups attract more."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 30, 0.1)
    graph = graph.reweighted(2 * graph.edge_weight)
    size_prior = joining_log_prior(30, 0.05, 3.0)
    labels = contract(graph, np.arange(30), size_prior)
    value = objective(graph, labels, size_prior)
    for a, b in set(zip(labels[graph.left].tolist(), labels[graph.right].tolist(), strict=True)):
        merged = np.where(labels == b, a, labels)
        assert objective(graph, canonical(merged), size_prior) <= value + 1e-6


@pytest.mark.parametrize("n_groups", [1, 3, 7])
def test_contract_to_a_given_number(rng: np.random.Generator, n_groups: int) -> None:
    graph = random_graph(rng, 20, 0.1)
    assert len(set(contract(graph, np.arange(20), np.zeros(21), n_groups))) == n_groups


def test_likelihood_of_pairs_equals_a_loop(rng: np.random.Generator) -> None:
    left, right, same, who = crowd(rng, np.arange(8) % 3, 20, 3)
    answers = Answers.build(left, right, same, 8, who, np.full(len(left), 0.5))
    rates = two_rates(answers, 0.8, 0.3)
    expected = np.zeros((answers.n_pairs, 2))
    for i, j, s in zip(left, right, same):
        pair = np.flatnonzero((answers.left == min(i, j)) & (answers.right == max(i, j)))[0]
        for k, p in enumerate((0.8, 0.3)):
            expected[pair, k] += 0.5 * np.log(p if s else 1 - p)
    np.testing.assert_allclose(log_likelihood(answers, rates), expected)


def test_rates_find_swapped_people(rng: np.random.Generator) -> None:
    truth = np.arange(40) % 4
    left, right, same, who = crowd(rng, truth, 700, 1, swapped=5)
    answers = Answers.build(left, right, same, 40, who, None)
    belief = (truth[answers.left] == truth[answers.right]).astype(float)
    p_same = fit_rates(answers, belief).p_same
    assert (p_same[:5, 0] < p_same[:5, 1]).all()
    assert (p_same[5:, 0] > p_same[5:, 1]).all()


def test_an_answer_is_foretold_by_its_persons_others_whatever_it_weighs(
    rng: np.random.Generator,
) -> None:
    left, right, same, who = crowd(rng, np.arange(8) % 3, 20, 3)
    weight = rng.integers(1, 4, len(left)).astype(float)
    answers = Answers.build(left, right, same, 8, who, weight)
    types = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.7]])
    each = rng.integers(0, 2, answers.n_pairs)[answers.pair].astype(float)
    log_chance = np.empty((len(each), 3))  # of every answer, for each type
    for k, (a, b) in enumerate(types):
        p = np.where(each == 1, a, b)
        log_chance[:, k] = answers.weight * np.log(np.where(answers.same, p, 1 - p))
    expected = np.empty((len(each), 2))
    for m, person in enumerate(answers.annotator):
        others = (answers.annotator == person) & (np.arange(len(each)) != m)
        chance = np.exp(log_chance[others].sum(0))
        expected[m] = chance / chance.sum() @ types
    posterior = np.stack([log_chance[answers.annotator == w].sum(0) for w in range(30)])
    np.testing.assert_allclose(_without_own(answers, each, posterior, types), expected)


def test_effective_counts_of_equal_people_are_counts() -> None:
    left, right = np.array([0, 0, 1]), np.array([1, 2, 2])
    answers = Answers.build(left, right, np.array([True, False, True]), 3, None, None)
    same, different = effective_counts(answers, two_rates(answers, 0.8, 0.3), np.full(3, 0.5))
    np.testing.assert_allclose(same, [1, 0, 1])
    np.testing.assert_allclose(different, [0, 1, 0])


def test_effective_counts_turn_swapped_people() -> None:
    left, right = np.array([0, 0, 1, 1]), np.array([1, 2, 2, 3])
    said, who = np.array([True, False, False, True]), np.array([0, 0, 1, 1])
    answers = Answers.build(left, right, said, 4, who, None)
    p_same = np.array([[0.8, 0.3], [0.2, 0.7]])  # the second is the first, the other way round
    rates = Rates(p_same, p_same[answers.annotator], (0.0, 0.0))
    same, different = effective_counts(answers, rates, np.full(4, 0.5))
    np.testing.assert_allclose(same, [1, 0, 1, 0])
    np.testing.assert_allclose(different, [0, 1, 0, 1])


def slow_blocks(counts: np.ndarray, labels: np.ndarray, prior: CellPrior) -> float:
    total, groups = 0.0, sorted(set(labels.tolist()))
    for g in groups:
        for h in groups:
            if h < g:
                continue
            cell = np.zeros(2)
            for i in range(len(labels)):
                for j in range(i + 1, len(labels)):
                    if {labels[i], labels[j]} == {g, h} and (g == h) == (labels[i] == labels[j]):
                        cell += counts[:, i, j]
            side = 0 if g == h else 1
            a, b = prior.alpha[side], prior.beta[side]
            total += betaln(cell[0] + a, cell[1] + b) - betaln(a, b)
    return total


def test_draws_that_mostly_leave_all_alone_agree_on_that() -> None:
    alone = np.arange(6)
    one_pair = np.array([0, 0, 1, 2, 3, 4])
    drawn = np.stack([one_pair] + 9 * [alone])
    agreed = agreed_partition(drawn, False, np.random.default_rng(0))
    np.testing.assert_array_equal(agreed, alone)


def test_blocks_score_and_gains(rng: np.random.Generator) -> None:
    counts = rng.integers(3, size=(2, 8, 8)).astype(float)
    counts = np.triu(counts, 1) + np.triu(counts, 1).transpose(0, 2, 1)
    labels = np.array([0, 0, 1, 1, 2, 2, 2, 0])
    size_prior, _ = size_log_prior(labels, None)
    blocks = Blocks(counts, labels, size_prior, fixed=False)
    before = slow_blocks(counts, labels, blocks.prior)
    assert blocks.score() == pytest.approx(before)
    gain = blocks.gains_of(np.array([3]))[0]
    for target in (0, 2, 3):
        moved = labels.copy()
        moved[3] = target
        change = slow_blocks(counts, moved, blocks.prior) - before
        change += size_prior[np.bincount(moved)].sum() - size_prior[np.bincount(labels)].sum()
        assert gain[target] - gain[1] == pytest.approx(change)
    blocks.move(3, 3)
    moved = np.array([0, 0, 1, 3, 2, 2, 2, 0])
    assert blocks.score() == pytest.approx(slow_blocks(counts, moved, blocks.prior))


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(
    ("swapped", "n_groups"),
    [(0, 5), (3, 5), (3, None), pytest.param(0, None, marks=pytest.mark.slow)],
)
def test_finds_groups(rng: np.random.Generator, n_groups: int | None, swapped: int) -> None:
    truth = rng.permutation(np.arange(50) % 5)
    left, right, same, who = crowd(rng, truth, 900, 1, swapped)
    found = infer_partition(left, right, same, n_items=50, annotator=who, n_groups=n_groups)
    assert adjusted_rand_score(truth, found.labels) > 0.95
    assert n_groups is None or found.n_groups == n_groups
    assert found.pair_same.shape == (900,)
    right_side = (found.pair_same > 0.5) == (truth[found.pairs[:, 0]] == truth[found.pairs[:, 1]])
    assert right_side.mean() > 0.97


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_many_small_groups(rng: np.random.Generator, quick: bool) -> None:
    truth = np.arange(120) // 3
    left, right = np.triu_indices(120, 1)
    near = right - left < 8
    left, right = np.repeat(left[near], 3), np.repeat(right[near], 3)
    same = (truth[left] == truth[right]) ^ (rng.random(len(left)) < 0.1)
    found = infer_partition(left, right, same, n_items=120, quick=quick)
    assert adjusted_rand_score(truth, found.labels) > 0.9
    assert abs(found.n_groups - 40) <= 4


@pytest.mark.usefixtures("few_draws")
def test_same_seed_same_result_and_weight_zero_is_ignored(rng: np.random.Generator) -> None:
    truth = np.arange(24) % 3
    left, right, same, who = crowd(rng, truth, 150, 1)
    plain = infer_partition(left, right, same, n_items=24, annotator=who)
    doubled = infer_partition(
        np.concatenate([left, left]),
        np.concatenate([right, right]),
        np.concatenate([same, ~same]),
        n_items=24,
        annotator=np.concatenate([who, who]),
        weight=np.repeat([1.0, 0.0], len(left)),
    )
    np.testing.assert_array_equal(plain.labels, doubled.labels)
    np.testing.assert_allclose(plain.pair_same, doubled.pair_same)


def test_nothing_asked() -> None:
    empty = np.empty(0, np.int64)
    found = infer_partition(empty, empty, empty.astype(bool), n_items=4)
    assert found.n_groups == 4
    found = infer_partition(empty, empty, empty.astype(bool), n_items=4, n_groups=2)
    assert found.n_groups == 2


@pytest.mark.parametrize("said", [True, False])
def test_one_answer(said: bool) -> None:
    found = infer_partition(np.array([0]), np.array([1]), np.array([said]), n_items=3)
    assert np.isfinite(found.pair_same).all()


def test_impossible_number_of_groups() -> None:
    with pytest.raises(ValueError, match="n_groups"):
        infer_partition(np.array([0]), np.array([1]), np.array([True]), n_items=3, n_groups=4)


def test_pair_prior_learns_similarity(rng: np.random.Generator) -> None:
    truth = np.arange(100) // 2
    X = rng.standard_normal((50, 8))[truth] + 0.3 * rng.standard_normal((100, 8))
    left, right = np.triu_indices(100, 1)
    kept = (rng.random(len(left)) < 0.05) | (truth[left] == truth[right])
    left, right = left[kept], right[kept]
    same = truth[left] == truth[right]
    noisy = np.where(same, 0.7, 0.2) + 0.1 * rng.random(len(same))
    odds = logistic_log_odds(pair_similarities(X, left, right), noisy)
    assert odds[same].mean() > odds[~same].mean() + 1
    assert expit(odds).mean() == pytest.approx(noisy.mean(), abs=0.01)
    assert logit(noisy).min() < odds[~same].mean() < odds[same].mean()


def test_of_a_given_number_draws_decide_not_the_likeliest_partition() -> None:
    """12 groups of 6 items, hubs asked oftenest and one asked pair in twelve inside a group: many
    items have hardly a link, and the likeliest partition puts them where chance has it."""
    likeliest, drawn = [], []
    for seed in range(3):
        rng = np.random.default_rng([seed, 5])
        truth = rng.permutation(np.repeat(np.arange(12), 6))
        i, j = np.triu_indices(72, 1)
        hub = rng.pareto(1.5, 72) + 0.2
        weight = hub[i] * hub[j] * np.where(truth[i] == truth[j], 4.0, 1.0)
        pool = rng.choice(len(i), 300, replace=False, p=weight / weight.sum())
        pair = rng.choice(pool, 1800)
        said = rng.random(1800) < np.where(truth[i[pair]] == truth[j[pair]], 0.85, 0.15)
        answers = Answers.build(i[pair], j[pair], said, 72, None, None)
        fit = fit_partition(answers, None, 12, rng)
        assert len(np.unique(fit.sampled.labels)) == 12
        likeliest.append(adjusted_rand_score(truth, fit.states[0].labels))
        drawn.append(adjusted_rand_score(truth, fit.sampled.labels))
    assert np.mean(drawn) > np.mean(likeliest) + 0.03, (likeliest, drawn)


@pytest.mark.usefixtures("few_draws")
def test_which_pairs_were_asked_counts_where_the_number_of_groups_is_given() -> None:
    """40 groups of 3, neighbours in a similarity asked: what was not asked is likely apart."""
    rng = np.random.default_rng(4)
    truth = np.repeat(np.arange(40), 3)
    place = truth // 4 + 0.15 * rng.standard_normal(120)  # four groups look alike
    i, j = np.triu_indices(120, 1)
    asked = (np.abs(place[i] - place[j]) < 0.3) & (rng.random(len(i)) < 0.6)
    asked |= truth[i] == truth[j]
    left, right = np.repeat(i[asked], 3), np.repeat(j[asked], 3)
    said = rng.random(len(left)) < np.where(truth[left] == truth[right], 0.8, 0.2)
    for find in (infer_partition, find_labels):
        found = find(left, right, said, n_items=120, n_groups=40, seed=0)
        labels = found.labels if isinstance(found, Partition) else found
        assert adjusted_rand_score(truth, labels) > 0.9


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("draw", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_rough_large_groups_are_found_whose_number_is_not_told(draw: int) -> None:
    """Three groups, and answers that are little better than chance."""
    rng = np.random.default_rng(draw)
    truth = rng.integers(3, size=200)
    left = rng.integers(200, size=2800)
    right = (left + rng.integers(1, 200, size=2800)) % 200
    said = rng.random(2800) < np.where(truth[left] == truth[right], 0.7, 0.3)
    found = infer_partition(left, right, said, n_items=200, seed=0, quick=True)
    assert found.n_groups in (3, 4)
    assert adjusted_rand_score(truth, found.labels) > 0.5


def test_the_leading_vector_is_found_where_lapack_leaves_it_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seen with one build of LAPACK, a matrix of equal weights, and an index range."""
    matrix = np.diag([1.0, 5.0, 2.0])
    assert np.allclose(np.abs(search.leading_vector(matrix)), [0, 1, 0])
    whole = search.eigh

    def forgetful(matrix: Any, **range_: Any) -> tuple[Any, Any]:
        values, vectors = whole(matrix)
        return (values[:0], vectors[:, :0]) if range_ else (values, vectors)

    monkeypatch.setattr(search, "eigh", forgetful)
    assert np.allclose(np.abs(search.leading_vector(matrix)), [0, 1, 0])


def test_before_any_answer_as_many_asked_pairs_are_inside_as_are() -> None:
    """An item that was compared with d others, each alone, joins one of them in so many cases."""
    for degree, share in ((1.0, 0.2), (4.0, 0.1), (6.0, 0.12)):
        odds = np.exp(joining_log_prior(10, share, degree)[2])
        assert np.isclose(odds / (1 + degree * odds), share)
    prior = np.diff(joining_log_prior(10, 0.1, 4.0)[1:])
    assert np.allclose(prior - prior[0], np.log(np.arange(1, 10)))  # n members, n times as much
    assert np.isfinite(joining_log_prior(10, 0.5, 40.0)).all()


def test_small_matrices_are_not_shared_out() -> None:
    @on_one_thread
    def threads() -> list[int]:
        return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]

    assert set(threads()) == {1}
