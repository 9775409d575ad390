"""Running the cells of a table: skipping finished ones, several at once, on one device or more.

The folder of runs is the only state. A cell is finished when its ``result.json`` is there, which is
moved into place last; a killed run leaves its finished cells, and the next one goes on from them.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

import torch
from torch import Tensor, nn

from likewise.datasets import Dataset
from likewise.errors import InputError
from likewise.experiments.cells import Cell, plan
from likewise.experiments.pretrain import Contrast, stored_body
from likewise.experiments.problem import Problems
from likewise.experiments.programs import Outcome, chain_program
from likewise.experiments.settings import TableSettings
from likewise.experiments.store import Result, load_result, save_result
from likewise.io.atomic import replacing
from likewise.io.json import Record
from likewise.io.provenance import provenance
from likewise.training.checkpoints import Checkpoints, digest_of
from likewise.training.scheduler import Program, interleave, named, run_program

CHECKPOINT_SECONDS = 60.0  # at most so much of a cell's training is lost by a kill
Chain = list[Cell]
Report = Callable[[Result], None]


def cell_settings(settings: TableSettings, cell: Cell) -> Record:
    """What decides a cell's result besides its name; stored with it and compared on resuming."""
    return {
        "recipe": settings.recipe(cell.method).to_dict(),
        "held_out": settings.held_out,
        "items": settings.items,
        "pretrained": settings.pretrained,
        "contrast": settings.contrast,
        "estimator": settings.estimator if cell.method == "mns_estimated" else None,
        "as_published": settings.as_published,
    }


def unfinished(settings: TableSettings, out: Path) -> list[Chain]:
    """The chains of a table with the cells that are still to be run."""
    left = []
    for chain in plan(settings):
        todo = [c for c in chain if load_result(out, c, cell_settings(settings, c)) is None]
        if todo:
            left.append(todo)
    return left


