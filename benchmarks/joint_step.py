"""Images a second of a student's step (strong views, mixup, bf16), as it is and compiled.

    python benchmarks/joint_step.py OUT.json [NETWORK:SIDE_BY_SIDE ...]

On a GPU, in one run: the ratio of the two is the result.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch

from likewise.experiments.bench import rate_of
from likewise.nn.model import InputLayer, Model
from likewise.nn.networks import build_network
from likewise.noise import symmetric
from likewise.training.devices import fastest_convolutions
from likewise.training.objectives.forward_corrected import Distillation
from likewise.training.recipe import JOINT
from likewise.training.run import TrainingRun

ITEMS, HELD, SECONDS = 10_000, 1000, 3.0
CASES = ("resnet18:3", "resnet32:16", "vgg8:8")


def student(network: str, compile: bool, device: torch.device) -> TrainingRun:
    n_classes = 100 if network == "vgg8" else 10
    rng = np.random.default_rng(0)
    items = rng.integers(256, size=(ITEMS, 32, 32, 3), dtype=np.uint8)
    evidence = torch.eye(n_classes)[rng.integers(n_classes, size=ITEMS)]
    posterior = 0.9 * evidence + 0.1 / n_classes
    T = torch.as_tensor(symmetric(n_classes, 0.4), dtype=torch.float32)
    objective = Distillation(posterior[HELD:], evidence[HELD:], evidence[:HELD], device, T)
    alone = JOINT[network].with_(teachers=0, students=({},))
    recipe = alone.with_(**JOINT[network].students[-1]).with_(epochs=10_000, compile=compile)
    model = Model(InputLayer.fit(items), build_network(network, (3, 32, 32), n_classes))
    return TrainingRun(model, items[HELD:], items[:HELD], objective, recipe, device=device)


def measure(network: str, beside: int, device: torch.device) -> dict[str, object]:
    row: dict[str, object] = {"network": network, "side by side": beside}
    for compile in (False, True):
        start = time.perf_counter()
        runs = [student(network, compile, device) for _ in range(beside)]
        with fastest_convolutions():
            for run in runs:
                with run.on_stream():
                    run.begin_epoch()
            torch.cuda.synchronize()
            kind = "compiled" if compile else "plain"
            row[f"{kind} ready s"] = round(time.perf_counter() - start, 1)
            row[kind] = round(rate_of(runs, SECONDS))
    row["ratio"] = round(float(str(row["compiled"])) / float(str(row["plain"])), 3)
    return row


def main(out: Path, cases: list[str]) -> None:
    device = torch.device("cuda")
    rows = []
    for case in cases or CASES:
        network, _, beside = case.partition(":")
        rows.append(measure(network, int(beside or 1), device))
        print(rows[-1], flush=True)
        out.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
