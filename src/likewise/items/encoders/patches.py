"""Photographs without any model at hand: which small patches they show, and roughly where.

Single-layer features by k-means (Coates, Lee & Ng, AISTATS 2011): patches of 6 x 6 pixels,
normalised and whitened, are compared with learned ones; how near each is ("triangle" activation) is
averaged over the quarters of the photograph, and over its mirror image; principal components of
that, scaled to length 1, are the features. Learned in seconds from the photographs alone. Kept as
safetensors.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from likewise.errors import InputError
from likewise.io.images import crop, resize_cover
from likewise.io.json import JsonObject
from likewise.io.npy import Array
from likewise.items.encoders.arrays import read_arrays, write_arrays
from likewise.items.encoders.protocol import Batch, Features, need_images
from likewise.items.raw import Photographs

KIND, TENSORS = "patches", "encoder.safetensors"
SIDE = 32  # pixels of a photograph, where nobody asks for more
SMALLEST, LARGEST = 12, 128
PATCH, CENTRES, QUARTERS = 6, 150, 2
SAMPLED = 50_000  # patches that the centres are learned from
CONTRAST, WHITENING = 10.0, 0.1  # added to a patch's variance, and to each eigenvalue, as published
DIMENSIONS = 20  # few, since answers about few photographs are few, too
ARRAYS = ("mean", "whitening", "centres", "low", "directions")


@dataclass(frozen=True)
class PatchFeatures:
    """Learned patches."""

    side: int
    """Pixels to which photographs are scaled."""
    mean: NDArray[np.float32]
    """(p,) of the normalised patches; p = 6 x 6 x 3."""
    whitening: NDArray[np.float32]
    """(p, p)."""
    centres: NDArray[np.float32]
    """(K, p) the learned patches, whitened."""
    low: NDArray[np.float32]
    """(4 K,) the activations' means."""
    directions: NDArray[np.float32]
    """(4 K, d) their principal components."""

    name = "patches"

    @classmethod
    def fit(cls, photographs: Photographs, side: int | None = None, seed: int = 0) -> PatchFeatures:
        """Learned from these photographs."""
        from sklearn.cluster import MiniBatchKMeans
        from sklearn.decomposition import PCA
        from threadpoolctl import threadpool_limits

        size = min(max(side or SIDE, SMALLEST), LARGEST)
        images = _pixels(photographs.batch(range(len(photographs))), size)
        rng = np.random.default_rng(seed)
        patches = _normalised(_sample(images, rng)).numpy()
        mean = patches.mean(axis=0)
        k_means = MiniBatchKMeans(CENTRES, n_init=3, random_state=seed, batch_size=4096)
        with threadpool_limits(limits=1):  # small steps: threads lose, tenfold on busy cores
            values, vectors = np.linalg.eigh(np.cov(patches.T))
            whitening = (vectors / np.sqrt(np.maximum(values, 0) + WHITENING)) @ vectors.T
            white = ((patches - mean) @ whitening).astype(np.float32)
            clusters = k_means.fit(white)
        learned = (mean, whitening, clusters.cluster_centers_)
        bare = cls(
            size, *(part.astype(np.float32) for part in learned), *[np.empty(0, np.float32)] * 2
        )
        found = bare._activations(images)
        deviation = np.maximum(found.std(axis=0), 1e-6)
        most = min(DIMENSIONS, *found.shape)
        components = PCA(most, random_state=seed).fit((found - found.mean(axis=0)) / deviation)
        directions = (components.components_ / deviation).T.astype(np.float32)
        return replace(bare, low=found.mean(axis=0), directions=np.ascontiguousarray(directions))

    @property
    def digest(self) -> str:
        found = hashlib.sha256(f"{KIND} {self.side}".encode())
        for name in ARRAYS:
            found.update(getattr(self, name).tobytes())
        return found.hexdigest()

    def encode(self, batch: Batch) -> Features:
        """(n, d) of length 1."""
        found = self._activations(_pixels(need_images(batch, self.name), self.side))
        rows = (found - self.low) @ self.directions
        length = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        return np.asarray(rows / length, np.float32)

    @torch.no_grad()
    def _activations(self, images: Tensor) -> Features:
        """(n, 4 K) of (n, 3, H, W) images; by their root few patches count nearly as many do."""
        parts = [
            (self._near(part) + self._near(part.flip(3))) / 2 for part in torch.split(images, 32)
        ]
        return torch.cat(parts).sqrt().numpy()

    def _near(self, images: Tensor) -> Tensor:
        """(n, 4 K) how near the patches of (n, 3, H, W) images are to each centre, by quarter."""
        n, places = len(images), images.shape[2] - PATCH + 1
        patches = F.unfold(images, PATCH).transpose(1, 2).flatten(0, 1)  # (n * places^2, p)
        centred = _normalised(patches) - torch.from_numpy(self.mean)
        white = centred @ torch.from_numpy(self.whitening)
        far = torch.cdist(white, torch.from_numpy(self.centres))
        near = (far.mean(dim=1, keepdim=True) - far).clamp_min(0)
        grid = near.view(n, places, places, -1).permute(0, 3, 1, 2)  # (n, K, places, places)
        return F.adaptive_avg_pool2d(grid, QUARTERS).flatten(1)

    def save(self, folder: Path) -> JsonObject:
        """Write what it has learned; returns what `load` needs beside it."""
        arrays = {name: getattr(self, name) for name in ARRAYS}
        write_arrays(folder / TENSORS, arrays | {"side": np.array([self.side])})
        return {}

    @classmethod
    def load(cls, folder: Path) -> PatchFeatures:
        """As `save` wrote it."""
        found = read_arrays(folder / TENSORS)
        p, width = 3 * PATCH**2, CENTRES * QUARTERS**2
        shapes = {"mean": (p,), "whitening": (p, p), "centres": (CENTRES, p), "side": (1,)}
        shapes |= {"low": (width,), "directions": (width, _width(found))}
        if {name: array.shape for name, array in found.items()} != shapes:
            raise InputError(f"{folder} holds no whole encoder of patches; copy the run again.")
        side = int(found["side"][0])
        if not SMALLEST <= side <= LARGEST:
            raise InputError(f"{folder} scales photographs to {side} pixels, which cannot be.")
        return cls(side, *(found[name].astype(np.float32) for name in ARRAYS))


