"""Many short rows on a CPU: (n, C) with a handful of classes, at which torch is slow.

Its softmax handles one row at a time unless a row fills a vector register, its indexing one number
at a time, and rows are added up by index one by one. The same results come here several times
sooner.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn import functional as F

REGISTER = 16  # single-precision numbers in the widest vector register
CHUNK = 1 << 14  # pairs handled at once: their rows stay in the cache


def softmax(logits: Tensor) -> Tensor:
    """(n, C) softmax over the classes: short rows by columns, many rows at a time."""
    if logits.device.type != "cpu" or logits.shape[1] >= REGISTER:
        return logits.softmax(dim=1)
    return logits.T.contiguous().softmax(dim=0).T.contiguous()


def similarities(f: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """(m,) inner products of the rows ``left`` and ``right`` (m,) of ``f`` (n, C)."""
    if f.device.type != "cpu":
        return (f[left] * f[right]).sum(dim=1)
    products: Tensor = _Similarities.apply(f, left, right)  # type: ignore[no-untyped-call]
    return products


class _Similarities(torch.autograd.Function):
    """With G (n, n) sparse, the gradients of the products at (left, right): G f + Gᵀ f."""

    @staticmethod
    def forward(ctx: FunctionCtx, f: Tensor, left: Tensor, right: Tensor) -> Tensor:
        ctx.save_for_backward(f, left, right)
        products = f.new_empty(len(left))
        for start in range(0, len(left), CHUNK):
            part = slice(start, start + CHUNK)
            here, there = (f.index_select(0, index[part]) for index in (left, right))
            products[part] = torch.einsum("mc,mc->m", here, there)
        return products

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None, None]:
        f, left, right = ctx.saved_tensors  # type: ignore[attr-defined]
        both = torch.cat([left, right]).numpy(), torch.cat([right, left]).numpy()
        gradients = torch.cat([gradient, gradient]).numpy()
        return Bags.of(*both, gradients, len(f)).sums(f.detach()), None, None


@dataclass(frozen=True)
class Bags:
    """What each of some owners adds up: rows of a table, each times its weight."""

    # (owners + 1,) where an owner's members begin.
    starts: Tensor
    # (k,) rows of the table.
    members: Tensor
    # (k,) by what each is multiplied; None: by 1.
    weight: Tensor | None

    @classmethod
    def of(
        cls,
        owner: NDArray[np.integer],
        member: NDArray[np.integer],
        weight: NDArray[np.floating] | None,
        n_owners: int,
    ) -> Bags:
        """From owners, members and weights (k,) in any order; repetitions stay."""
        nothing = np.empty(len(owner), np.int8)
        rows = compressed(owner, member, nothing if weight is None else weight, n_owners)
        starts, members, weights = map(torch.from_numpy, (rows.indptr, rows.indices, rows.data))
        return cls(starts, members, None if weight is None else weights)

    def sums(self, table: Tensor) -> Tensor:
        """(owners, C) from a ``table`` (..., C) in the type of the weights."""
        return F.embedding_bag(
            self.members,
            table,
            self.starts,
            mode="sum",
            per_sample_weights=self.weight,
            include_last_offset=True,
        )


def compressed(
    row: NDArray[np.integer], column: NDArray[np.integer], value: NDArray[np.generic], n_rows: int
) -> sparse.csr_array:
    """By row, in the order in which they came; repetitions stay."""
    shape = (n_rows, int(column.max(initial=0)) + 1)
    entries = sparse.coo_array((value, (row, column)), shape=shape)
    entries.has_canonical_format = True  # or SciPy would sort each row, to add repetitions up
    return entries.tocsr()
