"""Channels: how an answer "same" or "different" comes from two perceived classes.

A channel is a small immutable object, P(same = 1 | z_i, z_j), with the same few methods:

- ``groups(same, annotator)``: judgements with one likelihood table share a *group* (M,);
- ``log_table()``: log P(answer | z_i, z_j) of each group, ``(G, 2)`` for (equal, different) where
  the channel sees no more than that (``two_rate``), otherwise ``(G, C, C)``;
- ``update(statistics)``: the M-step, from expected counts in the shape of ``log_table()``;
- ``predict_same(f_left, f_right)``: P(same) of two perceived-class posteriors;
- ``to_dict()``: plain JSON, read back by ``from_dict()`` (`likewise.noise.registry` knows whose);
- ``at_rates(a, b, ...)``: where its estimation starts from, two overall rates of "same".

Every estimate has a prior, so that few judgements, or none, still give a proper channel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from likewise.errors import InputError

# What an exact channel allows for: a person's one slip must not make all else impossible.
SLIP = 1e-4


class Channel(Protocol):
    """What inference and EM ask of a channel."""

    @property
    def two_rate(self) -> bool:
        """Whether the answer depends only on z_i = z_j, so that messages take O(C) an edge."""

    def groups(self, same: Tensor, annotator: Tensor | None) -> Tensor:
        """(M,) group of each judgement, from answers (M,) bool and annotator codes (M,)."""

    def log_table(self) -> Tensor:
        """(G, 2) or (G, C, C) log P(answer | z_i, z_j), float64."""

    def update(self, statistics: Tensor) -> Channel:
        """The channel that fits expected counts (the shape of ``log_table()``) and the prior."""

    def predict_same(self, f_left: Tensor, f_right: Tensor) -> Tensor:
        """(M,) P(same) of perceived-class posteriors (M, C) and (M, C)."""

    def to_dict(self) -> dict[str, object]:
        """Plain numbers and lists, and its ``kind``."""


class ChannelClass(Protocol):
    """How a channel is made: what its class has beside the methods of the channel."""

    def from_dict(self, fields: Mapping[str, object]) -> Channel:
        """From ``to_dict()``, less its ``kind``."""

    def at_rates(self, a: float, b: float, n_classes: int, n_annotators: int) -> Channel:
        """Where estimation starts: P(same | z equal) = a, P(same | z different) = b."""


def number(value: object) -> float:
    """A number out of JSON, or a `TypeError`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def answer_groups(same: Tensor) -> Tensor:
    """(M,) 0 for "different", 1 for "same": the groups of every channel without annotators."""
    return same.to(torch.int64)


def bernoulli_log_table(p_same: Tensor) -> Tensor:
    """log P(answer) for answers 0 and 1 along a new first axis, from P(same) of any shape."""
    return torch.stack([torch.log1p(-p_same), torch.log(p_same)])


@dataclass(frozen=True)
class RateChannel:
    """Two rates of "same": where perceived classes are equal, and where they differ."""

    a: float = 0.9  # P(same | z equal)
    b: float = 0.1  # P(same | z different)
    prior: float = 2.0  # strength, in judgements, of the Beta priors (means .9 and .1)

    def __post_init__(self) -> None:
        for name, rate in (("a", self.a), ("b", self.b)):
            if not 0 < rate < 1:
                raise InputError(f"the rate {name} must lie between 0 and 1, but is {rate}.")

    @property
    def two_rate(self) -> bool:
        return True

    def groups(self, same: Tensor, annotator: Tensor | None) -> Tensor:
        return answer_groups(same)

    def log_table(self) -> Tensor:
        return bernoulli_log_table(torch.tensor([self.a, self.b], dtype=torch.float64))

    def update(self, statistics: Tensor) -> RateChannel:
        counts = statistics.double()  # (2 answers, [equal, different])
        mean = torch.tensor([0.9, 0.1], dtype=torch.float64)
        rates = (counts[1] + self.prior * mean) / (counts.sum(0) + self.prior)
        a, b = rates.clamp(1e-6, 1 - 1e-6).tolist()
        return RateChannel(a, b, self.prior)

    def predict_same(self, f_left: Tensor, f_right: Tensor) -> Tensor:
        return self.b + (self.a - self.b) * (f_left * f_right).sum(-1)

    def to_dict(self) -> dict[str, object]:
        return {"kind": "rate", "a": self.a, "b": self.b, "prior": self.prior}

    @classmethod
    def from_dict(cls, fields: Mapping[str, object]) -> RateChannel:
        return cls(**{name: number(value) for name, value in fields.items()})

    @classmethod
    def at_rates(cls, a: float, b: float, n_classes: int, n_annotators: int) -> RateChannel:
        return cls(a, b)


