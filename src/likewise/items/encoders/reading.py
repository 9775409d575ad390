"""Items of any kind as a model takes them: numbers as they are, photographs and texts encoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.io.images import open_item
from likewise.io.progress import stage
from likewise.items.encoders.features import encode_items
from likewise.items.encoders.patches import PatchFeatures
from likewise.items.encoders.protocol import Encoder
from likewise.items.encoders.stored import load_encoder, open_encoder
from likewise.items.encoders.tfidf import TfidfSvd
from likewise.items.files import ItemFile, read_items
from likewise.items.raw import Photographs, RawItems, Texts, open_raw

FEW_PHOTOGRAPHS = 3000  # of which a network learns less from scratch than patches say
LOOKED_AT = 20  # of a folder, to see whether it is in colour
MODEL_HELPS = "a pretrained model (--embed NAME) knows much more"


@dataclass(frozen=True)
class Encoding:
    """How a person wants photographs or texts encoded."""

    model: str | None = None
    """An .onnx or .pt2 file, a folder, or a name at the hub; None: what can be had without."""
    text: str | None = None
    """The column of a table that holds texts."""
    pixels: str | None = None
    """How pixels are scaled for a program (`likewise.items.encoders.programs.PIXELS`)."""
    network: bool = False
    """Whether a network on the pixels themselves was asked for."""


@dataclass(frozen=True)
class Reading:
    """Items to fit to, and what they were made of."""

    data: ItemFile
    encoder: Encoder | None = None
    """What encoded them; None where they are numbers, or pixels, as they are."""
    raw: RawItems | None = None
    """What was encoded."""
    note: str | None = None
    """What a person should know of it, in a sentence."""

    @property
    def pictures(self) -> Callable[[Sequence[int]], NDArray[np.uint8]] | None:
        """Small pictures of items by position, where they are encoded photographs."""
        is_encoded = self.encoder is not None and isinstance(self.raw, Photographs)
        return self.raw.thumbnails if is_encoded else None  # type: ignore[union-attr]


def read_to_fit(
    path: str | Path,
    asked: Encoding,
    *,
    id_column: str | None = None,
    image_size: int | None = None,
    seed: int = 0,
    named: Callable[[ItemFile], object] | None = None,
) -> Reading:
    """The items that a model is to be fitted to.

    ``named`` is told what photographs or texts are called, in a file without features, before these
    take their time: whoever has something to say about the items can be read first.
    """
    encoder = open_encoder(asked.model, asked.pixels, image_size) if asked.model else None
    raw = open_raw(path, text=asked.text, id_column=id_column)
    if raw is None:
        if encoder is not None:
            raise InputError(
                f"{Path(path).name} holds numbers already; --embed is for photographs, and for "
                "texts (--text COLUMN)."
            )
        return Reading(read_items(path, id_column=id_column, size=image_size))
    if named is not None:
        named(ItemFile(np.empty((len(raw), 0), np.float32), raw.ids))
    if encoder is not None:
        return _encoded(raw, encoder, cached=True)
    if isinstance(raw, Texts):
        with stage("finding the words that texts share", 0.3):
            words = TfidfSvd.fit(raw.texts, seed)
        said = f"texts are told apart by the words they share (TF-IDF and SVD); {MODEL_HELPS}."
        return _encoded(raw, words, note=said)
    if not asked.network and len(raw) <= FEW_PHOTOGRAPHS and _in_colour(raw):
        with stage("finding patches that photographs share", 0.3):
            found = PatchFeatures.fit(raw, image_size, seed)
        said = (
            f"{len(raw):,} photographs are few to train a network on from scratch, which also "
            f"takes many minutes without a GPU (--network resnet32 does it); they are described "
            f"by the small patches they share; {MODEL_HELPS}."
        )
        return _encoded(raw, found, note=said)
    pixels = read_items(path, id_column=id_column, size=image_size)
    return Reading(pixels, raw=raw)


def read_like(
    folder: Path,
    path: str | Path,
    *,
    given: str | None = None,
    text: str | None = None,
    id_column: str | None = None,
) -> ItemFile | None:
    """Items encoded as those were that the model beside the encoder in ``folder`` was fitted to.

    ``given`` is the encoder's place, where it is not known; ``text`` the column of the texts, where
    it has another name. None where the items are numbers, which need no encoder.
    """
    encoder, column = load_encoder(folder, given)
    is_table = Path(path).is_file() and Path(path).suffix.lower() not in (".npy", ".npz")
    raw = open_raw(path, text=text or (column if is_table else None), id_column=id_column)
    return None if raw is None else _encoded(raw, encoder).data


def _encoded(
    raw: RawItems, encoder: Encoder, note: str | None = None, cached: bool | None = None
) -> Reading:
    costly = not isinstance(encoder, TfidfSvd | PatchFeatures) if cached is None else cached
    features = encode_items(raw, encoder, cached=costly)
    return Reading(ItemFile(features, raw.ids), encoder, raw, note)


def _in_colour(raw: Photographs) -> bool:
    """Whether any of the first photographs is; small grey images are a network's work."""
    some = raw.names[:LOOKED_AT]
    return any(open_item(raw.root / name).mode == "RGB" for name in some)
