"""``likewise reproduce``: the paper's tables and figures from one call."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from likewise.datasets import Dataset, load
from likewise.datasets.dataset import data_root
from likewise.errors import InputError
from likewise.experiments.cluster import CellCommand, Cluster
from likewise.experiments.figures import write_figures
from likewise.experiments.grid import run_table, unfinished
from likewise.experiments.settings import TABLES, TableSettings, load_settings
from likewise.experiments.store import Result, load_results, write_collected
from likewise.experiments.summary import Summary, summarise
from likewise.experiments.tables import render
from likewise.io.atomic import write_text
from likewise.training.devices import choose_device

TARGETS = (*TABLES, "figures", "all")


def reproduce(
    target: str | Path,
    data: str | Path | None,
    out: str | Path,
    *,
    trials: int | None = None,
    trial: int | None = None,
    noise: Sequence[float | str] | None = None,
    methods: Sequence[str] | None = None,
    epochs: int | None = None,
    quick: bool = False,
    jobs: int = 1,
    device: str = "auto",
    cluster: Cluster | None = None,
    report: Callable[[Result], None] | None = None,
    tell: Callable[[str], None] | None = None,
) -> list[Summary]:
    """Run (or go on with) a table, write its files under ``out``, and return its summaries.

    ``target`` is a table's name or a settings file (TOML), "figures" (drawn from what was already
    run), or "all". ``data`` is the folder of the data sets (default: LIKEWISE_DATA); ``trials``,
    ``noise``, ``methods`` and ``epochs`` cut a table down, and ``quick`` is a smoke run of minutes.
    ``trial`` is one trial alone. With ``cluster``, cells are jobs there, not ``jobs`` at a time
    here. ``report`` is told of each cell that ends; ``tell`` is given messages ("all" leaves out
    tables whose data is not there, and says so).
    """
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"the output {folder} is a file; give a folder.")
    if jobs < 1:
        raise InputError(f"jobs must be at least 1, but is {jobs}.")
    if target != "figures":
        chosen = _devices(device)
        for settings, dataset in _tables(target, data, tell):
            smaller = settings.cut(
                trials=trials,
                trial=trial,
                noise=_listed(noise),
                methods=_listed(methods),
                epochs=epochs,
                quick=quick,
            )
            if cluster is None:
                run_table(smaller, dataset, folder, devices=chosen, jobs=jobs, report=report)
                continue
            target_of = settings.table if target == "all" else str(target)
            command = CellCommand(target_of, _given(data), folder, epochs, quick, device)
            cluster.run(smaller, command, report, tell or (lambda _: None))
    return write_outputs(folder, figures=target in ("figures", "all"))


def list_commands(
    target: str | Path,
    command: CellCommand,
    *,
    trials: int | None = None,
    trial: int | None = None,
    noise: Sequence[float | str] | None = None,
    methods: Sequence[str] | None = None,
) -> list[list[str]]:
    """The arguments of ``likewise`` for each chain of cells that is not finished, for a scheduler.

    MNS goes on from what MCL learned: these cells are one command.
    """
    if target == "figures":
        raise InputError("figures are drawn from finished runs, not run: there is no list of them.")
    found = []
    for table in TABLES if target == "all" else [target]:
        smaller = load_settings(table).cut(
            trials=trials,
            trial=trial,
            noise=_listed(noise),
            methods=_listed(methods),
            epochs=command.epochs,
            quick=command.quick,
        )
        own = dataclasses.replace(command, target=str(table))
        found += [own.of(chain) for chain in unfinished(smaller, command.out)]
    return found


def write_outputs(folder: Path, figures: bool = False) -> list[Summary]:
    """Tables (Markdown, LaTeX, CSV) and, if asked for, figures from the finished runs."""
    results = load_results(folder)
    if not results:
        raise InputError(f"there are no finished runs in {folder}: reproduce a table first.")
    summaries = summarise(results)
    write_collected(results, folder)
    for style, suffix in (("markdown", "md"), ("latex", "tex"), ("csv", "csv")):
        write_text(folder / f"summary.{suffix}", render(summaries, style))
    if figures:
        write_figures(results, folder / "figures")
    return summaries


def _tables(
    target: str | Path, data: str | Path | None, tell: Callable[[str], None] | None
) -> Iterator[tuple[TableSettings, Dataset]]:
    """The settings and data of the tables that were asked for."""
    if target != "all":
        settings = load_settings(target)
        yield settings, load(settings.dataset, data)
        return
    for table in TABLES:
        settings = load_settings(table)
        try:
            dataset = load(settings.dataset, data_root(data))
        except InputError as error:
            if tell is not None:
                tell(f"{table} is left out: {error}")
            continue
        yield settings, dataset


def _given(data: str | Path | None) -> Path | None:
    return None if data is None else Path(data)


def _listed(values: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """Values one by one, whether they came as ``["a", "b"]`` or as ``["a,b"]``."""
    if values is None:
        return None
    parts = [v.split(",") if isinstance(v, str) else [v] for v in values]
    return tuple(p.strip() if isinstance(p, str) else p for part in parts for p in part)


def _devices(device: str) -> list[torch.device]:
    """The devices to spread over: every GPU for "auto" and "cuda", else the one that was named."""
    first = choose_device(device)
    if str(first) == "cuda":
        return [torch.device("cuda", k) for k in range(torch.cuda.device_count())]
    return [first]