def run_table(
    settings: TableSettings,
    dataset: Dataset,
    out: Path,
    *,
    devices: Sequence[torch.device],
    jobs: int = 1,
    report: Report | None = None,
) -> None:
    """Run what is unfinished of a table: ``jobs`` cells at once, spread over the devices.

    On a GPU cells share it as interleaved programs of one process; on the CPU each takes a process
    of its own.
    """
    chains = unfinished(settings, out)
    _forget_finished(settings, chains, out)
    if chains:
        pretrained_body(settings, dataset, out, devices[0])  # once, before workers ask for it
    gpu = devices[0].type == "cuda"
    workers = len(devices) if gpu else min(jobs, max(1, len(chains)))
    concurrency = max(1, -(-jobs // workers)) if gpu else 1
    if workers == 1:
        run_chains(chains, settings, dataset, out, devices[0], concurrency, report)
        return
    threads = 0 if gpu else max(1, torch.get_num_threads() // workers)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        parts = []
        for k in range(workers):
            share, device = chains[k::workers], devices[k % len(devices)]
            parts.append(
                pool.submit(_work, share, settings, dataset, out, device, concurrency, threads)
            )
        _watch(parts, [cell for chain in chains for cell in chain], out, report)


def _forget_finished(settings: TableSettings, left: Sequence[Chain], out: Path) -> None:
    """Remove checkpoints that a kill left behind although the result of their cell was stored."""
    checkpoints = Checkpoints(_checkpoint_folder(settings, out))
    unfinished_cells = {cell for chain in left for cell in chain}
    for chain in plan(settings):
        for cell in chain:
            if cell not in unfinished_cells:
                checkpoints.forget(cell.name)


def _checkpoint_folder(settings: TableSettings, out: Path) -> Path:
    return out / settings.table / "checkpoints"


def run_chains(
    chains: Sequence[Chain],
    settings: TableSettings,
    dataset: Dataset,
    out: Path,
    device: torch.device,
    concurrency: int = 1,
    report: Report | None = None,
) -> None:
    """Run chains in this process, ``concurrency`` of them side by side."""
    checkpoints = Checkpoints(
        _checkpoint_folder(settings, out),
        {
            "dataset": dataset.name,
            "items' digest": digest_of(dataset.train_x),
            "estimator": settings.estimator,
            "held_out": settings.held_out,
        },
        every_seconds=CHECKPOINT_SECONDS,
    )
    programs = chain_programs(
        chains, settings, dataset, out, device, concurrency, report, checkpoints
    )
    if concurrency == 1:
        for program in programs:
            run_program(program, checkpoints=checkpoints)
    else:
        interleave(programs, concurrency, checkpoints=checkpoints)


def chain_programs(
    chains: Sequence[Chain],
    settings: TableSettings,
    dataset: Dataset,
    out: Path,
    device: torch.device,
    concurrency: int = 1,
    report: Report | None = None,
    checkpoints: Checkpoints | None = None,
) -> Iterator[Program[None]]:
    """Programs that train the cells of each chain and store their results."""
    made_by = provenance(device) | {"concurrency": concurrency}
    problems = Problems(dataset, settings, device, pretrained_body(settings, dataset, out, device))

    def finished(outcome: Outcome) -> None:
        result = outcome.result | made_by
        if outcome.cell.method == "mcl":
            save_weights(outcome.fitted.model, outcome.cell.folder(out))
        options = cell_settings(settings, outcome.cell)
        save_result(out, outcome.cell, result, options, outcome.fitted.history)
        if checkpoints is not None:
            checkpoints.forget(outcome.cell.name)
        if report is not None:
            report(outcome.cell.to_dict() | result)

    def program(chain: Chain) -> Program[None]:
        before = chain[0].stage_one()
        weights = None if before is None else load_weights(before.folder(out))
        cells = chain_program(chain, problems, settings, finished, weights)
        return named(cells, (cell.name for cell in chain))

    return (program(chain) for chain in chains)


def pretrained_body(
    settings: TableSettings, dataset: Dataset, out: Path, device: torch.device
) -> dict[str, Tensor] | None:
    """Weights learned from the images alone, where the settings ask for them."""
    if settings.pretrained != "self":
        return None
    try:
        contrast = Contrast(**settings.contrast)
    except TypeError as error:
        raise InputError(f"{settings.table}: wrong [contrast] settings: {error}.") from error
    return stored_body(out / "pretrained", dataset, settings.network, device, contrast)


def run_cell(
    cell: Cell, settings: TableSettings, dataset: Dataset, device: torch.device, out: Path
) -> Result:
    """Run one cell (and the stage before it, if that is unfinished); its result."""
    chain = [c for c in (cell.stage_one(), cell) if c is not None]
    todo = [c for c in chain if load_result(out, c, cell_settings(settings, c)) is None]
    run_chains([todo] if todo else [], settings, dataset, out, device)
    result = load_result(out, cell)
    assert result is not None
    return result


def _work(
    chains: list[Chain],
    settings: TableSettings,
    dataset: Dataset,
    out: Path,
    device: torch.device,
    concurrency: int,
    threads: int,
) -> None:
    """One worker process's share."""
    if threads:
        torch.set_num_threads(threads)
    run_chains(chains, settings, dataset, out, device, concurrency)


def _watch(parts: list[Future[None]], cells: list[Cell], out: Path, report: Report | None) -> None:
    """Report cells as the workers finish them, and raise what a worker raised."""
    waiting = list(cells)
    while True:
        ended = all(part.done() for part in parts)
        for cell in list(waiting):
            result = load_result(out, cell)
            if result is not None:
                waiting.remove(cell)
                if report is not None:
                    report(result)
        failed = next((p for p in parts if p.done() and p.exception() is not None), None)
        if failed is not None:
            for part in parts:
                part.cancel()
            failed.result()
        if ended:
            return
        time.sleep(0.5)


def save_weights(model: nn.Module, folder: Path) -> None:
    """The weights of a cell that another goes on from."""
    from safetensors.torch import save_file

    state = {name: t.detach().cpu().contiguous() for name, t in model.state_dict().items()}
    with replacing(folder / "model.safetensors") as temporary:
        save_file(state, temporary)


def load_weights(folder: Path) -> dict[str, Tensor] | None:
    """Weights that `save_weights` wrote, or None."""
    from safetensors.torch import load_file

    path = folder / "model.safetensors"
    return load_file(path) if path.is_file() else None
