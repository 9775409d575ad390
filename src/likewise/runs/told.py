"""What a person tells a fit beside items and judgements: certain classes, certain answers, whom
not to listen to, and which run to follow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from likewise.errors import InputError
from likewise.io.provenance import input_record
from likewise.items.files import ItemFile
from likewise.items.labels import read_labels
from likewise.pairs import Pairs
from likewise.runs.run import Run

GOLD = "gold answers"  # whose they are, where people are named
GOLD_WEIGHT = 10.0  # judgements that a certain answer counts for


@dataclass(frozen=True)
class Told:
    """Files and names, as the command line takes them."""

    known: Path | None = None
    """Classes of some items that are certain: a table (item, label)."""
    gold: Path | None = None
    """Judgements whose answers are certain."""
    without_people: tuple[str, ...] = ()
    """People whose judgements are left out."""
    like: Path | None = None
    """A run whose classes keep their numbers and names."""

    def check(self) -> None:
        """Refuse what cannot be read before anything is trained."""
        if self.like is not None:
            Run.open(self.like)
        for file in (self.known, self.gold):
            if file is not None and not file.exists():
                raise InputError(f"there is no file {file}.")

    @property
    def changes_judgements(self) -> bool:
        """Whether `judgements` are others than those of the file."""
        return self.gold is not None or bool(self.without_people)

    def known_classes(self, data: ItemFile) -> dict[int, str] | None:
        """Position of an item to its class."""
        if self.known is None:
            return None
        positions, labels = read_labels(self.known, data)
        return dict(zip(positions.tolist(), labels.tolist(), strict=True))

    def judgements(self, pairs: Pairs, data: ItemFile, columns: dict[str, str | float]) -> Pairs:
        """The judgements of everybody who is listened to, and the certain ones."""
        kept = without_people(pairs, self.without_people)
        if self.gold is None:
            return kept
        gold = Pairs.read(self.gold, item_ids=data.ids, n_items=len(data), gold=True, **columns)
        names = None if kept.annotator is None else np.array([GOLD])
        certain = Pairs(
            gold.left,
            gold.right,
            gold.same,
            None if names is None else np.zeros(len(gold), np.int32),
            np.full(len(gold), GOLD_WEIGHT),
            n_items=gold.n_items,
            annotator_names=names,
            item_ids=kept.item_ids,
        )
        return Pairs.concatenate([kept, certain])

    def config(self, private: bool = False) -> dict[str, object]:
        """What of it was asked for, for a run's configuration; if ``private`` nobody's name."""
        found: dict[str, object] = {}
        for name, file in (("known", self.known), ("gold", self.gold)):
            if file is not None:
                found[name] = input_record(file)
        if self.without_people:
            people = self.without_people
            found["without_people"] = len(people) if private else list(people)
        if self.like is not None and not private:
            found["like"] = str(self.like)
        return found


def without_people(pairs: Pairs, names: tuple[str, ...]) -> Pairs:
    """The judgements of all others; a name that gave none is refused."""
    if not names:
        return pairs
    if pairs.annotator is None or pairs.annotator_names is None:
        raise InputError(
            "the judgements name no people, so that nobody can be left out; say which column "
            "names them with --annotator."
        )
    people = pairs.annotator_names
    if missing := [name for name in names if name not in people.tolist()]:
        shown = ", ".join(people[:10].tolist())
        raise InputError(f"nobody is called {missing[0]!r}; among the people are {shown}.")
    listened = ~np.isin(people[pairs.annotator], names)
    if not listened.any():
        raise InputError("nobody is left to listen to; leave fewer people out.")
    # Numbered anew: nobody may be listed who says nothing.
    heard, codes = np.unique(pairs.annotator[listened], return_inverse=True)
    kept = pairs.select(listened)
    return kept._like(
        kept.columns() | {"annotator": codes.astype(np.int32)}, annotator_names=people[heard]
    )
