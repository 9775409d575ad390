"""What an answer says: rates of people, and answers about one pair that err together.

Annotator w says "same" about a pair of one group with probability a_w and about another pair with
b_w (Dawid & Skene 1979). People are few answers each, so (a_w, b_w) is one of a grid of *types*
whose frequencies are learned from everybody: attentive, biased, careless (a = b) and swapped
(a < b) people all have theirs, and swapped answers count the other way round by themselves. What an
answer says is predicted from the *other* answers of its annotator.

Repeated answers about one pair are not independent: a pair that looks alike does so to everyone.
The logit of "same" has a random effect of the pair, N(0, s²), s one number for pairs inside groups
and one for pairs across; it is integrated out by Gauss-Hermite quadrature.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from likewise.inference.partition.arrays import (
    BoolArray,
    Float,
    FloatArray,
    IndexArray,
    IntArray,
)

RATE_GRID = np.array([0.003, 0.02, 0.06, 0.12, 0.2, 0.35, 0.5, 0.65, 0.8, 0.88, 0.94, 0.98, 0.997])
SPREADS: tuple[float, ...] = (0.0, 0.4, 0.7, 1.0, 1.4, 1.9, 2.5)
TYPE_STRENGTH = 1.0  # pseudo-annotators of the smooth prior over types
BELIEF_LEVELS = 10  # P(same) of a pair is rounded to tenths where an answer is left out
LEAST_RIGHT = 0.5  # of all answers inside groups, and of those across
N_NODES = 9
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(N_NODES)
_LOG_NODE_WEIGHTS = np.log(_NODE_WEIGHTS / _NODE_WEIGHTS.sum())


@dataclass(frozen=True)
class Answers:
    """Answers sorted by unordered pair."""

    left: IntArray
    """(P,) the smaller item of each distinct pair."""
    right: IntArray
    """(P,) the larger item of each distinct pair."""
    first: IntArray
    """(P,) where the answers of a pair begin."""
    pair: IntArray
    """(M,) the pair of each answer."""
    same: BoolArray
    """(M,) the answers."""
    annotator: IntArray
    """(M,) codes 0 … R - 1."""
    weight: FloatArray
    """(M,) positive."""
    order: IntArray
    """(M,) position of each in what was given."""
    n_annotators: int
    """R, whether all of them answered or not."""
    n_items: int
    """N, judged or not."""

    @property
    def n_pairs(self) -> int:
        """P, the number of distinct pairs."""
        return len(self.left)

    @classmethod
    def build(
        cls,
        left: IndexArray,
        right: IndexArray,
        same: BoolArray,
        n_items: int,
        annotator: IndexArray | None,
        weight: FloatArray | None,
    ) -> Answers:
        """Sorted; answers of weight 0 and of an item with itself are left out."""
        low, high = np.minimum(left, right).astype(np.int64), np.maximum(left, right)
        given = np.ones(len(low)) if weight is None else np.asarray(weight, np.float64)
        kept = np.flatnonzero((given > 0) & (low != high))
        code = low[kept] * n_items + high[kept]
        order = kept[np.argsort(code, kind="stable")]
        distinct, first, pair = np.unique(np.sort(code), return_index=True, return_inverse=True)
        who = np.zeros(len(order), np.int64)
        n_annotators = 1
        if annotator is not None:
            who = np.asarray(annotator, np.int64)[order]
            n_annotators = int(np.max(annotator, initial=0)) + 1
        return cls(
            left=distinct // n_items,
            right=distinct % n_items,
            first=first.astype(np.int64),
            pair=pair.reshape(-1).astype(np.int64),
            same=np.asarray(same, bool)[order],
            annotator=who,
            weight=given[order],
            order=order,
            n_annotators=n_annotators,
            n_items=n_items,
        )

    @cached_property
    def repeated(self) -> tuple[BoolArray, Answers]:
        """(P,) whether a pair has several answers, and the answers about these, in this order."""
        several = np.bincount(self.pair, minlength=self.n_pairs) > 1
        return several, self.select(several)

    def select(self, pairs: BoolArray) -> Answers:
        """The answers about some of the pairs, ``pairs`` (P,) true for these."""
        kept = pairs[self.pair]
        left, right = self.left[self.pair[kept]], self.right[self.pair[kept]]
        about = self.same[kept], self.n_items, self.annotator[kept], self.weight[kept]
        return replace(Answers.build(left, right, *about), n_annotators=self.n_annotators)


@dataclass(frozen=True)
class Rates:
    """How people answer."""

    p_same: FloatArray
    """(R, 2) each annotator's P("same" | one group) and P("same" | two groups)."""
    answer_p_same: FloatArray
    """(M, 2) the same, predicted for each answer from the annotator's others."""
    spread: tuple[float, float]
    """Standard deviations of a pair's effect inside and across groups."""


