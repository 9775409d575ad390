"""The pairwise losses as pure functions, and f = g @ T.

Shapes: ``p`` (n, C), rows on the simplex; ``same`` (n, n), 1 where two items were judged the same
and 0 where not (values between are soft answers); ``weight`` (n, n), how much a judgement counts,
0 for "no answer". Every function is over all n * n ordered pairs of the batch and has a twin for
explicit pairs, ``..._pairs(p_left (m, C), p_right (m, C), same (m,), weight (m,))``. A loss is the
weighted mean over the answered pairs: what has no answer costs nothing.

The pairs are never enumerated: an inner product for every pair is one matrix product, so nothing
larger than (n, n) is held. That two items are of different classes has the probability
sum over c != k of p_i[c] p_j[k], which is formed as such a sum: 1 - p_i . p_j would round to 0 for
two sure items, and a wrongly sure pair would have no gradient. Half precision is raised to single
first, autocast or not, and the gradients that go back into float16 are kept within its range.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

# Below these, log stops: an answer of probability 0 costs -log(floor), large but finite. As low as
# the inverse stays finite, so that the gradient of a badly wrong pair survives.
_FLOOR = {torch.float32: 1e-30, torch.float64: 1e-200}
_NEAR = 0.01  # below it, 1 - s is not taken as a difference: rounding would show
_ROWS = {"cpu": 64, "cuda": 4096}  # of (n, n) handled at once: a CPU has them in its cache
_HALF_LIMIT = torch.finfo(torch.float16).max / 4


def perceived(p: Tensor, transition: Tensor) -> Tensor:
    """f = g @ T: (n, C) perceived-class posterior from the class posterior. The paper's T'g."""
    return p @ transition.to(dtype=p.dtype, device=p.device)


def unequal(p: Tensor) -> Tensor:
    """(n, C) probability of any other class: the rest of a row summed, nothing subtracted."""
    return p @ p.new_ones(p.shape[1], p.shape[1]).fill_diagonal_(0)


def mcl_loss(
    p: Tensor, same: Tensor, weight: Tensor | None = None, self_pairs: bool = True
) -> Tensor:
    """Meta classification likelihood: cross-entropy of ``same`` against p_i . p_j (Eq. 3).

    ``self_pairs=False`` leaves out the n pairs of an item with itself, which nobody was asked.
    """
    with torch.autocast(p.device.type, enabled=False):
        cost: Tensor = _AllPairs.apply(_full(p), same, weight, self_pairs)  # type: ignore[no-untyped-call]
        return cost


def mcl_loss_pairs(
    p_left: Tensor, p_right: Tensor, same: Tensor, weight: Tensor | None = None
) -> Tensor:
    """`mcl_loss` over explicit pairs."""
    with torch.autocast(p_left.device.type, enabled=False):
        left, right = _full(p_left), _full(p_right)
        similarity, difference = (left * right).sum(dim=1), (left * unequal(right)).sum(dim=1)
        return similarity_cross_entropy(similarity, same, weight, difference)


def mns_loss(
    p: Tensor,
    transition: Tensor,
    same: Tensor,
    weight: Tensor | None = None,
    self_pairs: bool = True,
) -> Tensor:
    """Noisy-similarity likelihood: `mcl_loss` of f = p @ T (the paper's Eq. 7)."""
    with torch.autocast(p.device.type, enabled=False):
        return mcl_loss(perceived(_full(p), transition), same, weight, self_pairs)


def mns_loss_pairs(
    p_left: Tensor,
    p_right: Tensor,
    transition: Tensor,
    same: Tensor,
    weight: Tensor | None = None,
) -> Tensor:
    """`mns_loss` over explicit pairs."""
    with torch.autocast(p_left.device.type, enabled=False):
        left, right = (perceived(_full(p), transition) for p in (p_left, p_right))
        return mcl_loss_pairs(left, right, same, weight)


def kcl_loss(
    p: Tensor,
    same: Tensor,
    weight: Tensor | None = None,
    margin: float = 2.0,
    fixed_target: bool = True,
) -> Tensor:
    """KL-divergence contrast (Hsu & Kira): pull "same" together, push "different" to a margin.

    Pair (i, j) costs KL(p_i || p_j) if judged the same, max(0, margin - KL(p_i || p_j)) if not.
    ``fixed_target`` lets no gradient into p_i, the target, as the original training does.
    """
    with torch.autocast(p.device.type, enabled=False):
        p = _full(p)
        target = p.detach() if fixed_target else p
        divergence = _negative_entropy(target)[:, None] - target @ _safe_log(p).T
        return _contrast(divergence, same, weight, margin)


def kcl_loss_pairs(
    p_left: Tensor,
    p_right: Tensor,
    same: Tensor,
    weight: Tensor | None = None,
    margin: float = 2.0,
    fixed_target: bool = True,
) -> Tensor:
    """`kcl_loss` over explicit pairs, each taken in both orders."""
    with torch.autocast(p_left.device.type, enabled=False):
        left, right = _full(p_left), _full(p_right)
        there = _divergence(left.detach() if fixed_target else left, right)
        back = _divergence(right.detach() if fixed_target else right, left)
        both = (_contrast(kl, same, weight, margin) for kl in (there, back))
        return torch.stack(list(both)).mean()


def similarity_cross_entropy(
    similarity: Tensor,
    same: Tensor,
    weight: Tensor | None = None,
    difference: Tensor | None = None,
) -> Tensor:
    """Weighted mean cross-entropy of answers against predicted similarities, any shape.

    ``difference`` is 1 - similarity, where that is known better than to the rounding of the latter.
    """
    similarity = _full(similarity)
    if difference is None:
        difference = (1 - similarity).clamp_min(torch.finfo(similarity.dtype).eps)
    if same.dtype == torch.bool:
        return answer_cost(torch.where(same, similarity, difference), weight)
    answer = same.to(similarity.dtype)
    costs = answer * _safe_log(similarity) + (1 - answer) * _safe_log(difference)
    return _weighted_mean(-costs, weight)


def answer_cost(probability: Tensor, weight: Tensor | None = None) -> Tensor:
    """Weighted mean of -log of the ``probability`` that was given to each answer, any shape."""
    probability = _full(probability)
    if weight is None and probability.numel():
        cost: Tensor = _MeanCost.apply(probability)  # type: ignore[no-untyped-call]
        return cost
    return _weighted_mean(-_safe_log(probability), weight)


class _MeanCost(torch.autograd.Function):
    """`answer_cost` without weights, in half as many passes over the answers."""

    @staticmethod
    def forward(ctx: FunctionCtx, probability: Tensor) -> Tensor:
        cost, slope = _cost_and_slope(probability)
        ctx.save_for_backward(slope)
        return cost.mean()

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return torch.mul(slope, gradient / slope.numel())


class _AllPairs(torch.autograd.Function):
    """Cross-entropy of answers (n, n) about all pairs of p (n, C), and its gradient, in one pass.

    Some rows of the (n, n) pairs at a time: nothing of that size is kept for the way back. Where
    none of them is a "different" near s = 1, 1 - s is taken as it is: half of the products. A
    device that should not wait for its host, and a compiler, take the long way always.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx, p: Tensor, same: Tensor, weight: Tensor | None, self_pairs: bool
    ) -> Tensor:
        others, sums = unequal(p), p.sum(dim=1)
        total, mass = p.new_zeros(()), p.new_zeros(())
        by_rows, by_columns, by_others = p.new_zeros(3, *p.shape)
        may_choose = p.device.type == "cpu" and not torch.compiler.is_compiling()
        step = _ROWS.get(p.device.type, 1024)
        for start in range(0, len(p), step):
            part = slice(start, start + step)
            rows, answer = p[part], same[part].to(p.dtype)
            s, hard, short = rows @ p.T, same.dtype == torch.bool, False
            if may_choose:
                hard = hard or torch.equal(answer * answer, answer)
                difference = torch.addr(s, sums[part], sums, beta=-1)
                asked = difference + answer if hard else difference
                short = float(asked.min()) > _NEAR
            if not short:
                difference = rows @ others.T
            counts = _counts(weight, part, s, self_pairs)
            cost, by_s, by_difference = _costs(s, difference, answer, hard, counts)
            total += cost.sum()
            mass += counts.sum() if isinstance(counts, Tensor) else cost.numel()
            if short:  # d difference / d p_i = sums_j - p_j
                by_s -= by_difference
                by_rows[part] += (by_difference @ sums)[:, None]
                by_columns += (sums[part] @ by_difference)[:, None]
            else:
                by_rows[part].addmm_(by_difference, others)
                by_others.addmm_(by_difference.T, rows)
            by_rows[part].addmm_(by_s, p)
            by_columns.addmm_(by_s.T, rows)
        mass = mass.clamp_min(torch.finfo(p.dtype).tiny)
        ctx.save_for_backward((by_rows + by_columns + unequal(by_others)) / mass)
        return total / mass

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        (by_p,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return gradient * by_p, None, None, None


def _counts(weight: Tensor | None, part: slice, s: Tensor, self_pairs: bool) -> Tensor | None:
    """(b, n) how much the pairs of some rows count; None where all count alike."""
    if weight is None and self_pairs:
        return None
    counts = torch.ones_like(s) if weight is None else weight[part].to(s.dtype, copy=True)
    if not self_pairs:
        counts.diagonal(part.start).zero_()
    return counts


def _costs(
    s: Tensor, difference: Tensor, answer: Tensor, hard: bool, counts: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """(b, n) costs of pairs, and their slopes by s and by 1 - s; ``hard`` answers are 0 or 1."""
    if hard:
        cost, slope = _cost_and_slope(torch.lerp(difference, s, answer))
        by_s = slope * answer
        by_difference = slope.sub_(by_s)
    else:
        (log_s, by_s), (log_d, by_difference) = _cost_and_slope(s), _cost_and_slope(difference)
        cost = torch.lerp(log_d, log_s, answer)
        by_s, by_difference = by_s * answer, by_difference * (1 - answer)
    if counts is None:
        return cost, by_s, by_difference
    # where(), not a product: "no answer" must cost nothing even where its cost is not finite.
    answered = counts > 0
    for slope in (by_s, by_difference):
        slope.mul_(counts).masked_fill_(~answered, 0.0)
    return torch.where(answered, cost * counts, 0.0), by_s, by_difference


def _cost_and_slope(probability: Tensor) -> tuple[Tensor, Tensor]:
    """-log of it, and the slope of that, which is nothing below the floor."""
    floor = _FLOOR[probability.dtype]
    floored = probability.clamp_min(floor)
    slope = torch.ops.aten.threshold_backward(floored.reciprocal().neg_(), probability, floor)
    return floored.log_().neg_(), slope


def balance_entropy(p: Tensor) -> Tensor:
    """H(mean of p): log C when the classes are used equally; what keeps all of them alive."""
    return -_negative_entropy(_full(p).mean(dim=0, keepdim=True)).squeeze(0)


def _contrast(divergence: Tensor, same: Tensor, weight: Tensor | None, margin: float) -> Tensor:
    answer = same.to(divergence.dtype)
    return _weighted_mean(answer * divergence + (1 - answer) * (margin - divergence).relu(), weight)


def _divergence(p: Tensor, q: Tensor) -> Tensor:
    """KL(p || q) row by row: (m, C), (m, C) -> (m,)."""
    return _negative_entropy(p) - (p * _safe_log(q)).sum(dim=1)


def _negative_entropy(p: Tensor) -> Tensor:
    return torch.xlogy(p, p.clamp_min(_FLOOR[p.dtype])).sum(dim=1)


def _safe_log(p: Tensor) -> Tensor:
    return p.clamp_min(_FLOOR[p.dtype]).log()


def _weighted_mean(cost: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return cost.mean() if cost.numel() else cost.sum()
    weight = weight.to(cost.dtype)
    # where(), not a product: "no answer" must cost nothing even where its cost is not finite.
    total = torch.where(weight > 0, cost * weight, 0.0).sum()
    return total / weight.sum().clamp_min(torch.finfo(cost.dtype).tiny)


def _full(p: Tensor) -> Tensor:
    if p.dtype in _FLOOR:
        return p
    full = p.float()
    if p.dtype == torch.float16 and full.requires_grad:
        # The derivative 1/s of a badly wrong pair is past what float16 holds; infinite, it would
        # come out of the softmax behind it as NaN.
        full.register_hook(lambda slope: slope.clamp(-_HALF_LIMIT, _HALF_LIMIT))  # type: ignore[no-untyped-call]
    return full
