"""The stacked networks of a cross-fit: gradients by hand are autograd's."""

from __future__ import annotations

import torch

from likewise.inference.heads.ensemble import Bank, StackedMLPs, forward_corrected, make_bank
from likewise.nn.model import InputLayer, Model
from likewise.nn.networks import build_network
from likewise.noise import pair_flip


def test_gradients_by_hand_are_those_of_autograd() -> None:
    generator = torch.Generator().manual_seed(0)
    items = torch.randn(40, 6, generator=generator)
    networks = [
        Model(InputLayer.fit(items.numpy()), build_network("mlp", (6,), 5, seed))
        for seed in range(3)
    ]
    bank = make_bank(networks)
    assert isinstance(bank, StackedMLPs)
    batch = torch.randint(40, (3, 12), generator=generator)
    target = torch.rand(3, 12, 5, generator=generator).softmax(dim=2)
    transition = torch.as_tensor(pair_flip(5, 0.3), dtype=torch.float32)
    prepared = bank.prepare(items)[batch]
    kept = prepared.clone()
    bank.backward(prepared, target, transition)
    assert torch.equal(prepared, kept)
    found = [parameter.grad for parameter in bank.parameters()]
    Bank.backward(bank, prepared, target, transition)
    for parameter, by_hand in zip(bank.parameters(), found):
        torch.testing.assert_close(by_hand, parameter.grad, rtol=1e-4, atol=1e-6)


def test_what_no_class_explains_leaves_the_gradient_finite() -> None:
    items = torch.randn(8, 4, generator=torch.Generator().manual_seed(1))
    bank = make_bank([Model(InputLayer.fit(items.numpy()), build_network("mlp", (4,), 3, 0))])
    never = torch.zeros(3, 3)
    never[:, 0] = 1.0  # nobody is ever taken for the second class
    target = torch.eye(3)[1].expand(1, 8, 3)
    prepared = bank.prepare(items)[None]
    bank.backward(prepared, target, never)
    assert all(float(p.grad.abs().sum()) == 0 for p in bank.parameters() if p.grad is not None)
    assert torch.isfinite(forward_corrected(bank(prepared), target, never))
