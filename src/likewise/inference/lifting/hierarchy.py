"""A tree of micro-clusters as the prior of their classes: near ones mostly share a class.

Ward's tree of the M cluster centres holds every coarser clustering. A class is handed down from the
root; a child keeps its parent's with a probability that grows from the top, where groups are larger
than classes, to the leaves: with k groups at the height of a node, F(k) = k² / (k² + κ²), a child
keeps with F(k_parent) / F(k_child) and draws anew otherwise. So κ, chosen by the evidence, is about
how many groups it takes to tell the classes apart, and M need not be chosen at all. Sums over the
tree are exact (upward and downward messages, Pearl 1982).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from torch import Tensor

TINY = 1e-30


@dataclass(frozen=True)
class Tree:
    """A binary tree over M leaves; node M + i joins ``left[i]``, ``right[i]``; the last is root.

    ``groups`` (2M - 1,): into how many groups the leaves fall just above each node; leaves M.
    ``levels``: inner nodes (numbers i) by height, so that a level needs only those before it.
    """

    left: Tensor
    right: Tensor
    groups: Tensor
    levels: list[Tensor]
    links: NDArray[np.float64]

    @classmethod
    def of(cls, centres: NDArray[np.float32]) -> Tree:
        """Ward's tree of cluster centres (M, d)."""
        links = np.asarray(linkage(centres.astype(np.float64), "ward"))
        size = len(centres)
        children = links[:, :2].astype(np.int64)
        height = np.zeros(2 * size - 1, np.int64)
        for i, (a, b) in enumerate(children):
            height[size + i] = 1 + max(height[a], height[b])
        inner = height[size:]
        levels = [torch.from_numpy(np.where(inner == h)[0]) for h in range(1, inner.max() + 1)]
        # Node M + i is made when M - i groups become one fewer.
        groups = np.concatenate([np.full(size, size), size - 1 - np.arange(size - 1)])
        return cls(
            torch.from_numpy(children[:, 0].copy()),
            torch.from_numpy(children[:, 1].copy()),
            torch.from_numpy(groups.astype(np.float32)),
            levels,
            links,
        )

    @property
    def leaves(self) -> int:
        return len(self.left) + 1

    def cut(self, number: int) -> NDArray[np.int64]:
        """(M,) which of at most ``number`` groups each leaf belongs to."""
        found = fcluster(self.links, number, "maxclust")
        return np.asarray(found, dtype=np.int64) - 1

    def keep(self, kappa: Tensor) -> Tensor:
        """(R, 2M - 1) probability that a node has its parent's class, for κ (R,)."""
        squared = self.groups**2
        reached = squared / (squared + kappa[:, None] ** 2)
        parent = torch.zeros(len(self.groups), dtype=torch.long)
        inner = torch.arange(len(self.left)) + self.leaves
        parent[self.left], parent[self.right] = inner, inner
        parent[-1] = len(self.groups) - 1
        return (reached[:, parent] / reached).clamp(max=1 - 1e-4)

    def marginals(self, field: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
        """(R, M, C) posterior of the leaves, (R,) log Z, under log-likelihoods (R, M, C)."""
        runs, size, n_classes = field.shape
        field = field.permute(1, 2, 0)
        share = keep.T.unsqueeze(1)
        # Nodes first and runs last: whole nodes are copied, and runs fill the vector registers.
        peak = field.amax(1, keepdim=True)
        inside = field.new_empty(2 * size - 1, n_classes, runs)
        torch.sub(field, peak, out=inside[:size]).exp_()
        log_z = peak.sum((0, 1))
        children = [torch.cat([self.left[level], self.right[level]]) for level in self.levels]
        shares = [share.index_select(0, child) for child in children]
        told = []  # what the nodes of a level tell their parents
        for level, child, kept in zip(self.levels, children, shares):
            message = _blend(inside.index_select(0, child), kept)
            told.append(message.view(2, len(level), n_classes, runs))
            both = told[-1][0] * told[-1][1]
            norm = both.sum(1, keepdim=True).clamp_min_(TINY)
            inside.index_copy_(0, level + size, both.div_(norm))
            log_z += norm.log_().sum((0, 1))
        log_z += torch.log(inside[-1].mean(0).clamp_min(TINY))
        above = torch.empty_like(inside)  # what the rest of the tree says of a node
        above[-1] = 1 / n_classes
        for level, child, kept, message in zip(
            reversed(self.levels), reversed(children), reversed(shares), reversed(told)
        ):
            rest = message.flip(0).mul_(above.index_select(0, level + size))  # the sibling's too
            rest = rest.flatten(0, 1)
            rest /= rest.sum(1, keepdim=True).clamp_min_(TINY)
            above.index_copy_(0, child, _blend(rest, kept))
        belief = above[:size].mul_(inside[:size])
        belief /= belief.sum(1, keepdim=True).clamp_min_(TINY)
        return belief.permute(2, 0, 1).contiguous(), log_z


def _blend(p: Tensor, keep: Tensor) -> Tensor:
    """(n, C, R): the class p (n, C, R) kept with ``keep`` (n, 1, R), else any."""
    return torch.lerp(p.mean(1, keepdim=True), p, keep)