@dataclass(frozen=True)
class ExactChannel:
    """The paper's channel: "same" exactly where the perceived classes are equal.

    Inference merges items joined by "same" instead of passing messages.
    """

    slip: float = SLIP  # of a judgement that contradicts merged items: evidence stays finite

    @property
    def two_rate(self) -> bool:
        return True

    def groups(self, same: Tensor, annotator: Tensor | None) -> Tensor:
        return answer_groups(same)

    def log_table(self) -> Tensor:
        rates = torch.tensor([1 - self.slip, self.slip], dtype=torch.float64)
        return bernoulli_log_table(rates)

    def update(self, statistics: Tensor) -> ExactChannel:
        return self

    def predict_same(self, f_left: Tensor, f_right: Tensor) -> Tensor:
        return (f_left * f_right).sum(-1)

    def to_dict(self) -> dict[str, object]:
        return {"kind": "exact", "slip": self.slip}

    @classmethod
    def from_dict(cls, fields: Mapping[str, object]) -> ExactChannel:
        return cls(**{name: number(value) for name, value in fields.items()})

    @classmethod
    def at_rates(cls, a: float, b: float, n_classes: int, n_annotators: int) -> ExactChannel:
        return cls()


@dataclass(frozen=True, eq=False)
class ConfusionChannel:
    """A matrix of P(same | z_i, z_j): some classes are told apart less well.

    A pair of classes that was seldom judged falls back to the two overall rates.
    """

    p_same: Tensor  # (C, C) P(same | z_i, z_j), symmetric
    prior: float = 10.0  # judgements of the two overall rates added to each cell

    def __post_init__(self) -> None:
        p = self.p_same
        if p.ndim != 2 or p.shape[0] != p.shape[1]:
            raise InputError(f"p_same must be a square matrix, but has shape {tuple(p.shape)}.")
        if not bool(((p > 0) & (p < 1)).all()):
            raise InputError("p_same must hold probabilities strictly between 0 and 1.")
        if not torch.allclose(p, p.T, atol=1e-6):
            raise InputError("p_same must be symmetric: a judgement has no order.")

    @classmethod
    def from_rates(
        cls, a: float, b: float, n_classes: int, prior: float = 10.0
    ) -> ConfusionChannel:
        """Every diagonal cell ``a``, every other ``b``."""
        eye = torch.eye(n_classes, dtype=torch.float64)
        return cls(b + (a - b) * eye, prior)

    @property
    def two_rate(self) -> bool:
        return False

    def groups(self, same: Tensor, annotator: Tensor | None) -> Tensor:
        return answer_groups(same)

    def log_table(self) -> Tensor:
        return bernoulli_log_table(self.p_same.double())

    def update(self, statistics: Tensor) -> ConfusionChannel:
        counts = statistics.double()
        counts = counts + counts.mT  # a judgement has no order: count it both ways round
        eye = torch.eye(counts.shape[-1], dtype=torch.bool)
        pooled = RateChannel().update(
            torch.stack([counts[:, eye].sum(1), counts[:, ~eye].sum(1)], dim=1)
        )
        base = torch.where(eye, pooled.a, pooled.b).double()
        p = (counts[1] + self.prior * base) / (counts.sum(0) + self.prior)
        return ConfusionChannel(p.clamp(1e-6, 1 - 1e-6), self.prior)

    def predict_same(self, f_left: Tensor, f_right: Tensor) -> Tensor:
        return ((f_left @ self.p_same.to(f_left)) * f_right).sum(-1)

    def to_dict(self) -> dict[str, object]:
        return {"kind": "confusion", "p_same": self.p_same.tolist(), "prior": self.prior}

    @classmethod
    def from_dict(cls, fields: Mapping[str, object]) -> ConfusionChannel:
        p_same = torch.tensor(fields["p_same"], dtype=torch.float64)
        return cls(p_same, number(fields["prior"]))

    @classmethod
    def at_rates(cls, a: float, b: float, n_classes: int, n_annotators: int) -> ConfusionChannel:
        return cls.from_rates(a, b, n_classes)
