"""Judgements most probably wrong, worst first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.io.npy import Array
from likewise.pairs import Pairs, as_pairs
from likewise.pairs.edges import CHUNK, chunks

if TYPE_CHECKING:
    from likewise.classifier import SimilarityClassifier

AT_ONCE = 1 << 19  # probabilities looked at together: never those of all judgements (M, C)


@dataclass(frozen=True)
class Suspects:
    """A table of judgements, the most probably wrong first; arrays of equal length."""

    judgement: NDArray[np.int64]  # (M,) positions among the judgements given
    left: Array  # (M,) the first items
    right: Array  # (M,) the second items
    same: NDArray[np.bool_]  # (M,) the answers
    probability_wrong: NDArray[np.float64]  # (M,) that they are wrong about the true classes
    annotator: NDArray[np.str_] | None = None  # (M,) who gave them; None where nobody is named

    def __len__(self) -> int:
        return len(self.judgement)

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns by name."""
        columns = {
            "judgement": self.judgement,
            "left": self.left,
            "right": self.right,
            "same": self.same,
            "probability_wrong": self.probability_wrong,
        }
        if self.annotator is not None:
            columns["annotator"] = self.annotator
        return {name: column.tolist() for name, column in columns.items()}

    def __repr__(self) -> str:
        rows = [f"{'judgement':>9} {'left':>7} {'right':>7}  answer     P(wrong)"]
        for k in range(min(len(self), 10)):
            answer = "same" if self.same[k] else "different"
            rows.append(
                f"{self.judgement[k]:>9} {self.left[k]:>7} {self.right[k]:>7}  {answer:<9} "
                f"{self.probability_wrong[k]:>9.3f}"
            )
        return "\n".join(rows)


def suspects(
    classifier: SimilarityClassifier, X: ArrayLike, pairs: Pairs | Any, limit: int | None = None
) -> Suspects:
    """Judgements in order of the probability that they are wrong about the true classes.

    That is g_i . g_j where "different" was said and one minus it where "same" was.
    """
    # In single precision a network's certainties are 1, and thousands of judgements would tie; the
    # other classes' small probabilities say by how much they are less than 1.
    p = classifier.predict_proba(X).astype(np.float64)
    p /= p.sum(axis=1, keepdims=True)
    listed = as_pairs(pairs, n_items=len(p)).explicit()
    most = len(listed) if limit is None else limit
    order, wrong = np.empty(0, np.int64), np.empty(0)
    # Many at once where the worst are asked for: only these are kept.
    for some in chunks(len(listed), max(CHUNK, most)):
        chance = np.empty(some.stop - some.start)
        for part in chunks(len(chance), max(1, AT_ONCE // p.shape[1])):
            rows = slice(some.start + part.start, some.start + part.stop)
            equal = np.einsum("mc,mc->m", p[listed.left[rows]], p[listed.right[rows]])
            chance[part] = np.where(listed.same[rows], 1 - equal, equal)
        order = np.concatenate([order, np.arange(some.start, some.stop)])
        wrong = np.concatenate([wrong, chance])
        worst = np.argsort(-wrong, kind="stable")[:most]
        order, wrong = order[worst], wrong[worst]
    names = None
    if listed.annotator is not None and listed.annotator_names is not None:
        names = listed.annotator_names[listed.annotator[order]]
    return Suspects(
        order, listed.left[order], listed.right[order], listed.same[order], wrong, names
    )
