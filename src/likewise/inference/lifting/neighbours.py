"""Items as points: principal components, their nearest neighbours, and the graph's eigenmaps.

What items look like, without any judgement: micro-clusters (`lifting`) and the spreading of
beliefs (`spreading`) both stand on it. Sixty thousand items take about half a minute on one core.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from likewise.metrics import best_matching
from likewise.pairs.edges import chunks
from likewise.pairs.spectrum import leading_vectors

FloatMatrix = NDArray[np.float32]

COMPONENTS = 50  # principal components kept: beyond them are mostly noise, and time
NEIGHBOURS = 12
BLOCK_FLOATS = 30_000_000  # squared distances held at once
SAMPLE = 20_000  # items from which principal axes are learned
FEWER = 0.75  # neighbours told apart, as a share of the other's
AGREES = 0.7  # with what people said, as a share of the other's
RARELY = 0.25  # are neighbours told apart, as a share of any two items


@dataclass(frozen=True)
class Neighbours:
    """The k nearest other items of each item, nearest first.

    ``index`` (N, k) int64, ``distance`` (N, k) float32.
    """

    index: NDArray[np.int64]
    distance: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.index)

    def told_apart(self, labels: NDArray[np.integer]) -> float:
        """The share of neighbours that are of another class, by the classes (N,) of all items."""
        return float((labels[:, None] != labels[self.index]).mean())

    def show(self, scores: Tensor, perceived: Tensor) -> bool:
        """Whether the classes of highest ``scores`` (N, C) lie apart in the features, and are
        mostly what was ``perceived`` (N, C).

        Where neighbours are often told apart, boundaries run through the midst of items: the
        features, or the head that reads them, know too little to say that people err.
        """
        labels = scores.argmax(1)
        share = torch.bincount(labels).double() / len(labels)
        rarely = self.told_apart(labels.cpu().numpy()) < RARELY * float(1 - share.square().sum())
        return rarely and _agreement(perceived, scores) > AGREES

    def prefers(self, one: Tensor, other: Tensor, perceived: Tensor) -> bool:
        """Whether the classes of highest scores ``one`` (N, C) should be believed before ``other``.

        They tell clearly fewer neighbours apart, and agree with what was ``perceived`` (N, C)
        nearly as often: boundaries between classes lie where items are few (low-density
        separation, Chapelle & Zien, AISTATS 2005), those of shared mistakes need not.
        """
        apart, others = (self.told_apart(scores.argmax(1).cpu().numpy()) for scores in (one, other))
        agreed, most = (_agreement(perceived, scores) for scores in (one, other))
        return apart < FEWER * others and agreed > AGREES * most

    def affinity(self) -> sparse.csr_array:
        """(N, N) symmetric weights in [0, 1]: exp(-d² / (s_i s_j)), s the distance to the
        middle one of the k neighbours.

        Self-tuning scales (Zelnik-Manor & Perona 2004): dense and thin regions count alike.
        """
        n, k = self.index.shape
        scale = np.maximum(self.distance[:, k // 2], 1e-12)
        squared = self.distance**2 / (scale[:, None] * scale[self.index])
        rows = np.repeat(np.arange(n), k)
        weights = np.exp(-np.minimum(squared, 50)).ravel()
        half = sparse.coo_array((weights, (rows, self.index.ravel())), shape=(n, n)).tocsr()
        return (half.maximum(half.T)).astype(np.float32)

    @cached_property
    def walk(self) -> tuple[sparse.csr_array, FloatMatrix]:
        """(N, N) D^-1/2 W D^-1/2 of the affinity W of degrees D, and (N,) D^-1/2."""
        affinity = self.affinity()
        root = 1 / np.sqrt(np.maximum(np.asarray(affinity.sum(axis=1)).ravel(), 1e-12))
        scaling = sparse.dia_array((root[None], [0]), shape=affinity.shape)
        return (scaling @ affinity @ scaling).tocsr().astype(np.float32), root


def _agreement(perceived: Tensor, scores: Tensor) -> float:
    """How likely items are perceived (N, C) as of the class of highest score (N, C), classes
    matched one to one: two fits number them each in its own way."""
    highest = torch.zeros_like(perceived).scatter_(1, scores.argmax(dim=1, keepdim=True), 1.0)
    met = (highest.T @ perceived).cpu().numpy()
    return float(met[np.arange(len(met)), best_matching(met)].sum()) / len(perceived)


def principal_components(
    items: NDArray[np.generic], n_components: int = COMPONENTS, seed: int = 0
) -> FloatMatrix:
    """(N, d') scores of items (N, ...) flattened, centred; d' <= ``n_components``.

    Axes come from a sample of at most `SAMPLE` items; what never varies has no axis.
    """
    flat = items.reshape(len(items), -1)  # may be a memory map: parts of it are copied, never all
    rng = np.random.default_rng(seed)
    chosen = np.arange(len(flat))
    if len(flat) > SAMPLE:
        chosen = np.sort(rng.choice(len(flat), SAMPLE, replace=False))
    sample = torch.from_numpy(flat[chosen].astype(np.float32))
    mean = sample.mean(0)
    centred = (sample - mean).double()
    values, axes = torch.linalg.eigh(centred.T @ centred)
    keep = min(n_components, int((values > 1e-9 * values[-1].clamp_min(1e-30)).sum()))
    axes = axes[:, -max(keep, 1) :].flip(1).float()
    parts = (torch.from_numpy(flat[part].astype(np.float32)) for part in chunks(len(flat), 8192))
    return np.asarray(torch.cat([(part - mean) @ axes for part in parts]).numpy())


def nearest_neighbours(points: FloatMatrix, k: int = NEIGHBOURS) -> Neighbours:
    """The k nearest others of each point (N, d), by blocks of full distance rows: exact."""
    x = torch.from_numpy(np.ascontiguousarray(points, dtype=np.float32))
    n = len(x)
    k = min(k, n - 1)
    half_square = (x * x).sum(1) / 2
    block = max(1, BLOCK_FLOATS // n)
    index, distance = [], []
    for start in range(0, n, block):
        part = x[start : start + block]
        # Nearest is where x·y - |y|²/2 is largest; the point itself is struck out.
        score = torch.addmm(-half_square, part, x.T)
        rows = torch.arange(len(part))
        score[rows, start + rows] = -torch.inf
        best, who = _top(score, k)
        squared = 2 * (half_square[start : start + block, None] - best)
        index.append(who)
        distance.append(squared.clamp_min(0).sqrt())
    return Neighbours(torch.cat(index).numpy(), torch.cat(distance).numpy())


def _top(score: Tensor, k: int, width: int = 64) -> tuple[Tensor, Tensor]:
    """(n, k) largest of each row (n, N) and where: `torch.topk`, but by groups of columns.

    The k largest lie in the k groups whose maxima are largest, so most columns are read once.
    """
    n, total = score.shape
    groups = total // width
    if groups <= 4 * k:
        best, who = torch.topk(score, k, dim=1)
        return best, who
    main = score[:, : groups * width].view(n, groups, width)
    _, group = torch.topk(main.amax(2), k, dim=1)  # (n, k)
    held = torch.gather(main, 1, group[:, :, None].expand(n, k, width)).flatten(1)
    place = (group[:, :, None] * width + torch.arange(width)).flatten(1)
    rest = torch.arange(groups * width, total).expand(n, -1)
    held = torch.cat([held, score[:, groups * width :]], dim=1)
    place = torch.cat([place, rest], dim=1)
    best, position = torch.topk(held, k, dim=1)
    return best, torch.gather(place, 1, position)


def eigenmaps(near: Neighbours, n_vectors: int, seed: int = 0) -> FloatMatrix:
    """(N, n_vectors) Laplacian eigenmaps (Belkin & Niyogi 2003) of the graph of neighbours, each
    axis weighted by its eigenvalue: what random walks on the graph forget slowly counts more.

    Each connected component beyond the first takes up an axis of its own, as it should.
    """
    walk, root = near.walk
    pieces, _ = connected_components(walk, directed=False)
    wanted = min(n_vectors + 1, len(near) - 2)
    start = np.random.default_rng(seed).normal(size=len(near)).astype(np.float32)
    values, vectors = leading_vectors(walk, wanted, start, tol=1e-4)
    order = np.argsort(-values)
    vectors = vectors[:, order] * root[:, None]
    values = values[order]
    if pieces == 1:
        vectors, values = vectors[:, 1:], values[1:]
    spread = np.maximum(vectors.std(0), 1e-12)
    return np.asarray(vectors / spread * np.maximum(values, 0.0), dtype=np.float32)
