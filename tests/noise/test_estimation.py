"""Estimators of T on posteriors and perceived classes of which the true T is known.

Every vectorised one also against a slow loop, on evidence that is hard, soft and lacking.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import InputError
from likewise.metrics import transition_error
from likewise.noise import corrupt_labels, pair_flip, symmetric
from likewise.noise.estimation import (
    CONFIDENT_SHARES,
    RENEW,
    STRENGTHS,
    TEMPERATURES,
    _rank_within,
    anchor_transition,
    class_posterior,
    count_transition,
    evidence_costs,
    gram_transition,
    held_out_transition,
    likelihood_transition,
    one_hot_evidence,
    prior_strength,
    shrunk_transition,
)

C = 5
NOISES = {
    "symmetric .2": symmetric(C, 0.2),
    "symmetric .6": symmetric(C, 0.6),
    "pair flip .3": pair_flip(C, 0.3),
}
every_noise = pytest.mark.parametrize("true", NOISES.values(), ids=NOISES)


def calibrated(n: int, sharpness: float, seed: int = 0) -> tuple[torch.Tensor, np.ndarray]:
    """Logits of calibrated posteriors, and classes drawn from them."""
    made = torch.Generator().manual_seed(seed)
    logits = sharpness * torch.randn(n, C, generator=made)
    p = logits.softmax(dim=1)
    return logits, torch.multinomial(p, 1, generator=made).squeeze(1).numpy()


def known(z: np.ndarray | torch.Tensor) -> torch.Tensor:
    """(n, C) evidence of perceived classes that are known; -1 is not."""
    return one_hot_evidence(torch.as_tensor(z), C, torch.float32)


def softened(z: np.ndarray, seed: int = 5, sure: float = 0.9) -> torch.Tensor:
    """(n, C) evidence as noisy answers leave it: P(w | z) of one drawn w, rows summing to 1.

    An answer w is z with probability ``sure``, else any other class alike.
    """
    channel = symmetric(C, 1 - sure)
    w = corrupt_labels(z, channel, seed)
    return torch.tensor(channel[w], dtype=torch.float32)  # symmetric: row w is column w


# -- anchors -------------------------------------------------------------------------------------


@every_noise
def test_anchors_find_t_where_there_are_anchor_points(true):
    """f of a perfect stage 1: f = g @ T, with some g of exactly one class."""
    g = np.concatenate([np.eye(C), np.random.default_rng(0).dirichlet(np.ones(C), 200)])
    np.testing.assert_allclose(anchor_transition(g @ true), true)


def test_a_quantile_is_not_misled_by_one_overconfident_item():
    true = symmetric(C, 0.4)
    rng = np.random.default_rng(0)
    g = np.repeat(np.eye(C), 200, axis=0)
    f = g @ true + rng.normal(0, 0.01, (len(g), C)).clip(-0.05, 0.05)
    f = f / f.sum(axis=1, keepdims=True)
    f[::200] = np.eye(C)  # memorised: says it is certain
    assert transition_error(anchor_transition(f), true) > 0.5
    assert transition_error(anchor_transition(f, quantile=0.97), true) < 0.05


def test_the_quantile_is_an_order_statistic():
    f = np.stack([np.linspace(0.1, 0.9, 9), np.linspace(0.9, 0.1, 9)], axis=1)
    np.testing.assert_allclose(anchor_transition(f, 1.0), anchor_transition(f))
    np.testing.assert_allclose(anchor_transition(f, 5 / 9)[0], [0.5, 0.5])
    np.testing.assert_allclose(anchor_transition(f, 0.12)[0], [0.2, 0.8])


@given(st.integers(0, 1000), st.one_of(st.none(), st.floats(0.01, 1.0)))
def test_anchor_rows_are_distributions(seed, quantile):
    f = np.random.default_rng(seed).dirichlet(np.ones(C), 20) * 0.999
    found = anchor_transition(f, quantile)
    np.testing.assert_allclose(found.sum(axis=1), 1)


@pytest.mark.parametrize("f", [np.zeros(3), np.zeros((0, 3))])
def test_anchors_need_a_posterior(f):
    with pytest.raises(InputError, match=r"^anchors need an \(n, C\) posterior"):
        anchor_transition(f)


# -- shrinkage -----------------------------------------------------------------------------------


def counts_of(true: np.ndarray, per_row: int, seed: int = 0) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.multinomial(per_row, row) for row in true])
    return torch.tensor(rows, dtype=torch.float32)


def pull(counts: torch.Tensor) -> float:
    """How far the estimate went from the raw shares to the two-parameter matrix: 0 to 1."""
    raw = counts / counts.sum(dim=1, keepdim=True)
    kept = float(counts.diagonal().sum() / counts.sum())
    centre = torch.tensor(symmetric(len(counts), 1 - kept), dtype=torch.float32)
    found = shrunk_transition(counts[None])[0]
    return float((found - raw).norm() / (centre - raw).norm())


def test_symmetric_noise_is_pulled_to_two_parameters():
    """On average over samples: any one may look asymmetric by chance."""
    true = symmetric(C, 0.4)
    tables = [counts_of(true, 60, seed) for seed in range(20)]
    found = [transition_error(shrunk_transition(t[None])[0], true) for t in tables]
    raw = [transition_error(t / t.sum(dim=1, keepdim=True), true) for t in tables]
    assert np.mean([pull(table) for table in tables]) > 0.8
    assert np.mean(found) < 0.4 * np.mean(raw)


def test_pair_flips_are_left_alone():
    true = pair_flip(C, 0.3)
    counts = counts_of(true, 500)
    assert pull(counts) < 0.1
    assert transition_error(shrunk_transition(counts[None])[0], true) < 0.08


def test_the_strength_is_that_of_most_evidence():
    """Against the Dirichlet-multinomial written out, for two unlike tables at once."""
    tables = torch.stack([counts_of(symmetric(3, 0.3), 40), counts_of(pair_flip(3, 0.3), 40)])
    found = shrunk_transition(tables.double())
    from scipy.special import gammaln

    for table, estimate in zip(tables.double().numpy(), found.numpy()):
        kept = np.trace(table) / table.sum()
        centre = symmetric(3, 1 - kept)
        best = max(
            STRENGTHS,
            key=lambda s: sum(
                gammaln(s)
                - gammaln(s + row.sum())
                + (gammaln(s * prior + row) - gammaln(s * prior)).sum()
                for row, prior in zip(table, centre)
            ),
        )
        expected = (table + best * centre) / (table.sum(axis=1, keepdims=True) + best)
        np.testing.assert_allclose(estimate, expected, rtol=1e-6)


@given(st.integers(0, 1000), st.integers(2, 6))
def test_any_counts_give_a_transition_matrix(seed, n_classes):
    rng = np.random.default_rng(seed)
    counts = torch.tensor(rng.integers(0, 30, (2, n_classes, n_classes)) * (rng.random() < 0.9))
    found = shrunk_transition(counts.double())
    assert torch.isfinite(found).all()
    assert (found > 0).all()
    torch.testing.assert_close(found.sum(dim=2), torch.ones(2, n_classes).double())


def test_the_strength_is_the_same_in_single_precision():
    tables = torch.stack([counts_of(symmetric(C, 0.2), 15, seed) for seed in range(40)])
    found = prior_strength(tables)
    torch.testing.assert_close(found, prior_strength(tables.double()).float())


def test_no_counts_at_all_say_nothing():
    found = shrunk_transition(torch.zeros(1, 4, 4))[0]
    torch.testing.assert_close(found, torch.full((4, 4), 0.25))


# -- counting ------------------------------------------------------------------------------------


@every_noise
def test_counting_among_confident_items_finds_t(true):
    logits, y = calibrated(8000, sharpness=6.0)
    z = corrupt_labels(y, true, 1)
    found = count_transition(logits, known(z)).numpy()
    assert transition_error(found, true) < 0.12


def test_counting_leaves_out_what_the_network_is_unsure_of():
    """Half of the items are sure and right, half are coin tosses: all of them would say .5."""
    y = np.random.default_rng(0).integers(C, size=4000)
    logits = torch.nn.functional.one_hot(torch.from_numpy(y), C).float() * 8
    logits[2000:] = 0.01 * torch.randn(2000, C, generator=torch.Generator().manual_seed(0))
    found = count_transition(logits, known(y))
    assert found.diagonal().min() > 0.97


@every_noise
def test_unknown_perceived_classes_are_left_out(true):
    logits, y = calibrated(2000, sharpness=6.0)
    z = torch.from_numpy(corrupt_labels(y, true, 1))
    asked = torch.rand(2000, generator=torch.Generator().manual_seed(3)) < 0.8
    masked = torch.where(asked, z, -1)
    found = count_transition(logits, known(masked)).numpy()
    assert transition_error(found, true) < 0.25
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)


def test_a_class_that_is_never_predicted_gets_a_row_all_the_same():
    logits = torch.zeros(50, C)
    logits[:, 0] = 5
    found = count_transition(logits, known(np.zeros(50, np.int64)))
    assert torch.isfinite(found).all()
    torch.testing.assert_close(found.sum(dim=1), torch.ones(C))


# -- likelihood ----------------------------------------------------------------------------------


@every_noise
def test_likelihood_finds_t_from_calibrated_posteriors(true):
    logits, y = calibrated(8000, sharpness=4.0)
    z = corrupt_labels(y, true, 1)
    found, temperature, cost = likelihood_transition(logits, known(z))
    assert transition_error(found, true) < 0.12
    assert 0.7 <= float(temperature) <= 1.5
    f = logits.double().softmax(dim=1).numpy() @ true
    best_possible = -np.log(f[np.arange(len(z)), z]).mean()
    assert float(cost) == pytest.approx(best_possible, abs=0.02)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_likelihood_finds_the_temperature_of_a_miscalibrated_network(factor):
    true = symmetric(C, 0.3)
    logits, y = calibrated(8000, sharpness=4.0)
    z = torch.from_numpy(corrupt_labels(y, true, 1))
    found, temperature, _ = likelihood_transition(factor * logits, known(z))
    assert float(temperature) == pytest.approx(factor, rel=0.45)
    assert transition_error(found, true) < 0.12


def test_likelihood_leaves_unknown_items_out():
    logits, y = calibrated(400, sharpness=4.0)
    z = torch.from_numpy(corrupt_labels(y, symmetric(C, 0.2), 1))
    masked = torch.cat([z, torch.full((100,), -1)])
    more = torch.cat([logits, torch.randn(100, C, generator=torch.Generator().manual_seed(1))])
    for one, two in zip(
        likelihood_transition(logits, known(z)), likelihood_transition(more, known(masked))
    ):
        torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-4)


def test_estimates_do_not_know_the_numbering():
    logits, y = calibrated(1000, sharpness=4.0)
    z = torch.from_numpy(corrupt_labels(y, pair_flip(C, 0.3), 1))
    order = torch.tensor([3, 0, 4, 1, 2])  # new class k is old class order[k]
    place = torch.argsort(order)
    for estimate in (count_transition, lambda a, b: likelihood_transition(a, b)[0]):
        plain = estimate(logits, known(z))
        renumbered = estimate(logits[:, order], known(place[z]))
        torch.testing.assert_close(renumbered, plain[order][:, order], atol=1e-4, rtol=1e-3)


# -- from inconsistent judgements ----------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.5])
def test_the_gram_of_symmetric_noise_is_found_from_pairs(rate):
    true, rng = symmetric(C, rate), np.random.default_rng(0)
    y = rng.integers(C, size=(2, 200_000))
    z = [corrupt_labels(part, true, rng) for part in y]
    found = gram_transition(y[0], y[1], z[0] == z[1], C)
    assert transition_error(found, true) < 0.02
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_pairs_of_one_kind_only_still_give_a_matrix():
    ones = np.zeros(4, np.int64)
    for left, right in ((ones, ones), (ones, ones + 1)):
        for same in (np.ones(4, bool), np.zeros(4, bool)):
            found = gram_transition(left, right, same, 3)
            np.testing.assert_allclose(found.sum(axis=1), 1)
            assert (found >= 0).all()


def too_sure(
    n: int = 4000, noise: float = 0.6, margin: float = 5.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Held-out logits of a network that is sure of everything and right about a tenth, of which
    it is surest; perceived classes of those items under symmetric noise."""
    rng = np.random.default_rng(0)
    y = rng.integers(C, size=n)
    surest = np.arange(n) < n // 10
    said = np.where(surest | (rng.random(n) < 0.3), y, rng.integers(C, size=n))
    logits = np.where(surest, margin + 3, margin)[:, None] * np.eye(C)[said]
    z = corrupt_labels(y, symmetric(C, noise), rng)
    return torch.tensor(logits, dtype=torch.float32), torch.tensor(z)


