"""One self-contained HTML page about a run, from its saved results alone.

The data's way: `contents` (what the run holds) -> `findings` (what it means, in words), `figures`
(where things lie in a drawing), `scatter` and `pictures` (packed for the browser) -> `page` (the
template filled in). Python computes, the templates draw, and every string is escaped by them.
"""

from __future__ import annotations

from likewise.report.page import render_report

__all__ = ["render_report"]
