"""The pairwise losses against slow loops over pairs, and what the paper says of them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from likewise import functional as lf

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


def simplex(n: int, c: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """(n, c) random rows on the simplex."""
    draw = torch.randn(n, c, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return draw.softmax(dim=1).to(dtype)


def answers(*shape: int, seed: int = 1) -> Tensor:
    return torch.randint(2, shape, generator=torch.Generator().manual_seed(seed))


def weights(*shape: int, seed: int = 2) -> Tensor:
    """Random weights, about a third of them 0: "no answer"."""
    draw = torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return draw * (draw > 0.3)


# -- one pair at a time, in plain Python ---------------------------------------------------------


def perceived_by_loop(p: Tensor, transition: Tensor) -> list[list[float]]:
    """P(z = k) = sum over c of P(y = c) P(z = k | y = c)."""
    rows, columns = transition.tolist(), range(transition.shape[1])
    return [[sum(g[c] * rows[c][k] for c in range(len(g))) for k in columns] for g in p.tolist()]


def mcl_of_pair(p: list[float], q: list[float], same: float) -> float:
    similarity = sum(a * b for a, b in zip(p, q))
    return -(same * math.log(similarity) + (1 - same) * math.log(1 - similarity))


def kcl_of_pair(p: list[float], q: list[float], same: float, margin: float) -> float:
    kl = sum(a * math.log(a / b) for a, b in zip(p, q))
    return same * kl + (1 - same) * max(0.0, margin - kl)


def by_loop(left, right, same, weight, of_pair) -> float:
    """Weighted mean over listed pairs."""
    total = mass = 0.0
    for p, q, s, w in zip(left, right, same, weight, strict=True):
        if w > 0:
            total += w * of_pair(p, q, s)
            mass += w
    return total / mass


def all_pairs_by_loop(p: list[list[float]], same: Tensor, weight: Tensor | None, of_pair) -> float:
    n = len(p)
    left = [p[i] for i in range(n) for _ in range(n)]
    right = [p[j] for _ in range(n) for j in range(n)]
    flat = [1.0] * (n * n) if weight is None else weight.flatten().tolist()
    return by_loop(left, right, same.flatten().tolist(), flat, of_pair)


TRANSITION = torch.tensor(
    [[0.7, 0.3, 0.0], [0.1, 0.8, 0.1], [0.05, 0.35, 0.6]], dtype=torch.float64
)


def check_mcl(loss=lf.mcl_loss, weight: Tensor | None = None) -> None:
    p, same = simplex(7, 4), answers(7, 7)
    expected = all_pairs_by_loop(p.tolist(), same, weight, mcl_of_pair)
    assert float(loss(p, same, weight)) == pytest.approx(expected, abs=1e-9)


def check_mns(loss=lf.mns_loss, weight: Tensor | None = None) -> None:
    p, same = simplex(7, 3), answers(7, 7)
    f = perceived_by_loop(p, TRANSITION)
    expected = all_pairs_by_loop(f, same, weight, mcl_of_pair)
    assert float(loss(p, TRANSITION, same, weight)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("weight", [None, weights(7, 7)], ids=["unweighted", "weighted"])
class TestAgainstLoops:
    def test_mcl(self, weight):
        check_mcl(weight=weight)

    def test_mns(self, weight):
        check_mns(weight=weight)

    @pytest.mark.parametrize("margin", [2.0, 0.3])
    def test_kcl(self, weight, margin):
        p, same = simplex(7, 4), answers(7, 7)
        expected = all_pairs_by_loop(
            p.tolist(), same, weight, lambda a, b, s: kcl_of_pair(a, b, s, margin)
        )
        assert float(lf.kcl_loss(p, same, weight, margin)) == pytest.approx(expected, abs=1e-9)

    def test_soft_answers_lie_between(self, weight):
        p = simplex(7, 4)
        same = torch.rand(7, 7, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
        expected = all_pairs_by_loop(p.tolist(), same, weight, mcl_of_pair)
        assert float(lf.mcl_loss(p, same, weight)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("weight", [None, weights(9)], ids=["unweighted", "weighted"])
class TestListedAgainstLoops:
    def arguments(self, weight):
        flat = [1.0] * 9 if weight is None else weight.tolist()
        return simplex(9, 3, seed=3), simplex(9, 3, seed=4), answers(9), flat

    def test_mcl(self, weight):
        left, right, same, flat = self.arguments(weight)
        expected = by_loop(left.tolist(), right.tolist(), same.tolist(), flat, mcl_of_pair)
        found = lf.mcl_loss_pairs(left, right, same, weight)
        assert float(found) == pytest.approx(expected, abs=1e-9)

    def test_mns(self, weight):
        left, right, same, flat = self.arguments(weight)
        f_left, f_right = (perceived_by_loop(p, TRANSITION) for p in (left, right))
        expected = by_loop(f_left, f_right, same.tolist(), flat, mcl_of_pair)
        found = lf.mns_loss_pairs(left, right, TRANSITION, same, weight)
        assert float(found) == pytest.approx(expected, abs=1e-9)

    @pytest.mark.parametrize("margin", [2.0, 0.3])
    def test_kcl_takes_each_pair_in_both_orders(self, weight, margin):
        left, right, same, flat = self.arguments(weight)
        there, back = (
            by_loop(
                a.tolist(),
                b.tolist(),
                same.tolist(),
                flat,
                lambda p, q, s: kcl_of_pair(p, q, s, margin),
            )
            for a, b in ((left, right), (right, left))
        )
        found = lf.kcl_loss_pairs(left, right, same, weight, margin)
        assert float(found) == pytest.approx((there + back) / 2, abs=1e-9)


def test_the_margin_of_kcl_is_two_unless_told():
    p, same = simplex(5, 3), torch.zeros(5, 5)
    assert lf.kcl_loss(p, same) == lf.kcl_loss(p, same, margin=2.0)
    assert lf.kcl_loss(p, same) != lf.kcl_loss(p, same, margin=2.5)
    found = lf.kcl_loss_pairs(p, p.flip(0), same[0])
    assert found == lf.kcl_loss_pairs(p, p.flip(0), same[0], margin=2.0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("weight", [None, weights(6, 6)], ids=["unweighted", "weighted"])
def test_twins_agree_with_the_losses_over_all_pairs(dtype, weight):
    p, same = simplex(6, 3, dtype=dtype), answers(6, 6)
    left, right = p.repeat_interleave(6, dim=0), p.repeat(6, 1)
    flat_weight = None if weight is None else weight.flatten()
    listed = left, right, same.flatten(), flat_weight
    tolerance = {"atol": 1e-12 if dtype == torch.float64 else 1e-5, "rtol": 0}
    torch.testing.assert_close(
        lf.mcl_loss(p, same, weight), lf.mcl_loss_pairs(*listed), **tolerance
    )
    torch.testing.assert_close(
        lf.mns_loss(p, TRANSITION, same, weight),
        lf.mns_loss_pairs(left, right, TRANSITION, same.flatten(), flat_weight),
        **tolerance,
    )
    symmetric_same = torch.triu(same) + torch.triu(same, 1).T  # both orders of a pair agree
    symmetric_weight = None if weight is None else weight + weight.T
    torch.testing.assert_close(
        lf.kcl_loss(p, symmetric_same, symmetric_weight),
        lf.kcl_loss_pairs(
            left,
            right,
            symmetric_same.flatten(),
            None if symmetric_weight is None else symmetric_weight.flatten(),
        ),
        **tolerance,
    )


# -- known mutants -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mutant",
    [
        lambda p, same, weight: -lf.mcl_loss(p, same, weight),
        lambda p, same, weight: lf.mcl_loss(p, 1 - same, weight),
        lambda p, same, weight: lf.mcl_loss(p, same, weight) + 1e-4,
    ],
    ids=["sign", "swapped label", "constant"],
)
def test_a_wrong_mcl_is_caught(mutant):
    with pytest.raises(AssertionError):
        check_mcl(mutant)


@pytest.mark.parametrize(
    "mutant",
    [
        lambda p, t, same, weight: -lf.mns_loss(p, t, same, weight),
        lambda p, t, same, weight: lf.mns_loss(p, t.T, same, weight),
        lambda p, t, same, weight: lf.mns_loss(p, t, 1 - same, weight),
        lambda p, t, same, weight: lf.mcl_loss(p, same, weight),
    ],
    ids=["sign", "missing transpose", "swapped label", "no T"],
)
def test_a_wrong_mns_is_caught(mutant):
    with pytest.raises(AssertionError):
        check_mns(mutant)


# -- derivatives ---------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, weights(5, 5)], ids=["unweighted", "weighted"])
def test_gradients_over_all_pairs(weight):
    logits = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    logits.requires_grad_()
    same = answers(5, 5)
    for loss in (
        lambda x: lf.mcl_loss(x.softmax(1), same, weight),
        lambda x: lf.mns_loss(x.softmax(1), TRANSITION, same, weight),
        lambda x: lf.kcl_loss(x.softmax(1), same, weight, fixed_target=False),
        lambda x: lf.balance_entropy(x.softmax(1)),
    ):
        assert torch.autograd.gradcheck(loss, (logits,))


def test_gradients_over_listed_pairs():
    made = torch.Generator().manual_seed(3)
    left, right = (torch.randn(6, 3, dtype=torch.float64, generator=made) for _ in range(2))
    left.requires_grad_()
    right.requires_grad_()
    same, weight = answers(6), weights(6)
    for loss in (
        lambda x, y: lf.mcl_loss_pairs(x.softmax(1), y.softmax(1), same, weight),
        lambda x, y: lf.mns_loss_pairs(x.softmax(1), y.softmax(1), TRANSITION, same, weight),
        lambda x, y: lf.kcl_loss_pairs(
            x.softmax(1), y.softmax(1), same, weight, fixed_target=False
        ),
    ):
        assert torch.autograd.gradcheck(loss, (left, right))


def test_a_fixed_target_of_kcl_gets_no_gradient():
    p, same = simplex(5, 3).requires_grad_(), answers(5, 5)
    (free,) = torch.autograd.grad(lf.kcl_loss(p, same, fixed_target=False), p)
    (fixed,) = torch.autograd.grad(lf.kcl_loss(p, same), p)
    target, other = p.detach(), p
    cost = p.new_zeros(())
    for i in range(5):
        for j in range(5):
            kl = (target[i] * (target[i].log() - other[j].log())).sum()
            cost = cost + (kl if same[i, j] else (2 - kl).relu())
    (expected,) = torch.autograd.grad(cost / 25, p)
    torch.testing.assert_close(fixed, expected)
    assert not torch.allclose(free, fixed)
    assert lf.kcl_loss(p, same) == lf.kcl_loss(p, same, fixed_target=False)


def test_a_fixed_target_of_listed_kcl_gets_no_gradient():
    left, right = simplex(6, 3).requires_grad_(), simplex(6, 3, seed=9).requires_grad_()
    same = answers(6)
    loss = lf.kcl_loss_pairs(left, right, same, fixed_target=True)
    found = torch.autograd.grad(loss, (left, right))
    cost = left.new_zeros(())
    for p, q, s in zip(left, right, same):
        for target, other in ((p.detach(), q), (q.detach(), p)):
            kl = (target * (target.log() - other.log())).sum()
            cost = cost + (kl if s else (2 - kl).relu())
    expected = torch.autograd.grad(cost / 12, (left, right))
    torch.testing.assert_close(found, expected)
    free = torch.autograd.grad(
        lf.kcl_loss_pairs(left, right, same, fixed_target=False), (left, right)
    )
    assert not torch.allclose(free[0], found[0])
    assert not torch.allclose(free[1], found[1])


@given(st.integers(2, 12), st.integers(0, 10**6), st.floats(0.1, 6.0), st.booleans())
def test_lemma_1_no_derivative_by_a_logit_reaches_one(n_classes, seed, spread, same):
    """The paper's Lemma 1: |d loss / d h_j(x)| < 1 for each of the two items of a pair."""
    made = torch.Generator().manual_seed(seed)
    draw = torch.rand(n_classes, n_classes, generator=made, dtype=torch.float64) + 1e-3
    transition = draw / draw.sum(dim=1, keepdim=True)
    logits = spread * torch.randn(2, n_classes, generator=made, dtype=torch.float64)
    logits.requires_grad_()
    p = logits.softmax(dim=1)
    loss = lf.mns_loss_pairs(p[:1], p[1:], transition, torch.tensor([same]))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert gradient.abs().max() < 1


