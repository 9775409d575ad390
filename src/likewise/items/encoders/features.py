"""Items through an encoder, a batch at a time; what was encoded before is read from the cache.

The cache has a folder for each encoder and goes by the content of each item: a fit that was killed
goes on where it was, and new photographs among old ones are the only ones that cost anything.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from pathlib import Path

import numpy as np

from likewise.errors import InputError
from likewise.io.atomic import replacing
from likewise.io.limits import check_memory
from likewise.io.npy import Array
from likewise.io.progress import tracked
from likewise.items.encoders.arrays import read_arrays, write_arrays
from likewise.items.encoders.protocol import Encoder, Features, checked_features
from likewise.items.encoders.trust import cache_folder
from likewise.items.raw import RawItems

BATCH = 32
WRITE_SECONDS = 10.0  # work that a kill may cost
DIGEST_BYTES = 32


def encode_items(raw: RawItems, encoder: Encoder, *, cached: bool = True) -> Features:
    """(N, d) features of all items."""
    cache = FeatureCache(encoder.digest if cached else None)
    keys = [raw.digest(k) for k in range(len(raw))] if cached else []
    missing = [k for k in range(len(raw)) if not cached or keys[k] not in cache]
    fresh: list[Features] = []
    starts = range(0, len(missing), BATCH)
    words = f"encoding {len(missing):,} {raw.kind} with {encoder.name}"
    for start in tracked(starts, words, of=len(starts)):
        rows = missing[start : start + BATCH]
        found = checked_features(encoder.encode(raw.batch(rows)), len(rows), encoder.name)
        if start == 0:
            check_memory(
                f"{len(raw):,} items of {found.shape[1]} features", 4 * found[0].size * len(raw)
            )
        if cached:
            cache.add([keys[k] for k in rows], found)
        else:
            fresh.append(found)
    cache.flush()
    return cache.take(keys, encoder.name) if cached else np.concatenate(fresh)


class FeatureCache:
    """Features by the digest of their item, in blocks on disk; without a name, nowhere."""

    def __init__(self, name: str | None) -> None:
        self._folder = None if name is None else cache_folder() / "features" / name[:32]
        self._known: dict[bytes, Features] = {}
        self._pending: list[tuple[list[bytes], Features]] = []
        self._written = time.monotonic()
        if self._folder is not None and self._folder.is_dir():
            for path in sorted(self._folder.glob("*.safetensors")):
                self._read(path)

    def __contains__(self, key: bytes) -> bool:
        return key in self._known

    def add(self, keys: list[bytes], features: Features) -> None:
        """Keep what was just computed, on disk every few seconds."""
        self._known |= dict(zip(keys, features, strict=True))
        self._pending.append((keys, features))
        if time.monotonic() - self._written >= WRITE_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what is pending; a cache that cannot be written is none."""
        self._written = time.monotonic()
        if self._folder is None or not self._pending:
            return
        keys = np.frombuffer(b"".join(k for ks, _ in self._pending for k in ks), np.uint8)
        features = np.concatenate([part for _, part in self._pending])
        self._pending = []
        path = self._folder / f"{secrets.token_hex(8)}.safetensors"
        with contextlib.suppress(OSError), replacing(path) as temporary:
            block: dict[str, Array] = {"keys": keys.reshape(-1, DIGEST_BYTES), "items": features}
            write_arrays(temporary, block)

    def take(self, keys: list[bytes], name: str) -> Features:
        """(n, d) the features of these items."""
        rows = [self._known[key] for key in keys]
        if len({row.shape for row in rows}) > 1:
            raise InputError(f"{name} gives different items different numbers of features.")
        return np.stack(rows)

    def _read(self, path: Path) -> None:
        try:
            block = read_arrays(path)
        except InputError:
            return  # damaged: computed anew
        keys, features = block.get("keys"), block.get("items")
        if keys is None or features is None or keys.ndim != 2 or len(keys) != len(features):
            return
        self._known |= {bytes(k): row for k, row in zip(keys, features.astype(np.float32))}
