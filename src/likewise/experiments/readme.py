"""The tables in the documentation, rendered between markers from the collected results."""

from __future__ import annotations

import re
from collections.abc import Sequence

from likewise.errors import InputError
from likewise.experiments.overview import overview_grid
from likewise.experiments.summary import Summary
from likewise.experiments.tables import (
    ERROR_LEGEND,
    LEGEND,
    accuracy_grid,
    by_table,
    error_grid,
    made_by,
    markdown_table,
    title,
)

_BLOCK = re.compile(r"(<!-- results:([\w.]+) -->\n)(.*?)(<!-- /results -->)", re.DOTALL)


def fill(text: str, summaries: Sequence[Summary]) -> str:
    """``text`` with what stands between ``<!-- results:NAME -->`` and ``<!-- /results -->`` anew.

    NAME is a table (``table1``), its errors of T (``table1_errors``), ``overview`` or ``legend``;
    ``table2.joint`` has the joint objective's rows only, ``table2.pairwise`` the others.
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
    group = _rows(name.removesuffix("_errors"), groups)
    if name.endswith("_errors"):
        return markdown_table(error_grid(group))
    return "\n\n".join(_one_table(rows) for rows in _by_commits(group))


def _one_table(rows: list[Summary]) -> str:
    heading = ", ".join(filter(None, [title(rows[0].table, rows), made_by(rows)]))
    return f"**{heading}**\n\n{markdown_table(accuracy_grid(rows))}"


def _by_commits(rows: list[Summary]) -> list[list[Summary]]:
    """Rows that the same code made, together: rows of different code are not to be compared."""
    found: dict[tuple[str, ...], list[Summary]] = {}
    for row in rows:
        found.setdefault(row.commits, []).append(row)
    return list(found.values())


def _rows(name: str, groups: dict[str, list[Summary]]) -> list[Summary]:
    """Of a table, or of one of its two blocks of methods."""
    table, _, block = name.partition(".")
    if table not in groups or block not in ("", "joint", "pairwise"):
        raise InputError(
            f"the results marker {name!r} names no collected table; there are {', '.join(groups)}, "
            "and of each .joint and .pairwise."
        )
    return [s for s in groups[table] if not block or (s.method == "joint") == (block == "joint")]
