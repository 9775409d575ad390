"""What a pile says of its items: people put an item beside those that look like it.

An item of class c joins a pile of its sort with a chance that grows with the items already there,
each counted by the *similarity* of its class to c: the distance-dependent Chinese restaurant
process (Blei & Frazier 2011), whose decay is a (C, C) table that is learned from all sorts. Classes
that most people put together have a similarity near 1, so that "one pile" is weak evidence for one
class where the sort is coarse, while a pile of its own says much. A similarity of 0 between all
classes is the model of Dawid & Skene (1979) with piles for answers.

Items' classes are found by collapsed variational Bayes (CVB0, Asuncion et al. 2009), each row by
all others of its sort, in time linear in the items sorted; similarities by the pseudo-likelihood
(Besag 1975) of the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from likewise.inference.partition.arrays import FloatArray
from likewise.inference.partition.sorts import Sorts

CONCENTRATIONS = (0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.5, 4.0, 7.0, 12.0, 20.0)
SIMILARITY_ROUNDS, MAX_TURNS, TOLERANCE = 10, 10, 0.01
SIMILARITIES = (1e-4, 10.0)
STRENGTH = 5.0  # meetings of two classes, at the usual similarity, before any is seen
DAMPING = 0.3
TINY = 1e-12


@dataclass(frozen=True)
class PileModel:
    """How people make piles."""

    similarity: FloatArray
    """(C, C) symmetric, at most about 1: how an item of one class counts for one of another."""
    concentration: float
    """How many items of its own class a pile at random is worth."""

    @classmethod
    def of_strangers(cls, n_classes: int, concentration: float = 1.0) -> PileModel:
        """Hardly any class is like another: before anything is known of them."""
        return cls(0.99 * np.eye(n_classes) + 0.01, concentration)


def place_items(
    sorts: Sorts,
    log_prior: FloatArray,
    model: PileModel,
    belief: FloatArray,
    iterations: int = 30,
    tolerance: float = 1e-4,
) -> FloatArray:
    """(N, C) beliefs of the items' classes under ``log_prior`` (N, C), from first ``belief``."""
    for _ in range(iterations):
        total = log_prior + sorts.by_item @ pile_log_chances(sorts, belief, model)
        total -= total.max(1, keepdims=True)
        renewed = np.exp(total)
        renewed /= renewed.sum(1, keepdims=True)
        change = float(np.abs(renewed - belief).sum(1).mean())
        belief = DAMPING * belief + (1 - DAMPING) * renewed
        if change < tolerance:
            break
    return belief


def pile_log_chances(sorts: Sorts, belief: FloatArray, model: PileModel) -> FloatArray:
    """(E, C) log P(pile | class) of each row, by the other rows of its sort."""
    return _log_chances(sorts, _company(sorts, belief) @ model.similarity, model.concentration)


def unseen_log_chances(
    sorts: Sorts, unseen: Sorts, belief: FloatArray, model: PileModel
) -> FloatArray:
    """(e,) log P(pile) of rows that ``belief`` (N, C), made of the seen ones, has not seen."""
    in_pile, in_sort = _counts(sorts, belief)
    company = np.stack([in_pile[unseen.pile], in_sort[unseen.sort]])
    chance = _log_chances(unseen, company @ model.similarity, model.concentration)
    return np.asarray(np.log((belief[unseen.item] * np.exp(chance)).sum(1)))


def pseudo_evidence(sorts: Sorts, belief: FloatArray, model: PileModel) -> float:
    """Log probability of every row's pile by the others, expected over the beliefs (N, C)."""
    return float((belief[sorts.item] * pile_log_chances(sorts, belief, model)).sum())


