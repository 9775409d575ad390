"""Our AdamW against torch's own, to the last bit."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from likewise.training.adamw import AdamW


def parameters() -> list[Tensor]:
    source = torch.Generator().manual_seed(0)
    shapes = [(4, 7), (7,), (3, 5, 20)]
    return [torch.randn(shape, generator=source, requires_grad=True) for shape in shapes]


def pretend(tensors: list[Tensor], step: int) -> None:
    """Gradients of a step; the second parameter has none in every other step."""
    source = torch.Generator().manual_seed(step)
    for k, tensor in enumerate(tensors):
        gradient = torch.randn(tensor.shape, generator=source)
        tensor.grad = None if k == 1 and step % 2 else gradient


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_the_numbers_are_torchs(decay: float) -> None:
    ours, theirs = parameters(), parameters()
    mine = AdamW(ours, lr=0.01, weight_decay=decay)
    reference = torch.optim.AdamW(theirs, lr=0.01, weight_decay=decay, fused=True)
    for step in range(7):
        for optimizer, tensors in ((mine, ours), (reference, theirs)):
            pretend(tensors, step)
            optimizer.param_groups[0]["lr"] = 0.01 / (step + 1)
            optimizer.step()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=0, rtol=0)
        assert mine.state[a].keys() == reference.state[b].keys()
        for name, value in reference.state[b].items():
            torch.testing.assert_close(mine.state[a][name], value, atol=0, rtol=0)


def test_gradients_are_forgotten() -> None:
    tensors = parameters()
    optimizer = AdamW(tensors)
    optimizer.step()  # nothing to do yet
    pretend(tensors, 0)
    optimizer.zero_grad(set_to_none=False)
    assert all(not t.grad.any() for t in tensors if t.grad is not None)
    assert tensors[0].grad is not None
    optimizer.zero_grad()
    assert all(t.grad is None for t in tensors)
