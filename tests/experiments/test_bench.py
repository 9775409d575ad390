"""The GPU benchmark's own parts, as far as they go without a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from likewise.experiments import bench

CPU = torch.device("cpu")
SMALL = bench.Case("lenet", (28, 28), 10, 300)


def data(case: bench.Case) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return case.items(rng), rng.integers(case.n_classes, size=case.n_items)


def test_a_steps_operations_are_those_of_its_layers() -> None:
    """LeNet by hand: two convolutions and two linear layers, forward and (twice that) backward."""
    flops, moved = bench.step_cost(SMALL, *data(SMALL), CPU)
    first = 2 * 20 * 25 * 24 * 24
    rest = 2 * (50 * 20 * 25 * 8 * 8 + 800 * 500 + 500 * 10)
    # The first layer needs no gradient of its input. The loss adds the pairs' products.
    layers = 128 * (2 * first + 3 * rest)
    assert layers <= flops < 1.05 * layers
    assert moved > 4 * 431_080  # at least every weight is read


def test_runs_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "gpu.json"
    for rate in (1.0, 2.0):
        bench.append_run(path, [{"network": "lenet", "ratio": rate}])
    runs = json.loads(path.read_text())
    assert [run["rows"][0]["ratio"] for run in runs] == [1.0, 2.0]
    assert runs[0]["torch"] == torch.__version__


@pytest.mark.parametrize("case", bench.CASES, ids=lambda case: case.network)
def test_the_plain_loop_sees_images_as_the_network_does(case: bench.Case) -> None:
    few = bench.Case(case.network, case.shape, case.n_classes, 4)
    items, labels = data(few)
    image, label = bench._Images(items, labels, bench.PAPER[case.network])[1]
    channels = case.shape[2] if len(case.shape) == 3 else 1
    assert image.shape == (channels, *case.shape[:2])
    assert label == labels[1]
