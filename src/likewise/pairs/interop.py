"""Pairs in the shapes of other libraries: metric-learn's ``fit(pairs, y)``, and the index tuples
of pytorch-metric-learning.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from likewise.errors import InputError
from likewise.pairs.container import Pairs


def from_metric_learn(
    pairs: ArrayLike, y: ArrayLike, preprocessor: ArrayLike | None = None
) -> tuple[NDArray[np.generic], Pairs]:
    """Items ``X`` (N, d) and judgements from what metric-learn's ``fit(pairs, y)`` takes.

    ``pairs`` is (M, 2, d), two rows of features each, where equal rows are one item; or (M, 2)
    indices into ``preprocessor`` (N, d). ``y`` (M,) is +1 for similar and -1 for dissimilar.
    """
    array = np.asarray(pairs)
    if array.ndim == 3 and array.shape[1] == 2:
        if preprocessor is not None:
            raise InputError("pairs of features (M, 2, d) need no preprocessor.")
        items, index = np.unique(array.reshape(-1, array.shape[2]), axis=0, return_inverse=True)
        index = index.reshape(-1, 2)
        return items, Pairs(index[:, 0], index[:, 1], y, n_items=len(items))
    if array.ndim == 2 and array.shape[1] == 2:
        if preprocessor is None:
            raise InputError("pairs of indices (M, 2) need a preprocessor: the array of all items.")
        items = np.asarray(preprocessor)
        return items, Pairs(array[:, 0], array[:, 1], y, n_items=len(items))
    raise InputError(
        "metric-learn's pairs are features (M, 2, d), or indices (M, 2) with a preprocessor, "
        f"but these have shape {array.shape}."
    )


def to_metric_learn(
    pairs: Pairs, X: ArrayLike | None = None
) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
    """``(pairs, y)`` for metric-learn: (M, 2, d) of the items ``X``, or (M, 2) indices without."""
    listed = pairs.explicit()
    index = np.stack([listed.left, listed.right], axis=1)
    y = np.where(listed.same, 1, -1)
    return (index if X is None else np.asarray(X)[index]), y


def from_indices_tuple(indices: Sequence[Tensor | ArrayLike], n_items: int | None = None) -> Pairs:
    """Judgements from pytorch-metric-learning's ``indices_tuple``.

    Four tensors are (anchor, positive, anchor, negative), three are triplets (anchor, positive,
    negative). A pair given in both directions, or in several triplets, counts once.
    """
    if len(indices) == 4:
        first, positive, second, negative = (_indices(part) for part in indices)
    elif len(indices) == 3:
        first, positive, negative = (_indices(part) for part in indices)
        second = first
    else:
        raise InputError(
            "an indices_tuple has 4 parts (anchor, positive, anchor, negative) or 3 (anchor, "
            f"positive, negative), but this has {len(indices)}."
        )
    if len(first) != len(positive) or len(second) != len(negative):
        raise InputError("the anchors of an indices_tuple must be as many as their partners.")
    links, cuts = _once(first, positive), _once(second, negative)
    same = np.repeat([True, False], [len(links), len(cuts)])
    both = np.concatenate([links, cuts])
    return Pairs(both[:, 0], both[:, 1], same, n_items=n_items)


def to_indices_tuple(
    pairs: Pairs, device: torch.device | str = "cpu"
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """``(anchor, positive, anchor, negative)`` for pytorch-metric-learning's losses."""
    listed = pairs.explicit()
    chosen = (listed.same, listed.same, ~listed.same, ~listed.same)
    sides = (listed.left, listed.right, listed.left, listed.right)
    anchor, positive, other, negative = (
        torch.from_numpy(side[mask].astype(np.int64)).to(device)
        for side, mask in zip(sides, chosen, strict=True)
    )
    return anchor, positive, other, negative


def _indices(part: Tensor | ArrayLike) -> NDArray[np.int64]:
    array = part.detach().cpu().numpy() if isinstance(part, Tensor) else np.asarray(part)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError("every part of an indices_tuple must be a list of item indices.")
    return array.astype(np.int64)


def _once(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """(K, 2) distinct unordered pairs."""
    return np.unique(np.sort(np.stack([a, b], axis=1), axis=1), axis=0)
