"""Gaussian heads take items as they come: bytes as well as floating-point numbers."""

import torch

from likewise.inference.heads.gaussian import Features


def test_bytes_are_numbers_too():
    items = torch.randint(0, 255, (12, 5), generator=torch.Generator().manual_seed(0))
    from_bytes, from_floats = Features.of(items.byte()), Features.of(items.float())
    assert from_bytes is not None
    assert from_floats is not None
    assert torch.allclose(from_bytes.points, from_floats.points)
