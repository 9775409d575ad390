"""Many short rows on a CPU: (n, C) with a handful of classes, at which torch is slow.

Its softmax handles one row at a time unless a row fills a vector register, its indexing one number
at a time, and the gradient of an indexed row is added up one by one. The same results come here
several times sooner.
"""

from __future__ import annotations

from typing import Any

import torch
from scipy import sparse
from torch import Tensor
from torch.autograd.function import once_differentiable

LANES = 16  # single-precision numbers in the widest vector register


def softmax(logits: Tensor) -> Tensor:
    """(n, C) softmax over the classes: short rows by columns, many rows at a time."""
    if logits.device.type != "cpu" or logits.shape[1] >= LANES:
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
    def forward(ctx: Any, f: Tensor, left: Tensor, right: Tensor) -> Tensor:
        ctx.save_for_backward(f, left, right)
        return torch.einsum("mc,mc->m", f.index_select(0, left), f.index_select(0, right))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        f, left, right = ctx.saved_tensors
        ends = (left.numpy(), right.numpy())
        products = sparse.coo_array((gradient.numpy(), ends), shape=(len(f), len(f)))
        rows = f.detach().numpy()
        total = products @ rows
        total += products.T @ rows
        return torch.from_numpy(total), None, None
