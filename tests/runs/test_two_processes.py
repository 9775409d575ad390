"""The same seed gives the same model, byte for byte, in two processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from likewise.pairs import Pairs

METHODS = {
    "mns": [],
    "joint": ["--noise", "class"],
}


@pytest.mark.parametrize("method", ["mns", pytest.param("joint", marks=pytest.mark.slow)])
def test_the_command_line_writes_the_same_model(tmp_path: Path, method: str) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=60)
    items = (rng.normal(size=(60, 5)) + 2 * np.eye(3, 5)[labels]).astype(np.float32)
    np.save(tmp_path / "items.npy", items)
    Pairs.from_labels(labels, per_item=10, random_state=0).write(tmp_path / "pairs.csv")
    command = [sys.executable, "-m", "likewise", "fit", "items.npy", "pairs.csv", "--classes", "3"]
    command += ["--method", method, "--epochs", "4", "--seed", "3", "--device", "cpu"]
    runs = []
    for hash_seed in ("1", "2"):  # so that nothing hangs on the order of a set
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": hash_seed}
        out = ["--out", f"run{hash_seed}", *METHODS[method]]
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        runs.append(subprocess.Popen([*command, *out], cwd=tmp_path, env=environment, **pipes))
    for run in runs:
        _, told = run.communicate()
        assert run.returncode == 0, told.decode()
    one, other = tmp_path / "run1", tmp_path / "run2"
    for name in ("model/weights.safetensors", "model/model.json", "history.csv", "report.json"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    figures = [json.loads((run / "metrics.json").read_text()) for run in (one, other)]
    for metrics in figures:
        metrics.pop("seconds")
    assert figures[0] == figures[1]
