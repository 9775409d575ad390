"""All weights rounded at once compute what autocast computes, forwards and backwards."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from likewise.nn.bf16_weights import Bf16Weights, takes_other_weights
from likewise.nn.networks import build_network


def gradients(model: nn.Module, forward: nn.Module, x: Tensor) -> tuple[Tensor, list[Tensor]]:
    model.zero_grad(set_to_none=True)
    with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
        out = forward(x)
    out.float().square().sum().backward()
    return out, [p.grad for p in model.parameters() if p.grad is not None]


def test_the_same_outputs_and_gradients_as_autocast() -> None:
    model = build_network("resnet32", (3, 16, 16), 5)
    x = torch.randn(8, 3, 16, 16)
    out, expected = gradients(model, model, x)
    rounded, found = gradients(model, Bf16Weights(model), x)
    assert torch.equal(out, rounded)
    assert len(found) == len(list(model.parameters()))
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == torch.float32
        assert torch.equal(mine, theirs)


def test_only_the_layers_that_autocast_rounds() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    assert Bf16Weights(model)._names == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_shared_weights_get_the_sum_of_their_gradients() -> None:
    layer = nn.Linear(4, 4)
    model = nn.Sequential(layer, nn.Tanh(), layer)
    x = torch.randn(6, 4)
    _, expected = gradients(model, model, x)
    _, found = gradients(model, Bf16Weights(model), x)
    for mine, theirs in zip(found, expected, strict=True):
        assert torch.allclose(mine, theirs, rtol=2e-2, atol=2e-2)


def test_the_model_itself_stays_in_single_precision() -> None:
    model = build_network("lenet", (1, 28, 28), 10)
    gradients(model, Bf16Weights(model), torch.randn(4, 1, 28, 28))
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_scripted_models_keep_their_own_weights() -> None:
    layer = nn.Linear(3, 2)
    assert takes_other_weights(nn.Sequential(layer))
    assert not takes_other_weights(nn.Sequential(torch.jit.trace(layer, torch.zeros(1, 3))))
