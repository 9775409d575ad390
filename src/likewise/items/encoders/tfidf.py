"""Texts without any model at hand: TF-IDF of words and of letters within them, then SVD.

Latent semantic analysis (Deerwester et al., JASIS 1990): texts that share words with texts that
share words come close. Fitted to the texts alone; it knows no language, so a pretrained model knows
more. Kept as JSON and safetensors.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.io.atomic import write_json
from likewise.io.json import JsonObject, read_json_object
from likewise.items.encoders.arrays import read_arrays, write_arrays
from likewise.items.encoders.protocol import Batch, Features, need_texts

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer

KIND = "tfidf-svd"
VOCABULARY, TENSORS = "vocabulary.json", "encoder.safetensors"
MOST_TERMS = 30_000  # of each view
DIMENSIONS = 200  # they foretell unseen judgements as 100 do, or better (benchmarks/encoders.py)
VIEWS: dict[str, dict[str, object]] = {
    "words": {"analyzer": "word", "ngram_range": (1, 2), "token_pattern": r"(?u)\b\w+\b"},
    "letters": {"analyzer": "char_wb", "ngram_range": (2, 4)},
}


@dataclass(frozen=True)
class TfidfSvd:
    """TF-IDF and SVD, fitted to texts."""

    vocabulary: dict[str, list[str]]
    """The terms of each view, in the order of their numbers."""
    idf: dict[str, NDArray[np.float64]]
    """(terms,) inverse document frequency, of each view."""
    components: NDArray[np.float32]
    """(d, all terms) right singular vectors."""

    name = "TF-IDF and SVD"

    @classmethod
    def fit(cls, texts: Batch, seed: int = 0) -> TfidfSvd:
        """Terms and directions of these texts."""
        from scipy.sparse import hstack
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        given = need_texts(texts, cls.name)
        rare = 1 if len(given) < 1000 else 2
        views = {
            name: TfidfVectorizer(
                **how,
                sublinear_tf=True,
                strip_accents="unicode",
                min_df=rare,
                max_features=MOST_TERMS,
                dtype=np.float64,
            )
            for name, how in VIEWS.items()
        }
        try:
            parts = [view.fit_transform(given) for view in views.values()]
        except ValueError as error:  # scikit-learn's, of texts without a single word
            raise InputError("the texts hold no words to tell them apart by.") from error
        terms = hstack(parts).tocsr()
        most = min(DIMENSIONS, terms.shape[0] - 1, terms.shape[1] - 1)
        if most < 1:
            raise InputError(f"there are only {len(given)} texts; more are needed.")
        svd = TruncatedSVD(most, random_state=seed).fit(terms)
        return cls(
            {name: view.get_feature_names_out().tolist() for name, view in views.items()},
            {name: np.asarray(view.idf_) for name, view in views.items()},
            np.ascontiguousarray(svd.components_, np.float32),
        )

    @property
    def digest(self) -> str:
        found = hashlib.sha256(KIND.encode())
        for name, terms in self.vocabulary.items():
            found.update("\0".join([name, *terms]).encode("utf-8", "replace"))
            found.update(self.idf[name].tobytes())
        found.update(self.components.tobytes())
        return found.hexdigest()

    def encode(self, batch: Batch) -> Features:
        """(n, d) of length 1, where a text has any known term."""
        from scipy.sparse import hstack

        texts = need_texts(batch, self.name)
        parts = [self._view(name).transform(texts) for name in self.vocabulary]
        terms: csr_matrix = hstack(parts).tocsr()
        found = np.asarray(terms @ self.components.T.astype(np.float64))
        length = np.linalg.norm(found, axis=1, keepdims=True)
        rows: Features = (found / np.maximum(length, 1e-12)).astype(np.float32)
        return rows

    def _view(self, name: str) -> TfidfVectorizer:
        from sklearn.feature_extraction.text import TfidfVectorizer

        view = TfidfVectorizer(
            **VIEWS[name],
            sublinear_tf=True,
            strip_accents="unicode",
            vocabulary={term: k for k, term in enumerate(self.vocabulary[name])},
        )
        view.idf_ = self.idf[name]
        return view

    def save(self, folder: Path) -> JsonObject:
        """Write what it has learned; returns what `load` needs beside it."""
        write_json(folder / VOCABULARY, self.vocabulary)
        arrays = {f"idf.{name}": idf for name, idf in self.idf.items()}
        write_arrays(folder / TENSORS, arrays | {"components": self.components})
        return {}

    @classmethod
    def load(cls, folder: Path) -> TfidfSvd:
        """As `save` wrote it."""
        found = read_json_object(folder / VOCABULARY)
        terms = {
            name: [term for term in given if isinstance(term, str)]
            for name, given in found.items()
            if name in VIEWS and isinstance(given, list)
        }
        arrays = read_arrays(folder / TENSORS)
        idf = {name: arrays.get(f"idf.{name}", np.empty(0)) for name in terms}
        components = arrays.get("components", np.empty((0, 0)))
        total = sum(map(len, terms.values()))
        fits = all(idf[name].shape == (len(set(terms[name])),) for name in terms)
        if not terms or not fits or components.ndim != 2 or components.shape[1] != total:
            raise InputError(f"{folder} holds no whole text encoder; copy the run again.")
        return cls(terms, idf, components.astype(np.float32))
