"""Where the items of a batch come from: memory of the device, a memory map, or a stream.

A training run asks its source for the items at some positions and never sees where they lie.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor

from likewise.errors import InputError
from likewise.items import Items, Selection


class ItemSource(ABC):
    """The training items of a run.

    ``shape`` (N, ...) is that of all items together. Only what ``is_resident``, that is lies on
    the device already, can be read by a captured step.
    """

    shape: tuple[int, ...]
    is_resident = False
    needs_order = False  # whether an epoch's items must be known before it begins

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def holds_images(self) -> bool:
        return len(self.shape) > 2

    def begin_epoch(self, epoch: int, order: Tensor | None) -> None:  # noqa: B027 (most need none)
        """``order`` (steps, n) are the items of every step, where they are needed before."""

    @abstractmethod
    def take(self, index: Tensor, shift: Tensor | None, flip: Tensor | None) -> Tensor:
        """The items at ``index`` (n,), moved for learning as `cropped` does."""

    @abstractmethod
    def plain(self, index: Tensor) -> Tensor:
        """The items at ``index`` (n,) as they are."""


class ResidentItems(ItemSource):
    """Items in the memory of the device."""

    is_resident = True

    def __init__(self, items: Tensor) -> None:
        self.items, self.shape = items, tuple(items.shape)

    def take(self, index: Tensor, shift: Tensor | None, flip: Tensor | None) -> Tensor:
        return cropped(self.items, index, shift, flip)

    def plain(self, index: Tensor) -> Tensor:
        return self.items[index]


class MappedItems(ItemSource):
    """Items of a memory map that is too large to be copied."""

    def __init__(self, items: Selection) -> None:
        self.items, self.shape = items, tuple(items.shape)

    def take(self, index: Tensor, shift: Tensor | None, flip: Tensor | None) -> Tensor:
        return cropped(
            self.plain(index), torch.arange(len(index), device=index.device), shift, flip
        )

    def plain(self, index: Tensor) -> Tensor:
        return self.items.read(index)


def source_of(items: Items | ItemSource, device: torch.device, part: slice | None) -> ItemSource:
    """The source of items as they came; of those at ``part`` only, where processes share them."""
    if isinstance(items, ItemSource):
        if part is not None:
            raise InputError("streamed images cannot be shared out among several processes.")
        return items
    if isinstance(items, Selection):
        return MappedItems(items if part is None else items.every(part.start, part.step))
    own = items if part is None else items[part]
    tensor = torch.from_numpy(own) if isinstance(own, np.ndarray) else own
    return ResidentItems(tensor.to(device))


def cropped(items: Tensor, index: Tensor, shift: Tensor | None, flip: Tensor | None) -> Tensor:
    """Items at ``index`` (n,), images moved by ``shift`` (n, 2) and flipped where ``flip`` (n,).

    One gather does selection, reflected crop and flip at once, in the items' own type.
    """
    if items.ndim == 2 or (shift is None and flip is None):
        return items[index]
    height, width = items.shape[1], items.shape[2]
    rows = torch.arange(height, device=items.device)[None]  # (1, H)
    columns = torch.arange(width, device=items.device)[None]
    if shift is not None:
        rows = _reflect(rows + shift[:, :1], height)  # (n, H)
        columns = _reflect(columns + shift[:, 1:], width)
    if flip is not None:
        columns = torch.where(flip[:, None], width - 1 - columns, columns)
    return items[index[:, None, None], rows[:, :, None], columns[:, None, :]]


def _reflect(position: Tensor, size: int) -> Tensor:
    return size - 1 - (size - 1 - position.abs()).abs()
