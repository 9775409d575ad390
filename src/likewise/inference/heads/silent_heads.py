"""Heads for features that have less than their full say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from likewise.inference.heads.cross_fitting import Head, Targets, WrappedHead


@dataclass(frozen=True)
class FlatHead(WrappedHead):
    """Features without a say: every class as likely for every item, until the very end."""

    reads_transition: ClassVar[bool] = False
    classifier_chosen: ClassVar[bool] = False

    def crossfit(
        self, targets: Targets, transition: Tensor, folds: Tensor, generator: torch.Generator
    ) -> Tensor:
        return torch.log_softmax(torch.zeros_like(targets.classes), dim=1)


@dataclass(frozen=True)
class PriorHead(WrappedHead):
    """Features that help to find what people see, and know too little to say that people err."""

    reads_transition: ClassVar[bool] = False
    classifier_chosen: ClassVar[bool] = False  # but with a T


@dataclass(frozen=True)
class PerceivedHead(WrappedHead):
    """Features that say what people see, through a T that is part of their blur: what people see is
    what an item is, and f = g @ T foretells that."""


@dataclass(frozen=True)
class AsFoundHead(FlatHead):
    """A start that stands as it was found, without EM: groups of a correlation clustering, of a
    spectral one, of k-means."""


@dataclass(frozen=True)
class ShuffledHead(WrappedHead):
    """Every item with another one's features: what still helps then is not owed to features."""

    order: Tensor
    """(N,) whose features an item has."""

    def crossfit(
        self, targets: Targets, transition: Tensor, folds: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Features stay where they are: what is known of the items is moved to them, and back."""
        moved = Targets(*(vars(targets)[f.name][self.order] for f in fields(targets)))
        found = self.classifier.crossfit(moved, transition, folds[self.order], generator)
        back = torch.empty_like(found)
        back[self.order] = found
        return back

    def finish(self, targets: Targets, generator: torch.Generator) -> nn.Module:
        raise NotImplementedError("It is only to compare with.")


def with_best_classifier(
    head: Head,
    heads: Sequence[Head],
    targets: Targets,
    transition: Tensor,
    folds: Tensor,
    generator: torch.Generator,
) -> Head:
    """The same head; one whose classifier nothing chose ends in whichever of ``heads`` tells the
    classes best of items that it has not seen."""
    if not isinstance(head, WrappedHead) or head.classifier_chosen:
        return head

    def told(one: Head) -> float:
        log_g = torch.log_softmax(one.crossfit(targets, transition, folds, generator), dim=1)
        return float((targets.classes * log_g).sum(1).mean())

    return replace(head, classifier=max(heads, key=told))
