"""Judged pairs on their own: beliefs without a partition, and how many answers each is worth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from likewise.inference.partition.answers import Answers, Rates, fit_rates, log_likelihood
from likewise.inference.partition.arrays import FloatArray


def pair_beliefs(
    answers: Answers,
    update_prior: Callable[[FloatArray], FloatArray],
    n_rounds: int = 12,
) -> tuple[FloatArray, FloatArray, Rates]:
    """Each pair on its own (Dawid-Skene): beliefs (P,), their log-odds, and rates.

    ``update_prior`` gives log-odds (P,) before the answers from the beliefs: a base rate, or what
    the items look like.
    """
    count = np.add.reduceat(answers.weight, answers.first)
    yes = np.add.reduceat(answers.weight * answers.same, answers.first)
    belief = (yes + 0.2) / (count + 0.8)
    rates: Rates | None = None
    for _ in range(n_rounds):
        rates = fit_rates(answers, belief, rates)
        likelihood = log_likelihood(answers, rates)
        odds = likelihood[:, 0] - likelihood[:, 1] + update_prior(belief)
        before, belief = belief, expit(odds)
        if np.abs(belief - before).max() < 1e-3:
            break
    assert rates is not None
    return belief, odds, rates


def log_predictive(answers: Answers, rates: Rates, belief: FloatArray) -> float:
    """How well the answers about each pair are foretold by all others, beliefs (P,) given all.

    The log pseudo-marginal likelihood (Geisser & Eddy 1979): 1 / E[1 / P(answers | same or not)],
    the expectation given all answers, is the chance of a pair's answers given the others'.
    """
    likelihood = log_likelihood(answers, rates)
    terms = np.stack([np.log(np.clip(p, 1e-12, 1)) for p in (belief, 1 - belief)], axis=1)
    return -float(np.logaddexp.reduce(terms - likelihood, axis=1).sum())


def effective_counts(
    answers: Answers, rates: Rates, belief: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(P,), (P,) "same" and "different" answers about each pair, in answers of a usual person.

    An answer counts by its log-likelihood ratio: a careless person's little, a swapped one's as
    its opposite. Answers about one pair err together; n of them count as n / (1 + (n - 1) r), r
    their correlation given the beliefs (P,), by moments (the design effect, Kish 1965).
    """
    p = rates.answer_p_same
    ratio = np.where(answers.same, np.log(p[:, 0] / p[:, 1]), np.log((1 - p[:, 0]) / (1 - p[:, 1])))
    each = belief[answers.pair]
    expected = each * p[:, 0] + (1 - each) * p[:, 1]
    count = np.diff(np.append(answers.first, len(p)))
    shrink = 1 / (1 + _correlation(answers, expected) * (count - 1))
    same, different = (
        np.add.reduceat(answers.weight * np.clip(sign * ratio, 0, None), answers.first) * shrink
        for sign in (1, -1)
    )
    # In answers of everybody pooled, swapped people turned; where nobody can tell, a = b and no
    # answer says anything.
    turned = np.where(p[:, :1] < p[:, 1:], 1 - p, p)
    a, b = answers.weight @ turned / answers.weight.sum()
    return same / max(np.log(a / b), 0.1), different / max(np.log((1 - b) / (1 - a)), 0.1)


def _correlation(answers: Answers, expected: FloatArray) -> float:
    """Correlation of the answers about one pair around what is expected of each (M,)."""
    residual = answers.same - expected
    deviation = np.sqrt(expected * (1 - expected))
    products, scale = (
        np.square(np.add.reduceat(v, answers.first)).sum() - np.square(v).sum()
        for v in (residual, deviation)
    )
    return float(np.clip(products / scale, 0.0, 0.9)) if scale > 1e-9 else 0.0
