"""The tables in a minute: one row a method, one column a data set, noise .2 / .4 / .6 in a cell.

Blocks: the paper's methods as it wrote them, the same with what we added, the joint objective.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from likewise.experiments import paper
from likewise.experiments.settings import METHOD_TITLES
from likewise.experiments.summary import Summary
from likewise.experiments.tables import Grid

LEVELS = (0.2, 0.4, 0.6)
DATA = ("MNIST", "CIFAR-10", "CIFAR-100")
_PAIRWISE = ("kcl", "mcl", "mns_estimated", "mns_true")


@dataclass(frozen=True)
class Block:
    """Rows that were made in one way."""

    title: str  # how
    tables: tuple[str, ...]  # of each data set, in the order of DATA
    methods: tuple[str, ...]  # a row each
    published: bool = False  # the paper's own numbers, not ours


_TABLES = ("table1", "table2", "table3")
BLOCKS = (
    Block("the paper's numbers", _TABLES, _PAIRWISE, published=True),
    Block("as published, run here", ("paper1", "paper2", "paper3"), _PAIRWISE),
    Block("ours, pairwise", _TABLES, _PAIRWISE),
    Block("ours, joint", _TABLES, ("joint",)),
    Block("ours, joint, ResNet-18", ("", "larger", "larger100"), ("joint",)),
)


def overview_grid(summaries: Sequence[Summary]) -> Grid:
    """A header, then the rows for which there is anything."""
    found = {(s.table, s.method, s.noise): s for s in summaries if s.noise_kind == "symmetric"}
    grid = [["", "", *(f"{name} .2 / .4 / .6" for name in DATA)]]
    for block in BLOCKS:
        title = block.title
        for method in block.methods:
            cells = [_cell(found, table, method, block.published) for table in block.tables]
            if any(any(c.isdigit() for c in cell) for cell in cells):
                grid.append([title, METHOD_TITLES[method], *cells])
                title = ""
    return grid


def _cell(
    found: dict[tuple[str, str, float | None], Summary], table: str, method: str, published: bool
) -> str:
    figures = []
    for level in LEVELS:
        if published:
            reported = paper.reported(table, method, level)
            mean = None if reported is None else reported.mean
        else:
            summary = found.get((table, method, level))
            mean = None if summary is None else summary.mean
        figures.append("–" if mean is None else f"{100 * mean:.1f}")
    return " / ".join(figures) if set(figures) != {"–"} else "–"
