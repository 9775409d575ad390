"""Fits that go the same ways in less time, for tests of what is done and not of how well."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from likewise.inference.em import Options
from likewise.methods.groups import infer_partition
from likewise.training.run import TrainingRun

OPTIONS = partial(Options, rounds=2, epochs=4, final_epochs=4, start_steps=60)
DRAWS = {
    "likewise.inference.partition.fitting.ANNEAL_SWEEPS": 8,
    "likewise.inference.partition.fitting.GIBBS_TURNS": 3,
    "likewise.inference.partition.cell_search.ANNEAL_SWEEPS": 8,
    "likewise.inference.partition.refine.GIBBS_SWEEPS": 20,
    "likewise.inference.partition.refine.N_ROUNDS": 2,
}
FEWER = DRAWS | {
    "likewise.inference.fit.Options": OPTIONS,
    "likewise.inference.selection.trials.ROUNDS": 2,
    "likewise.methods.groups.infer_partition": partial(infer_partition, quick=True),
    "likewise.items.encoders.patches.SAMPLED": 5000,
    "likewise.runs.maps.LANDMARKS": 100,
}


def draw_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search for partitions with fewer repetitions."""
    for name, value in DRAWS.items():
        monkeypatch.setattr(name, value)


def cut_short(monkeypatch: pytest.MonkeyPatch, epochs: int = 2) -> None:
    """A few epochs, two rounds of EM, short searches for groups, maps of few items."""
    begin = TrainingRun.__init__

    def begin_short(run: TrainingRun, *given: Any, **more: Any) -> None:
        *others, recipe = given
        begin(run, *others, recipe.with_(epochs=min(recipe.epochs, epochs)), **more)

    monkeypatch.setattr(TrainingRun, "__init__", begin_short)
    for name, value in FEWER.items():
        monkeypatch.setattr(name, value)
