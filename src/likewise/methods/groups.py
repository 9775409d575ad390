"""Groups of items from judgements alone: duplicates, identities, sorts.

No features are needed, nor the number of groups. What is asked of people is the same as for a
classifier; what comes back is which of the judged items belong together.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.errors import InputError
from likewise.inference.partition import Partition, continue_partition, infer_partition
from likewise.io.json import Record
from likewise.methods.group_tables import of_judgements, reliability_table
from likewise.pairs import Pairs, as_pairs
from likewise.pairs.coercion import Frame

NEVER_JUDGED = -1
SETTLED = 0.01  # a pair's probability this close to 0 or 1 needs no other answer
SHOWN_GROUPS, SHOWN_ITEMS = 5, 6


@dataclass(frozen=True, repr=False)
class Groups:
    """Which items belong together, how sure that is, and whose answers can be relied on."""

    labels: NDArray[np.int64]
    """(N,) group of each item, 0 … n_groups - 1, the largest first; -1: nothing is known of it."""
    probability: NDArray[np.float64]
    """(N,) P(the item is of its group), the others where they are; NaN where never judged."""
    item_ids: NDArray[np.str_]
    """(N,) what the items are called; their positions where nobody named them."""
    annotators: dict[str, list[str] | list[int] | list[float]]
    """Columns annotator, answers, same_given_same, same_given_different, reliability (their
    difference: 1 always right, 0 a coin, below 0 swapped), most reliable first; empty where nobody
    is named."""
    judgements_proba: NDArray[np.float64]
    """(M,) P(the two are of one group) for each judgement as given; NaN for a pair of which no
    judgement counts."""
    pairs: NDArray[np.int64]
    """(P, 2) the distinct judged pairs, as positions among the items."""
    pairs_proba: NDArray[np.float64]
    """(P,) P(the two are of one group) for each of them."""
    evidence: float
    """How well the answers are foretold, as a log-likelihood; compares results for the same
    judgements."""

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return int(self.labels.max(initial=-1)) + 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(n_groups,) items of each group, the largest first."""
        return np.bincount(self.labels[self.labels >= 0], minlength=self.n_groups)

    def members(self, group: int) -> list[str]:
        """The ids of a group's items."""
        if not 0 <= group < self.n_groups:
            raise InputError(f"groups are numbered 0 to {self.n_groups - 1}; {group} is none.")
        found: list[str] = self.item_ids[self.labels == group].tolist()
        return found

    def ask_again(self, count: int = 20) -> list[tuple[str, str, float]]:
        """Judged pairs of which least is known, as (id, id, P(one group)): worth another answer.

        At most ``count``; none that the answers so far have settled.
        """
        doubt = np.abs(self.pairs_proba - 0.5)
        chosen = np.argsort(doubt, kind="stable")[:count]
        chosen = chosen[doubt[chosen] < 0.5 - SETTLED]
        return [
            (str(self.item_ids[i]), str(self.item_ids[j]), float(p))
            for (i, j), p in zip(self.pairs[chosen], self.pairs_proba[chosen], strict=True)
        ]

    def to_dict(self) -> Record:
        """All of it but the judged pairs, as plain lists and numbers."""
        judged = self.labels >= 0
        return {
            "n_groups": self.n_groups,
            "item_ids": self.item_ids.tolist(),
            "labels": self.labels.tolist(),
            "probability": [
                round(float(p), 6) if known else None
                for p, known in zip(self.probability, judged, strict=True)
            ],
            "annotators": self.annotators,
            "judgements_proba": [
                None if np.isnan(p) else round(float(p), 6) for p in self.judgements_proba
            ],
            "evidence": self.evidence,
        }

    def __repr__(self) -> str:
        n_judged = int(np.count_nonzero(self.labels >= 0))
        lines = [
            f"Groups({self.n_groups:,} groups of {n_judged:,} items, "
            f"from {len(self.judgements_proba):,} judgements)"
        ]
        for group in range(min(self.n_groups, SHOWN_GROUPS)):
            names = self.members(group)
            more = f" and {len(names) - SHOWN_ITEMS:,} more" if len(names) > SHOWN_ITEMS else ""
            lines.append(f"  {group}: {', '.join(names[:SHOWN_ITEMS])}{more}")
        if self.n_groups > SHOWN_GROUPS:
            lines.append(f"  and {self.n_groups - SHOWN_GROUPS:,} more groups")
        return "\n".join(lines)


def group(
    pairs: Pairs | Frame | ArrayLike | str | Path,
    items: ArrayLike | None = None,
    n_groups: int | None = None,
    random_state: int = 0,
    start: Groups | None = None,
) -> Groups:
    """Find which items belong together from noisy same-or-different judgements alone.

    Parameters
    ----------
    pairs
        Judgements (a `Pairs`, a frame, index arrays) or a file of them. People who answer at random
        or the wrong way round are found and counted accordingly; a judgement of weight 0 is none.
    items : (N, ...) numbers, optional
        The items' features, where there are any: what they say about judged pairs is learned along.
    n_groups
        How many groups there are; by default it is found out.
    random_state
        Same seed, same groups.
    start
        Groups found before, from some of these judgements: they are continued, which is fast and
        loses nothing between one batch of answers and the next. With ``items``, those that were
        never judged are placed too.
    """
    vectors = None if items is None else _as_vectors(items)
    n_items = None if vectors is None else len(vectors)
    if isinstance(pairs, str | Path):
        given = read_judged(pairs, n_items=n_items)
    else:
        given = as_pairs(pairs, n_items=n_items).explicit()
    if n_items is not None:
        given = given.about(n_items)
    counts = np.ones(len(given), bool) if given.weight is None else given.weight > 0
    judged = np.unique(np.concatenate([given.left[counts], given.right[counts]])).astype(np.int64)
    _check_n_groups(n_groups, len(judged))
    placed = judged if start is None or vectors is None else np.arange(given.n_items)
    found = _partition(given, counts, placed, vectors, n_groups, random_state, start)
    return _result(given, counts, placed, found)


