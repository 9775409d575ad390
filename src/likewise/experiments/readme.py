"""The tables in the README, rendered between markers from the collected results."""

from __future__ import annotations

import re
from collections.abc import Sequence

from likewise.errors import InputError
from likewise.experiments.summary import Summary
from likewise.experiments.tables import (
    ERROR_LEGEND,
    LEGEND,
    accuracy_grid,
    by_table,
    error_grid,
    markdown_table,
    title,
)

_BLOCK = re.compile(r"(<!-- results:(\w+) -->\n)(.*?)(<!-- /results -->)", re.DOTALL)


def fill(text: str, summaries: Sequence[Summary]) -> str:
    """``text`` with what stands between ``<!-- results:NAME -->`` and ``<!-- /results -->`` anew.

    NAME is a table (``table1``), its errors of T (``table1_errors``) or ``legend``.
    """
    groups = by_table(summaries)

    def block(match: re.Match[str]) -> str:
        return match[1] + _content(match[2], groups) + "\n" + match[4]

    return _BLOCK.sub(block, text)


def _content(name: str, groups: dict[str, list[Summary]]) -> str:
    if name == "legend":
        return f"{LEGEND} {ERROR_LEGEND}"
    table = name.removesuffix("_errors")
    if table not in groups:
        raise InputError(
            f"the results marker {name!r} names no collected table; there are {', '.join(groups)}."
        )
    group = groups[table]
    if name != table:
        return markdown_table(error_grid(group))
    return f"**{title(table, group)}**\n\n{markdown_table(accuracy_grid(group))}"
