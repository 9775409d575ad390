"""The loss modules are the functions, with options held and moved with the module."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import likewise as lw
from likewise import functional as lf
from likewise.noise import pair_flip

TRANSITION = pair_flip(3, 0.3)


@pytest.fixture
def batch(generator):
    p = torch.randn(6, 3, generator=generator).softmax(dim=1)
    same = torch.randint(2, (6, 6), generator=generator)
    return p, same, torch.rand(6, 6, generator=generator)


@pytest.mark.parametrize("weighted", [False, True])
def test_modules_are_the_functions(batch, weighted):
    p, same, weight = batch
    weight = weight if weighted else None
    matrix = torch.as_tensor(TRANSITION)
    assert lw.MCLLoss()(p, same, weight) == lf.mcl_loss(p, same, weight)
    assert lw.MNSLoss(TRANSITION)(p, same, weight) == lf.mns_loss(p, matrix, same, weight)
    found = lw.KCLLoss(margin=0.5, fixed_target=False)(p, same, weight)
    assert found == lf.kcl_loss(p, same, weight, margin=0.5, fixed_target=False)
    assert lw.KCLLoss()(p, same, weight) == lf.kcl_loss(p, same, weight)


def test_kcl_fixes_its_target_unless_told(batch):
    p, same, _ = batch
    p.requires_grad_()
    (found,) = torch.autograd.grad(lw.KCLLoss()(p, same), p)
    (fixed,) = torch.autograd.grad(lf.kcl_loss(p, same), p)
    (free,) = torch.autograd.grad(lw.KCLLoss(fixed_target=False)(p, same), p)
    assert torch.equal(found, fixed)
    assert not torch.allclose(found, free)


def test_the_transition_layer_is_part_of_a_model(batch):
    p, same, _ = batch
    layer = lw.NoiseTransition(TRANSITION)
    torch.testing.assert_close(layer(p), p @ torch.as_tensor(TRANSITION, dtype=torch.float32))
    torch.testing.assert_close(
        lw.MCLLoss()(layer(p), same), lw.MNSLoss(TRANSITION)(p, same), atol=1e-6, rtol=0
    )
    model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1), layer)
    assert "2.transition" in model.state_dict()
    assert not list(layer.parameters())  # T is given, not learned
    assert model.double()[2].transition.dtype == torch.float64


@pytest.mark.parametrize("module", [lw.NoiseTransition, lw.MNSLoss])
def test_a_matrix_that_is_none_is_refused(module):
    with pytest.raises(lw.InputError, match=r"row 1 sums to 0.9"):
        module([[1.0, 0.0], [0.5, 0.4]])
    with pytest.raises(lw.InputError, match=r"square"):
        module([[1.0, 0.0]])