def test_a_t_that_keeps_less_than_the_surest_items_agree_is_refuted():
    logits, z = too_sure()
    likeliest, _, _ = likelihood_transition(logits, known(z))
    found, _ = held_out_transition(logits, known(z))
    assert float(likeliest.diagonal().mean()) < 0.33
    assert float(found.diagonal().mean()) == pytest.approx(0.4, abs=0.05)
    torch.testing.assert_close(found, count_transition(logits, known(z)))


def test_with_less_noise_the_network_must_be_less_sure():
    logits, z = too_sure(noise=0.4, margin=0.5)
    _, suited, _ = likelihood_transition(logits, known(z))
    found, temperature = held_out_transition(logits, known(z))
    assert suited < temperature
    costs = [
        -((logits / t).softmax(dim=1) @ found).gather(1, z[:, None]).log().mean()
        for t in TEMPERATURES
    ]
    assert float(temperature) == pytest.approx(TEMPERATURES[int(np.argmin(costs))])


def test_a_few_items_refute_nothing():
    for n, refuted in ((350, False), (4000, True)):
        logits, z = too_sure(n, noise=0.2)
        found, _ = held_out_transition(logits, known(z))
        likeliest = likelihood_transition(logits, known(z))[0]
        assert torch.equal(found, likeliest) is not refuted