def fit_piles(sorts: Sorts, belief: FloatArray, model: PileModel | None = None) -> PileModel:
    """Similarities and concentration that make the piles most likely, from a first ``model``."""
    company, own = _company(sorts, belief), belief[sorts.item]
    if model is not None:
        return _fit_once(sorts, company, own, model)
    model = PileModel.of_strangers(belief.shape[1])
    for _ in range(MAX_TURNS):
        before, model = model, _fit_once(sorts, company, own, model)
        if np.abs(model.similarity - before.similarity).max() < TOLERANCE:
            break
    return model


def _fit_once(sorts: Sorts, company: FloatArray, own: FloatArray, model: PileModel) -> PileModel:
    similarity = _fit_similarity(sorts, company, own, model)
    drawn = company @ similarity

    def likelihood(concentration: float) -> float:
        return float((own * _log_chances(sorts, drawn, concentration)).sum())

    at = CONCENTRATIONS.index(model.concentration)
    return PileModel(similarity, max(CONCENTRATIONS[max(at - 2, 0) : at + 3], key=likelihood))


def _fit_similarity(
    sorts: Sorts, company: FloatArray, own: FloatArray, model: PileModel
) -> FloatArray:
    """(C, C) by multiplicative updates, as in EM: how often a row followed one of another class,
    beside how often it could have."""
    similarity, one = model.similarity, np.eye(own.shape[1], dtype=bool)
    for _ in range(SIMILARITY_ROUNDS):
        beside, shown = _with_concentration(sorts, company @ similarity, model.concentration)
        followed = similarity * ((own / beside).T @ company[0])
        met = (own / shown).T @ company[1]
        followed, met = followed + followed.T, met + met.T
        before, similarity = similarity, np.empty_like(followed)
        for part in (one, ~one):
            usual = followed[part].sum() / max(met[part].sum(), TINY)
            similarity[part] = (followed[part] + STRENGTH * usual) / (met[part] + STRENGTH)
        similarity /= max(np.diag(similarity).mean(), TINY)
        similarity = np.clip(similarity, *SIMILARITIES)
        if np.abs(similarity - before).max() < TOLERANCE:
            break
    return similarity


def urn_evidence(sorts: Sorts, belief: FloatArray) -> float:
    """Log probability of all piles given the beliefs, were every class a Pólya urn of its own, at
    the concentration that makes it largest."""
    in_pile, in_sort = _counts(sorts, belief)

    def at(concentration: float) -> float:
        each = (concentration / sorts.piles_of_sort)[:, None]  # (S, 1)
        piles = gammaln(in_pile + each[sorts.sort_of_pile]) - gammaln(each)[sorts.sort_of_pile]
        whole = gammaln(concentration) - gammaln(in_sort + concentration)
        return float(piles.sum() + whole.sum())

    return max(at(value) for value in CONCENTRATIONS)


def _company(sorts: Sorts, belief: FloatArray) -> FloatArray:
    """(2, E, C) expected others of each class in the pile and in the sort of a row."""
    in_pile, in_sort = _counts(sorts, belief)
    others = np.stack([in_pile[sorts.pile], in_sort[sorts.sort]]) - belief[sorts.item]
    return np.asarray(np.maximum(others, 0))


def _with_concentration(sorts: Sorts, drawn: FloatArray, concentration: float) -> FloatArray:
    """(2, E, C) how much a row's pile and all piles of its sort draw an item of each class."""
    each = concentration / sorts.piles_of_sort[sorts.sort]
    return drawn + np.stack([each, np.full_like(each, concentration)])[:, :, None]


def _log_chances(sorts: Sorts, drawn: FloatArray, concentration: float) -> FloatArray:
    """(E, C) log P(pile | class) of rows by what draws them (2, E, C)."""
    beside, shown = np.log(_with_concentration(sorts, drawn, concentration))
    return np.asarray(beside - shown)


def _counts(sorts: Sorts, belief: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(P, C) and (S, C) expected items of each class in each pile and sort."""
    in_pile = np.asarray(sorts.by_pile @ belief[sorts.item])
    return in_pile, np.asarray(sorts.by_sort @ in_pile)
