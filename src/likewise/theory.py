"""The generalisation bound of the paper (Theorem 1) for a trained feed-forward network."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import nn

from likewise.errors import InputError


@dataclass(frozen=True)
class Bound:
    """Theorem 1 by its terms: R(f) - R_n(f) <= complexity + confidence, w. p. 1 - delta."""

    complexity: float
    confidence: float
    frobenius_norms: tuple[float, ...]

    @property
    def value(self) -> float:
        return self.complexity + self.confidence


def generalisation_bound(
    module: nn.Module,
    *,
    n_judgements: int,
    n_classes: int,
    input_norm: float,
    loss_bound: float,
    delta: float = 0.05,
) -> Bound:
    """Bound on the excess of the expected pairwise risk over the training risk.

    2 B C (sqrt(2 d log 2) + 1) prod_i M_i / sqrt(n)  +  M sqrt(log(1/delta) / (2 n))

    with d layers of Frobenius norms M_i, inputs of norm at most B (``input_norm``), n judgements
    and a loss of at most M (``loss_bound``). It assumes what the theorem does: a plain chain of
    linear layers (convolutions count by their kernels) with 1-Lipschitz, positively homogeneous
    activations such as ReLU and *no* biases, T given, and judgements drawn independently (all
    pairs of one sample are not). Biases, normalisation layers and shortcuts are outside of it;
    modules that hold the latter two are refused, biases are left out of the norms. Like most such
    bounds it is far above 1 for networks of practical size: it shows the rate, not a guarantee.
    """
    if n_judgements < 1 or not 0 < delta < 1 or input_norm < 0 or loss_bound < 0:
        raise InputError(
            "the bound needs n_judgements >= 1, 0 < delta < 1, input_norm >= 0, loss_bound >= 0."
        )
    allowed = (nn.Linear, nn.Conv2d, nn.ReLU, nn.Flatten, nn.MaxPool2d, nn.Identity, nn.Sequential)
    for layer in module.modules():
        if not isinstance(layer, allowed):
            raise InputError(
                f"Theorem 1 is about plain feed-forward ReLU networks; {type(layer).__name__} "
                "is outside its assumptions."
            )
    layers = [m for m in module.modules() if isinstance(m, nn.Linear | nn.Conv2d)]
    if not layers:
        raise InputError("the network has no linear layer, so there is nothing to bound.")
    norms = tuple(float(layer.weight.detach().double().norm()) for layer in layers)
    depth = len(norms)
    capacity = (math.sqrt(2 * depth * math.log(2)) + 1) * math.prod(norms)
    return Bound(
        complexity=2 * input_norm * n_classes * capacity / math.sqrt(n_judgements),
        confidence=loss_bound * math.sqrt(math.log(1 / delta) / (2 * n_judgements)),
        frobenius_norms=norms,
    )
