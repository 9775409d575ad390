"""Heads for features that have less than their full say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor, nn

from likewise.inference.heads.cross_fitting import Head, Targets


@dataclass(frozen=True)
class FlatHead:
    """Features without a say: every class as likely for every item, until the very end."""

    classifier: Head

    @property
    def temperatures(self) -> tuple[float, ...]:
        return (1.0,)

    def crossfit(
        self, targets: Targets, transition: Tensor, folds: Tensor, generator: torch.Generator
    ) -> Tensor:
        return torch.log_softmax(torch.zeros_like(targets.classes), dim=1)

    def finish(self, targets: Targets, temperature: float, generator: torch.Generator) -> nn.Module:
        return self.classifier.finish(targets, temperature, generator)


@dataclass(frozen=True)
class PriorHead(FlatHead):
    """Features that help to find what people see, and know too little to say that people err."""

    def crossfit(
        self, targets: Targets, transition: Tensor, folds: Tensor, generator: torch.Generator
    ) -> Tensor:
        return self.classifier.crossfit(targets, transition, folds, generator)


@dataclass(frozen=True)
class PerceivedHead:
    """The same with a T that is read as part of the features' blur: what people see is what an item
    is, and f = g @ T foretells that."""

    classifier: Head

    @property
    def temperatures(self) -> tuple[float, ...]:
        return self.classifier.temperatures

    def crossfit(
        self, targets: Targets, transition: Tensor, folds: Tensor, generator: torch.Generator
    ) -> Tensor:
        return self.classifier.crossfit(targets, transition, folds, generator)

    def finish(self, targets: Targets, temperature: float, generator: torch.Generator) -> nn.Module:
        return self.classifier.finish(targets, temperature, generator)


@dataclass(frozen=True)
class AsFoundHead(FlatHead):
    """A start that stands as it was found, without EM: groups of a correlation clustering, of a
    spectral one, of k-means."""


@dataclass(frozen=True)
class ShuffledHead:
    """Every item with another one's features: what still helps then is not owed to features."""

    classifier: Head
    order: Tensor
    """(N,) whose features an item has."""

    @property
    def temperatures(self) -> tuple[float, ...]:
        return self.classifier.temperatures

    def crossfit(
        self, targets: Targets, transition: Tensor, folds: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Features stay where they are: what is known of the items is moved to them, and back."""
        moved = Targets(*(vars(targets)[f.name][self.order] for f in fields(targets)))
        found = self.classifier.crossfit(moved, transition, folds[self.order], generator)
        back = torch.empty_like(found)
        back[self.order] = found
        return back

    def finish(self, targets: Targets, temperature: float, generator: torch.Generator) -> nn.Module:
        raise NotImplementedError("It is only to compare with.")


def with_best_classifier(
    head: Head,
    heads: Sequence[Head],
    targets: Targets,
    transition: Tensor,
    folds: Tensor,
    generator: torch.Generator,
) -> Head:
    """The same head; a silent one ends in whichever of ``heads`` tells the classes best of items
    that it has not seen: while classes were found, it had no say, and was not compared."""
    if not isinstance(head, FlatHead):
        return head

    def told(one: Head) -> float:
        log_g = torch.log_softmax(one.crossfit(targets, transition, folds, generator), dim=1)
        return float((targets.classes * log_g).sum(1).mean())

    return replace(head, classifier=max(heads, key=told))
