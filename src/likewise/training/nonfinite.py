"""Numbers that stop being finite: found where they arise, and said in words.

Everything until `complaint` stays on the device, so that a captured step can do it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def drop_batch(
    loss: Tensor, gradients: Sequence[Tensor], buffers: Sequence[Tensor], before: Sequence[Tensor]
) -> Tensor:
    """Undo what a batch did if its loss or gradient is not finite; whether that was so, a bool ().

    Its ``gradients`` become zero, and the ``buffers`` (of normalisation layers) what they were
    ``before``.
    """
    norms = torch.stack([*torch._foreach_norm(list(gradients)), loss.detach().float()])
    good = norms.isfinite().all()
    for gradient in gradients:
        gradient.copy_(torch.where(good, gradient, torch.zeros_like(gradient)))
    for buffer, kept in zip(buffers, before, strict=True):
        buffer.copy_(torch.where(good, buffer, kept))
    return ~good


def epoch_figures(losses: Tensor, skipped: Tensor) -> Tensor:
    """(4,) of an epoch's batch losses: their mean, the mean of the finite ones, how many batches
    were skipped, and the first batch whose loss is not finite (-1: none)."""
    finite = losses.isfinite()
    mean_finite = torch.where(finite, losses, 0.0).sum() / finite.sum()
    first = torch.where(finite.all(), -1, (~finite).int().argmax())
    return torch.stack([t.to(torch.float32) for t in (losses.mean(), mean_finite, skipped, first)])


def complaint(
    epoch: int, loss: float, held_out: float, batch: int, batches: int, lr: float
) -> str | None:
    """What went wrong in an epoch and the likely cause, in one sentence; None if nothing did."""
    if math.isfinite(loss) and math.isfinite(held_out):
        return None
    remedy = f"a lower learning rate than {lr:g} usually helps, or items on a smaller scale."
    if math.isfinite(loss):
        return f"the held-out cost became {held_out} after epoch {epoch}; {remedy}"
    if epoch == 0 and batch == 0:
        return (
            f"the loss is not finite from the first batch on (epoch 0, batch 0 of {batches}): the "
            "network's outputs overflow; give items on a smaller scale, or another network."
        )
    return (
        f"the loss stopped being finite in epoch {epoch}, batch {batch} of {batches}, by that "
        f"batch or by the update before it; {remedy}"
    )