# -- symmetries ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_mns_with_the_identity_is_mcl(dtype):
    p, same, weight = simplex(6, 4, dtype=dtype), answers(6, 6), weights(6, 6)
    assert lf.mns_loss(p, torch.eye(4), same, weight) == lf.mcl_loss(p, same, weight)
    listed = p, p.flip(0), answers(6), weights(6)
    found = lf.mns_loss_pairs(listed[0], listed[1], torch.eye(4), *listed[2:])
    assert found == lf.mcl_loss_pairs(*listed)


@given(st.permutations(range(4)), st.permutations(range(4)), st.integers(0, 1000))
def test_renumbering_the_classes_changes_nothing(order, perceived_order, seed):
    p, same, weight = simplex(6, 4, seed), answers(6, 6, seed=seed), weights(6, 6)
    transition = simplex(4, 4, seed + 1)
    q = p[:, order]
    for loss in (lf.mcl_loss, lf.kcl_loss):
        torch.testing.assert_close(loss(q, same, weight), loss(p, same, weight))
    torch.testing.assert_close(
        lf.mns_loss(q, transition[order][:, perceived_order], same, weight),
        lf.mns_loss(p, transition, same, weight),
    )
    torch.testing.assert_close(lf.balance_entropy(q), lf.balance_entropy(p))


