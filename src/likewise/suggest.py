"""Which pairs to ask about next: those whose answer is expected to say most.

The information of a judgement about the perceived classes of its two items is
H(answer) - E H(answer | z_i, z_j), under what is believed now and the channel through which people
answer: high where an uncertain item meets a certain one of a class it may belong to, zero where the
answer is known already or people would only guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from likewise.annotators import AnnotatorChannel
from likewise.channels import Channel, ExactChannel
from likewise.errors import InputError
from likewise.graph import Graph
from likewise.joint.fit import JointResult
from likewise.messages import infer
from likewise.pairs import Pairs, as_pairs

if TYPE_CHECKING:
    from likewise.classifier import SimilarityClassifier

FloatMatrix = NDArray[np.float64]
DOUBT = 0.05  # of g, shared out evenly: a network is surer of items it was trained on than right
LIKELY_CLASSES = 3
PARTNERS = 4  # of each likely class, for every item
CHUNK = 500_000


def suggest(
    model: SimilarityClassifier | JointResult,
    X: ArrayLike,
    pairs: Pairs | Any,
    n: int,
    *,
    candidates: ArrayLike | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> NDArray[np.int64]:
    """(n, 2) pairs of items to ask about next, the most informative first.

    ``candidates`` (K, 2): choose among these pairs only; by default among all that were not judged
    yet. No item is named in more than a few of them: answers about one item soon repeat themselves.
    Fewer than ``n`` come back where there are no more.
    """
    if n < 1:
        raise InputError(f"ask for at least one pair, not {n}.")
    rng = np.random.default_rng(random_state)
    listed = _about(as_pairs(pairs).explicit(), len(np.asarray(X)))
    belief, channel = current_belief(model, X, listed)
    given = None if candidates is None else _given(candidates, belief)
    pool = _likely_pairs(belief, listed, n, rng) if given is None else given
    value = information(belief, pool, same_table(channel, belief.shape[1]))
    if isinstance(channel, ExactChannel):
        value *= _reach(listed, pool)
    # As far as next to nothing is known, chance asks better than a model that is mostly wrong.
    unknown = float(_class_entropy(belief).mean() / np.log(belief.shape[1]))
    informed = n - int(n * unknown)
    order = np.argsort(-value - 1e-9 * rng.random(len(value)), kind="stable")
    chosen = _spread(pool[order], informed, len(belief))
    at_random = rng.integers(0, len(belief), (2 * n, 2))
    rest = _unjudged(at_random, listed) if given is None else given
    return _fill(chosen, rest[rng.permutation(len(rest))], n)


def _about(pairs: Pairs, n_items: int) -> Pairs:
    """The same judgements, of ``n_items`` items: the last ones may not have been judged yet."""
    if pairs.n_items > n_items:
        raise InputError(
            f"a judgement names item {pairs.n_items - 1}, but there are only {n_items} items."
        )
    return Pairs(
        pairs.left,
        pairs.right,
        pairs.same,
        None if pairs.annotator_names is None else pairs.annotator_names[pairs.annotator],
        pairs.weight,
        n_items=n_items,
    )


def information(
    belief: FloatMatrix, pool: NDArray[np.int64], p_same: FloatMatrix
) -> NDArray[np.float64]:
    """(K,) nats that an answer about each pair would give; ``p_same`` (C, C) is P(same | z, z')."""
    noise = _entropy(p_same)
    value = np.empty(len(pool))
    for start in range(0, len(pool), CHUNK):
        part = slice(start, start + CHUNK)
        left, right = belief[pool[part, 0]], belief[pool[part, 1]]
        answer = np.einsum("kc,kc->k", left @ p_same, right)
        value[part] = _entropy(answer) - np.einsum("kc,kc->k", left @ noise, right)
    return value


def same_table(channel: Channel, n_classes: int) -> FloatMatrix:
    """(C, C) P(same) of two items whose perceived classes are known."""
    eye = torch.eye(n_classes, dtype=torch.float64)
    left = eye.repeat_interleave(n_classes, dim=0)
    right = eye.repeat(n_classes, 1)
    table = channel.predict_same(left, right).reshape(n_classes, n_classes)
    return table.clamp(1e-6, 1 - 1e-6).numpy()


def current_belief(
    model: SimilarityClassifier | JointResult, X: ArrayLike, pairs: Pairs
) -> tuple[FloatMatrix, Channel]:
    """(N, C) what is believed of each perceived class, and the channel behind it."""
    if isinstance(model, JointResult):
        return model.posterior.astype(np.float64), model.channel
    g = np.asarray(model.predict_proba(X), np.float64)
    n_classes = g.shape[1]
    g = (1 - DOUBT) * g + DOUBT / n_classes
    transition = model.transition_ if model.transition_ is not None else np.eye(n_classes)
    channel: Channel = model.channel_ if model.channel_ is not None else ExactChannel()
    graph = Graph.from_pairs(pairs)
    known = 0 if pairs.annotator_names is None else len(pairs.annotator_names)
    if isinstance(channel, AnnotatorChannel) and channel.n_annotators != known:
        return g @ transition, channel  # other people than the channel knows: the network alone
    log_f = torch.from_numpy(np.log(g @ transition)).float()
    return infer(log_f, graph, channel, iterations=30).belief.double().numpy(), channel


def _likely_pairs(
    belief: FloatMatrix, pairs: Pairs, n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Pairs of an uncertain item with sure ones of its likely classes."""
    n_classes = belief.shape[1]
    uncertain = np.argsort(-_class_entropy(belief), kind="stable")[: max(4 * n, 200)]
    likely = np.argsort(-belief[uncertain], axis=1)[:, : min(LIKELY_CLASSES, n_classes)]
    best = belief.argmax(axis=1)
    sure_of = [_surest(belief, best, k) for k in range(n_classes)]
    found = []
    for column in likely.T:
        for _ in range(PARTNERS):
            partner = np.array([rng.choice(sure_of[k]) for k in column])
            found.append(np.stack([uncertain, partner], axis=1))
    return _unjudged(np.concatenate(found), pairs)


def _unjudged(pool: NDArray[Any], pairs: Pairs) -> NDArray[np.int64]:
    """The distinct pairs of ``pool`` (K, 2) that nobody has judged, smaller index first."""
    n_items = pairs.n_items
    ends = np.sort(pool, axis=1).astype(np.int64)
    judged = np.sort(np.stack([pairs.left, pairs.right]).astype(np.int64), axis=0)
    code = np.unique(ends[:, 0] * n_items + ends[:, 1])
    code = np.setdiff1d(code, judged[0] * n_items + judged[1])
    left, right = code // n_items, code % n_items
    return np.asarray(np.stack([left, right], axis=1)[left != right], np.int64)


def _reach(pairs: Pairs, pool: NDArray[np.int64]) -> NDArray[np.float64]:
    """(K,) how many items an exact answer is about: what "same" has joined moves as one."""
    group = pairs.components()
    size = np.bincount(group)[group][pool].astype(np.float64)  # (K, 2)
    return np.asarray(size.min(axis=1) + np.log(size.max(axis=1)))


def _fill(chosen: NDArray[np.int64], rest: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """``chosen``, then as many others as are lacking."""
    both = np.concatenate([chosen, rest])
    _, first = np.unique(both, axis=0, return_index=True)
    return both[np.sort(first)][:n]


def _surest(belief: FloatMatrix, best: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """The surer half of the items of class ``k``; where it has none, those nearest to it."""
    members = np.flatnonzero(best == k)
    if len(members) == 0:
        members = np.argsort(-belief[:, k], kind="stable")[:2]
    order = np.argsort(-belief[members, k], kind="stable")
    return np.asarray(members[order][: max(len(members) // 2, 1)], np.int64)


def _given(candidates: ArrayLike, belief: FloatMatrix) -> NDArray[np.int64]:
    pool = np.asarray(candidates)
    if pool.ndim != 2 or pool.shape[1] != 2:
        raise InputError(f"candidates must be pairs, shape (K, 2), but have shape {pool.shape}.")
    if len(pool) and (pool.min() < 0 or pool.max() >= len(belief)):
        raise InputError(f"candidates must name items from 0 to {len(belief) - 1}.")
    return pool.astype(np.int64)


def _spread(pool: NDArray[np.int64], n: int, n_items: int) -> NDArray[np.int64]:
    """The first ``n`` pairs in which no item comes too often."""
    limit = max(2, int(np.ceil(6 * n / n_items)))
    seen = np.zeros(n_items, np.int64)
    chosen: list[tuple[int, int]] = []
    for i, j in pool:
        if len(chosen) == n:
            break
        if max(seen[i], seen[j]) < limit:
            seen[i] += 1
            seen[j] += 1
            chosen.append((i, j))
    return np.array(chosen, np.int64).reshape(-1, 2)


def _entropy(p: FloatMatrix | NDArray[np.float64]) -> NDArray[np.float64]:
    q = np.clip(p, 1e-12, 1 - 1e-12)
    return np.asarray(-q * np.log(q) - (1 - q) * np.log1p(-q))


def _class_entropy(belief: FloatMatrix) -> NDArray[np.float64]:
    q = np.clip(belief, 1e-12, 1)
    return np.asarray(-(q * np.log(q)).sum(axis=1))
