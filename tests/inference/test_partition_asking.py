"""What was asked as evidence for groups, and one partition for many draws."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from group_cases import partitions
from likewise.inference.partition import fitting, infer_partition
from likewise.inference.partition.agreement import agreed_partition
from likewise.inference.partition.answers import Answers, log_likelihood, two_rates
from likewise.inference.partition.asking import Asking, AskingLogRatios, asking_log_ratios
from likewise.inference.partition.cell_search import CellSearch
from likewise.inference.partition.model import Problem
from likewise.inference.partition.pairs import log_predictive
from likewise.inference.partition.refine import square_counts


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def suggested(
    rng: np.random.Generator, truth: np.ndarray, n_pairs: int, share: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of which ``share`` lie inside a group, the others anywhere; a tenth wrong."""
    left, right = np.triu_indices(len(truth), 1)
    alike = np.flatnonzero(truth[left] == truth[right])
    inside = rng.random(n_pairs) < share
    chosen = np.where(inside, rng.choice(alike, n_pairs), rng.integers(len(left), size=n_pairs))
    left, right = left[chosen], right[chosen]
    return left, right, (truth[left] == truth[right]) ^ (rng.random(n_pairs) < 0.1)


def asking_of(left: np.ndarray, right: np.ndarray, n: int, rng: np.random.Generator) -> Asking:
    return Asking.build(Answers.build(left, right, left == left, n, None, None), rng)


def ratios_of(
    left: np.ndarray, right: np.ndarray, truth: np.ndarray, rng: np.random.Generator
) -> AskingLogRatios:
    asking = asking_of(left, right, len(truth), rng)
    return asking.log_ratios(truth, asking_log_ratios(asking.answers, truth))


def test_near_pairs_have_a_common_neighbour(rng: np.random.Generator) -> None:
    left, right = np.triu_indices(14, 1)
    kept = rng.random(len(left)) < 0.2
    left, right = left[kept], right[kept]
    asking = asking_of(left, right, 14, rng)
    edges = {frozenset(pair) for pair in zip(left.tolist(), right.tolist())}
    expected = set()
    for i in range(14):
        for k in range(14):
            middle = range(14)
            if i != k and any({frozenset((i, j)), frozenset((j, k))} <= edges for j in middle):
                expected.add((i, k))
    found = list(zip(asking.left.tolist(), asking.right.tolist()))
    assert sorted(found) == sorted(expected)
    assert asking.asked.tolist() == [frozenset(pair) in edges for pair in found]
    assert asking.scale == 0.5  # each of them in both directions


