"""A map of items: places in the plane such that neighbours in an embedding stay neighbours."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

LANDMARKS = 1000  # placed with care; the others go to their nearest ones
FEWEST = 20  # fewer have no neighbourhoods to speak of
DIRECTIONS = 30
NEAREST = 3
BLOCK = 4096  # points that are held in double precision at once
FloatMatrix = NDArray[np.float32]


def neighbour_map(embedding: NDArray[np.float32]) -> FloatMatrix:
    """(n, 2) places of (n, e) points.

    Landmarks, evenly spread over the points, are laid out by t-SNE from their main directions;
    every other point goes among its three nearest landmarks, the nearer the closer.
    """
    points = main_directions(embedding, DIRECTIONS)
    if len(points) < FEWEST or not np.ptp(points, axis=0).any():
        return main_directions(embedding, 2)
    chosen = np.unique(np.linspace(0, len(points) - 1, LANDMARKS).astype(np.int64))
    places = np.empty((len(points), 2), np.float32)
    places[chosen] = _laid_out(points[chosen])
    others = np.setdiff1d(np.arange(len(points)), chosen)
    if len(others):
        places[others] = _among(points[others], points[chosen], places[chosen])
    return places


def main_directions(embedding: NDArray[np.float32], count: int) -> FloatMatrix:
    """(n, count) coordinates of (n, e) points along their directions of largest spread."""
    mean = embedding.mean(axis=0)
    parts = [slice(start, start + BLOCK) for start in range(0, len(embedding), BLOCK)]

    def centred(part: slice) -> NDArray[np.float64]:
        return np.asarray(embedding[part].astype(np.float64) - mean)

    spread = sum((centred(part).T @ centred(part) for part in parts), np.zeros((len(mean),) * 2))
    _, directions = np.linalg.eigh(spread)  # (e, e), smallest spread first
    axes = directions[:, ::-1][:, :count]
    axes = axes * np.where(np.abs(axes).max(0) == axes.max(0), 1, -1)  # a sign that is repeatable
    flat = np.concatenate([centred(part) @ axes for part in parts])
    missing = max(0, count - flat.shape[1]) if count == 2 else 0
    return np.pad(flat, ((0, 0), (0, missing))).astype(np.float32)


def _laid_out(points: FloatMatrix) -> FloatMatrix:
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    start = points[:, :2] if points.shape[1] > 1 else np.pad(points, ((0, 0), (0, 1)))
    scale = max(float(start[:, 0].std()), 1e-12)
    layout = TSNE(
        perplexity=min(30.0, (len(points) - 1) / 4),
        init=np.ascontiguousarray(start / scale * 1e-4),
        max_iter=400,
        random_state=0,
    )
    # Threads that meet at every step gain nothing, and lose tenfold where others keep cores busy.
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it wonders about identical points; they are welcome
        return np.asarray(layout.fit_transform(points), np.float32)


def _among(points: FloatMatrix, landmarks: FloatMatrix, places: FloatMatrix) -> FloatMatrix:
    from sklearn.neighbors import NearestNeighbors

    distance, nearest = NearestNeighbors(n_neighbors=NEAREST).fit(landmarks).kneighbors(points)
    weight = 1 / (distance**2 + 1e-12)
    weight /= weight.sum(axis=1, keepdims=True)
    return np.asarray(np.einsum("nk,nkd->nd", weight, places[nearest]), np.float32)
