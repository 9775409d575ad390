"""Items as they came: checked, and read from where they are when they are too many to copy."""

from __future__ import annotations

from typing import Union

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from torch import Tensor

from likewise.errors import InputError
from likewise.io.npy import Array

Items = Union[Tensor, Array, "Selection"]


def check_items(X: ArrayLike, shape: tuple[int, ...] | None = None) -> Array:
    """Items as an array: float features (N, d), or images (N, H, W) or (N, H, W, channels).

    uint8 stays uint8, other numbers become float32; memory maps stay where they are if they can.
    ``shape`` is what an item must look like, where a model was fitted before.
    """
    array = _as_numbers(X)
    if array.ndim not in (2, 3, 4):
        raise InputError(
            "items must be features (N, d) or images (N, H, W) or (N, H, W, channels), but have "
            f"shape {array.shape}. Reshape your data: X.reshape(1, -1) makes one item of a row."
        )
    _check_shape(array.shape, shape)
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind == "f":
        _check_finite(array)
    return array.astype(np.float32, copy=False)


def _as_numbers(X: ArrayLike) -> Array:
    if issparse(X):
        raise InputError("sparse items are not supported; give X.toarray().")
    array = X if isinstance(X, np.ndarray) else np.asarray(X)
    if array.dtype.kind == "O":  # as of a table with columns of several types
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"items must be numbers, but some are not: {error}.") from None
    if array.dtype.kind == "c":
        raise InputError("items must be real numbers. Complex data not supported.")
    if array.dtype.kind not in "iufb":
        raise InputError(f"items must be numbers, but are {array.dtype}.")
    return array


def _check_shape(found: tuple[int, ...], fitted: tuple[int, ...] | None) -> None:
    """The words are those of scikit-learn where it has some, since its users look for them."""
    if found[0] == 0:
        raise InputError(
            f"there are no items: 0 sample(s) (shape={found}) while a minimum of 1 is required."
        )
    if 0 in found[1:]:
        raise InputError(
            f"the items are empty: 0 feature(s) (shape={found}) while a minimum of 1 is required."
        )
    if fitted is None or found[1:] == fitted:
        return
    if len(found) == 2 and len(fitted) == 1:
        raise InputError(
            f"X has {found[1]} features, but SimilarityClassifier is expecting {fitted[0]} "
            "features as input."
        )
    raise InputError(
        f"the model was fitted to items of shape {fitted}, but these have {found[1:]}."
    )


def _check_finite(array: Array) -> None:
    step = max(1, 2**24 // max(1, array[0].size))
    for start in range(0, len(array), step):
        finite = np.abs(array[start : start + step]) <= np.finfo(np.float32).max
        if not finite.all():
            where = np.argwhere(~finite)[0]
            where[0] += start
            value = array[tuple(where)]
            value = "NaN" if np.isnan(value) else value
            raise InputError(
                f"item {where[0]} has {value} at position {tuple(map(int, where[1:]))}: "
                "items must be finite; remove or fill such values."
            )


def network_shape(items: Array) -> tuple[int, ...]:
    """What a network sees of one item: (d,) features, or (channels, H, W)."""
    if items.ndim == 2:
        return (items.shape[1],)
    channels = 1 if items.ndim == 3 else items.shape[3]
    return (channels, items.shape[1], items.shape[2])


class Selection:
    """Some rows of an array that is too large to be copied: read from it when they are needed."""

    def __init__(self, items: Array, rows: Array) -> None:
        self.items, self.rows = items, rows
        self.ndim, self.shape = items.ndim, (len(rows), *items.shape[1:])

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, part: slice) -> Array:
        return np.asarray(self.items[self.rows[part]])

    def every(self, start: int, step: int) -> Selection:
        """Each ``step``-th row from ``start`` on."""
        return Selection(self.items, self.rows[start::step])

    def read(self, index: Tensor) -> Tensor:
        """The rows at ``index`` (n,), on its device."""
        return torch.from_numpy(self.items[self.rows[index.cpu().numpy()]]).to(index.device)
