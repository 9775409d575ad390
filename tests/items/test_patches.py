"""Photographs by the patches they share, beside loops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from encoder_cases import write_photographs
from likewise.errors import InputError
from likewise.items.encoders import patches
from likewise.items.encoders.arrays import read_arrays, write_arrays
from likewise.items.encoders.patches import PatchFeatures
from likewise.items.raw import Photographs, open_raw


class TestPatches:
    @pytest.fixture(scope="class")
    def found(
        self, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[tuple[Photographs, PatchFeatures]]:
        folder = tmp_path_factory.mktemp("patches") / "photos"
        write_photographs(folder, 12)
        raw = open_raw(folder)
        assert isinstance(raw, Photographs)
        with pytest.MonkeyPatch.context() as fewer:
            fewer.setattr(patches, "SAMPLED", 4000)
            yield raw, PatchFeatures.fit(raw, 12)

    def test_whitened_patches_have_unit_variance(
        self, found: tuple[Photographs, PatchFeatures]
    ) -> None:
        raw, learned = found
        images = patches._pixels(raw.batch(range(12)), 12)
        sample = patches._normalised(patches._sample(images, np.random.default_rng(0))).numpy()
        np.testing.assert_allclose(learned.mean, sample.mean(axis=0), atol=1e-4)
        covariance = np.cov(sample.T)
        expected = np.linalg.inv(covariance + 0.1 * np.eye(108))
        squared = learned.whitening @ learned.whitening.T
        np.testing.assert_allclose(squared, expected, rtol=1e-2, atol=2e-2)
        assert learned.centres.shape == (150, 108)

    def test_features_are_components_of_length_1(
        self, found: tuple[Photographs, PatchFeatures]
    ) -> None:
        raw, learned = found
        rows = learned.encode(raw.batch(range(12)))
        assert (rows.shape, rows.dtype) == ((12, 12), np.float32)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-4)
        active = learned._activations(patches._pixels(raw.batch(range(12)), 12))
        assert active.shape == (12, 600)
        np.testing.assert_allclose(learned.low, active.mean(axis=0), rtol=1e-4)
        projected = (active - learned.low) @ learned.directions
        shares = projected.var(axis=0)
        assert (np.diff(shares) <= 1e-3 * shares[0]).all()
        scaled = (active - active.mean(axis=0)) / np.maximum(active.std(axis=0), 1e-6)
        assert shares.sum() == pytest.approx(scaled.var(axis=0).sum(), rel=1e-2)

    def test_how_near_patches_are_by_a_loop(self, found: tuple[Photographs, PatchFeatures]) -> None:
        raw, learned = found
        image = patches._pixels(raw.batch([0]), 12)
        near = np.zeros((2, 2, 150))
        for row in range(7):
            for column in range(7):
                patch = image[0, :, row : row + 6, column : column + 6].numpy().ravel()
                centred = patch - patch.mean()
                plain = centred / np.sqrt((centred**2).mean() + 10) - learned.mean
                far = np.linalg.norm(plain @ learned.whitening - learned.centres, axis=1)
                share = np.maximum(far.mean() - far, 0) / 16  # quarters of 4 x 4, which overlap
                for top in range(2):
                    for left in range(2):
                        if 3 * top <= row <= 3 * top + 3 and 3 * left <= column <= 3 * left + 3:
                            near[top, left] += share
        expected = near.transpose(2, 0, 1).ravel()
        np.testing.assert_allclose(learned._near(image)[0].numpy(), expected, atol=2e-3)

    def test_sizes_stay_within_bounds(
        self, found: tuple[Photographs, PatchFeatures], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        raw, _ = found
        asked = []
        real = patches._pixels
        monkeypatch.setattr(patches, "_pixels", lambda b, s: asked.append(s) or real(b, 12))
        monkeypatch.setattr(patches, "SAMPLED", 500)
        for side, used in ((None, 32), (5, 12), (64, 64), (500, 128)):
            assert PatchFeatures.fit(raw, side).side == used
        assert asked == [32, 12, 64, 128]

    def test_saved_and_spoilt(
        self, found: tuple[Photographs, PatchFeatures], tmp_path: Path
    ) -> None:
        _, learned = found
        learned.save(tmp_path)
        again = PatchFeatures.load(tmp_path)
        assert (again.digest, again.side) == (learned.digest, 12)
        arrays = read_arrays(tmp_path / "encoder.safetensors")
        for name in ("mean", "whitening", "centres", "low", "directions", "side"):
            write_arrays(tmp_path / "encoder.safetensors", arrays | {name: arrays[name][:-1]})
            with pytest.raises(InputError, match="holds no whole encoder of patches; copy the run"):
                PatchFeatures.load(tmp_path)
        for side, fine in ((11, False), (12, True), (128, True), (129, False)):
            write_arrays(tmp_path / "encoder.safetensors", arrays | {"side": np.array([side])})
            if fine:
                assert PatchFeatures.load(tmp_path).side == side
            else:
                with pytest.raises(InputError, match=f"scales photographs to {side} pixels, which"):
                    PatchFeatures.load(tmp_path)


def test_k_means_takes_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On busy cores its small steps took twenty times as long by two threads."""
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_info, threadpool_limits

    seen: list[int] = []
    fit = MiniBatchKMeans.fit

    def fitted(self: MiniBatchKMeans, rows: np.ndarray) -> MiniBatchKMeans:
        seen.extend(pool["num_threads"] for pool in threadpool_info())
        return fit(self, rows)

    monkeypatch.setattr(MiniBatchKMeans, "fit", fitted)
    monkeypatch.setattr(patches, "SAMPLED", 500)
    write_photographs(tmp_path / "photos", 6)
    with threadpool_limits(limits=2):
        PatchFeatures.fit(open_raw(tmp_path / "photos"))
    assert set(seen) == {1}


def test_sampled_patches_are_those_of_the_images() -> None:
    images = torch.arange(2 * 3 * 8 * 9, dtype=torch.float32).view(2, 3, 8, 9)
    found = patches._sample(images, np.random.default_rng(0))
    every = F.unfold(images, 6).transpose(1, 2).flatten(0, 1)
    seen = {tuple(patch) for patch in found[:500].tolist()}
    assert seen == {tuple(patch) for patch in every.tolist()}
