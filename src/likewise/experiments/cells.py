"""Cells of a table: what is run, what must be run before it, and what is already done."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from likewise.experiments.settings import TableSettings
from likewise.io.json import Record

_STAGE_TWO = ("mns_estimated", "mns_true")


@dataclass(frozen=True)
class Cell:
    """One training run of a table.

    ``noise`` is the rate of synthetic noise; None where the noise is the data set's own, whose
    source ``noise_kind`` then names.
    """

    table: str  # which table it belongs to
    dataset: str  # by name
    network: str  # by name
    noise_kind: str  # symmetric, pair_flip, or a real source
    noise: float | None  # rate of synthetic noise, else None
    method: str  # a name of METHODS
    trial: int  # which repetition, and its seed

    @property
    def name(self) -> str:
        """A folder name, unique within the table."""
        noise = self.noise_kind if self.noise is None else f"{self.noise_kind}-{self.noise:g}"
        return f"{noise}-{self.method}-{self.trial}"

    def folder(self, out: Path) -> Path:
        return out / self.table / self.name

    def stage_one(self) -> Cell | None:
        """The cell that this one goes on from: MNS starts from what MCL learned."""
        return dataclasses.replace(self, method="mcl") if self.method in _STAGE_TWO else None

    def to_dict(self) -> Record:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Record) -> Cell:
        return cls(**{f.name: values[f.name] for f in dataclasses.fields(cls)})


def plan(settings: TableSettings) -> list[list[Cell]]:
    """All cells of a table as chains: the cells of a chain run one after the other.

    A chain is one cell, or MCL followed by the MNS that needs it. MCL is planned with MNS even
    where it was not asked for: it is its first stage.
    """
    levels: list[tuple[str, float | None]] = (
        [(settings.noise_kind[0], rate) for rate in settings.noise]
        if settings.is_synthetic
        else [(kind, None) for kind in settings.noise_kind]
    )
    about = (settings.table, settings.dataset, settings.network_title)
    return [
        [Cell(*about, kind, noise, method, trial) for method in methods]
        for trial, (kind, noise) in product(range(settings.first_trial, settings.trials), levels)
        for methods in _chains(settings.methods)
    ]


def _chains(methods: tuple[str, ...]) -> list[list[str]]:
    second = [method for method in _STAGE_TWO if method in methods]
    if not second:
        return [[method] for method in methods]
    staged = ["mcl", *second]
    return [staged, *([method] for method in methods if method not in staged)]
