"""Does a training run on a GPU do what it does on a CPU: capture, resume, strong views, all of it?

    python benchmarks/gpu_check.py

Prints a line for each check and fails at the first that does not hold. The tests of CUDA graphs run
too, where pytest is there.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time

import numpy as np
import torch

from likewise.methods.joint import joint_program
from likewise.methods.pairwise import pairwise_program
from likewise.methods.problem import Problem
from likewise.methods.result import FitResult
from likewise.nn.model import logits_of
from likewise.pairs import Pairs
from likewise.training.recipe import default_recipe
from likewise.training.scheduler import Program, interleave, run_program

MANY = 40  # more than PyTorch has streams
TESTS = ("tests/training/test_resume.py", "tests/training/test_training.py")


def pictures(n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Noise with a bright bar whose place tells the class."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=n)
    x = rng.integers(0, 90, size=(n, 32, 32, 3)).astype(np.uint8)
    for item, kind in enumerate(y):
        x[item, :, 8 * kind : 8 * kind + 8] += 60
    return x, y


def problem(network: str, device: torch.device) -> Problem:
    x, y = pictures()
    recipe = default_recipe(network, joint=True)
    short = tuple({**changes, "epochs": 3} for changes in recipe.students)
    recipe = recipe.with_(epochs=3, students=short)
    return Problem(x, Pairs.from_labels(y), 4, network, recipe, device=device)


def check(network: str) -> None:
    device = torch.device("cuda")
    x, _ = pictures()
    started = time.perf_counter()
    alone = run_program(joint_program(problem(network, device)))
    predicted = logits_of(alone.model, x, device).argmax(dim=1).cpu().numpy()
    ids = problem(network, device).components
    agree = float((predicted == ids).mean())
    beside = interleave([joint_program(problem(network, device)) for _ in range(2)], 2)
    scores = [alone.score, *(one.score for one in beside)]
    spent = time.perf_counter() - started
    print(f"{network}: agrees {agree:.3f}, scores {np.round(scores, 4)}, {spent:.0f} s", flush=True)
    assert np.ptp(scores) < 0.05


def check_many(device: torch.device) -> None:
    """More runs side by side than PyTorch has streams, each as it is alone."""
    x, y = pictures()
    recipe = default_recipe("lenet", joint=False).with_(epochs=3)

    def program() -> Program[FitResult]:
        return pairwise_program(
            Problem(x, Pairs.from_labels(y), 4, "lenet", recipe, device=device), "mcl"
        )

    alone = run_program(program()).score
    beside = [one.score for one in interleave([program() for _ in range(MANY)], MANY)]
    apart = max(abs(score - alone) for score in beside)
    print(f"{MANY} runs of LeNet: {alone:.4f} alone, at most {apart:.4f} away", flush=True)
    assert apart < 0.02


def main() -> None:
    if importlib.util.find_spec("pytest") is not None:
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-k", "cuda or gpu", *TESTS])
        print("pytest ended with", done.returncode, flush=True)
    for network in ("lenet", "vgg8", "resnet32", "resnet18"):
        check(network)
    check_many(torch.device("cuda"))


if __name__ == "__main__":
    main()
