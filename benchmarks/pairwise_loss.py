"""The loss over all pairs of a batch: by one matrix product, against enumerating the pairs.

"Enumerating" is the usual implementation: every row of p is repeated n times, two (n * n, C)
tensors are multiplied and summed. Forward and backward, 1,000 items, 100 classes, single
precision. Each implementation runs in a fresh process, which tells the seconds of a call (median;
by the clock, and of the processor, which others' work on the machine changes less) and how far
its peak memory rose above what it held before its first call; their losses and gradients must
agree. The goals are those of the project: 20 times as fast, a twentieth of the
memory. Every run is added to results/pairwise_loss.json.

    python benchmarks/pairwise_loss.py [--items 1000] [--classes 100]
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from likewise import functional
from likewise.io.atomic import write_json
from likewise.noise import symmetric

RESULTS = Path(__file__).parent.parent / "results" / "pairwise_loss.json"
GOAL = 20.0
REPEATS = {"enumerated": 5, "matrix product": 50}
MB = 2**20

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


def enumerated(p: Tensor, transition: Tensor, same: Tensor) -> Tensor:
    """The noisy-similarity loss over all ordered pairs, each pair a row."""
    f = p @ transition
    n = len(f)
    left = f.repeat_interleave(n, dim=0)  # (n * n, C)
    right = f.repeat(n, 1)
    similarity = (left * right).sum(dim=1)
    answer = same.flatten()
    log_same = similarity.clamp_min(1e-7).log()
    log_different = (1 - similarity).clamp_min(1e-7).log()
    return -(answer * log_same + (1 - answer) * log_different).mean()


def matrix_product(p: Tensor, transition: Tensor, same: Tensor) -> Tensor:
    return functional.mns_loss(p, transition, same)


LOSSES: dict[str, Loss] = {"enumerated": enumerated, "matrix product": matrix_product}


def data(items: int, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """(logits (n, C), T (C, C), same (n, n)), the same in every process."""
    made = torch.Generator().manual_seed(0)
    logits = torch.randn(items, classes, generator=made)
    z = torch.randint(classes, (items,), generator=made)
    transition = torch.as_tensor(symmetric(classes, 0.4), dtype=torch.float32)
    return logits, transition, (z[:, None] == z).float()


def call(loss: Loss, logits: Tensor, transition: Tensor, same: Tensor) -> tuple[float, Tensor]:
    """Loss and gradient by the logits."""
    leaf = logits.detach().requires_grad_()
    value = loss(leaf.softmax(dim=1), transition, same)
    value.backward()
    assert leaf.grad is not None
    return float(value.detach()), leaf.grad


def measure(name: str, items: int, classes: int) -> dict[str, Any]:
    """Run one implementation in this process."""
    loss = LOSSES[name]
    call(loss, *data(8, classes))  # libraries have set themselves up
    arguments = data(items, classes)
    before = resident()
    value, gradient = call(loss, *arguments)
    extra = peak() - before
    seconds, processor = [], []
    for _ in range(REPEATS[name]):
        start = time.perf_counter(), time.process_time()
        call(loss, *arguments)
        seconds.append(time.perf_counter() - start[0])
        processor.append(time.process_time() - start[1])
    return {
        "seconds": statistics.median(seconds),
        "processor_seconds": statistics.median(processor),
        "extra_mb": extra / MB,
        "loss": value,
        "gradient": [float(gradient.norm()), float(gradient[0, 0]), float(gradient[-1, -1])],
        "threads": torch.get_num_threads(),
    }


def resident() -> int:
    """Bytes that this process holds now (Linux; elsewhere its peak so far, at least that)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize()
    except OSError:
        return peak()


def peak() -> int:
    """The most bytes that this process has held."""
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


def in_fresh_process(name: str, items: int, classes: int) -> dict[str, Any]:
    sizes = ["--items", str(items), "--classes", str(classes)]
    command = [sys.executable, __file__, "--measure", name, *sizes]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def compare(items: int, classes: int) -> dict[str, Any]:
    """Both implementations, one after the other, and their ratios."""
    found = {name: in_fresh_process(name, items, classes) for name in LOSSES}
    slow, fast = found["enumerated"], found["matrix product"]
    for key in ("loss", "gradient"):
        torch.testing.assert_close(
            torch.tensor(fast[key]), torch.tensor(slow[key]), rtol=1e-3, atol=1e-7
        )
    return {
        "items": items,
        "classes": classes,
        "times_as_fast": slow["seconds"] / fast["seconds"],
        "times_less_processor": slow["processor_seconds"] / fast["processor_seconds"],
        "times_less_memory": slow["extra_mb"] / fast["extra_mb"],
        "goal": GOAL,
        "implementations": found,
        "machine": f"{platform.system()} {platform.machine()}",
        "torch": torch.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }


def report(result: dict[str, Any]) -> None:
    print(f"all pairs of {result['items']} items, {result['classes']} classes, with gradients")
    for name, row in result["implementations"].items():
        print(f"  {name:<15} {1000 * row['seconds']:9.1f} ms {row['extra_mb']:9.1f} MB extra")
    for key, what in (
        ("times_as_fast", "as fast"),
        ("times_less_processor", "less processor time"),
        ("times_less_memory", "less memory"),
    ):
        reached = "reached" if result[key] >= GOAL else "NOT reached"
        print(f"  {result[key]:5.1f} times {what:<19} (goal {GOAL:.0f}: {reached})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--measure", choices=LOSSES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.items, options.classes)))
        return
    result = compare(options.items, options.classes)
    runs = json.loads(RESULTS.read_text())["runs"] if RESULTS.is_file() else []
    write_json(RESULTS, {"benchmark": "pairwise_loss", "runs": [*runs, result]})
    report(result)


if __name__ == "__main__":
    main()
