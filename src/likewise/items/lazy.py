"""Images on disk that look like an array, decoded when they are asked for."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from likewise.io.images import crop, open_image, resize_cover


class LazyImages:
    """(N, size, size, 3) uint8 images: a slice decodes, an index array selects without decoding.

    What `likewise.nn.model.logits_of` needs of items, for sets that do not fit in memory. Each
    image is scaled so that its short side is ``size + margin``, and its middle is taken.
    """

    ndim = 4
    dtype = np.dtype(np.uint8)

    def __init__(self, paths: ArrayLike, size: int, margin: int = 32) -> None:
        self.paths: NDArray[np.str_] = np.asarray(paths, np.str_)
        self.size, self.margin = size, margin

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return (len(self.paths), self.size, self.size, 3)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return self._decode(self.paths[key])
        return LazyImages(self.paths[key], self.size, self.margin)

    def _decode(self, paths: NDArray[np.str_]) -> Tensor:
        side = self.size + self.margin

        def one(path: str) -> NDArray[np.uint8]:
            image = resize_cover(open_image(path), side, side)
            return np.asarray(crop(image, self.size, self.size), np.uint8)

        # Threads are enough here: Pillow decodes outside Python's lock.
        with ThreadPoolExecutor(min(os.cpu_count() or 1, 16)) as pool:
            return torch.from_numpy(np.stack(list(pool.map(one, paths))))
