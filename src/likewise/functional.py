"""The pairwise losses as pure functions, and f = g @ T.

Shapes: ``p`` (n, C), rows on the simplex; ``same`` (n, n), 1 where two items were judged the same
and 0 where not (values between are soft answers); ``weight`` (n, n), how much a judgement counts,
0 for "no answer". Every function is over all n * n ordered pairs of the batch and has a twin for
explicit pairs, ``..._pairs(p_left (m, C), p_right (m, C), same (m,), weight (m,))``. A loss is the
weighted mean over the answered pairs: what has no answer costs nothing.

The pairs are never enumerated: an inner product for every pair is one matrix product, so nothing
larger than (n, n) is held. Half precision is raised to single first, autocast or not, and the
gradients that go back into float16 are kept within its range.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Below these, log stops: a "same" pair of probability 0 costs -log(floor), large but finite. The
# floor of s is as low as 1/s stays finite, so that the gradient of a badly wrong pair survives;
# 1 - s is known only to the rounding of s.
_SAME_FLOOR = {torch.float32: 1e-30, torch.float64: 1e-200}
_HALF_LIMIT = torch.finfo(torch.float16).max / 4


def perceived(p: Tensor, transition: Tensor) -> Tensor:
    """f = g @ T: (n, C) perceived-class posterior from the class posterior. The paper's T'g."""
    return p @ transition.to(dtype=p.dtype, device=p.device)


def mcl_loss(p: Tensor, same: Tensor, weight: Tensor | None = None) -> Tensor:
    """Meta classification likelihood: cross-entropy of ``same`` against p_i . p_j (Eq. 3)."""
    with torch.autocast(p.device.type, enabled=False):
        p = _full(p)
        return similarity_cross_entropy(p @ p.T, same, weight)


def mcl_loss_pairs(
    p_left: Tensor, p_right: Tensor, same: Tensor, weight: Tensor | None = None
) -> Tensor:
    """`mcl_loss` over explicit pairs."""
    with torch.autocast(p_left.device.type, enabled=False):
        products = (_full(p_left) * _full(p_right)).sum(dim=1)
        return similarity_cross_entropy(products, same, weight)


def mns_loss(p: Tensor, transition: Tensor, same: Tensor, weight: Tensor | None = None) -> Tensor:
    """Noisy-similarity likelihood: `mcl_loss` of f = p @ T (the paper's Eq. 7)."""
    with torch.autocast(p.device.type, enabled=False):
        return mcl_loss(perceived(_full(p), transition), same, weight)


def mns_loss_pairs(
    p_left: Tensor,
    p_right: Tensor,
    transition: Tensor,
    same: Tensor,
    weight: Tensor | None = None,
) -> Tensor:
    """`mns_loss` over explicit pairs."""
    with torch.autocast(p_left.device.type, enabled=False):
        left = perceived(_full(p_left), transition)
        right = perceived(_full(p_right), transition)
        return mcl_loss_pairs(left, right, same, weight)


def kcl_loss(
    p: Tensor,
    same: Tensor,
    weight: Tensor | None = None,
    margin: float = 2.0,
    fixed_target: bool = False,
) -> Tensor:
    """KL-divergence contrast (Hsu & Kira): pull "same" together, push "different" to a margin.

    Pair (i, j) costs KL(p_i || p_j) if judged the same, max(0, margin - KL(p_i || p_j)) if not.
    ``fixed_target=True`` lets no gradient into p_i, the target, as the original training does.
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
    fixed_target: bool = False,
) -> Tensor:
    """`kcl_loss` over explicit pairs, each taken in both orders."""
    with torch.autocast(p_left.device.type, enabled=False):
        left, right = _full(p_left), _full(p_right)
        there = _divergence(left.detach() if fixed_target else left, right)
        back = _divergence(right.detach() if fixed_target else right, left)
        both = (_contrast(kl, same, weight, margin) for kl in (there, back))
        return torch.stack(list(both)).mean()


def similarity_cross_entropy(
    similarity: Tensor, same: Tensor, weight: Tensor | None = None
) -> Tensor:
    """Weighted mean cross-entropy of answers against predicted similarities, any shape."""
    similarity = _full(similarity)
    if weight is None and same.dtype == torch.bool and similarity.numel():
        cost: Tensor = _PlainAnswers.apply(similarity, same)  # type: ignore[no-untyped-call]
        return cost
    answer = same.to(similarity.dtype)
    log_same = similarity.clamp_min(_SAME_FLOOR[similarity.dtype]).log()
    log_different = (1 - similarity).clamp_min(torch.finfo(similarity.dtype).eps).log()
    return _weighted_mean(-(answer * log_same + (1 - answer) * log_different), weight)


class _PlainAnswers(torch.autograd.Function):
    """`similarity_cross_entropy` of plain yes and no, in half as many operations.

    What the other form says about every pair with products of answers and logarithms is said here
    by choosing. Small networks on a GPU spend their time on the number of operations.
    """

    @staticmethod
    def forward(ctx: Any, similarity: Tensor, same: Tensor) -> Tensor:
        floor, eps = _SAME_FLOOR[similarity.dtype], torch.finfo(similarity.dtype).eps
        given = torch.where(same, similarity, 1 - similarity)  # probability of the answer given
        floored = torch.where(same, given.clamp_min(floor), given.clamp_min(eps))
        ctx.save_for_backward(same, given, floored)
        return -floored.log().mean()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        same, given, floored = ctx.saved_tensors
        share = gradient / given.numel()
        slope = torch.where(same, -share, share) / floored
        return torch.where(given == floored, slope, 0.0), None  # constant below the floor


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
    return torch.xlogy(p, p.clamp_min(_SAME_FLOOR[p.dtype])).sum(dim=1)


def _safe_log(p: Tensor) -> Tensor:
    return p.clamp_min(_SAME_FLOOR[p.dtype]).log()


def _weighted_mean(cost: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return cost.mean() if cost.numel() else cost.sum()
    weight = weight.to(cost.dtype)
    # where(), not a product: "no answer" must cost nothing even where its cost is not finite.
    total = torch.where(weight > 0, cost * weight, 0.0).sum()
    return total / weight.sum().clamp_min(torch.finfo(cost.dtype).tiny)


def _full(p: Tensor) -> Tensor:
    if p.dtype in _SAME_FLOOR:
        return p
    full = p.float()
    if p.dtype == torch.float16 and full.requires_grad:
        # The derivative 1/s of a badly wrong pair is past what float16 holds; infinite, it would
        # come out of the softmax behind it as NaN.
        full.register_hook(_within_half)  # type: ignore[no-untyped-call]
    return full


def _within_half(gradient: Tensor) -> Tensor:
    return gradient.clamp(-_HALF_LIMIT, _HALF_LIMIT)
