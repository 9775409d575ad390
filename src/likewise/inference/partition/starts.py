"""Starts: contraction of votes and of beliefs about pairs, and spectra for few large groups."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse
from scipy.cluster.vq import kmeans2

from likewise.inference.partition.answers import log_likelihood, two_rates
from likewise.inference.partition.arrays import FloatArray, IntArray
from likewise.inference.partition.model import Problem
from likewise.inference.partition.moves import Mover
from likewise.inference.partition.search import contract
from likewise.pairs.spectrum import leading_vectors

GUESSES = ((0.9, 0.1), (0.7, 0.3))
MAX_SPECTRAL_ITEMS = 5000
COUNTS = (2, 3, 5, 8, 13, 20, 30)  # of large groups, where their number is not given


def starts(problem: Problem, pair_odds: FloatArray) -> list[IntArray]:
    """Distinct partitions (N,) to begin from; ``pair_odds`` (P,) judge each pair on its own."""
    found = contractions(problem, pair_odds)
    if 8 <= problem.answers.n_items <= MAX_SPECTRAL_ITEMS and problem.answers.n_pairs:
        found += _spectral(problem)
    distinct = {labels.tobytes(): labels for labels in found}
    return list(distinct.values())


def contractions(problem: Problem, pair_odds: FloatArray) -> list[IntArray]:
    """Groups by contraction of each pair's own log-odds (P,), and of its votes at guessed rates."""
    return [contracted(problem, pair_odds), *voted(problem)]


def voted(problem: Problem) -> list[IntArray]:
    """Groups by contraction of the votes about each pair, at guessed rates."""
    found = []
    for a, b in GUESSES:
        likelihood = log_likelihood(problem.answers, two_rates(problem.answers, a, b))
        found.append(contracted(problem, likelihood[:, 0] - likelihood[:, 1] + problem.prior))
    return found


def contracted(problem: Problem, weight: FloatArray) -> IntArray:
    """(N,) groups by contraction and moves of items, no prior on sizes, from weights (P,)."""
    n = problem.answers.n_items
    flat = np.zeros(n + 1)
    graph = problem.graph.reweighted(weight)
    labels = contract(graph, np.arange(n), flat, problem.n_groups)
    mover = Mover(graph, labels, flat, problem.fixed)
    mover.settle(problem.rng)
    return mover.labels


def _spectral(problem: Problem) -> list[IntArray]:
    """k-means of the leading eigenvectors of pairs' z-scores, normalised by degree."""
    n = problem.answers.n_items
    counts = [k for k in COUNTS if k < n / 4]
    if problem.n_groups is not None:
        counts = [problem.n_groups] if problem.n_groups < n / 4 else []
    if not counts:
        return []
    top = min(max(max(counts) - 1, 1), n - 2)
    matrix = _scores(problem)
    _, vectors = leading_vectors(matrix, top, problem.rng.standard_normal(n))
    vectors = vectors[:, ::-1]  # the largest first
    return [k_means(vectors[:, : max(k - 1, 1)], k, problem.rng) for k in counts]


def _scores(problem: Problem) -> sparse.csr_array:
    """(N, N) z-scores: unequal numbers of answers a pair and of pairs an item are evened out."""
    answers = problem.answers
    total = np.add.reduceat(answers.weight, answers.first)
    yes = np.add.reduceat(answers.weight * answers.same, answers.first)
    score = (yes - total * yes.sum() / total.sum()) / np.sqrt(total)
    rows = np.concatenate([answers.left, answers.right])
    columns = np.concatenate([answers.right, answers.left])
    degree = np.bincount(rows, minlength=answers.n_items)
    scale = 1 / np.sqrt(degree + degree.mean())
    values = np.concatenate([score, score]) * scale[rows] * scale[columns]
    shape = (answers.n_items, answers.n_items)
    return sparse.coo_array((values, (rows, columns)), shape=shape).tocsr()


def k_means(points: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """(N,) the best of three k-means of points (N, d); a group may be empty."""
    best, least = np.zeros(len(points), np.int64), np.inf
    if not np.ptp(points, axis=0).any():
        return best
    for _ in range(3):
        with warnings.catch_warnings():  # of empty groups
            warnings.simplefilter("ignore", UserWarning)
            centres, labels = kmeans2(points, k, minit="++", rng=rng)
        within = float(np.square(points - centres[labels]).sum())
        if within < least:
            best, least = labels.astype(np.int64), within
    return best
