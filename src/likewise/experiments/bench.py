"""Training speed on a GPU, as ratios measured in one run (``likewise bench --gpu``).

For each network of the paper, at the paper's batch size and with the MNS loss: a plain eager loop
with a DataLoader (best number of workers), this library's captured step, and several runs side by
side. Beside each, the arithmetic and the bytes of a step against ceilings measured on the spot.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, Dataset
from torch.utils.flop_counter import FlopCounterMode

from likewise import functional
from likewise.io.atomic import write_json
from likewise.io.json import Record
from likewise.io.npy import Array
from likewise.nn.model import InputLayer, Model
from likewise.nn.networks import build_network
from likewise.noise import symmetric
from likewise.pairs import Pairs
from likewise.training.devices import fastest_convolutions
from likewise.training.objectives.pairwise import CompletePairwise, PairwiseLoss
from likewise.training.recipe import PAPER, Recipe
from likewise.training.run import TrainingRun


@dataclass(frozen=True)
class Case:
    """One network at the paper's settings."""

    network: str  # its name
    shape: tuple[int, ...]  # of one item
    n_classes: int  # outputs
    n_items: int = 20_000  # items on the device

    def items(self, rng: np.random.Generator) -> NDArray[np.uint8]:
        return rng.integers(256, size=(self.n_items, *self.shape), dtype=np.uint8)


CASES = (
    Case("lenet", (28, 28), 10),
    Case("resnet32", (32, 32, 3), 10),
    Case("vgg8", (32, 32, 3), 100),
)
WORKERS = (0, 8, 14)


def bench_gpu(seconds: float = 2.0, concurrency: tuple[int, ...] = (8, 16)) -> list[Record]:
    """A row for each network: images a second, ratios, and the share of both ceilings."""
    device = torch.device("cuda")
    flops_ceiling, bytes_ceiling = matrix_rate(device), copy_bandwidth(device)
    rows = []
    for case in CASES:
        rng = np.random.default_rng(0)
        items, labels = case.items(rng), rng.integers(case.n_classes, size=case.n_items)
        with fastest_convolutions():  # as the captured step has them
            plain = {w: plain_rate(case, items, labels, w, seconds, device) for w in WORKERS}
        workers = max(plain, key=lambda w: plain[w])
        alone = concurrent_rate(case, items, labels, 1, seconds, device)
        beside = {k: concurrent_rate(case, items, labels, k, seconds, device) for k in concurrency}
        best = max(alone, *beside.values())
        flops, moved = step_cost(case, items, labels, device)
        batch = PAPER[case.network].items_per_step
        rows.append(
            {
                "network": case.network,
                "batch": batch,
                "plain": plain[workers],
                "plain_workers": workers,
                "captured": alone,
                "ratio": alone / plain[workers],
                "concurrency": {str(k): v for k, v in beside.items()},
                "best_ratio": best / plain[workers],
                "flop_share": best / batch * flops / flops_ceiling,
                "byte_share": best / batch * moved / bytes_ceiling,
                "bf16_tflops": flops_ceiling / 1e12,
                "copy_tbytes": bytes_ceiling / 1e12,
                "device": torch.cuda.get_device_name(device),
            }
        )
    return rows


def append_run(path: Path, rows: list[Record]) -> None:
    """Add a run, with its date and versions, to those that a JSON file holds."""
    before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    date = datetime.now(UTC).isoformat(timespec="seconds")
    write_json(path, [*before, {"date": date, "torch": torch.__version__, "rows": rows}])