@given(st.permutations(range(6)), st.integers(0, 1000))
def test_the_order_of_the_items_changes_nothing(order, seed):
    p, same, weight = simplex(6, 4, seed), answers(6, 6, seed=seed), weights(6, 6)
    moved = p[order], same[order][:, order], weight[order][:, order]
    for loss in (lf.mcl_loss, lf.kcl_loss):
        torch.testing.assert_close(loss(*moved), loss(p, same, weight))


@given(st.floats(0.01, 100.0))
def test_only_the_ratio_of_weights_matters(scale):
    p, same, weight = simplex(6, 4), answers(6, 6), weights(6, 6)
    for loss in (lf.mcl_loss, lf.kcl_loss):
        torch.testing.assert_close(loss(p, same, scale * weight), loss(p, same, weight))


def test_a_pair_of_weight_two_counts_as_two_pairs():
    left, right, same = simplex(3, 4), simplex(3, 4, seed=1), answers(3)
    twice = [0, 1, 1, 2]
    torch.testing.assert_close(
        lf.mcl_loss_pairs(left, right, same, torch.tensor([1, 2, 1])),
        lf.mcl_loss_pairs(left[twice], right[twice], same[twice]),
    )


# -- nothing to learn from -----------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, torch.zeros(0, 0)], ids=["unweighted", "weighted"])
def test_no_items_cost_nothing(weight):
    p = torch.zeros(0, 3, requires_grad=True)
    same = torch.zeros(0, 0)
    for loss in (
        lf.mcl_loss(p, same, weight),
        lf.kcl_loss(p, same, weight),
        lf.mns_loss(p, TRANSITION, same, weight),
    ):
        assert float(loss.detach()) == 0
        loss.backward()
    for answer in (same[0:0].sum(1), same[0:0].sum(1).bool()):
        assert lf.mcl_loss_pairs(p, p, answer) == 0
    assert lf.answer_cost(torch.zeros(0)) == 0