def judgements_proba(
    pairs: Pairs | Frame | ArrayLike | str | Path, items: ArrayLike | None = None
) -> NDArray[np.float64]:
    """(M,) P(the two items are of one group) for each judgement: all answers taken together.

    For `Groups.judgements_proba` where nothing else is of interest, as in record linkage.
    """
    return group(pairs, items).judgements_proba


def read_judged(
    path: str | Path,
    *,
    item_ids: ArrayLike | None = None,
    n_items: int | None = None,
    **options: str | float,
) -> Pairs:
    """Judgements of a file. Where nothing says which items there are, those that it names are.

    Whole numbers are names then, as they stand in the file: the numbers of records, not positions.
    Judgements of items that are not among ``item_ids`` are left out, and told of. ``options`` are
    others of `Pairs.read`: what columns are called, the format.
    """
    return Pairs.read(
        path,
        **options,
        item_ids=item_ids,
        n_items=n_items,
        named=item_ids is None and n_items is None,
        may_lack=item_ids is not None,
    )


def _partition(
    given: Pairs,
    counts: NDArray[np.bool_],
    placed: NDArray[np.int64],
    vectors: NDArray[np.float64] | None,
    n_groups: int | None,
    seed: int,
    start: Groups | None,
) -> Partition:
    """Groups of the items ``placed``, found anew or continued."""
    left, right = (np.searchsorted(placed, end[counts]) for end in (given.left, given.right))
    answers = left, right, given.same[counts]
    annotator = None if given.annotator is None else given.annotator[counts]
    weight = None if given.weight is None else _in_answers(given.weight[counts])
    rows = None if vectors is None else vectors[placed]
    if start is None:
        return infer_partition(
            *answers,
            n_items=len(placed),
            annotator=annotator,
            weight=weight,
            n_groups=n_groups,
            items=rows,
            seed=seed,
        )
    labels, probability = known_before(start, given.n_items)
    return continue_partition(
        *answers,
        labels[placed],
        probability[placed],
        annotator=annotator,
        weight=weight,
        n_groups=n_groups,
        items=rows,
        seed=seed,
    )


def _in_answers(weight: NDArray[np.floating]) -> NDArray[np.float64]:
    """(M,) weights in answers: from one on they are counts, but where a usual one is below one they
    say how sure answers are against each other, and a usual judgement is one answer."""
    weight = weight.astype(np.float64)
    return np.asarray(weight / min(float(weight.mean()), 1.0))


def known_before(groups: Groups, n_items: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(N,) groups of N items and how sure they were; -1 for items that have come since."""
    n_before = len(groups.labels)
    if n_before > n_items:
        raise InputError(
            f"the groups are of {n_before} items, but the judgements are about {n_items}; "
            "give the groups of the same items."
        )
    labels = np.full(n_items, NEVER_JUDGED, np.int64)
    probability = np.full(n_items, np.nan)
    labels[:n_before], probability[:n_before] = groups.labels, groups.probability
    return labels, probability


def _as_vectors(items: ArrayLike) -> NDArray[np.float64]:
    """(N, D) features, all of them numbers."""
    try:
        array = np.asarray(items, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("items must be numbers, a row of features for each item.") from error
    if array.ndim < 2:
        raise InputError(
            f"items must have a row of features each, but the array has shape {array.shape}."
        )
    if not np.isfinite(array).all():
        raise InputError("items hold NaN or infinity; fill or drop them first.")
    return array.reshape(len(array), -1)


def _check_n_groups(n_groups: int | None, n_judged: int) -> None:
    if not n_judged:
        raise InputError("there is no judgement to group by; give at least one of weight above 0.")
    if n_groups is not None and not 1 <= n_groups <= n_judged:
        raise InputError(
            f"n_groups must lie between 1 and {n_judged}, the number of judged items, "
            f"but is {n_groups}."
        )


def _result(
    given: Pairs, counts: NDArray[np.bool_], judged: NDArray[np.int64], found: Partition
) -> Groups:
    """What was found about the judged items, said of all items."""
    known = found.labels >= 0
    order = np.argsort(-np.bincount(found.labels[known]), kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    labels = np.full(given.n_items, NEVER_JUDGED, np.int64)
    labels[judged[known]] = rank[found.labels[known]]
    probability = np.full(given.n_items, np.nan)
    probability[judged[known]] = found.probability[known]
    pairs = judged[found.pairs]
    ids = given.item_ids
    return Groups(
        labels=labels,
        probability=probability,
        item_ids=np.arange(given.n_items).astype(np.str_) if ids is None else ids,
        annotators=reliability_table(given, counts, found),
        judgements_proba=of_judgements(given, pairs, found.pair_same),
        pairs=pairs,
        pairs_proba=found.pair_same,
        evidence=found.objective,
    )