def two_rates(answers: Answers, a: float, b: float) -> Rates:
    """Everybody answers with the same rates."""
    pair = np.array([a, b])
    return Rates(
        np.tile(pair, (answers.n_annotators, 1)), np.tile(pair, (len(answers.same), 1)), (0.0, 0.0)
    )


def log_likelihood(answers: Answers, rates: Rates) -> FloatArray:
    """(P, 2) log P(answers about each pair | one group, two groups)."""
    return np.stack(
        [_marginal(answers, rates.answer_p_same[:, k], rates.spread[k]) for k in (0, 1)], axis=1
    )


def _marginal(answers: Answers, p_same: FloatArray, spread: float) -> FloatArray:
    """(P,) log P(answers about a pair), its effect N(0, spread²) integrated out."""
    if not answers.n_pairs:
        return np.zeros(0)
    sign = np.where(answers.same, 1.0, -1.0)
    lean = sign * logit(p_same)  # log-odds of the answer that was given
    if spread == 0:
        return np.asarray(np.add.reduceat(_log_chance(answers, lean), answers.first))
    # The mean of sigmoid(x + s u) is about sigmoid(x / sqrt(1 + pi s² / 8)): keep that mean.
    lean *= np.sqrt(1 + np.pi * spread**2 / 8)
    total = np.empty((N_NODES, answers.n_pairs))
    for k, node in enumerate(_NODES):
        terms = _log_chance(answers, lean + (spread * node) * sign)
        total[k] = np.add.reduceat(terms, answers.first) + _LOG_NODE_WEIGHTS[k]
    top = total.max(0)
    return np.asarray(top + np.log(np.exp(total - top).sum(0)))


def _log_chance(answers: Answers, lean: FloatArray) -> FloatArray:
    """(M,) weighted log P(answer) of log-odds (M,)."""
    return -answers.weight * np.log1p(np.exp(-np.clip(lean, -30, 30)))


def fit_rates(answers: Answers, belief: FloatArray, previous: Rates | None = None) -> Rates:
    """Rates that fit P(same) of each pair (P,): types of people, then the pairs' effects."""
    each = belief[answers.pair]  # (M,)
    if answers.n_annotators > 1:
        p_same, predicted = _fit_types(answers, each)
    else:
        p_same = _pooled(answers, each)[None]
        predicted = np.broadcast_to(p_same, (len(each), 2))
    p_same, predicted = _right_on_average(answers, each, p_same, predicted)
    spread = _fit_spread(answers, predicted, belief, None if previous is None else previous.spread)
    return Rates(p_same, predicted, spread)