def make_run(
    case: Case,
    items: Array,
    labels: Array,
    device: torch.device,
    *,
    capture: bool | None = None,
    compile: bool = False,
) -> TrainingRun:
    """A run of MNS as `fit` would make it."""
    channels = case.shape[2] if len(case.shape) == 3 else 1
    network = build_network(case.network, (channels, *case.shape[:2]), case.n_classes)
    transition = torch.as_tensor(symmetric(case.n_classes, 0.4), dtype=torch.float32).to(device)
    held = min(1000, case.n_items // 4)
    objective = CompletePairwise(
        PairwiseLoss("mns", transition, compile=compile),
        Pairs.from_labels(labels[held:]),
        Pairs.from_labels(labels[:held]),
        device,
    )
    recipe = PAPER[case.network].with_(epochs=10_000, compile=compile)
    model = Model(InputLayer.fit(items), network)
    return TrainingRun(
        model, items[held:], items[:held], objective, recipe, device=device, capture=capture
    )


def concurrent_rate(
    case: Case, items: Array, labels: Array, concurrency: int, seconds: float,
    device: torch.device, compile: bool = False,
) -> float:  # fmt: skip
    """Images a second of all runs together."""
    runs = [make_run(case, items, labels, device, compile=compile) for _ in range(concurrency)]
    for run in runs:
        with run.on_stream():
            run.begin_epoch()
    return rate_of(runs, seconds)


def rate_of(runs: list[TrainingRun], seconds: float) -> float:
    """Images a second of runs side by side, whose epochs have begun."""
    steps = runs[0].steps_per_epoch

    def epoch() -> None:
        for run in runs:
            with run.on_stream():
                run.counter.begin_epoch()
        for _ in range(steps):
            for run in runs:
                with run.on_stream():
                    run.step()

    return _rounds(epoch, seconds) * steps * sum(run.batches.size for run in runs)


class _Images(Dataset[tuple[Tensor, int]]):
    """Images one by one with crop and flip, as a plain loop has them."""

    def __init__(self, items: Array, labels: Array, recipe: Recipe) -> None:
        self.items, self.labels, self.recipe = torch.from_numpy(items), labels, recipe

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.items[index].float().div(255)
        image = image[None] if image.ndim == 2 else image.permute(2, 0, 1)
        pad, (height, width) = self.recipe.shift, image.shape[1:]
        if pad:
            image = torch.nn.functional.pad(image[None], (pad,) * 4, mode="reflect")[0]
            top, left = (int(torch.randint(2 * pad + 1, ())) for _ in range(2))
            image = image[:, top : top + height, left : left + width]
        if self.recipe.flip and torch.rand(()) < 0.5:
            image = image.flip(2)
        return (image - 0.5) / 0.25, int(self.labels[index])


def plain_rate(
    case: Case, items: Array, labels: Array, workers: int, seconds: float,
    device: torch.device,
) -> float:  # fmt: skip
    """Images a second of the loop that everybody writes first: DataLoader, forward, loss, step."""
    recipe = PAPER[case.network]
    channels = case.shape[2] if len(case.shape) == 3 else 1
    network = build_network(case.network, (channels, *case.shape[:2]), case.n_classes).to(device)
    transition = torch.as_tensor(symmetric(case.n_classes, 0.4), dtype=torch.float32).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=recipe.lr)
    loader = DataLoader(
        _Images(items, labels, recipe), recipe.items_per_step, shuffle=True, drop_last=True,
        num_workers=workers, pin_memory=True, persistent_workers=workers > 0,
    )  # fmt: skip
    images, start = 0, 0.0
    while True:
        for position, (x, z) in enumerate(loader):
            x, z = x.to(device, non_blocking=True), z.to(device, non_blocking=True)
            p = network(x).softmax(dim=1)
            loss = functional.mns_loss(p, transition, z[:, None] == z)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if start == 0.0 and position == 4:  # workers and kernels are warm
                torch.cuda.synchronize(device)
                start = time.perf_counter()
            elif start:
                images += len(x)
                if time.perf_counter() - start > seconds:
                    torch.cuda.synchronize(device)
                    return images / (time.perf_counter() - start)


class _CountBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up the bytes that each operation reads and writes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if not func.is_view:
            for value in (*_flat(args), *_flat((kwargs or {}).values()), *_flat([out])):
                self.total += value.numel() * value.element_size()
        return out


def _flat(values: Any) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += _flat(value)
    return found


def step_cost(case: Case, items: Array, labels: Array, device: torch.device) -> tuple[float, float]:
    """(floating-point operations, bytes read and written by its operations) of one step."""
    run = make_run(case, items, labels, device, capture=False)
    run.begin_epoch()
    run.step()
    run.counter.begin_epoch()
    with FlopCounterMode(display=False) as flops:
        run.step()
    run.counter.begin_epoch()
    with _CountBytes() as moved:
        run.step()
    return float(flops.get_total_flops()), float(moved.total)


def matrix_rate(device: torch.device, size: int = 8192) -> float:
    """Operations a second of a large bfloat16 matrix product."""
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    return _rounds(lambda: torch.mm(a, b), 0.3) * 2 * size**3


def copy_bandwidth(device: torch.device, size: int = 2**31) -> float:
    """Bytes a second, read and written, of a large copy on the device."""
    source = torch.randint(256, (size,), device=device, dtype=torch.uint8)
    target = torch.empty_like(source)
    return _rounds(lambda: target.copy_(source), 0.3) * 2 * size


def _rounds(work: Callable[[], object], seconds: float) -> float:
    """Calls a second, over at least ``seconds`` after a warm-up, the device having finished."""
    work()
    torch.cuda.synchronize()
    start, count = time.perf_counter(), 0
    while True:
        work()
        count += 1
        torch.cuda.synchronize()
        if (passed := time.perf_counter() - start) > seconds:
            return count / passed
