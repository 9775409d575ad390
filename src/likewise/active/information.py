"""What an answer about two items would tell of their perceived classes, in nats.

H(answer) - E H(answer | z_i, z_j), under what is believed now and the channel through which people
answer: high where an uncertain item meets a certain one of a class it may belong to, zero where the
answer is known already or the person asked would only guess.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.inference.propagation.edge_posteriors import edge_statistics
from likewise.inference.propagation.graph import Graph
from likewise.inference.propagation.posterior import Posterior
from likewise.noise.annotators import AnnotatorChannel
from likewise.noise.channels import Channel
from likewise.pairs import Pairs

FloatArray = NDArray[np.float64]
CHUNK_FLOATS = 20_000_000
ROUNDS = 3  # of reading people's types off what is believed; they settle at once


def information(
    belief: FloatArray,
    pool: NDArray[np.int64],
    p_same: FloatArray,
    who: NDArray[np.int64] | None = None,
) -> FloatArray:
    """(K,) nats that an answer about each pair of ``pool`` (K, 2) would give.

    ``belief`` (N, C). ``p_same`` (C, C) is P(same | z, z'); or (R, C, C), and ``who`` (K,) says
    whose answer it would be.
    """
    tables = p_same if p_same.ndim == 3 else p_same[None]
    asked = np.zeros(len(pool), np.int64) if who is None else who
    noise = entropy(tables)
    value = np.empty(len(pool))
    chunk = max(1, CHUNK_FLOATS // belief.shape[1] ** 2)
    for start in range(0, len(pool), chunk):
        part = slice(start, start + chunk)
        left, right = belief[pool[part, 0]], belief[pool[part, 1]]
        answer = _expected(left, tables, right, asked[part])
        value[part] = entropy(answer) - _expected(left, noise, right, asked[part])
    return value


def _expected(
    left: FloatArray, tables: FloatArray, right: FloatArray, asked: NDArray[np.int64]
) -> FloatArray:
    """(k,) mean of each row's table (C, C) over both beliefs (k, C)."""
    if len(tables) == 1:
        return np.asarray(np.einsum("kc,kc->k", left @ tables[0], right))
    return np.asarray(np.einsum("ka,kab,kb->k", left, tables[asked], right, optimize=True))


def same_table(channel: Channel, n_classes: int) -> FloatArray:
    """(C, C) P(same) of two items whose perceived classes are known, whoever is asked."""
    eye = torch.eye(n_classes, dtype=torch.float64)
    left = eye.repeat_interleave(n_classes, dim=0)
    right = eye.repeat(n_classes, 1)
    table = channel.predict_same(left, right).reshape(n_classes, n_classes)
    return table.clamp(1e-6, 1 - 1e-6).numpy()


def tables_of_people(belief: FloatArray, pairs: Pairs, channel: Channel) -> FloatArray:
    """(R + 1, C, C) P(same) by each annotator of ``pairs``, and last by a stranger.

    Where the channel knows no people, their types are read off the answers that they gave, as far
    as ``belief`` (N, C) says which were right.
    """
    n_classes = belief.shape[1]
    names = pairs.annotator_names
    if names is None:
        return same_table(channel, n_classes)[None]
    if not isinstance(channel, AnnotatorChannel) or channel.n_annotators != len(names):
        channel = _people(belief, pairs, same_table(channel, n_classes))
    return np.asarray(channel.same_tables(n_classes).clamp(1e-6, 1 - 1e-6).numpy())


def _people(belief: FloatArray, pairs: Pairs, shared: FloatArray) -> AnnotatorChannel:
    """Everybody's type, from a start at the shared rates."""
    assert pairs.annotator_names is not None
    equal = np.eye(len(shared), dtype=bool)
    rates = float(shared[equal].mean()), float(shared[~equal].mean())
    found = AnnotatorChannel.from_rates(*rates, len(pairs.annotator_names))
    graph = Graph.from_pairs(pairs)
    posterior = Posterior(torch.from_numpy(np.log(np.clip(belief, 1e-9, 1))), 0.0, 0, False)
    for _ in range(ROUNDS):
        found = found.update(edge_statistics(posterior, graph, found))
    return found


def entropy(p: FloatArray) -> FloatArray:
    """Of a yes or no, element by element."""
    q = np.clip(p, 1e-12, 1 - 1e-12)
    return np.asarray(-q * np.log(q) - (1 - q) * np.log1p(-q))


def class_entropy(belief: FloatArray) -> FloatArray:
    """(N,) of each row of ``belief`` (N, C)."""
    q = np.clip(belief, 1e-12, 1)
    return np.asarray(-(q * np.log(q)).sum(axis=1))
