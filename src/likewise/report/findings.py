"""What a run's figures mean, in words: a headline, a few tiles, and what to be wary of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.io.json import Record
from likewise.methods.registry import METHODS
from likewise.noise.registry import CHANNELS
from likewise.report.contents import Columns, Contents
from likewise.runs.verdict import in_words, source_of_transition

SURE = 0.9
FEW_PER_ITEM = 5
UNINFORMATIVE = 0.1  # P(same | same) - P(same | different) of somebody who hardly looks
BAD_CALIBRATION = 0.1


@dataclass(frozen=True)
class Tile:
    """One figure of the first screen."""

    value: str  # the figure
    label: str  # what it is of
    note: str = ""  # an aside


def headline(contents: Contents) -> str:
    """One sentence: what was learned, from what."""
    d = contents.judgements
    people = f" by {d['annotators']:,} people" if d.get("annotators") else ""
    used = int((contents.sizes > 0).sum())
    classes = f"{used}" if used == contents.n_classes else f"{used} of {contents.n_classes}"
    return (
        f"{classes} classes found in {contents.n_items:,} items, "
        f"learned from {d['judgements']:,} judgements{people}"
    )


def choice(contents: Contents) -> str:
    """How the result came to be chosen: by the method, and the number of classes."""
    words = str(contents.metrics.get("choice") or "")
    asked = contents.config.get("parameters")
    if isinstance(asked, dict) and asked.get("n_classes") == "auto":
        words = f"{words}; the number of classes was read off the judgements"
    return words.strip("; ")


def stages(history: list[Record]) -> set[str]:
    """What kinds of training a history tells of, among "em" and "teachers"."""
    names = {str(row.get("method") or "") for row in history}
    kinds = {
        "teachers": any(name.startswith(("teacher", "forerunner")) for name in names),  # 0.1's word
        "em": "em" in names or any("round" in row for row in history),
    }
    return {kind for kind, is_there in kinds.items() if is_there}


def tiles(contents: Contents) -> list[Tile]:
    """The figures at a glance."""
    confident = float((contents.confidence >= SURE).mean())
    method = str(contents.metrics.get("method", ""))
    found = [
        Tile(f"{contents.n_items:,}", "items", f"{contents.judgements['items_judged']:,} judged"),
        Tile(
            f"{contents.judgements['judgements']:,}",
            "judgements",
            f"{_share(contents.judgements, 'same'):.0%} say same",
        ),
        Tile(method, "method", METHODS[method].words if method in METHODS else ""),
        Tile(
            f"{confident:.0%}", "of items placed with confidence", f"probability {SURE:.0%} or more"
        ),
    ]
    if contents.transition is not None:
        mistaken = mistaken_share(contents)
        found.append(
            Tile(
                f"{mistaken:.0%}",
                "of items taken for another class",
                source_of_transition(contents.config),
            )
        )
    gap = calibration_gap(contents.calibration)
    if gap is not None:
        where = "held-out" if contents.calibration.get("held_out") else "training"
        found.append(
            Tile(f"{gap * 100:.1f} pts", "mean error of P(same)", f"on {where} judgements")
        )
    confusion = contents.confusion()
    if confusion is not None:
        found.append(Tile(f"{confusion.accuracy:.1%}", "accuracy", "against the truth you gave"))
    return found


def warnings(contents: Contents) -> list[str]:
    """What to know before trusting the result; the run's own warnings first."""
    d = contents.judgements
    found = [str(text) for text in contents.metrics.get("warnings") or []]
    empty = int((contents.sizes == 0).sum())
    if empty and not any("never predicted" in text for text in found):
        found.append(f"{empty} of {contents.n_classes} classes are empty.")
    median = d.get("judgements_per_item", [0, FEW_PER_ITEM, 0])[1]
    if median < FEW_PER_ITEM:
        found.append(
            f"Half of the items have {median:g} judgements or fewer; what is said of such items "
            "rests on their likeness to others alone."
        )
    unjudged = d["items"] - d["items_judged"]
    if unjudged:
        found.append(f"{unjudged:,} items were never judged.")
    gap = calibration_gap(contents.calibration)
    if gap is not None and gap > BAD_CALIBRATION:
        found.append(
            f"Predicted and observed shares of “same” differ by {gap * 100:.0f} points on average: "
            "read the probabilities as an order, not as chances."
        )
    if not contents.calibration.get("held_out"):
        found.append(
            "The fit kept no judgements, or too few, to check its probabilities on: they are "
            "checked on judgements that it learned from, which flatters them."
        )
    people = contents.annotators or {}
    total = len(people.get("annotator", []))
    if careless := len(uninformative(people)):
        found.append(
            f"{careless} of {total} people answer nearly the same whatever they are shown; their "
            "judgements count for little."
        )
    if turned := len(swapped(people)):
        found.append(
            f"{turned} of {total} people mostly answer the wrong way round; their judgements are "
            "read as the opposite."
        )
    return [_sentence(text) for text in found]


def compared(contents: Contents) -> list[str]:
    """Baselines and stability in sentences; none where the run has none."""
    found = contents.metrics.get("comparison")
    return in_words(found if isinstance(found, dict) else None)


def mistaken_share(contents: Contents) -> float:
    """The share of items perceived as another class, by T and the sizes of the classes."""
    if contents.transition is None:
        return 0.0
    weight = contents.sizes / max(int(contents.sizes.sum()), 1)
    return float(1 - weight @ np.diag(contents.transition))


def calibration_gap(calibration: Record) -> float | None:
    """Mean distance of observed from predicted shares of "same", by judgements; None if unknown."""
    bins = calibration.get("bins") or {}
    weight = np.array(bins.get("judgements", []), float)
    if not weight.sum():
        return None
    gaps = np.abs(np.array(bins["predicted"], float) - np.array(bins["observed"], float))
    return float((gaps * weight).sum() / weight.sum())


def uninformative(annotators: Columns) -> list[str]:
    """People who answer "same" about as often for different pairs as for equal ones."""
    return [name for name, gap in _gaps(annotators) if abs(gap) < UNINFORMATIVE]


def swapped(annotators: Columns) -> list[str]:
    """People who answer "same" clearly oftener for different pairs than for equal ones."""
    return [name for name, gap in _gaps(annotators) if gap <= -UNINFORMATIVE]


def _gaps(annotators: Columns) -> list[tuple[str, float]]:
    """How much oftener each person says "same" of equal pairs than of different ones."""
    rates = zip(
        annotators.get("annotator", []),
        annotators.get("same_given_same", []),
        annotators.get("same_given_different", []),
    )
    return [(str(name), a - b) for name, a, b in rates if a is not None and b is not None]


def channel_words(channel: Record | None) -> str:
    """The channel in a sentence; empty where there is none."""
    if channel is None:
        return ""
    entry = CHANNELS.get(str(channel.get("kind")))
    return "" if entry is None else entry.describe(channel)


def _share(d: Record, key: str) -> float:
    return float(d[key]) / max(int(d["judgements"]), 1)


def _sentence(text: str) -> str:
    text = text.strip()
    capital = text[:1].upper() + text[1:]
    return capital if capital.endswith((".", "!", "?")) else f"{capital}."