def _pixels(images: Batch, side: int) -> Tensor:
    """(n, 3, side, side) photographs scaled to cover a square, its middle taken."""
    small = [crop(resize_cover(image, side, side), side, side) for image in images]  # type: ignore[arg-type]
    stacked = np.stack([np.asarray(image, np.float32) for image in small])
    return torch.from_numpy(stacked).permute(0, 3, 1, 2)


def _sample(images: Tensor, rng: np.random.Generator) -> Tensor:
    """(SAMPLED, p) patches at random places, laid out as `F.unfold` does."""
    n, _, height, width = images.shape
    which = torch.from_numpy(rng.integers(n, size=SAMPLED))
    top = torch.from_numpy(rng.integers(height - PATCH + 1, size=SAMPLED))
    left = torch.from_numpy(rng.integers(width - PATCH + 1, size=SAMPLED))
    offset = torch.arange(PATCH)
    rows, columns = top[:, None, None] + offset[:, None], left[:, None, None] + offset
    found = images.permute(0, 2, 3, 1)[which[:, None, None], rows, columns]  # (n, 6, 6, 3)
    return found.permute(0, 3, 1, 2).flatten(1)


def _normalised(patches: Tensor) -> Tensor:
    """Each patch with mean 0 and about unit contrast."""
    centred = patches - patches.mean(dim=1, keepdim=True)
    variance = centred.square().mean(dim=1, keepdim=True)
    return centred / (variance + CONTRAST).sqrt()


def _width(arrays: dict[str, Array]) -> int:
    """How many features there are."""
    directions = arrays.get("directions")
    return 0 if directions is None else int(directions.shape[-1])
