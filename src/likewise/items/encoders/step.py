"""An encoder as a step of a scikit-learn Pipeline: texts or photographs in, features out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from likewise.errors import InputError
from likewise.io.images import open_image
from likewise.items.encoders.features import BATCH
from likewise.items.encoders.protocol import Encoder, Features, checked_features
from likewise.items.encoders.stored import open_encoder
from likewise.items.encoders.tfidf import TfidfSvd


class Embed(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn texts, or photographs, into features.

    Parameters
    ----------
    encoder : name, Encoder or None
        A name at the hub, a folder, an .onnx or .pt2 file, or anything with ``name``, ``digest``
        and ``encode``; None learns TF-IDF and SVD from the texts it is fitted to.

    Items are texts (str), paths of photographs (`pathlib.Path`) or images of Pillow's. A text is
    never taken for a path.
    """

    def __init__(self, encoder: str | Encoder | None = None) -> None:
        self.encoder = encoder

    def fit(self, X: Sequence[object], y: object = None) -> Self:
        """Open the encoder, or learn from the texts X."""
        given = self.encoder
        if given is None:
            self.encoder_: Encoder = TfidfSvd.fit(_batch(X))
        elif isinstance(given, str):
            self.encoder_ = open_encoder(given)
        else:
            self.encoder_ = given
        return self

    def transform(self, X: Sequence[object]) -> Features:
        """(N, d) features."""
        encoder = self.encoder_
        parts = []
        for start in range(0, len(X), BATCH):
            batch = _batch(X[start : start + BATCH])
            parts.append(checked_features(encoder.encode(batch), len(batch), encoder.name))
        if not parts:
            raise InputError("there are no items to encode.")
        return np.concatenate(parts)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = True
        return tags


def _batch(items: Sequence[object]) -> list[Any]:
    """Texts as they are, paths opened."""
    return [open_image(one) if isinstance(one, Path) else one for one in items]
