"""The tables in the documentation, rendered between markers from the collected results."""

from __future__ import annotations

import re
from collections.abc import Sequence

from likewise.errors import InputError
from likewise.experiments.overview import overview_grid
from likewise.experiments.settings import load_settings
from likewise.experiments.summary import Summary
from likewise.experiments.tables import (
    ERROR_LEGEND,
    LEGEND,
    Grid,
    accuracy_grid,
    by_table,
    error_grid,
    markdown_table,
    title,
)

_BLOCK = re.compile(r"(<!-- results:([\w+]+) -->\n)(.*?)(<!-- /results -->)", re.DOTALL)


def fill(text: str, summaries: Sequence[Summary]) -> str:
    """``text`` with what stands between ``<!-- results:NAME -->`` and ``<!-- /results -->`` anew.

    NAME is a table (``table1``), its errors of T (``table1_errors``), ``overview`` or ``legend``;
    ``table2+larger`` is table2 with the rows of another one below, named by what its title adds.
    """
    groups = by_table(summaries)

    def block(match: re.Match[str]) -> str:
        return match[1] + _content(match[2], groups) + "\n" + match[4]

    return _BLOCK.sub(block, text)


def _content(name: str, groups: dict[str, list[Summary]]) -> str:
    if name == "overview":
        return markdown_table(overview_grid([s for group in groups.values() for s in group]))
    if name == "legend":
        return f"{LEGEND} {ERROR_LEGEND}"
    table, *others = name.removesuffix("_errors").split("+")
    for wanted in (table, *others):
        if wanted not in groups:
            raise InputError(
                f"the results marker {name!r} names no collected table; there are "
                f"{', '.join(groups)}."
            )
    group = groups[table]
    if name.endswith("_errors"):
        return markdown_table(error_grid(group))
    grid = accuracy_grid(group)
    for other in others:
        grid += _rows_below(grid[0], other, groups[other])
    return f"**{title(table, group)}**\n\n{markdown_table(grid)}"


def _rows_below(header: list[str], table: str, group: Sequence[Summary]) -> Grid:
    """The rows of another table in the columns of a first one, as ``joint, ResNet-18``."""
    own = accuracy_grid(group)
    if unknown := sorted(set(own[0]) - set(header)):
        raise InputError(f"{table} has a noise {unknown[0]} that the table above it has not.")
    _, _, what = load_settings(table).title.partition(", ")
    return [
        [f"{row[0]}, {what}", *(dict(zip(own[0], row)).get(level, "–") for level in header[1:])]
        for row in own[1:]
    ]
