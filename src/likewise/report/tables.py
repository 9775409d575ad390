"""The rows of a report's tables: matrices as heat maps, classes, people, suspected judgements."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.io.json import Record
from likewise.report.colours import class_colours, heat_level
from likewise.report.contents import Columns, Confusion, Contents, shorten

LARGE = 16  # a matrix of more classes is drawn without its numbers
TOP = 12
MAX_PEOPLE = 500
ALIKE = 0.005


@dataclass(frozen=True)
class Cell:
    text: str  # as shown
    level: int  # of its colour
    tip: str  # told when pointed at
    marked: bool = False  # whether it is a match


@dataclass(frozen=True)
class Matrix:
    """A heat map with its numbers (``rows``), or packed for a canvas where it is large."""

    key: str  # for ids on the page
    row_names: list[str]  # (R,)
    column_names: list[str]  # (Q,)
    rows: list[list[Cell]]  # cells, where they are few
    packed: Record | None  # numbers, where they are many
    top: list[tuple[str, str, str]]  # the largest cells off the diagonal: row, column, share


def transition_matrix(contents: Contents) -> Matrix | None:
    """T: a row a true class, a column the class it is taken for."""
    if contents.transition is None:
        return None
    names = _short(contents.class_names)
    marks = list(range(len(names)))
    return _matrix(
        "transition", contents.transition, names, names, marks, "{row} taken for {column}"
    )


def channel_matrix(contents: Contents) -> Matrix | None:
    """P(called same) by both perceived classes, where the channel has such a matrix."""
    values = (contents.channel or {}).get("p_same")
    if not isinstance(values, list) or len(values) != contents.n_classes:
        return None
    names = _short(contents.class_names)
    shares = np.array(values, float)
    return _matrix(
        "channel", shares, names, names, list(range(len(names))), "{row} and {column} called same"
    )


def confusion_matrix(contents: Contents, found: Confusion | None) -> Matrix | None:
    """Shares of each true class (row) in each learned one (column), matches on the diagonal."""
    if found is None:
        return None
    names = _short(contents.class_names)
    columns = [names[k] for k in found.learned]
    shares = found.counts / np.maximum(found.counts.sum(axis=1, keepdims=True), 1)
    words = "{row} learned as {column}"
    told = _standing_for(columns, found)
    return _matrix("confusion", shares, found.true_names, columns, found.matched, words, told)


def _standing_for(columns: list[str], found: Confusion) -> list[str]:
    """Learned classes with the true ones that they are matched to: their numbers are arbitrary."""
    true = {column: name for name, column in zip(found.true_names, found.matched) if column >= 0}
    return [
        name if true.get(k) == name else f"{name} (stands for {true.get(k, 'none')})"
        for k, name in enumerate(columns)
    ]


@dataclass(frozen=True)
class ClassCard:
    """A learned class: how large, how sure, and the items that show it best and least."""

    name: str  # of the class
    colour: str  # of the class
    size: int  # predicted items
    share: float  # of all items
    bar: float  # its length, of the longest
    confidence: float  # mean probability
    typical: list[int]  # items it is surest of
    uncertain: list[int]  # items it is least sure of
    truth: str  # the commonest true class


def class_cards(contents: Contents) -> list[ClassCard]:
    """A card for each class, in the order of the classes; items by position among all N."""
    predicted, sure = contents.predicted, contents.confidence
    total, largest = max(contents.n_items, 1), max(int(contents.sizes.max()), 1)
    shown = 8 if contents.n_classes <= 12 else 6 if contents.n_classes <= 40 else 3
    colours = class_colours(contents.n_classes)
    cards = []
    for k, name in enumerate(contents.class_names):
        members = np.flatnonzero(predicted == k)
        order = members[np.argsort(-sure[members], kind="stable")]
        half = min(shown, len(order) // 2 if len(order) > 1 else len(order))
        cards.append(
            ClassCard(
                name=name,
                colour=colours[k],
                size=int(contents.sizes[k]),
                share=float(contents.sizes[k]) / total,
                bar=float(contents.sizes[k]) / largest,
                confidence=float(sure[members].mean()) if len(members) else 0.0,
                typical=[int(i) for i in contents.kept[order[:half]]],
                uncertain=[int(i) for i in contents.kept[order[::-1][:half]]],
                truth=_mostly(contents, members),
            )
        )
    return cards


@dataclass(frozen=True)
class Suspect:
    """A judgement most probably wrong, with both items."""

    left: int  # first item
    right: int  # second item
    left_name: str  # its name
    right_name: str  # its name
    left_class: str  # predicted
    right_class: str  # predicted
    answer: str  # same or different
    wrong: float  # P(wrong)
    person: str  # who gave it


def suspects(contents: Contents) -> list[Suspect]:
    """The suspected judgements as rows, worst first."""
    table = contents.suspects
    people = table.get("annotator")
    rows = []
    for k, (left, right) in enumerate(zip(table["left"], table["right"])):
        rows.append(
            Suspect(
                left=int(left),
                right=int(right),
                left_name=shorten(str(table.get("left_id", table["left"])[k])),
                right_name=shorten(str(table.get("right_id", table["right"])[k])),
                left_class=_class_of(contents, int(left)),
                right_class=_class_of(contents, int(right)),
                answer="same" if table["same"][k] else "different",
                wrong=float(table["probability_wrong"][k]),
                person=shorten(str(people[k])) if people else "",
            )
        )
    return rows


@dataclass(frozen=True)
class Person:
    name: str  # of the person
    judgements: int | None  # given
    same_given_same: float | None  # P(same | same)
    same_given_different: float | None  # P(same | different)
    reliability: float | None  # 0 by chance, 1 always right


def people(annotators: Columns | None) -> tuple[list[Person], int]:
    """People from most to least reliable, and how many of them were left out of the middle."""
    if not annotators or not annotators.get("annotator"):
        return [], 0

    def column(name: str) -> Sequence[Any]:
        return annotators.get(name) or [None] * len(annotators["annotator"])

    rows = [
        Person(shorten(str(name)), judgements, a, b, reliability)
        for name, judgements, a, b, reliability in zip(
            annotators["annotator"],
            column("judgements"),
            column("same_given_same"),
            column("same_given_different"),
            column("reliability"),
        )
    ]
    rows.sort(key=lambda person: -(person.reliability if person.reliability is not None else -1))
    if len(rows) <= MAX_PEOPLE:
        return rows, 0
    half = MAX_PEOPLE // 2
    return rows[:half] + rows[-half:], len(rows) - 2 * half


def _matrix(
    key: str,
    shares: NDArray[np.float64],
    row_names: list[str],
    column_names: list[str],
    marked: list[int],
    words: str,
    told: list[str] | None = None,
) -> Matrix:
    """``told`` is what columns are called where there is room for more than their names."""
    told = column_names if told is None else told

    def tip(row: int, column: int) -> str:
        text = words.format(row=row_names[row], column=told[column])
        return f"{text}: {shares[row, column]:.1%}"

    large = max(shares.shape) > LARGE
    cells = [] if large else [
        [
            Cell(f"{share * 100:.0f}", heat_level(share), tip(row, column), column == marked[row])
            for column, share in enumerate(line)
        ]
        for row, line in enumerate(shares)
    ]  # fmt: skip
    packed = None
    if large:
        bytes_ = np.rint(shares.clip(0, 1) * 255).astype(np.uint8).tobytes()
        packed = {
            "rows": row_names,
            "columns": told,
            "shares": base64.b64encode(bytes_).decode(),
        }
    return Matrix(
        key, row_names, column_names, cells, packed, _top(shares, row_names, told, marked)
    )


def _short(names: list[str]) -> list[str]:
    """Names for narrow columns: "class 7" as 7, where no class has a name."""
    if all(name.startswith("class ") for name in names):
        return [name.removeprefix("class ") for name in names]
    return names


def _top(
    shares: NDArray[np.float64], row_names: list[str], column_names: list[str], marked: list[int]
) -> list[tuple[str, str, str]]:
    """The largest shares off the diagonal, worst first; none where all are alike."""
    others = shares.copy()
    for row, column in enumerate(marked):
        if column >= 0:
            others[row, column] = -1
    if not (others >= 0).any() or others.max() - others[others >= 0].min() < ALIKE:
        return []
    order = np.argsort(-others, axis=None, kind="stable")[:TOP]
    places = [np.unravel_index(k, others.shape) for k in order]
    return [
        (row_names[r], column_names[c], f"{others[r, c]:.1%}")
        for r, c in places
        if others[r, c] > 0
    ]


def _mostly(contents: Contents, members: NDArray[np.int64]) -> str:
    """The commonest true class of a class's items, where the truth is known."""
    if contents.truth is None or not len(members):
        return ""
    names, counts = np.unique(contents.truth[members], return_counts=True)
    return f"{names[counts.argmax()]} {counts.max() / len(members):.0%}"


def _class_of(contents: Contents, item: int) -> str:
    where = int(np.searchsorted(contents.kept, item))
    if where < len(contents.kept) and contents.kept[where] == item:
        return contents.class_names[int(contents.posterior[where].argmax())]
    return ""
