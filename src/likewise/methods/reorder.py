"""A result with its classes in another order: judgements never say which class has which number."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from likewise.errors import InputError
from likewise.methods.result import FitResult
from likewise.nn.networks import last_linear
from likewise.noise.annotators import AnnotatorChannel
from likewise.noise.channels import Channel, ConfusionChannel

Order = NDArray[np.int64]


def reordered(result: FitResult, order: Order) -> FitResult:
    """The same result, class k of which is what was ``order[k]`` (C,), a permutation."""
    if np.array_equal(order, np.arange(len(order))):
        return result
    cells = np.ix_(order, order)
    model = with_outputs_in_order(result.model, order)
    last = model if result.last_model is result.model else None
    return replace(
        result,
        model=model,
        last_model=last or with_outputs_in_order(result.last_model, order),
        transition=None if result.transition is None else result.transition[cells],
        marginal_transition=(
            None if result.marginal_transition is None else result.marginal_transition[cells]
        ),
        channel=_channel_in_order(result.channel, order),
        posterior=None if result.posterior is None else result.posterior[:, order],
        labels=None if result.labels is None else np.argsort(order)[result.labels],
    )


def with_outputs_in_order(model: nn.Module, order: Order) -> nn.Module:
    """The same network, its outputs (n, C) permuted, by the rows of its last layer."""
    layer = last_linear(moved := copy.deepcopy(model))
    if layer is None or layer.out_features != len(order):
        raise InputError(
            "the network does not end in a linear layer with an output a class, so that its "
            "classes cannot be renumbered; leave --like out."
        )
    index = torch.from_numpy(order).to(layer.weight.device)
    with torch.no_grad():
        layer.weight.copy_(layer.weight[index].clone())
        if layer.bias is not None:
            layer.bias.copy_(layer.bias[index].clone())
    return moved


def _channel_in_order(channel: Channel | None, order: Order) -> Channel | None:
    """Two rates have no order; a matrix over classes has."""
    index = torch.from_numpy(order)
    if isinstance(channel, ConfusionChannel):
        return replace(channel, p_same=channel.p_same[index][:, index])
    if isinstance(channel, AnnotatorChannel) and channel.eta.ndim == 2:
        return replace(channel, eta=channel.eta[index][:, index])
    return channel