def _right_on_average(
    answers: Answers, each: FloatArray, p_same: FloatArray, predicted: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Shift logits so that over all answers P(right) is at least a half inside and across groups.

    Without it "all is one group, and people hardly ever say so" explains sparse answers.
    """
    shift = np.zeros(2)
    target = logit(LEAST_RIGHT)
    for k, share in enumerate((each, 1 - each)):
        share = share * answers.weight
        for _ in range(20):  # a fixed point on the logit of the mean
            mean = share @ expit(logit(predicted[:, k]) + shift[k]) / max(share.sum(), 1e-9)
            gap = target - logit(np.clip(mean, 1e-6, 1 - 1e-6))
            if share.sum() < 1e-9 or (gap <= 1e-4 if k == 0 else gap >= -1e-4):
                break
            shift[k] += gap
    return expit(logit(p_same) + shift), expit(logit(predicted) + shift)


def _pooled(answers: Answers, each: FloatArray) -> FloatArray:
    """(2,) P("same" | one group), P("same" | two groups) of everybody together."""
    inside = answers.weight * each
    across = answers.weight * (1 - each)
    said = answers.same
    a = (inside[said].sum() + 1.6) / (inside.sum() + 2)
    b = (across[said].sum() + 0.4) / (across.sum() + 2)
    return np.asarray(np.clip([a, b], 1e-4, 1 - 1e-4))


def _type_table() -> FloatArray:
    """(K, 2 [one group, two groups]) P("same") of every type."""
    a, b = np.meshgrid(RATE_GRID, RATE_GRID, indexing="ij")
    return np.stack([a.ravel(), b.ravel()], axis=1)


def _fit_types(answers: Answers, each: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Posterior mean rates (R, 2), and (M, 2) without the answer that they are used for."""
    types = _type_table()
    log_yes, log_no = np.log(types), np.log1p(-types)
    counts = np.zeros((answers.n_annotators, 4))  # said "same" inside, across; "different" …
    for column, chosen in enumerate((answers.same, ~answers.same)):
        for side, share in enumerate((each, 1 - each)):
            counts[:, 2 * column + side] = np.bincount(
                answers.annotator, answers.weight * share * chosen, answers.n_annotators
            )
    fit = counts @ np.concatenate([log_yes, log_no], axis=1).T  # (R, K)
    pooled = _pooled(answers, each)
    distance = np.square(logit(types) - logit(pooled)).sum(1)
    base = np.exp(-distance / 8) + 0.02 / len(types)
    base /= base.sum()
    prior = base
    heard = counts.sum(1) > 0
    for _ in range(8):
        posterior = softmax_rows(fit + np.log(prior))
        prior = posterior[heard].sum(0) + TYPE_STRENGTH * base
        prior = prior / prior.sum()
    log_posterior = fit + np.log(prior)
    return softmax_rows(log_posterior) @ types, _without_own(answers, each, log_posterior, types)


def _without_own(
    answers: Answers, each: FloatArray, log_posterior: FloatArray, types: FloatArray
) -> FloatArray:
    """(M, 2) rates of each answer's annotator from that person's other answers."""
    level = np.rint(each * BELIEF_LEVELS).astype(np.int64)
    weights, heavy = np.unique(answers.weight, return_inverse=True)
    cell = (answers.annotator * 2 + answers.same) * (BELIEF_LEVELS + 1) + level
    distinct, inverse = np.unique(cell * len(weights) + heavy.reshape(-1), return_inverse=True)
    rates = np.empty((len(distinct), 2))
    log_yes, log_no = np.log(types), np.log1p(-types)
    for begin in range(0, len(distinct), 1 << 14):
        part, weight = np.divmod(distinct[begin : begin + (1 << 14)], len(weights))
        share = (part % (BELIEF_LEVELS + 1) / BELIEF_LEVELS)[:, None]
        who, said = np.divmod(part // (BELIEF_LEVELS + 1), 2)
        table = np.where(said[:, None, None] == 1, log_yes, log_no)  # (n, K, 2)
        own = share * table[:, :, 0] + (1 - share) * table[:, :, 1]
        others = log_posterior[who] - weights[weight][:, None] * own
        rates[begin : begin + len(part)] = softmax_rows(others) @ types
    return np.asarray(rates[inverse.reshape(-1)])


def _fit_spread(
    answers: Answers,
    p_same: FloatArray,
    belief: FloatArray,
    previous: tuple[float, float] | None,
) -> tuple[float, float]:
    """The pairs' effects that make repeated answers most likely, near ``previous`` if given."""
    chosen, repeated = answers.repeated
    if not repeated.n_pairs:
        return 0.0, 0.0
    belief, p_same = belief[chosen], p_same[chosen[answers.pair]]
    best = []
    for k, share in enumerate((belief, 1 - belief)):
        near = SPREADS
        if previous is not None:
            at = SPREADS.index(previous[k])
            near = SPREADS[max(at - 1, 0) : at + 2]
        scores = [
            (float(share @ _marginal(repeated, p_same[:, k], s)) - 0.5 * s**2, s) for s in near
        ]
        best.append(max(scores)[1])
    return best[0], best[1]


def softmax_rows(values: NDArray[Float]) -> NDArray[Float]:
    """(N, K) probabilities of log weights (N, K)."""
    shifted = np.exp(values - values.max(1, keepdims=True))
    chances: NDArray[Float] = shifted / shifted.sum(1, keepdims=True)
    return chances
