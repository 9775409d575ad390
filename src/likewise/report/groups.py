"""Groups from judgements alone as one HTML file that loads nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.io.atomic import write_text
from likewise.io.json import Record
from likewise.methods.groups import Groups
from likewise.report.contents import shorten
from likewise.report.findings import Tile
from likewise.report.page import fill

MAX_GROUPS = 500  # of which the page lists members
MAX_MEMBERS = 60
MAX_PEOPLE = 300
ASKED = 60
SURE = 0.9
# Marks what is looked for in the lists of groups and people; without it all are shown.
SCRIPT = """
for (const field of document.querySelectorAll("input[data-filter]")) {
  field.addEventListener("input", () => {
    const words = field.value.trim().toLowerCase();
    for (const row of document.querySelectorAll("#" + field.dataset.filter + " > *"))
      row.hidden = words !== "" && !row.textContent.toLowerCase().includes(words);
  });
}
"""


@dataclass(frozen=True)
class GroupCard:
    """A group as the page shows it."""

    number: int
    size: int
    sure: float  # mean probability of its items, each given where all others are
    members: list[tuple[str, float]]  # least sure first: those are worth a look
    left_out: int  # members that are not listed


def render_groups(found: Groups, out: str | Path, name: str = "judgements") -> Path:
    """Write a page about groups: sizes, how sure, whose answers, which pairs to ask next."""
    path = Path(out)
    page = fill("groups.html", SCRIPT, context(found, name))
    write_text(path, page.encode("utf-8", "replace").decode("utf-8"))
    return path


def context(found: Groups, name: str) -> Record:
    """Everything the template shows."""
    sizes = found.sizes
    judged = int(sizes.sum())
    people = found.annotators
    asked = found.ask_again(ASKED)
    return {
        "name": shorten(name),
        "headline": (
            f"{found.n_groups:,} groups found in {judged:,} items, "
            f"from {len(found.judgements_proba):,} judgements"
        ),
        "tiles": _tiles(found, judged),
        "bars": _sizes(sizes),
        "cards": _cards(found),
        "groups_left_out": max(found.n_groups - MAX_GROUPS, 0),
        "people": _people(people),
        "people_left_out": max(len(people.get("annotator", [])) - MAX_PEOPLE, 0),
        "asked": [{"left": shorten(a), "right": shorten(b), "probability": p} for a, b, p in asked],
        "never": len(found.labels) - judged,
        "sections": [
            ("glance", "At a glance"),
            ("sizes", "Sizes"),
            ("groups", "Groups"),
            *([("people", "People")] if people else []),
            ("ask", "Ask next"),
        ],
    }


def _tiles(found: Groups, judged: int) -> list[Tile]:
    sure = found.probability[found.labels >= 0]
    alone = int((found.sizes == 1).sum())
    tiles = [
        Tile(f"{found.n_groups:,}", "groups", f"{alone:,} of one item alone"),
        Tile(f"{judged:,}", "items", f"{len(found.pairs):,} pairs of them judged"),
        Tile(f"{int(found.sizes.max(initial=0)):,}", "items in the largest group"),
        Tile(
            f"{float((sure >= SURE).mean()):.0%}",
            "of items sure of their place",
            f"{SURE:.0%} or more, if all others are placed rightly",
        ),
    ]
    if people := found.annotators:
        tiles.append(Tile(f"{len(people['annotator']):,}", "people", "most reliable first below"))
    return tiles


def _sizes(sizes: NDArray[np.int64]) -> list[Record]:
    """How many groups there are of 1, 2, 3-4, 5-8 ... items."""
    bars: list[Record] = []
    low = 1
    largest = int(sizes.max(initial=0))
    while low <= largest:
        high = low if low == 1 else 2 * low - 2 if low > 2 else 2
        count = int(((sizes >= low) & (sizes <= high)).sum())
        label = f"{low}" if low == high else f"{low} to {high}"
        bars.append({"label": label, "count": count})
        low = high + 1
    most = max((bar["count"] for bar in bars), default=1)
    return [bar | {"width": 100 * bar["count"] / max(most, 1)} for bar in bars]


def _cards(found: Groups) -> list[GroupCard]:
    order = np.argsort(found.labels, kind="stable")
    order = order[found.labels[order] >= 0]
    starts = np.concatenate([[0], np.cumsum(found.sizes)])
    cards = []
    for group in range(min(found.n_groups, MAX_GROUPS)):
        members = order[starts[group] : starts[group + 1]]
        members = members[np.argsort(found.probability[members], kind="stable")]
        shown = [
            (shorten(str(found.item_ids[i])), float(found.probability[i]))
            for i in members[:MAX_MEMBERS]
        ]
        sure = float(found.probability[members].mean())
        left_out = max(len(members) - MAX_MEMBERS, 0)
        cards.append(GroupCard(group, len(members), sure, shown, left_out))
    return cards


def _people(people: dict[str, list[str] | list[int] | list[float]]) -> list[Record]:
    if not people:
        return []
    columns = ("annotator", "answers", "reliability", "same_given_same", "same_given_different")
    rows = zip(*(people[name] for name in columns), strict=True)
    return [
        dict(zip(columns, row, strict=True)) | {"annotator": shorten(str(row[0]))}
        for row in list(rows)[:MAX_PEOPLE]
    ]