def test_no_answer_at_all_costs_nothing_and_teaches_nothing():
    p, same, weight = simplex(4, 3).requires_grad_(), answers(4, 4), torch.zeros(4, 4)
    for loss in (lf.mcl_loss(p, same, weight), lf.kcl_loss(p, same, weight)):
        (gradient,) = torch.autograd.grad(loss, p)
        assert float(loss.detach()) == 0
        assert not gradient.any()


def test_what_has_no_answer_costs_nothing_whatever_it_would_have_cost():
    """Leaving a pair out, and giving it weight 0 with either answer, are the same."""
    p = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.4, 0.6]]).double()
    weight = torch.ones(3, 3).double()
    weight[0, 1] = weight[1, 0] = 0
    same = torch.eye(3)
    other = same.clone()
    other[0, 1] = other[1, 0] = 1
    for loss in (lf.mcl_loss, lf.kcl_loss):
        assert loss(p, same, weight) == loss(p, other, weight)
    left, right = torch.tensor([0, 2]), torch.tensor([2, 1])
    listed = lf.mcl_loss_pairs(p[left], p[right], torch.zeros(2))
    full = torch.zeros(3, 3)
    full[0, 2] = full[2, 1] = 1
    torch.testing.assert_close(lf.mcl_loss(p, torch.zeros(3, 3), full), listed)