@every_noise
def test_the_likeliest_t_stays_where_counting_agrees(true):
    logits, y = calibrated(3000, 4.0)
    z = torch.tensor(corrupt_labels(y, true, np.random.default_rng(1)))
    likeliest, suited, _ = likelihood_transition(logits, known(z))
    found, temperature = held_out_transition(logits, known(z))
    torch.testing.assert_close(found, likeliest)
    assert temperature == suited


# -- soft evidence, against slow loops -----------------------------------------------------------


def mixed_evidence(n: int = 300, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (n, C), and evidence of all kinds: soft, certain, and at every tenth item none."""
    logits, y = calibrated(n, 3.0, seed)
    evidence = softened(corrupt_labels(y, pair_flip(C, 0.3), seed + 1), seed + 2)
    evidence[::3] = known(y[::3])
    evidence[::10] = 0.0
    return logits, evidence


def slow_counts(logits: torch.Tensor, evidence: torch.Tensor) -> np.ndarray:
    """(C, C) counts of the confident share of the highest lower end, item by item."""
    p = logits.double().softmax(dim=1).numpy()
    said, top, rows = p.argmax(axis=1), p.max(axis=1), evidence.double().numpy()
    best, chosen = -np.inf, np.zeros((C, C))
    for share in CONFIDENT_SHARES:
        counts = np.zeros((C, C))
        for c in range(C):
            mine = sorted(np.flatnonzero(said == c), key=lambda i: -top[i])
            for place, i in enumerate(mine):
                if (place + 0.5) / len(mine) <= share:
                    counts[c] += rows[i]
        total = counts.sum()
        rate = (np.trace(counts) + 0.5) / (total + 1)
        lower = rate - np.sqrt(rate * (1 - rate) / (total + 1))
        if lower > best:
            best, chosen = lower, counts
    return chosen


@pytest.mark.parametrize("seed", [0, 7])
def test_counting_is_the_loop(seed):
    logits, evidence = mixed_evidence(seed=seed)
    counts = torch.from_numpy(slow_counts(logits, evidence))
    expected = shrunk_transition(counts[None])[0].float()
    torch.testing.assert_close(count_transition(logits, evidence), expected, atol=1e-5, rtol=1e-4)


def slow_likelihood(
    logits: torch.Tensor, evidence: torch.Tensor, iterations: int
) -> tuple[np.ndarray, float, float]:
    """EM item by item and temperature by temperature; of the equally good, the least in volume."""
    rows = evidence.double().numpy()
    told = np.flatnonzero(rows.sum(axis=1) > 0)
    found = []
    for temperature in TEMPERATURES:
        g = (logits.double() / temperature).softmax(dim=1).numpy()
        counts = sum(np.outer(g[i], rows[i]) for i in told)
        for number in range(iterations):
            table = torch.from_numpy(counts)[None]
            if number % RENEW == 0:
                strength = prior_strength(table)
            T = shrunk_transition(table, strength)[0].numpy()
            counts = np.zeros((C, C))
            for i in told:
                both = g[i][:, None] * T * rows[i]
                counts += both / both.sum()
        costs = np.array([-np.log((g[i] @ T) @ rows[i]) for i in told])
        found.append((T, temperature, costs))
    least = min(found, key=lambda one: one[2].mean())[2]
    equal = []
    for T, temperature, costs in found:
        behind = costs - least
        if behind.mean() <= np.sqrt(((behind - behind.mean()) ** 2).sum()) / len(told):
            equal.append((abs(np.linalg.det(T)), T, temperature, costs.mean()))
    return min(equal, key=lambda one: one[0])[1:]


@pytest.mark.parametrize("seed", [0, 1, 2])  # volume decides in the last two
def test_the_likelihood_is_the_loop(seed):
    logits, evidence = mixed_evidence(120, seed)
    T, temperature, cost = slow_likelihood(logits, evidence, iterations=10)
    found = likelihood_transition(logits.double(), evidence, iterations=10)
    np.testing.assert_allclose(found[0].numpy(), T, atol=1e-6)
    assert float(found[1]) == pytest.approx(temperature)
    assert float(found[2]) == pytest.approx(cost, rel=1e-6)


@every_noise
def test_t_is_found_behind_answers_that_slip(true):
    """Evidence of one answer an item, right in nine of ten: T is that of z, slips taken out."""
    logits, y = calibrated(8000, 5.0)
    z = corrupt_labels(y, true, 1)
    found = held_out_transition(logits, softened(z))[0]
    assert transition_error(found, true) < 0.2
    assert found.diagonal().mean() == pytest.approx(np.diag(true).mean(), abs=0.05)


def test_posteriors_and_costs_are_the_loops():
    logits, evidence = mixed_evidence(40)
    T = torch.tensor(pair_flip(C, 0.3), dtype=torch.float32)
    posterior = class_posterior(logits.log_softmax(dim=1), T, evidence)
    costs = evidence_costs(logits, T, evidence)
    for i, g in enumerate(logits.double().softmax(dim=1).numpy()):
        if not evidence[i].any():  # nothing is known: the network's own word, and no cost
            np.testing.assert_allclose(posterior[i], g, atol=1e-6)
            assert float(costs[i]) == 0.0
            continue
        likelihood = [sum(T[c, k] * evidence[i, k] for k in range(C)) for c in range(C)]
        joint = g * np.array(likelihood, np.float64)
        np.testing.assert_allclose(posterior[i], joint / joint.sum(), atol=1e-5)
        assert float(costs[i]) == pytest.approx(-np.log(joint.sum()), abs=1e-4)


def test_evidence_that_t_forbids_leaves_finite_numbers():
    T = torch.eye(3)
    log_g = torch.tensor([[50.0, 0.0, 0.0]]).log_softmax(dim=1)
    evidence = torch.tensor([[0.0, 1.0, 0.0]])
    assert torch.isfinite(class_posterior(log_g, T, evidence)).all()
    assert torch.isfinite(evidence_costs(50 * log_g, T, evidence)).all()


# -- refuted from both sides ---------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.2, 0.4, 0.6])
def test_among_equals_the_smallest_volume_breaks_the_tie_at_identity(rate):
    """A network that says f where it should say g: T = I explains the items as well as any."""
    true, rng = symmetric(C, rate), np.random.default_rng(0)
    y = rng.integers(C, size=6000)
    logits = torch.tensor(np.log(true[y]), dtype=torch.float32)
    z = known(corrupt_labels(y, true, rng))
    at_one, _, cost_at_one = likelihood_transition(logits, z, temperatures=[1.0])
    assert at_one.diagonal().mean() > 1 - rate / 2
    found, temperature, cost = likelihood_transition(logits, z)
    assert temperature < 1
    assert float(cost) == pytest.approx(float(cost_at_one), abs=0.02)
    assert found.diagonal().mean() == pytest.approx(np.diag(true).mean(), abs=0.06)


def test_a_temperature_that_is_surely_worse_is_not_taken_for_its_volume():
    """Where g is right as it is, a sharper one would pass for more noise."""
    logits, y = calibrated(8000, 1.5)
    _, temperature, _ = likelihood_transition(logits, known(y))
    assert 0.7 <= float(temperature) <= 1.0


def test_counting_refutes_soft_evidence_too():
    logits, z = too_sure()
    evidence = 0.96 * known(z) + 0.01 * (1 - known(z))
    likeliest = likelihood_transition(logits, evidence)[0]
    found, _ = held_out_transition(logits, evidence)
    assert float(likeliest.diagonal().mean()) < 0.36
    assert float(found.diagonal().mean()) == pytest.approx(0.4, abs=0.05)


def test_items_without_evidence_refute_nothing():
    """A thousand more items of which nothing is known are not a thousand that agree."""
    logits, z = too_sure(350, noise=0.2)
    more = torch.cat([logits, logits.repeat(3, 1)])
    evidence = torch.cat([known(z), torch.zeros(1050, C)])
    likeliest = likelihood_transition(more, evidence)[0]
    torch.testing.assert_close(held_out_transition(more, evidence)[0], likeliest)


@pytest.mark.parametrize("n_classes", [3, 100])
def test_ranks_within_a_class_are_exact_for_the_nearly_equal(n_classes):
    """Doubts that a sure network leaves, far below the rounding of a confidence: no two tie."""
    rng = np.random.default_rng(0)
    predicted = torch.from_numpy(rng.integers(n_classes, size=4000))
    doubt = torch.tensor(1e-12 * (rng.permutation(4000) + 1), dtype=torch.float32)
    assert len(doubt.unique()) == 4000
    assert len((1 - doubt).unique()) == 1
    found = _rank_within(predicted, doubt, n_classes)
    for c in range(n_classes):
        mine = np.flatnonzero(predicted.numpy() == c)
        surest_first = mine[np.argsort(doubt[mine].numpy())]
        expected = (np.arange(len(mine)) + 0.5) / len(mine)
        np.testing.assert_allclose(found[surest_first], expected, rtol=1e-5)


def test_counting_takes_the_surest_share_of_items_that_are_all_nearly_certain():
    """The surest 3 % of each class agree, the others hardly do: T is counted among the former."""
    generator = torch.Generator().manual_seed(0)
    n_classes, each = 20, 400
    truth = torch.arange(n_classes).repeat_interleave(each)
    rank = torch.arange(each).repeat(n_classes)
    logits = torch.zeros(len(truth), n_classes)
    logits[torch.arange(len(truth)), truth] = 40 - rank * 0.05  # 1.0 in single precision, each
    others = torch.randint(n_classes, (len(truth),), generator=generator)
    perceived = torch.where(rank < 0.03 * each, truth, others)
    found = count_transition(logits, one_hot_evidence(perceived, n_classes, torch.float32))
    assert float(found.diagonal().mean()) > 0.9
