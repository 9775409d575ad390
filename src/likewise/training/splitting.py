"""Merged classes split into outputs that are free.

The pairwise losses have bad basins: two classes share one output for good, and elsewhere an output
is empty or two of them halve a class. No small change mends that, but the judgements know. Two
outputs whose items are judged "same" as often as within one of them are one class, and one of them
is free. Among the items of a single output, a direction of the embedding along which "same" items
lie together is a border between two classes. The output is split there; a free one takes a side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import eigh
from torch import Tensor, nn

from likewise.items import Items, Selection
from likewise.nn.networks import embed, last_linear
from likewise.training.objectives.pairwise import Objective

SAMPLE = 20_000  # items that are looked at
EMPTY = 0.1  # of an even share of the items: an output with fewer is free
ALIKE = 0.85  # of the "same" within two outputs are between them: they are one class
DIRECTIONS = 20  # of the embedding, within classes, among which borders are sought
BORDER = 0.15  # of the "same" within an output is explained by its border
ACCIDENTS = 1 / 3  # of the outputs in use: more borders are a network that has learned little yet
REACH = 0.25  # of a border that a linear layer must follow, or the split stays a small one
BEYOND_CHANCE = 2.0  # times what items in random order would show
MENDABLE = 1.1  # times the held-out cost that splitting may raise it to, at first


@dataclass(frozen=True)
class _Border:
    """Where an output should be split."""

    # Judgements that it explains.
    strength: float
    # The output that is two classes.
    output: int
    # (m,) positions of its items among those that were looked at.
    members: Tensor
    # (m,) -1 or 1: on which side each lies.
    sides: Tensor


@torch.no_grad()
def split_if_mendable(
    model: nn.Module, items: Items, objective: Objective, seed: int, cost: Callable[[], Tensor]
) -> bool:
    """`split_merged_outputs`, taken back where the model's held-out ``cost`` rises beyond what
    training mends; whether anything was split."""
    before, cost_before = [p.detach().clone() for p in _output_layer(model)], cost()
    if not split_merged_outputs(model, items, objective, seed):
        return False
    if cost() > MENDABLE * cost_before:
        for learned, kept in zip(_output_layer(model), before):
            learned.copy_(kept)
        return False
    return True


@torch.no_grad()
def copy_output_layer(source: nn.Module, target: nn.Module) -> None:
    """Give a model the last linear layer of another one of its kind, in place."""
    for mine, other in zip(_output_layer(target), _output_layer(source)):
        mine.copy_(other)


def _output_layer(model: nn.Module) -> list[nn.Parameter]:
    layer = last_linear(model)
    return [] if layer is None else list(layer.parameters())


@torch.no_grad()
def split_merged_outputs(model: nn.Module, items: Items, objective: Objective, seed: int) -> int:
    """Split merged outputs of a model in place, as far as others are free; how many.

    ``items`` are the training items that the objective's judgements are about. A model that does
    not end in a linear layer is left as it is.
    """
    layer = last_linear(model)
    if layer is None or layer.bias is None or isinstance(items, Selection):
        return 0
    index, embedding = _look(model, torch.as_tensor(items), layer)
    if index is None:
        return 0
    logits = layer(embedding)
    predicted = logits.argmax(dim=1)
    free = _free_outputs(predicted, index, objective, layer.out_features)
    if not free:
        return 0
    borders = _borders(predicted, index, embedding, objective, free, layer.out_features, seed)
    if len(borders) > ACCIDENTS * (layer.out_features - len(free)):
        return 0
    splits = list(zip(sorted(borders, key=lambda border: -border.strength), free))
    # As far apart as classes usually are: the losses without T need unsure outputs.
    gap = float((logits.amax(dim=1) - logits.median(dim=1).values).median())
    for border, empty in splits:
        _split(layer, embedding, border, empty, gap)
    return len(splits)


def _look(model: nn.Module, items: Tensor, layer: nn.Linear) -> tuple[Tensor | None, Tensor]:
    """(indices, embeddings) of an even sample; no indices where the layer is not the output."""
    device = layer.weight.device
    index = torch.arange(0, len(items), max(1, len(items) // SAMPLE), device=device)
    was_training = model.training
    model.eval()
    parts = [items[part.to(items.device)].to(device) for part in torch.split(index, 2048)]
    embedding = torch.cat([embed(model, part).float() for part in parts])
    few = parts[0][:64]
    ends_here = torch.allclose(layer(embedding[: len(few)]), model(few).float(), 1e-2, 1e-2)
    model.train(was_training)
    return index if ends_here else None, embedding


def _free_outputs(
    predicted: Tensor, index: Tensor, objective: Objective, n_classes: int
) -> list[int]:
    """Outputs that nobody would miss, the emptiest first."""
    sizes = torch.bincount(predicted, minlength=n_classes)
    free = [k for k in sizes.argsort().tolist() if sizes[k] < EMPTY * len(index) / n_classes]
    found = objective.agreement(index, nn.functional.one_hot(predicted, n_classes).float())
    if found is None:
        return []
    same, asked = (matrix.double().cpu().numpy() for matrix in found)
    rates = np.divide(same, asked, out=np.zeros_like(same), where=asked > 0)
    within = np.sqrt(np.outer(np.diag(rates), np.diag(rates)))
    alike = np.divide(rates, within, out=np.zeros_like(rates), where=within > 0)
    alike[np.tril_indices(n_classes)] = 0  # each pair once
    alike[free], alike[:, free] = 0, 0
    for first, second in zip(*np.unravel_index(np.argsort(-alike, axis=None), alike.shape)):
        if alike[first, second] < ALIKE:
            break
        if first not in free and second not in free:
            free.append(int(first if sizes[first] < sizes[second] else second))
    return free


def _borders(
    predicted: Tensor,
    index: Tensor,
    embedding: Tensor,
    objective: Objective,
    free: list[int],
    n_classes: int,
    seed: int,
) -> list[_Border]:
    """The outputs that are two classes, and which items lie on which side."""
    features = _within_classes(embedding, predicted, n_classes)
    rng = np.random.default_rng([seed, 7])
    borders = []
    for output in sorted(set(range(n_classes)) - set(free)):
        members = torch.nonzero(predicted == output).squeeze(1)
        own = features[members]
        if len(own) <= 2 * DIRECTIONS:
            continue
        shuffled = own[torch.from_numpy(rng.permutation(len(own))).to(own.device)]
        explained, vector = _explained(objective, index[members], own)
        chance, _ = _explained(objective, index[members], shuffled)
        if explained > max(BORDER, BEYOND_CHANCE * chance):
            position = own @ torch.from_numpy(vector).to(own)
            strength = explained * len(own) ** 2  # in judgements
            borders.append(_Border(strength, output, members, position.sign()))
    return borders


def _within_classes(embedding: Tensor, predicted: Tensor, n_classes: int) -> Tensor:
    """(n, k) items relative to the mean of their output, in the main directions of that."""
    sizes = torch.bincount(predicted, minlength=n_classes).clamp_min(1)
    sums = embedding.new_zeros(n_classes, embedding.shape[1]).index_add_(0, predicted, embedding)
    centred = embedding - (sums / sizes[:, None])[predicted]
    # Single precision fails to converge where many features are always zero.
    values, vectors = torch.linalg.eigh((centred.T @ centred).double() / len(centred))
    kept = values > 1e-6 * values[-1]
    whitening = (vectors[:, kept] / values[kept].sqrt())[:, -DIRECTIONS:]
    features: Tensor = centred @ whitening.float()
    return features


def _explained(
    objective: Objective, items: Tensor, features: Tensor
) -> tuple[float, NDArray[np.float64]]:
    """How much of the "same" among items one direction explains, and the direction (k,)."""
    features = features - features.mean(dim=0)
    found = objective.agreement(items, torch.cat([features, torch.ones_like(features[:, :1])], 1))
    if found is None:
        return 0.0, np.zeros(features.shape[1])
    same, asked = (matrix.double().cpu().numpy() for matrix in found)
    total, pairs = same[-1, -1], asked[-1, -1]  # of the column of ones: how many
    if total <= 0 or not features.any():
        return 0.0, np.zeros(features.shape[1])
    surplus = same[:-1, :-1] - total / pairs * asked[:-1, :-1]
    spread = (features.T @ features / len(features)).double().cpu().numpy()
    ridge = 1e-3 * np.trace(spread) / len(spread) * np.eye(len(spread))
    values, vectors = eigh((surplus + surplus.T) / 2, spread + ridge)
    return float(values[-1] / total), vectors[:, -1]


def _split(layer: nn.Linear, embedding: Tensor, border: _Border, empty: int, gap: float) -> None:
    """Both outputs get the merged one's weights, less ``gap`` on the other's side of its items."""
    target = embedding.new_zeros(len(embedding))
    target[border.members] = border.sides.to(target)
    inputs = torch.cat([embedding, torch.ones_like(embedding[:, :1])], dim=1)
    gram = inputs.T @ inputs
    ridge = 1e-3 * gram.diagonal().mean() * torch.eye(len(gram), device=gram.device)
    direction = torch.linalg.solve(gram + ridge, inputs.T @ target)
    fitted = (inputs @ direction)[border.members] * border.sides
    half = gap / 2 * direction / fitted.mean().clamp_min(REACH)
    weight, bias = layer.weight[border.output].clone(), layer.bias[border.output].clone()
    for output, side in ((border.output, half), (empty, -half)):
        layer.weight[output] = weight + side[:-1]
        layer.bias[output] = bias + side[-1] - gap / 2