# -- numerical safety ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [1.0, 10.0, 16.0, 30.0, 88.0, 200.0, 1e4])
@pytest.mark.parametrize("same", [0.0, 1.0])
def test_extreme_logits_give_finite_losses_and_gradients(dtype, size, same):
    """Both items sure of one class, of two classes, and one of them undecided."""
    rows = torch.tensor([[1.0, 0, 0], [0, 1.0, 0], [1.0, 0, 0], [0, 0, 0]])
    logits = (size * rows).to(dtype).requires_grad_()
    answer = torch.full((4, 4), same)
    p = logits.softmax(dim=1)
    hard = torch.eye(3)  # exact: lets probabilities of 0 through
    losses = [
        lf.mcl_loss(p, answer),
        lf.mns_loss(p, hard, answer),
        lf.mns_loss(p, TRANSITION, answer),
        lf.kcl_loss(p, answer),
        lf.kcl_loss(p, answer, fixed_target=True),
        lf.mcl_loss_pairs(p[:2], p[1:3], answer[0, :2]),
        lf.kcl_loss_pairs(p[:2], p[1:3], answer[0, :2]),
        lf.balance_entropy(p),
    ]
    for loss in losses:
        (gradient,) = torch.autograd.grad(loss, logits, retain_graph=True)
        assert torch.isfinite(loss)
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_what_a_certain_mistake_costs(dtype):
    p, apart = torch.eye(2, dtype=dtype), torch.eye(2, dtype=dtype).flip(0)
    floor = {torch.float32: 1e-30, torch.float64: 1e-200}[dtype]
    wrongly_different = lf.mcl_loss_pairs(p, p, torch.zeros(2))
    wrongly_same = lf.mcl_loss_pairs(p, apart, torch.ones(2))
    assert float(wrongly_same) == pytest.approx(-math.log(floor), rel=1e-6)
    assert float(wrongly_different) == pytest.approx(-math.log(floor), rel=1e-6)
    assert lf.mcl_loss_pairs(p, p, torch.ones(2)) == 0
    assert lf.mcl_loss_pairs(p, apart, torch.zeros(2)) == 0
    assert lf.kcl_loss_pairs(p, p, torch.ones(2)) == 0
    assert float(lf.kcl_loss_pairs(p, apart, torch.ones(2))) == pytest.approx(-math.log(floor))


def test_a_badly_wrong_pair_still_teaches():
    """Two items that are sure of two classes, by logits as large as float32 can tell apart."""
    logits = torch.tensor([[60.0, 0, -60], [0, 60.0, -60]], requires_grad=True)
    p = logits.softmax(dim=1)
    lf.mcl_loss_pairs(p[:1], p[1:], torch.ones(1)).backward()
    assert logits.grad[0].abs().max() > 0.4


