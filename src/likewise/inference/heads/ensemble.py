"""Several networks of one kind in training side by side: the folds of a cross-fit.

Small multilayer perceptrons are stacked, so that one batched product serves all of them; anything
else runs one after the other. What is learned is the same.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from likewise.nn.cpu_kernels import softmax
from likewise.nn.model import Model
from likewise.nn.networks import MLP

EVALUATION_BATCH = 8192
TINY = 1e-12


def forward_corrected(logits: Tensor, target: Tensor, transition: Tensor) -> Tensor:
    """Cross-entropy of f = g @ T against targets, (K, n, C): the sum of each network's mean."""
    g = softmax(logits.flatten(0, 1)).view_as(logits)
    log_f = torch.log((g @ transition).clamp_min(TINY))
    return -(target * log_f).sum() / logits.shape[1]


class Bank(nn.Module):
    """K networks; ``forward`` takes (K, n, ...) prepared items and returns (K, n, C) logits."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def prepare(self, items: Tensor) -> Tensor:
        """(N, ...) items as ``forward`` takes them: what is the same at every step, done once."""
        return items

    def forward(self, items: Tensor) -> Tensor:
        return torch.stack([net(part) for net, part in zip(self.networks, items)])

    def backward(self, items: Tensor, target: Tensor, transition: Tensor) -> None:
        """Gradients of `forward_corrected` over (K, n, ...) prepared items and (K, n, C) targets,
        left at the parameters in place of what was there."""
        for parameter in self.parameters():
            parameter.grad = None
        loss = forward_corrected(self(items), target, transition)
        loss.backward()  # type: ignore[no-untyped-call]

    def network(self, index: int) -> nn.Module:
        """Network ``index`` alone, sharing nothing with the bank."""
        return copy.deepcopy(self.networks[index])

    @torch.no_grad()
    def predict(self, items: Tensor, rows: Sequence[Tensor]) -> list[Tensor]:
        """(n_k, C) log g of the prepared items at ``rows[k]``, by network k."""
        self.eval()
        length = max(len(part) for part in rows)
        # Shorter parts repeat their first row, so that all of them go through side by side.
        padded = torch.stack([torch.cat([r, r[:1].expand(length - len(r))]) for r in rows])
        parts = [self(items[part]) for part in torch.split(padded, EVALUATION_BATCH, dim=1)]
        log_g = torch.log_softmax(torch.cat(parts, dim=1), dim=2)
        return [log_g[k, : len(part)] for k, part in enumerate(rows)]


class StackedMLPs(Bank):
    """K multilayer perceptrons behind one input layer, their weights stacked."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        nn.Module.__init__(self)
        first = networks[0]
        assert isinstance(first, Model)
        self._template = [copy.deepcopy(first)]  # in a list: not a part of the bank's parameters
        self.inputs = copy.deepcopy(first.inputs)
        layers = [[m for m in net.modules() if isinstance(m, nn.Linear)] for net in networks]
        self.weights = nn.ParameterList(
            torch.stack([layer.weight.detach().T for layer in same]) for same in zip(*layers)
        )
        self.biases = nn.ParameterList(
            torch.stack([layer.bias.detach()[None] for layer in same]) for same in zip(*layers)
        )

    @torch.no_grad()
    def prepare(self, items: Tensor) -> Tensor:
        scaled: Tensor = self.inputs(items)
        return scaled.flatten(1)

    def forward(self, items: Tensor) -> Tensor:
        x = items
        for depth, (weight, bias) in enumerate(zip(self.weights, self.biases)):
            x = torch.baddbmm(bias, torch.relu(x) if depth else x, weight)
        return x

    @torch.no_grad()
    def backward(self, items: Tensor, target: Tensor, transition: Tensor) -> None:
        # By hand: at this size autograd's bookkeeping takes longer than the arithmetic.
        layers = list(zip(self.weights, self.biases))  # reading a ParameterList takes its time
        inputs: list[Tensor] = []
        x = items
        for weight, bias in layers:
            inputs.append(x.relu_() if inputs else x)
            x = torch.baddbmm(bias, inputs[-1], weight)
        g = x.softmax(dim=2)
        f = g @ transition
        slope = torch.where(f > TINY, target / f, 0.0) @ transition.T
        slope = g * (slope - (g * slope).sum(2, keepdim=True)).mul_(-1 / items.shape[1])
        for (weight, bias), x in zip(reversed(layers), reversed(inputs)):
            weight.grad, bias.grad = x.mT @ slope, slope.sum(1, keepdim=True)
            if x is not items:
                slope = torch.ops.aten.threshold_backward(slope @ weight.mT, x, 0)

    def network(self, index: int) -> nn.Module:
        module = copy.deepcopy(self._template[0])
        linears = [m for m in module.modules() if isinstance(m, nn.Linear)]
        with torch.no_grad():
            for linear, weight, bias in zip(linears, self.weights, self.biases):
                linear.weight.copy_(weight[index].T)
                linear.bias.copy_(bias[index, 0])
        return module


def make_bank(networks: Sequence[nn.Module]) -> Bank:
    """Stacked where every network is an `MLP` behind an input layer, one by one otherwise."""
    stackable = all(
        isinstance(net, Model) and type(net.network) is MLP and not net.flip_tta for net in networks
    )
    return StackedMLPs(networks) if stackable else Bank(networks)
