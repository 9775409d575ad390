"""What a report shows of a fitted classifier, computed once, when the run is written.

Sizes are bounded: of many items a part is kept (enough for a map), of many judgements a part is
looked at (enough for a curve and for the worst of them).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.active.suspects import AT_ONCE, suspects
from likewise.io.json import Record
from likewise.io.npy import Array
from likewise.methods.problem import Problem
from likewise.pairs import Pairs
from likewise.pairs.edges import chunks
from likewise.pairs.sampling import random_pairs
from likewise.runs.maps import neighbour_map

if TYPE_CHECKING:
    from likewise.classifier import SimilarityClassifier

MAX_ITEMS = 50_000
MAX_POSTERIOR = 5_000_000  # numbers kept of (n, C)
MAX_JUDGEMENTS = 2_000_000
MAX_SUSPECTS = 200
FEW_JUDGEMENTS = 50  # a calibration curve of fewer says nothing
THUMBNAIL = 48
EXAMPLES = 12  # most typical, and as many most uncertain, items of a class have a thumbnail
BINS = 20
Pictures = Callable[[list[int]], NDArray[np.uint8]]


@dataclass(frozen=True)
class ReportData:
    """What is kept of the items and judgements of a run; n of N items, k with thumbnails."""

    kept: NDArray[np.int64]  # (n,) the kept items' positions among all N, increasing
    posterior: NDArray[np.float16]  # (n, C) of the kept items' classes, given their judgements
    map: NDArray[np.float32]  # (n, 2) their places on a map: neighbours in the embedding
    sizes: NDArray[np.int64]  # (C,) how many of all N items are in each class by that posterior
    thumbnails: NDArray[np.uint8] | None  # (k, h, w[, 3]); None where items are no pictures
    thumbnail_of: NDArray[np.int64]  # (k,) positions among all N, increasing
    suspects: dict[str, list[Any]]  # columns of the judgements most probably wrong, worst first
    calibration: Record  # P(same) as predicted and as said; see `calibration`


def collect(
    classifier: SimilarityClassifier,
    items: Array,
    pairs: Pairs,
    rng: np.random.Generator,
    pictures: Pictures | None = None,
) -> ReportData:
    """Everything that a report shows of a classifier on the items it was fitted to.

    ``pictures`` gives the small pictures (n, h, w, 3) of items that were encoded, by position.
    """
    predicted = classifier.predict_proba(items)  # (N, C)
    posterior = predicted  # of items as items; what their judgements say of them is better known
    if classifier.posterior_ is not None and len(classifier.posterior_) == len(items):
        posterior = classifier.posterior_
    kept = _kept(len(items), posterior.shape[1], rng)
    worst = worst_judgements(classifier, items, sample(pairs, rng))
    shown = _worth_showing(posterior, worst)
    return ReportData(
        kept=kept,
        posterior=posterior[kept].astype(np.float16),
        map=neighbour_map(classifier.transform(items[kept])),
        sizes=np.bincount(posterior.argmax(axis=1), minlength=posterior.shape[1]),
        thumbnails=thumbnails(items, shown) if pictures is None else pictures(shown.tolist()),
        thumbnail_of=shown if items.ndim > 2 or pictures is not None else shown[:0],
        suspects=worst,
        calibration=calibration(classifier, items, predicted, pairs, rng),
    )


def sample(pairs: Pairs, rng: np.random.Generator) -> Pairs:
    """The judgements as a list, or MAX_JUDGEMENTS of them drawn at random."""
    if len(pairs) <= MAX_JUDGEMENTS:
        return pairs.explicit()
    if not pairs.is_complete:
        return pairs.select(np.sort(rng.choice(len(pairs), MAX_JUDGEMENTS, replace=False)))
    ids = pairs.components()
    left, right = random_pairs(pairs.n_items, MAX_JUDGEMENTS, rng)
    return Pairs(left, right, ids[left] == ids[right], n_items=pairs.n_items)


def worst_judgements(
    classifier: SimilarityClassifier, items: Array, pairs: Pairs
) -> dict[str, list[Any]]:
    """Columns of the judgements most probably wrong, worst first, and how many were looked at."""
    return suspects(classifier, items, pairs, limit=MAX_SUSPECTS).to_dict()


def calibration(
    classifier: SimilarityClassifier,
    items: Array,
    posterior: NDArray[np.float32],
    pairs: Pairs,
    rng: np.random.Generator,
) -> Record:
    """How often "same" was said where it was predicted with probability p, in bins of p.

    On the judgements among the items that the fit held out, where it kept these from training and
    they are enough for a curve; else on all judgements, and ``held_out`` says so. Columns
    ``lower``, ``upper``, ``predicted``, ``observed``, ``judgements``; a bin without judgements is
    left out.
    """
    looked_at, g, is_held = pairs, posterior, False
    if classifier.result_.judgements_held_out:
        held_items, held = _held_out(classifier, items, pairs)
        if len(held) >= FEW_JUDGEMENTS:
            looked_at, g, is_held = held, posterior[held_items], True
    looked_at = sample(looked_at, rng)
    edges = np.linspace(0, 1, BINS + 1)
    chance = said_same(classifier, g, looked_at)
    sums = np.zeros((3, BINS))  # judgements, P(same), "same" said
    for part in chunks(len(looked_at)):
        bins = np.clip(np.digitize(chance[part], edges) - 1, 0, BINS - 1)
        for total, each in zip(sums, (None, chance[part], looked_at.same[part]), strict=True):
            total += np.bincount(bins, each, minlength=BINS)
    filled = np.flatnonzero(sums[0])
    count = sums[0].astype(np.int64)
    predicted, observed = sums[1:] / np.maximum(count, 1)
    return {
        "held_out": is_held,
        "judgements": len(looked_at),
        "bins": {
            "lower": edges[filled].round(6).tolist(),
            "upper": edges[filled + 1].round(6).tolist(),
            "predicted": predicted[filled].tolist(),
            "observed": observed[filled].tolist(),
            "judgements": count[filled].tolist(),
        },
    }


def said_same(
    classifier: SimilarityClassifier, posterior: NDArray[np.float32], pairs: Pairs
) -> NDArray[np.float64]:
    """(M,) P("same" is said): through T and, where one was learned, the channel."""
    f = np.asarray(posterior, np.float64)
    over_all = classifier.result_.marginal_transition
    transition = classifier.transition_ if over_all is None else over_all
    if transition is not None:
        f = f @ transition
    perceived, chance = torch.from_numpy(f), np.empty(len(pairs))
    for part in chunks(len(pairs), max(1, AT_ONCE // f.shape[1])):
        left = perceived[torch.from_numpy(pairs.left[part].astype(np.int64))]
        right = perceived[torch.from_numpy(pairs.right[part].astype(np.int64))]
        channel = classifier.channel_
        same = (left * right).sum(-1) if channel is None else channel.predict_same(left, right)
        chance[part] = same.numpy()
    return chance.clip(0, 1, out=chance)


def thumbnails(items: Array, shown: NDArray[np.int64]) -> NDArray[np.uint8] | None:
    """(k, h, w[, 3]) small pictures of the items at ``shown``; None where items are features."""
    if items.ndim == 2:
        return None
    pictures = np.asarray(items[shown])
    if pictures.dtype != np.uint8:
        low, high = float(pictures.min(initial=0)), float(pictures.max(initial=1))
        pictures = ((pictures - low) / max(high - low, 1e-12) * 255).astype(np.uint8)
    if pictures.ndim == 4 and pictures.shape[3] != 3:
        pictures = pictures[..., 0]
    step = max(1, -(-max(pictures.shape[1:3]) // THUMBNAIL))
    return np.ascontiguousarray(pictures[:, ::step, ::step])


def _kept(n_items: int, n_classes: int, rng: np.random.Generator) -> NDArray[np.int64]:
    most = min(MAX_ITEMS, max(MAX_POSTERIOR // n_classes, 1000))
    if n_items <= most:
        return np.arange(n_items)
    return np.sort(rng.choice(n_items, most, replace=False))


def _held_out(classifier: SimilarityClassifier, items: Array, pairs: Pairs) -> tuple[Array, Pairs]:
    """The items that the fit set aside, and the judgements among them."""
    seed = 0 if classifier.random_state is None else int(classifier.random_state)
    n_classes = len(classifier.classes_)
    problem = Problem(items, pairs, n_classes, held_out=classifier.held_out, seed=seed)
    _, held_items, _, held = problem.parts
    return held_items, held


def _worth_showing(
    posterior: NDArray[np.float32], worst: dict[str, list[Any]]
) -> NDArray[np.int64]:
    """Items that a report may picture: typical and uncertain ones of a class, suspected ones."""
    top = posterior.max(axis=1)
    predicted = posterior.argmax(axis=1)
    chosen = [np.array(worst["left"], np.int64), np.array(worst["right"], np.int64)]
    most = max(1, min(EXAMPLES, 2000 // posterior.shape[1]))
    for k in range(posterior.shape[1]):
        members = np.flatnonzero(predicted == k)
        order = members[np.argsort(-top[members], kind="stable")]
        chosen += [order[:most], order[-most:]]
    return np.unique(np.concatenate(chosen))