@pytest.mark.parametrize("gap", [5.0, 16.0, 20.0, 40.0, 60.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_sure_items_that_are_different_are_told_so(gap, weighted):
    """In single precision as in double, also where 1 - s rounds to nothing (a gap of 17)."""
    same = torch.eye(3).bool()
    costs = []
    for dtype in (torch.float32, torch.float64):
        logits = torch.tensor([[gap, 0, 0], [gap, 1, 0], [0, gap, 0]], dtype=dtype)
        logits.requires_grad_()
        weight = torch.ones(3, 3, dtype=dtype) if weighted else None
        lf.mcl_loss(logits.softmax(dim=1), same, weight).backward()
        pair = logits.detach().clone().requires_grad_()
        p = pair.softmax(dim=1)
        lf.mcl_loss_pairs(p[:1], p[1:2], torch.zeros(1)).backward()
        costs.append((logits.grad, pair.grad))
    for single, double in zip(*costs):
        torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=1e-7)
    assert costs[0][1][:2].abs().sum(dim=1).min() > 0.3


@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_with_oneself_may_be_left_out(weighted):
    p, same = simplex(5, 3), answers(5, 5)
    weight = weights(5, 5) if weighted else torch.ones(5, 5, dtype=torch.float64)
    others = weight * (1 - torch.eye(5))
    for answer in (same, same.bool()):
        found = lf.mcl_loss(p, answer, weight if weighted else None, self_pairs=False)
        torch.testing.assert_close(found, lf.mcl_loss(p, answer, others))
    found = lf.mns_loss(p, TRANSITION, same, weight if weighted else None, self_pairs=False)
    torch.testing.assert_close(found, lf.mns_loss(p, TRANSITION, same, others))


def test_many_rows_are_handled_a_few_at_a_time(monkeypatch):
    p, same, weight = simplex(9, 4).requires_grad_(), answers(9, 9), weights(9, 9)
    for options in ((same, None, True), (same.bool(), None, False), (same, weight, False)):
        whole = lf.mcl_loss(p, *options)
        (gradient,) = torch.autograd.grad(whole, p)
        with monkeypatch.context() as patch:
            patch.setattr(lf, "_ROWS", {"cpu": 4})
            parts = lf.mcl_loss(p, *options)
            (by_parts,) = torch.autograd.grad(parts, p)
        torch.testing.assert_close(parts, whole)
        torch.testing.assert_close(by_parts, gradient)


@pytest.mark.parametrize(("same", "sign"), [(1.0, -1), (0.0, 1)])
def test_gradients_into_float16_stay_in_its_range(same, sign):
    """d KL / d q = -p / q is past 65,504 here; infinite, a softmax would turn it into NaN."""
    p = torch.tensor([[0.01, 0.99]], dtype=torch.float16)
    q = torch.tensor([[6e-8, 1.0]], dtype=torch.float16, requires_grad=True)
    lf.kcl_loss_pairs(p, q, torch.tensor([same]), fixed_target=True).backward()
    limit = torch.finfo(torch.float16).max / 4
    assert float(q.grad[0, 0]) == sign * limit
    assert abs(float(q.grad[0, 1])) < 1


def test_no_answer_costs_nothing_even_where_its_cost_is_not_finite():
    similarity = torch.tensor([float("nan"), 0.5])
    found = lf.similarity_cross_entropy(similarity, torch.ones(2), torch.tensor([0.0, 2.0]))
    assert float(found) == pytest.approx(math.log(2))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_is_raised_to_single(dtype):
    p, same = simplex(6, 3, dtype=dtype), answers(6, 6)
    pairs = [
        (lf.mcl_loss(p, same), lf.mcl_loss(p.float(), same)),
        (lf.mns_loss(p, TRANSITION, same), lf.mns_loss(p.float(), TRANSITION, same)),
        (lf.kcl_loss(p, same), lf.kcl_loss(p.float(), same)),
        (lf.balance_entropy(p), lf.balance_entropy(p.float())),
        (
            lf.similarity_cross_entropy(p @ p.T, same),
            lf.similarity_cross_entropy((p @ p.T).float(), same),
        ),
    ]
    for found, expected in pairs:
        assert found.dtype == torch.float32
        assert found == expected


def test_autocast_does_not_lower_the_precision():
    p, same, flat = simplex(6, 3, dtype=torch.float32), answers(6, 6), answers(6)

    def all_losses() -> list[Tensor]:
        return [
            lf.mcl_loss(p, same),
            lf.mns_loss(p, TRANSITION, same),
            lf.kcl_loss(p, same),
            lf.mcl_loss_pairs(p, p.flip(0), flat),
            lf.mns_loss_pairs(p, p.flip(0), TRANSITION, flat),
            lf.kcl_loss_pairs(p, p.flip(0), flat),
        ]

    expected = all_losses()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = all_losses()
    assert found == expected


def test_nothing_is_changed_in_place():
    given_ = simplex(5, 3), TRANSITION.clone(), answers(5, 5), weights(5, 5)
    before = [tensor.clone() for tensor in given_]
    p, transition, same, weight = given_
    lf.mcl_loss(p, same, weight)
    lf.mns_loss(p, transition, same, weight)
    lf.kcl_loss(p, same, weight)
    for tensor, kept in zip(given_, before):
        assert torch.equal(tensor, kept)


# -- the smaller parts ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_perceived_takes_the_type_of_p(dtype):
    p = simplex(5, 3, dtype=dtype)
    f = lf.perceived(p, TRANSITION)
    assert f.dtype == dtype
    torch.testing.assert_close(f, torch.tensor(perceived_by_loop(p, TRANSITION), dtype=dtype))
    torch.testing.assert_close(f.sum(dim=1), torch.ones(5, dtype=dtype))


def test_similarity_cross_entropy_of_any_shape():
    similarity = torch.tensor([[0.9, 0.2], [0.5, 0.6]]).double()
    same = torch.tensor([[1, 0], [0, 1]])
    costs = [-math.log(0.9), -math.log(0.8), -math.log(0.5), -math.log(0.6)]
    found = lf.similarity_cross_entropy(similarity, same)
    assert float(found) == pytest.approx(sum(costs) / 4)
    weight = torch.tensor([[1.0, 0.0], [3.0, 0.0]])
    found = lf.similarity_cross_entropy(similarity, same, weight)
    assert float(found) == pytest.approx((costs[0] + 3 * costs[2]) / 4)


def test_balance_entropy_is_that_of_the_mean():
    assert float(lf.balance_entropy(torch.eye(4))) == pytest.approx(math.log(4))
    assert float(lf.balance_entropy(torch.eye(4)[[0, 0]])) == pytest.approx(0, abs=1e-12)
    p = simplex(6, 3)
    mean = [sum(column) / 6 for column in zip(*p.tolist())]
    expected = -sum(m * math.log(m) for m in mean)
    found = lf.balance_entropy(p)
    assert found.shape == ()
    assert float(found) == pytest.approx(expected, abs=1e-12)


def test_plain_answers_take_a_short_way_to_the_same_place():
    logits = torch.tensor([[0.0, 1, 2], [50, 0, 0], [0, 50, 0], [50, 1, 0], [-200, 0, 200]])
    same = torch.tensor([[1, 0, 1, 1, 0]]).bool() ^ torch.eye(5).bool()  # mistakes among them
    for dtype in (torch.float32, torch.float64):
        p = logits.to(dtype).softmax(dim=1)
        short = (p @ p.T).requires_grad_()
        long = short.detach().clone().requires_grad_()
        cost = lf.similarity_cross_entropy(short, same)
        other = lf.similarity_cross_entropy(long, same, torch.ones_like(long))
        assert torch.allclose(cost, other, rtol=1e-6)
        cost.backward()
        other.backward()
        assert torch.allclose(short.grad, long.grad, rtol=1e-5)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("gap", [1.0, 9.0])
def test_one_minus_s_is_taken_as_it_is_only_where_rounding_does_not_show(monkeypatch, gap, soft):
    """By the short way and the long one, the numbers of double precision."""
    logits = gap * torch.randn(70, 4, generator=torch.Generator().manual_seed(0))
    same = (torch.rand(70, 70, generator=torch.Generator().manual_seed(1)) < 0.4).double()
    same = 0.1 + 0.8 * same if soft else same
    found = []
    for dtype, near in ((torch.float64, 2.0), (torch.float32, 2.0), (torch.float32, lf._NEAR)):
        monkeypatch.setattr(lf, "_NEAR", near)  # 1 - s is never above 2: the long way
        leaf = logits.to(dtype, copy=True).requires_grad_()
        loss = lf.mcl_loss(leaf.softmax(dim=1), same.to(dtype))
        loss.backward()
        found.append((loss.detach().double(), leaf.grad.double()))
    for loss, gradient in found[1:]:
        torch.testing.assert_close(loss, found[0][0], rtol=1e-5, atol=0)
        torch.testing.assert_close(gradient, found[0][1], rtol=1e-3, atol=1e-7)


def test_an_item_that_nobody_judged_may_be_anything():
    p, same, weight = simplex(5, 3), answers(5, 5), torch.ones(5, 5, dtype=torch.float64)
    known = [0, 1, 3, 4]
    p[2] = math.nan
    weight[2] = weight[:, 2] = 0
    soft = 0.1 + 0.8 * same.double()
    for answer in (same, same.bool(), soft):
        expected = lf.mcl_loss(p[known], answer[known][:, known])
        torch.testing.assert_close(lf.mcl_loss(p, answer, weight), expected)
    expected = lf.kcl_loss(p[known], same[known][:, known])
    torch.testing.assert_close(lf.kcl_loss(p, same, weight), expected)


@pytest.mark.parametrize("kind", [torch.bool, torch.int64, torch.float32, torch.float64], ids=str)
def test_answers_of_any_type(kind):
    p, q, same, listed = simplex(6, 3), simplex(6, 3, seed=5), answers(6, 6), answers(6)
    found = [
        lf.mcl_loss(p, same.to(kind)),
        lf.mns_loss(p, TRANSITION, same.to(kind)),
        lf.kcl_loss(p, same.to(kind)),
        lf.mcl_loss_pairs(p, q, listed.to(kind)),
        lf.mns_loss_pairs(p, q, TRANSITION, listed.to(kind)),
        lf.kcl_loss_pairs(p, q, listed.to(kind)),
    ]
    plain = [
        lf.mcl_loss(p, same.double()),
        lf.mns_loss(p, TRANSITION, same.double()),
        lf.kcl_loss(p, same.double()),
        lf.mcl_loss_pairs(p, q, listed.double()),
        lf.mns_loss_pairs(p, q, TRANSITION, listed.double()),
        lf.kcl_loss_pairs(p, q, listed.double()),
    ]
    for one, other in zip(found, plain):
        assert one.dtype == torch.float64
        torch.testing.assert_close(one, other)


def test_weights_of_any_type():
    p, q, same, listed = simplex(6, 3), simplex(6, 3, seed=5), answers(6, 6), answers(6)
    for all_pairs, pairs in ((lf.mcl_loss, lf.mcl_loss_pairs), (lf.kcl_loss, lf.kcl_loss_pairs)):
        weight = answers(6, 6, seed=9)
        expected = all_pairs(p, same, weight.double())
        for kind in (torch.bool, torch.int64, torch.float32):
            torch.testing.assert_close(all_pairs(p, same, weight.to(kind)), expected)
        expected = pairs(p, q, listed, weight[0].double())
        for kind in (torch.bool, torch.int64, torch.float32):
            torch.testing.assert_close(pairs(p, q, listed, weight[0].to(kind)), expected)
        torch.testing.assert_close(pairs(p, q, listed.bool(), weight[0]), expected)


def test_a_cpu_takes_half_of_the_products_where_it_can(monkeypatch):
    p, same = simplex(6, 3), torch.eye(6)
    looked, taken = [], []
    addr, unequal = torch.addr, lf.unequal
    monkeypatch.setattr(torch, "addr", lambda *a, **k: looked.append(1) or addr(*a, **k))
    monkeypatch.setattr(lf, "unequal", lambda q: taken.append(q) or unequal(q))
    lf.mcl_loss(p, same)
    assert looked == [1]
    assert not taken[-1].any()  # what would have gone the long way back
    monkeypatch.setattr(lf, "_NEAR", 2.0)
    lf.mcl_loss(p, same)
    assert taken[-1].any()


def test_a_difference_that_is_known_is_taken():
    similarity, same = torch.tensor([0.9, 1.0]).double(), torch.tensor([0, 0])
    difference = torch.tensor([0.2, 1e-12]).double()
    expected = -(math.log(0.2) + math.log(1e-12)) / 2
    for answer in (same, same.bool()):
        found = lf.similarity_cross_entropy(similarity, answer, None, difference)
        assert float(found) == pytest.approx(expected)
    eps = torch.finfo(torch.float64).eps
    floored = lf.similarity_cross_entropy(similarity[1:], same[1:])
    assert float(floored) == pytest.approx(-math.log(eps))


def test_everything_stays_on_the_device_of_the_beliefs():
    """The device that computes nothing refuses to be mixed with another, as a GPU does."""
    p, same = simplex(5, 3).to("meta"), answers(5, 5).to("meta")
    assert lf.unequal(p).device.type == "meta"
    assert lf.perceived(p, TRANSITION).device.type == "meta"
    for weight, self_pairs in ((None, True), (weights(5, 5).to("meta"), False)):
        leaf = p.clone().requires_grad_()
        cost = lf._AllPairs.apply(leaf, same, weight, self_pairs)
        cost.backward()
        assert cost.device.type == leaf.grad.device.type == "meta"
        assert (cost.dtype, leaf.grad.shape) == (torch.float64, (5, 3))
