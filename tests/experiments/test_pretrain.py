"""Starting from images without labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from likewise.datasets import Dataset
from likewise.errors import InputError
from likewise.experiments import load_settings
from likewise.experiments.grid import run_table
from likewise.experiments.pretrain import (
    Contrast,
    body_weights,
    contrastive_loss,
    load_body,
    pretrain,
    random_view,
)
from likewise.experiments.store import load_results
from likewise.nn.networks import build_network

CPU = torch.device("cpu")
SETTINGS = """
table = "small"
title = "stripes"
dataset = "mnist"
network = "lenet"
noise_kind = ["symmetric"]
noise = [0.1]
methods = ["mcl"]
trials = 1
pretrained = "self"
[contrast]
epochs = 1
batch_size = 32
[training]
epochs = 1
"""


def images(n: int, channels: int | None = None) -> np.ndarray:
    rng = np.random.default_rng(0)
    shape = (n, 16, 16) if channels is None else (n, 16, 16, channels)
    return rng.integers(0, 256, shape).astype(np.uint8)


def stripes(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Images of two classes: stripes across, stripes down."""
    x, y = images(n) // 2, np.arange(n) % 2
    x[y == 0, ::4] += 120
    x[y == 1, :, ::4] += 120
    return x, y


def test_the_contrastive_loss_is_the_slow_one() -> None:
    torch.manual_seed(0)
    first, second = torch.randn(5, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    z = torch.cat([F.normalize(first, dim=1), F.normalize(second, dim=1)])
    total = 0.0
    for i in range(10):
        partner = (i + 5) % 10
        others = [float(torch.exp(z[i] @ z[j] / 0.5)) for j in range(10) if j != i]
        total -= float(np.log(np.exp(float(z[i] @ z[partner]) / 0.5) / sum(others)))
    assert float(contrastive_loss(first, second, 0.5)) == pytest.approx(total / 10, rel=1e-5)


def test_views_are_random_and_repeat_by_seed() -> None:
    x = torch.rand(4, 3, 16, 16)
    one = random_view(x, torch.Generator().manual_seed(0))
    assert one.shape == x.shape
    assert torch.isfinite(one).all()
    assert torch.equal(one, random_view(x, torch.Generator().manual_seed(0)))
    assert not torch.equal(one, random_view(x, torch.Generator().manual_seed(1)))


@pytest.mark.parametrize("channels", [None, 3])
def test_pretraining_changes_all_but_the_last_layer(channels: int | None) -> None:
    items = images(40, channels)
    contrast = Contrast(epochs=1, batch_size=20)
    weights = pretrain(items, "lenet", CPU, contrast)
    again = pretrain(items, "lenet", CPU, contrast)
    assert all(torch.equal(weights[k], again[k]) for k in weights)
    network = build_network("lenet", (channels or 1, 16, 16), 10)
    last = network.state_dict()["9.weight"].clone()
    before = body_weights(network)
    load_body(network, weights)
    assert any(not torch.equal(before[k], weights[k]) for k in weights)
    assert torch.equal(network.state_dict()["9.weight"], last)
    with pytest.raises(InputError, match="belong to another network"):
        load_body(build_network("mlp", (16,), 10), weights)
    with pytest.raises(InputError, match="needs images"):
        pretrain(np.zeros((4, 8), np.float32), "mlp", CPU, contrast)


def test_a_table_with_its_own_start(tmp_path: Path) -> None:
    (x, y), (test_x, test_y) = stripes(120), stripes(40)
    dataset = Dataset("stripes", x, y.astype(np.int64), test_x, test_y.astype(np.int64), ("a", "b"))
    path = tmp_path / "small.toml"
    path.write_text(SETTINGS)
    settings = load_settings(path)
    run_table(settings, dataset, tmp_path / "runs", devices=[CPU])
    (result,) = load_results(tmp_path / "runs")
    assert result["network"] == "lenet+self"
    stored = tmp_path / "runs/pretrained/stripes-lenet.safetensors"
    stamp = stored.stat().st_mtime_ns
    run_table(settings, dataset, tmp_path / "runs", devices=[CPU])
    assert stored.stat().st_mtime_ns == stamp
    path.write_text(SETTINGS.replace("batch_size = 32", "batchsize = 32"))
    with pytest.raises(InputError, match=r"wrong \[contrast\] settings"):
        run_table(load_settings(path), dataset, tmp_path / "other", devices=[CPU])
