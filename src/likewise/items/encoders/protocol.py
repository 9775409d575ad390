"""What an encoder is: a batch in, an array out, a name, a digest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

Batch = Sequence["str | Image"]
"""Texts, or photographs in 8-bit colour, upright; never both."""
Features = NDArray[np.float32]


@runtime_checkable
class Encoder(Protocol):
    """Anything that turns texts or photographs into features."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def digest(self) -> str:
        """Differs where the features would: features are cached, and recognised, by it."""

    def encode(self, batch: Batch) -> Features:
        """(n, d) features, one row for each text or photograph."""


def need_texts(batch: Batch, name: str) -> list[str]:
    """The batch as texts; refused where it holds photographs."""
    texts = [one for one in batch if isinstance(one, str)]
    if len(texts) < len(batch):
        raise InputError(f"{name} is for texts, but the items are photographs; choose another.")
    return texts


def need_images(batch: Batch, name: str) -> list[Image]:
    """The batch as photographs; refused where it holds texts."""
    images = [one for one in batch if not isinstance(one, str)]
    if len(images) < len(batch):
        raise InputError(f"{name} is for photographs, but the items are texts; choose another.")
    return images


def checked_features(found: object, n_items: int, name: str) -> Features:
    """An encoder's output as (n, d) float32; refused where it is anything else."""
    array = np.asarray(found)
    if array.ndim > 2 and len(array) == n_items:
        array = array.reshape(n_items, -1)
    if array.ndim != 2 or len(array) != n_items or array.dtype.kind not in "fiu":
        raise InputError(
            f"{name} must give one row of numbers an item, but gave {array.dtype} of shape "
            f"{array.shape} for {n_items} items."
        )
    if not np.isfinite(array).all():
        raise InputError(f"{name} gave numbers that are not finite; try another model.")
    return array.astype(np.float32)
