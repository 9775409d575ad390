"""Texts by the words they share, beside scikit-learn's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.sparse import hstack
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from encoder_cases import make_texts
from likewise.errors import InputError
from likewise.items.encoders import tfidf
from likewise.items.encoders.arrays import read_arrays, write_arrays
from likewise.items.encoders.stored import load_encoder, save_encoder
from likewise.items.encoders.tfidf import TfidfSvd


class TestWords:
    TEXTS = make_texts(40, np.random.default_rng(0))[0]

    def test_they_are_those_of_scikit_learn(self) -> None:
        found = TfidfSvd.fit(self.TEXTS, seed=3)
        views = [TfidfVectorizer(**how, sublinear_tf=True, strip_accents="unicode")
                 for how in tfidf.VIEWS.values()]  # fmt: skip
        terms = hstack([view.fit_transform(self.TEXTS) for view in views]).tocsr()
        svd = TruncatedSVD(39, random_state=3).fit(terms)
        expected = terms @ svd.components_.T
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(found.encode(self.TEXTS), expected, atol=1e-5)
        assert found.components.dtype == np.float32
        new = ["Soup, döugh!", "zzz"]
        raw = hstack([view.transform(new) for view in views]).tocsr() @ svd.components_.T
        np.testing.assert_allclose(found.encode(new)[0], raw[0] / np.linalg.norm(raw[0]), atol=1e-5)
        assert not found.encode(["漢"]).any()

    def test_rare_terms_of_many_texts_are_left_out(self) -> None:
        few = [f"word{k} common" for k in range(999)]
        assert "word7" in TfidfSvd.fit(few).vocabulary["words"]
        many = TfidfSvd.fit([*few, "common"])
        assert many.vocabulary["words"] == ["common"]

    def test_texts_that_say_nothing(self) -> None:
        with pytest.raises(InputError, match=r"^the texts hold no words to tell them apart by"):
            TfidfSvd.fit(["", " "])
        with pytest.raises(InputError, match=r"^there are only 1 texts; more are needed"):
            TfidfSvd.fit(["one text"])
        with pytest.raises(InputError, match=r"^TF-IDF and SVD is for texts"):
            TfidfSvd.fit([Image.new("RGB", (2, 2))])

    def test_every_part_is_in_the_digest(self, tmp_path: Path) -> None:
        found = TfidfSvd.fit(self.TEXTS)
        save_encoder(found, tmp_path / "e", text="body")
        again, column = load_encoder(tmp_path / "e")
        assert (again.digest, column) == (found.digest, "body")
        terms = {name: list(reversed(words)) for name, words in found.vocabulary.items()}
        idf = {name: values + 1 for name, values in found.idf.items()}
        for other in (
            TfidfSvd(terms, found.idf, found.components),
            TfidfSvd(found.vocabulary, idf, found.components),
            TfidfSvd(found.vocabulary, found.idf, found.components + 1),
        ):
            assert other.digest != found.digest

    @pytest.mark.parametrize("change", ["terms", "idf", "components", "axes"])
    def test_parts_that_do_not_fit(self, tmp_path: Path, change: str) -> None:
        found = TfidfSvd.fit(self.TEXTS)
        found.save(tmp_path)
        arrays = read_arrays(tmp_path / "encoder.safetensors")
        if change == "terms":
            (tmp_path / "vocabulary.json").write_text("{}")
        elif change == "idf":
            arrays["idf.words"] = arrays["idf.words"][:-1]
        elif change == "components":
            arrays["components"] = arrays["components"][:, :-1]
        else:
            arrays["components"] = arrays["components"][0]
        write_arrays(tmp_path / "encoder.safetensors", arrays)
        with pytest.raises(InputError, match="holds no whole text encoder; copy the run again"):
            TfidfSvd.load(tmp_path)
