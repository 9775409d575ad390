"""The same seed gives the same model, byte for byte, in two processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from likewise.cli import run
from likewise.pairs import Pairs

METHODS = {
    "mns": [],
    "joint": ["--noise", "class"],
}


@pytest.mark.parametrize("method", ["mns", pytest.param("joint", marks=pytest.mark.slow)])
def test_the_command_line_writes_the_same_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=60)
    items = (rng.normal(size=(60, 5)) + 2 * np.eye(3, 5)[labels]).astype(np.float32)
    np.save(tmp_path / "items.npy", items)
    Pairs.from_labels(labels, per_item=10, random_state=0).write(tmp_path / "pairs.csv")
    monkeypatch.chdir(tmp_path)
    command = ["fit", "items.npy", "pairs.csv", "--classes", "3", *METHODS[method]]
    command += ["--method", method, "--epochs", "4", "--seed", "3", "--device", "cpu", "--out"]
    assert run([*command, "run1"]) == 0  # in this process, whose seed of hashes is another
    hash_seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"  # as of sets' order
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": hash_seed}
    child = [sys.executable, "-m", "likewise", *command, "run2"]
    done = subprocess.run(child, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    one, other = tmp_path / "run1", tmp_path / "run2"
    for name in ("model/weights.safetensors", "model/model.json", "history.csv", "report.json"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    figures = [json.loads((folder / "metrics.json").read_text()) for folder in (one, other)]
    for metrics in figures:
        metrics.pop("seconds")
    assert figures[0] == figures[1]
