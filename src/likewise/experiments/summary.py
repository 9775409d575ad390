"""Means over trials beside the paper's, and whether they lie within its spread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.experiments import paper
from likewise.experiments.settings import METHODS, TABLES
from likewise.io.json import Record

Key = tuple[str, str, float | None, str]


@dataclass(frozen=True)
class Summary:
    """The trials of one cell of a table; accuracies are fractions, None where there is nothing."""

    table: str  # of which table
    noise_kind: str  # symmetric, pair_flip, or a real source
    noise: float | None  # rate of synthetic noise, else None
    method: str  # a name of METHODS
    trials: int  # how many there are
    mean: float  # accuracy in percent
    deviation: float | None  # over trials (n - 1); None for one trial
    collapsed: int  # trials in which some class was never predicted
    transition_error: float | None  # mean over trials, where T is known
    gram_error: float | None  # the same of TT'
    paper: paper.Reported | None  # what the paper reports, if it does
    paper_transition_error: float | None  # the same of T
    commits: tuple[str, ...] = ()  # of the code that made the trials

    @property
    def difference(self) -> float | None:
        return None if self.paper is None else self.mean - self.paper.mean

    @property
    def verdict(self) -> str:
        """ "above", "within" or "below" the paper's mean plus and minus its deviation, or ""."""
        if self.paper is None or self.difference is None:
            return ""
        spread = self.paper.deviation or 0.0
        if abs(self.difference) <= spread:
            return "within"
        return "above" if self.difference > 0 else "below"

    @property
    def reaches_paper(self) -> bool | None:
        """At or above the paper's mean minus its deviation."""
        return None if self.paper is None else self.verdict != "below"


def summarise(results: Iterable[Record]) -> list[Summary]:
    """One summary for each (table, noise, method), in the paper's order."""
    groups: dict[Key, list[Record]] = defaultdict(list)
    for r in results:
        groups[r["table"], r["noise_kind"], r["noise"], r["method"]].append(r)
    return [_summary(key, groups[key]) for key in sorted(groups, key=_paper_order)]


def _paper_order(key: Key) -> tuple[Any, ...]:
    table, kind, noise, method = key
    place = TABLES.index(table) if table in TABLES else len(TABLES)
    return (place, table, METHODS.index(method), kind, -1.0 if noise is None else noise)


def _summary(key: Key, trials: Sequence[Record]) -> Summary:
    table, kind, noise, method = key
    accuracy = np.array([t["accuracy"] for t in trials], float)
    return Summary(
        *(table, kind, noise, method),
        trials=len(trials),
        mean=float(accuracy.mean()),
        deviation=float(accuracy.std(ddof=1)) if len(trials) > 1 else None,
        collapsed=sum(t["classes_used"] < t["n_classes"] for t in trials),
        transition_error=_mean_of(trials, "transition_error"),
        gram_error=_mean_of(trials, "gram_error"),
        paper=paper.reported(table, method, noise),
        paper_transition_error=paper.reported_transition_error(table, method, noise),
        commits=tuple(sorted({str(t["commit"]) for t in trials if t.get("commit")})),
    )


def _mean_of(trials: Sequence[Record], name: str) -> float | None:
    values = [t[name] for t in trials if t.get(name) is not None]
    return float(np.mean(values)) if values else None