def test_some_items_stand_for_all(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = rng.integers(200, size=(2, 3000))
    whole = asking_of(left, right, 200, rng)
    monkeypatch.setattr("likewise.inference.partition.asking.MAX_WEDGES", 60_000)
    part = asking_of(left, right, 200, rng)
    assert len(part.left) < len(whole.left) / 2
    size = len(whole.left) * whole.scale
    assert len(part.left) * part.scale == pytest.approx(size, rel=0.05)


def test_asking_says_nothing_at_random_and_much_where_suggested(rng: np.random.Generator) -> None:
    truth = rng.permutation(np.arange(200) % 40)
    ratios = []
    for share in (0.0, 0.5):
        left, right, _ = suggested(rng, truth, 3000, share)
        ratios.append(ratios_of(left, right, truth, rng))
    assert abs(ratios[0].asked) < 0.4
    assert abs(ratios[0].usual) < 0.1
    assert ratios[1].asked > 2
    assert ratios[1].usual < -1


def test_large_groups_may_be_asked_about_as_little_as_small_ones(rng: np.random.Generator) -> None:
    sizes = np.repeat([3, 6, 30], [20, 10, 4])
    truth = np.repeat(np.arange(len(sizes)), sizes)
    left, right = np.triu_indices(len(truth), 1)
    own = truth[left] == truth[right]
    chosen = [rng.choice(np.flatnonzero(own & (truth[left] == g)), 3, False) for g in set(truth)]
    chosen = [*chosen, rng.choice(np.flatnonzero(~own), 60, False)]
    picked = np.concatenate(chosen)
    ratios = ratios_of(left[picked], right[picked], truth, rng)
    assert ratios.unasked[3] < -1
    assert ratios.unasked[30] > -0.3


@pytest.mark.slow  # test_partition.py has a quicker one, of a given number of groups
def test_suggested_pairs_find_sparse_groups(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = rng.permutation(np.arange(150) % 10)
    left, right, same = suggested(rng, truth, 500, 0.5)
    found = infer_partition(left, right, same, n_items=150, seed=2)
    score = adjusted_rand_score(truth, found.labels)
    assert score > 0.87
    assert abs(found.n_groups - 10) <= 3
    monkeypatch.setattr(fitting, "MOST_ASKED", 0.0)
    blind = infer_partition(left, right, same, n_items=150, seed=2)
    assert blind.objective < found.objective
    assert adjusted_rand_score(truth, blind.labels) < score - 0.05


def test_log_predictive_is_leave_one_out(rng: np.random.Generator) -> None:
    left, right = np.triu_indices(5, 1)
    answers = Answers.build(left, right, rng.random(len(left)) < 0.5, 5, None, None)
    rates = two_rates(answers, 0.8, 0.3)
    likelihood = log_likelihood(answers, rates)
    every = np.array(list(partitions(5)))
    together = every[:, answers.left] == every[:, answers.right]
    terms = np.where(together, likelihood[:, 0], likelihood[:, 1])
    chance = np.exp(terms.sum(1))
    belief = chance @ together / chance.sum()
    without = [np.exp(terms.sum(1) - terms[:, p]).sum() for p in range(answers.n_pairs)]
    expected = sum(np.log(chance.sum() / value) for value in without)
    assert log_predictive(answers, rates, belief) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_agreed_partition_has_the_highest_expected_f1(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = np.array([0, 0, 0, 1, 1, 1])
    drawn = np.where(rng.random((15, 6)) < 0.25, rng.integers(3, size=(15, 6)), truth)
    left, right = np.triu_indices(6, 1)
    chance = (drawn[:, left] == drawn[:, right]).mean(0)

    def expected(labels: np.ndarray) -> float:
        inside = labels[left] == labels[right]
        return float(2 * chance[inside].sum() / (inside.sum() + chance.sum()))

    best = max(expected(np.array(labels)) for labels in partitions(6))
    assert expected(agreed_partition(drawn, False, rng)) == pytest.approx(best)


def test_agreed_partition_keeps_the_number(rng: np.random.Generator) -> None:
    drawn = rng.integers(4, size=(9, 30))
    assert len(set(agreed_partition(drawn, True, rng).tolist())) == 4


def strewn(rng: np.random.Generator, n_twins: int, n_others: int) -> Answers:
    """Twins 2k and 2k + 1 called the same, and pairs anywhere that are not: most items meet once or
    twice."""
    left = 2 * np.arange(n_twins)
    one = rng.integers(2 * n_twins, size=n_others)
    other = (one + rng.integers(1, 2 * n_twins, n_others)) % (2 * n_twins)
    apart = one // 2 != other // 2
    ends = np.append(left, one[apart]), np.append(left + 1, other[apart])
    return Answers.build(*ends, np.arange(len(ends[0])) < n_twins, 2 * n_twins, None, None)


def test_one_large_group_and_a_pair_explain_no_asking(rng: np.random.Generator) -> None:
    """The pairs across these two are few, and none was asked: that says nothing of all others."""
    answers = strewn(rng, 300, 700)
    met = np.bincount(np.concatenate([answers.left, answers.right]))
    alone = int(np.argmin(met[0::2] + met[1::2]))  # compared with hardly anybody else
    twins = np.arange(600) // 2
    said = [
        float(ratios.by_size[np.bincount(labels)].sum()) + ratios.baseline
        for labels in ((twins == alone).astype(np.int64), twins)
        for ratios in [asking_log_ratios(answers, labels)]
    ]
    assert said[0] < 20 < 500 < said[1]


@pytest.mark.parametrize("n_others", [150, 700])
def test_records_hardly_compared_are_grouped_as_they_were_said_to_be(
    rng: np.random.Generator, n_others: int
) -> None:
    answers = strewn(rng, 150, n_others)
    ends = answers.left[answers.pair], answers.right[answers.pair]
    found = infer_partition(*ends, answers.same, n_items=300)
    assert np.array_equal(found.labels, np.arange(300) // 2)


@pytest.mark.parametrize("n_twins", [3, 30, 100])
def test_items_that_no_chain_of_answers_leads_to_stay_apart(n_twins: int) -> None:
    left = 2 * np.arange(n_twins)
    found = infer_partition(left, left + 1, left == left, n_items=2 * n_twins)
    assert found.n_groups == n_twins
    assert (found.probability > 0.7).all()


def test_confusable_groups_know_which_pairs_were_asked(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kinds on a line, each item compared with those of its own kind and some of the next ones, who
    look alike: people say "same" of half of those. Cells alone would make neighbours one kind."""
    truth = np.repeat(np.arange(10), 6)
    left, right = np.triu_indices(60, 1)
    near = (truth[right] - truth[left] == 0) | (rng.random(len(left)) < 0.3)
    near &= truth[right] - truth[left] <= 1
    left, right = np.repeat(left[near], 2), np.repeat(right[near], 2)
    said = rng.random(len(left)) < np.where(truth[left] == truth[right], 0.85, 0.5)
    answers = Answers.build(left, right, said, 60, None, None)
    problem = Problem(answers, None, None, rng)
    counts = square_counts(answers, two_rates(answers, 0.85, 0.5), problem.same(truth))

    def lead() -> float:
        search = CellSearch(problem, counts)
        return search.blocks(truth)[0] - search.blocks(truth // 2)[0]

    assert lead() > 20
    monkeypatch.setattr(Problem, "asked", lambda self, labels: None)
    assert lead() < -5
