"""The judgement graph: items are its nodes, judgements its edges, "same" joins.

**Weights are honoured here, once.** A judgement of weight 0 is no judgement: it joins nothing,
contradicts nothing and is in no triangle. Any positive weight makes an edge like any other, also on
the exact path: under an exact channel P(answer | classes) is 0 or 1, and 0^w = 0, 1^w = 1 whatever
the weight w > 0. How *much* a judgement counts is said where a likelihood is neither: in the noisy
channels (`likewise.inference`) and in the pairwise losses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.pairs import edges
from likewise.pairs.columns import BoolArray, IndexArray

if TYPE_CHECKING:
    from likewise.pairs.container import Pairs


@dataclass(frozen=True)
class JudgementGraph:
    """The judgements that count, as edges (M,) between items."""

    left: IndexArray
    """(M,) one item of each judgement."""
    right: IndexArray
    """(M,) the other item."""
    same: BoolArray
    """(M,) the answers."""
    n_items: int
    """Items there are, judged or not."""
    weightless: int = 0
    """Judgements of weight 0, which are left out."""

    @classmethod
    def of(cls, pairs: Pairs) -> JudgementGraph:
        """The graph of ``pairs``; it shares their memory unless some of them do not count."""
        listed = pairs.explicit()
        return cls.from_arrays(
            left=listed.left,
            right=listed.right,
            same=listed.same,
            weight=listed.weight,
            n_items=listed.n_items,
        )

    @classmethod
    def from_arrays(
        cls,
        left: IndexArray,
        right: IndexArray,
        same: BoolArray,
        weight: NDArray[np.floating] | None,
        n_items: int,
    ) -> JudgementGraph:
        """The graph of validated columns (M,); ``weight`` None counts every judgement."""
        if weight is None or (counting := int(np.count_nonzero(weight))) == len(weight):
            return cls(left, right, same, n_items)
        keep = weight > 0
        return cls(left[keep], right[keep], same[keep], n_items, len(weight) - counting)

    def __len__(self) -> int:
        return len(self.left)

    @cached_property
    def n_same(self) -> int:
        """The number of "same" judgements."""
        return int(np.count_nonzero(self.same))

    @cached_property
    def component(self) -> NDArray[np.int32]:
        """(N,) what "same" joins, numbered from 0 by first appearance."""
        if self.n_same == len(self):
            return edges.components(self.left, self.right, self.n_items)
        return edges.components(self.left[self.same], self.right[self.same], self.n_items)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """(components,) number of items of each."""
        return np.bincount(self.component) if self.n_items else np.empty(0, np.int64)

    @cached_property
    def contradictions(self) -> int:
        """How many "different" judgements fall inside a component: each contradicts a chain."""
        return edges.count_inside(self.component, self.left, self.right, ~self.same)

    @property
    def redundant(self) -> int:
        """How many "same" judgements join what others join already: each tests consistency."""
        return self.n_same - (self.n_items - len(self.sizes))

    @cached_property
    def degree(self) -> NDArray[np.int64]:
        """(N,) number of judgements of each item."""
        return edges.degrees(self.left, self.right, self.n_items)

    def contract(self) -> Contraction:
        """Merge what "same" joins; keep each "different" between two merged nodes once."""
        n_nodes, inside = len(self.sizes), 0
        codes = [np.empty(0, np.int64)]
        for part in edges.chunks(len(self)):
            apart = ~self.same[part]
            one = self.component[self.left[part][apart]].astype(np.int64)
            other = self.component[self.right[part][apart]].astype(np.int64)
            crossing = one != other
            inside += len(one) - int(np.count_nonzero(crossing))
            low, high = np.minimum(one, other)[crossing], np.maximum(one, other)[crossing]
            codes.append(np.unique(low * n_nodes + high))
        distinct = np.unique(np.concatenate(codes))
        return Contraction(
            component=self.component,
            sizes=self.sizes,
            left=distinct // max(n_nodes, 1),
            right=distinct % max(n_nodes, 1),
            contradictions=inside,
            redundant=self.redundant,
        )


@dataclass(frozen=True)
class Contraction:
    """Items joined by "same" as one node, and which nodes were judged different."""

    component: NDArray[np.int32]
    """(N,) the node of each item."""
    sizes: NDArray[np.int64]
    """(nodes,) number of items of each node."""
    left: NDArray[np.int64]
    """(E,) one node of each distinct "different" edge, the smaller number."""
    right: NDArray[np.int64]
    """(E,) the other node."""
    contradictions: int
    """"different" judgements that fell inside a node."""
    redundant: int
    """"same" judgements that join what others join already."""

    @cached_property
    def judged(self) -> BoolArray:
        """(nodes,) whether any judgement is about the node: others say nothing of classes."""
        found = self.sizes > 1
        found[self.left] = found[self.right] = True
        return found

    @property
    def is_complete(self) -> bool:
        """Whether no two judged nodes can be of one class: each two were judged different."""
        nodes = int(np.count_nonzero(self.judged))
        return self.contradictions == 0 and len(self.left) == nodes * (nodes - 1) // 2

    def apart(self, nodes: IndexArray) -> BoolArray:
        """(n, n) which of the chosen ``nodes`` (n,) were judged different."""
        rank = np.full(len(self.sizes), -1)
        rank[nodes] = np.arange(len(nodes))
        left, right = rank[self.left], rank[self.right]
        both = (left >= 0) & (right >= 0)
        matrix = np.zeros((len(nodes), len(nodes)), bool)
        matrix[left[both], right[both]] = matrix[right[both], left[both]] = True
        return matrix
