"""Tables of results as text: terminal, Markdown, LaTeX, CSV; made from summaries alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from likewise.errors import InputError
from likewise.experiments.paper import Reported
from likewise.experiments.settings import METHOD_TITLES, METHODS, TABLES, load_settings
from likewise.experiments.store import to_csv
from likewise.experiments.summary import Summary

MARKS = {"above": "▲", "within": "●", "below": "▼", "": ""}
LEGEND = (
    "Test accuracy in percent under the best matching, mean ± deviation over the trials (n), the "
    "paper's in brackets; ▲ above, ● within, ▼ below the paper's mean ± deviation; "
    "†k: k trials in which some class was never predicted."
)
ERROR_LEGEND = (
    "Error of the estimated T, |T - T̂|₁ / |T|₁ (of T Tᵀ after the slash), mean over the "
    "trials; the paper's in brackets, where it gives one."
)
Grid = list[list[str]]
COMMIT_DIGITS = 7
_LATEX = {"T̂": r"$\hat{T}$", "±": r"$\pm$", "▲": r"$\uparrow$", "●": r"$\cdot$"}
_LATEX |= {"▼": r"$\downarrow$", "†": r"$\dagger$", "T Tᵀ": r"$TT^\top$"}


def render(summaries: Sequence[Summary], style: str = "text") -> str:
    """All tables that the summaries are of, in one of the styles text, markdown, latex or csv."""
    if style not in _STYLES:
        raise InputError(f"there is no table style {style!r}; choose from {', '.join(_STYLES)}.")
    return _STYLES[style](summaries)


def accuracy_grid(summaries: Sequence[Summary]) -> Grid:
    """Rows of text: a header of noise levels, then a row a method."""
    return _grid(summaries, "", accuracy_text)


def error_grid(summaries: Sequence[Summary]) -> Grid:
    """The same for the errors of T; empty where nothing was estimated."""
    estimated = [s for s in summaries if s.transition_error is not None and s.method != "mns_true"]
    return _grid(estimated, "error of T̂", error_text) if estimated else []


def accuracy_text(s: Summary) -> str:
    ours = percent(Reported(s.mean, s.deviation))
    paper = f" ({percent(s.paper)})" if s.paper else ""
    collapsed = f" †{s.collapsed}" if s.collapsed else ""
    mark = f" {MARKS[s.verdict]}" if s.verdict else ""
    return f"{ours}{paper}{mark}{collapsed}"


def error_text(s: Summary) -> str:
    gram = "" if s.gram_error is None else f" / {s.gram_error:.3f}"
    paper = "" if s.paper_transition_error is None else f" ({s.paper_transition_error:.4f})"
    return f"{s.transition_error:.3f}{gram}{paper}"


def percent(figure: Reported) -> str:
    """``98.56 ± 0.07``, or the mean alone where there is no deviation."""
    spread = "" if figure.deviation is None else f" ± {100 * figure.deviation:.2f}"
    return f"{100 * figure.mean:.2f}{spread}"


def title(table: str, summaries: Sequence[Summary]) -> str:
    """``Table 1: MNIST, 5 trials``."""
    trials = sorted({s.trials for s in summaries})
    count = f"{trials[0]}" if len(trials) == 1 else f"{trials[0]} to {trials[-1]}"
    noun = "trial" if trials == [1] else "trials"
    number = f"Table {table[5:6]}: " if table.startswith("table") else ""
    name = load_settings(table).title if table in TABLES else table
    return f"{number}{name}, {count} {noun}"


def made_by(summaries: Sequence[Summary]) -> str:
    """``commit a5313c4``, or all that made a row; "" where none is known."""
    commits = sorted({commit[:COMMIT_DIGITS] for s in summaries for commit in s.commits})
    noun = "commit" if len(commits) == 1 else "commits"
    return f"{noun} {', '.join(commits)}" if commits else ""


def _grid(summaries: Sequence[Summary], corner: str, text: Callable[[Summary], str]) -> Grid:
    levels = list(dict.fromkeys((s.noise_kind, s.noise) for s in summaries))
    levels.sort(key=lambda level: (level[0], -1.0 if level[1] is None else level[1]))
    cells = {(s.method, s.noise_kind, s.noise): text(s) for s in summaries}
    rows = [[corner or "noise", *(kind if rate is None else f"{rate:g}" for kind, rate in levels)]]
    for method in METHODS:
        if any(s.method == method for s in summaries):
            row = [cells.get((method, *level), "–") for level in levels]
            rows.append([METHOD_TITLES[method], *row])
    return rows


def by_table(summaries: Sequence[Summary]) -> dict[str, list[Summary]]:
    groups: dict[str, list[Summary]] = {}
    for s in summaries:
        groups.setdefault(s.table, []).append(s)
    return groups


def markdown_table(grid: Grid) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in grid]
    return "\n".join([lines[0], "|" + "---|" * len(grid[0]), *lines[1:]])


def _markdown(summaries: Sequence[Summary]) -> str:
    parts = []
    for table, group in by_table(summaries).items():
        parts.append(f"**{title(table, group)}**\n\n{markdown_table(accuracy_grid(group))}")
        if errors := error_grid(group):
            parts.append(markdown_table(errors))
    return "\n\n".join([*parts, LEGEND, ERROR_LEGEND]) + "\n"


def _text(summaries: Sequence[Summary]) -> str:
    parts = []
    for table, group in by_table(summaries).items():
        parts.append(f"{title(table, group)}\n{_aligned(accuracy_grid(group))}")
        if errors := error_grid(group):
            parts.append(_aligned(errors))
    return "\n\n".join([*parts, LEGEND]) + "\n"


def _aligned(grid: Grid) -> str:
    # The hat of T̂ is a character of its own that takes no room.
    def width(text: str) -> int:
        return len(text) - text.count("\u0302")

    widths = [max(width(row[j]) for row in grid) for j in range(len(grid[0]))]
    return "\n".join(
        "  ".join(
            cell + " " * (w - width(cell)) for cell, w in zip(row, widths, strict=True)
        ).rstrip()
        for row in grid
    )


def _latex(summaries: Sequence[Summary]) -> str:
    parts = []
    for table, group in by_table(summaries).items():
        grid = accuracy_grid(group)
        rows = [" & ".join(row) + r" \\" for row in grid]
        body = "\n".join([r"\hline", rows[0], r"\hline", *rows[1:], r"\hline"])
        columns = "c|" + "c" * (len(grid[0]) - 1)
        parts.append(
            f"% {title(table, group)}\n\\begin{{tabular}}{{{columns}}}\n{body}\n\\end{{tabular}}"
        )
    text = "\n\n".join(parts) + "\n"
    for plain, command in _LATEX.items():
        text = text.replace(plain, command)
    return text.replace("–", "--")


def _csv(summaries: Sequence[Summary]) -> str:
    rows = []
    for s in summaries:
        row = dataclasses.asdict(s) | {"difference": s.difference, "verdict": s.verdict}
        row["paper_mean"] = s.paper.mean if s.paper else None
        row["paper_deviation"] = s.paper.deviation if s.paper else None
        del row["paper"]
        row["commits"] = " ".join(s.commits)
        rows.append(row)
    return to_csv(rows, list(rows[0])) if rows else ""


_STYLES: dict[str, Callable[[Sequence[Summary]], str]] = {
    "text": _text,
    "markdown": _markdown,
    "latex": _latex,
    "csv": _csv,
}
