"""A channel for people who differ: each is of a *type*, inferred as an item's class is.

P(same | z_i = a, z_j = b, type t) = sigmoid(bias_t + attention_t * eta[a, b]). The types are a
fixed grid: the bias leans to "same" or to "different", attention 0 answers without looking.
``eta`` is shared: (2,) for (equal, different), or a symmetric (C, C) matrix where some classes are
harder to tell apart. A prior over the types, learned from everybody, is what thirty judgements
from one person are read against.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

BIASES = (-6.0, -3.0, -2.0, -1.25, -0.6, 0.0, 0.6, 1.25, 2.0, 3.0, 6.0)
ATTENTIONS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0)
ETA_PRIOR_VARIANCE = 4.0
TYPE_PRIOR = 0.2  # pseudo-annotators a type: none is ruled out


def type_grid() -> tuple[Tensor, Tensor]:
    """``(bias (K,), attention (K,))`` of every type."""
    bias, attention = torch.meshgrid(
        torch.tensor(BIASES, dtype=torch.float64),
        torch.tensor(ATTENTIONS, dtype=torch.float64),
        indexing="ij",
    )
    return bias.reshape(-1), attention.reshape(-1)


@dataclass(frozen=True, eq=False)
class AnnotatorChannel:
    """K types of annotators over a shared ``eta``, of R annotators; see the module's text."""

    eta: Tensor  # (2,) or (C, C) how alike two perceived classes look: positive leans to "same"
    type_posterior: Tensor  # (R, K) each annotator's type, given that person's answers
    type_prior: Tensor  # (K,) how common each type is

    @classmethod
    def start(cls, n_annotators: int, eta: Tensor) -> AnnotatorChannel:
        """Everybody of unknown type, attentive types a little more common than others."""
        bias, attention = type_grid()
        log_prior = -0.5 * (bias / 1.5) ** 2 - 0.5 * (attention - 1.0) ** 2
        prior = torch.softmax(log_prior, dim=0)
        return cls(eta.double(), prior.expand(n_annotators, -1).clone(), prior)

    @classmethod
    def from_rates(cls, a: float, b: float, n_annotators: int) -> AnnotatorChannel:
        """A start at two rates: ``eta`` is what an attentive, unbiased person would need."""
        rates = torch.tensor([a, b], dtype=torch.float64)
        return cls.start(n_annotators, torch.logit(rates.clamp(0.02, 0.98)))

    @classmethod
    def at_rates(cls, a: float, b: float, n_classes: int, n_annotators: int) -> AnnotatorChannel:
        """The same, by the signature that all channels share."""
        return cls.from_rates(a, b, n_annotators)

    def with_classes(self, n_classes: int) -> AnnotatorChannel:
        """The same channel with a (C, C) ``eta``, equal at first for all pairs of classes."""
        eye = torch.eye(n_classes, dtype=torch.bool)
        return replace(self, eta=torch.where(eye, self.eta[0], self.eta[1]))

    def __repr__(self) -> str:
        kind = "two rates" if self.two_rate else f"{len(self.eta)} classes"
        return f"AnnotatorChannel({self.n_annotators} annotators, {kind})"

    @property
    def two_rate(self) -> bool:
        return self.eta.ndim == 1

    @property
    def n_annotators(self) -> int:
        return self.type_posterior.shape[0]

    def groups(self, same: Tensor, annotator: Tensor | None) -> Tensor:
        if annotator is None:
            raise ValueError("an AnnotatorChannel needs the annotator of every judgement")
        return annotator.to(torch.int64) * 2 + same.to(torch.int64)

    def log_table(self) -> Tensor:
        # Expected log likelihood under the type posterior: the variational message to the items.
        table: Tensor = torch.tensordot(self.type_posterior, self._type_tables(), dims=1)
        return table.reshape(-1, *self.eta.shape)

    def update(self, statistics: Tensor) -> AnnotatorChannel:
        """New types and ``eta`` from expected counts (2R, 2) or (2R, C, C)."""
        counts = statistics.double().reshape(self.n_annotators, 2, *self.eta.shape)
        if not self.two_rate:
            counts = (counts + counts.mT) / 2
        posterior, prior = self._update_types(counts)
        weighted = torch.tensordot(posterior.T, counts, dims=1)  # (K, 2, ...)
        return AnnotatorChannel(self._update_eta(weighted), posterior, prior)

    def rates(self) -> Tensor:
        """(R, 2) each annotator's P(same | equal) and P(same | different), posterior means."""
        p_same = self._p_same()
        if not self.two_rate:
            eye = torch.eye(self.eta.shape[0], dtype=torch.bool)
            p_same = torch.stack([p_same[:, eye].mean(1), p_same[:, ~eye].mean(1)], dim=1)
        return self.type_posterior @ p_same

    def same_tables(self, n_classes: int) -> Tensor:
        """(R + 1, C, C) P(same | z, z') of each annotator, and last of one never heard before."""
        p_same = self._p_same()
        if self.two_rate:
            equal = torch.eye(n_classes, dtype=torch.bool)
            p_same = torch.where(equal, p_same[:, 0, None, None], p_same[:, 1, None, None])
        types = torch.cat([self.type_posterior, self.type_prior[None]])
        tables: Tensor = torch.tensordot(types, p_same, dims=1)
        return tables

    def predict_same(self, f_left: Tensor, f_right: Tensor) -> Tensor:
        p: Tensor = torch.tensordot(self.type_prior, self._p_same(), dims=1).to(f_left)
        if self.two_rate:
            return p[1] + (p[0] - p[1]) * (f_left * f_right).sum(-1)
        return ((f_left @ p) * f_right).sum(-1)

    def to_dict(self) -> dict[str, object]:
        return {
            "kind": "annotator",
            "eta": self.eta.tolist(),
            "type_posterior": self.type_posterior.tolist(),
            "type_prior": self.type_prior.tolist(),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, object]) -> AnnotatorChannel:
        """From `to_dict`, less its ``kind``."""
        return cls(
            **{name: torch.tensor(value, dtype=torch.float64) for name, value in fields.items()}
        )

    def _logits(self) -> Tensor:
        """(K, 2) or (K, C, C) logits of "same" of each type."""
        bias, attention = type_grid()
        shape = (-1,) + (1,) * self.eta.ndim
        return bias.view(shape) + attention.view(shape) * self.eta

    def _p_same(self) -> Tensor:
        return torch.sigmoid(self._logits()).clamp(1e-4, 1 - 1e-4)

    def _type_tables(self) -> Tensor:
        """(K, 2 answers, ...) log P(answer | classes, type)."""
        p = self._p_same()
        return torch.stack([torch.log1p(-p), torch.log(p)], dim=1)

    def _update_types(self, counts: Tensor) -> tuple[Tensor, Tensor]:
        likelihood = torch.einsum("rn,kn->rk", counts.flatten(1), self._type_tables().flatten(1))
        prior = self.type_prior
        for _ in range(5):  # empirical Bayes: the prior is what the annotators turn out to be
            posterior = torch.softmax(likelihood + torch.log(prior), dim=1)
            prior = posterior.sum(0) + TYPE_PRIOR
            prior = prior / prior.sum()
        return posterior, prior

    def _update_eta(self, weighted: Tensor) -> Tensor:
        """Newton steps, each cell on its own: the expected log likelihood is concave in it."""
        bias, attention = type_grid()
        shape = (-1,) + (1,) * self.eta.ndim
        attention = attention.view(shape)
        bias = bias.view(shape)
        centre = self._eta_prior_mean()
        eta = self.eta
        total = weighted.sum(1)
        for _ in range(8):
            p = torch.sigmoid(bias + attention * eta)
            slope = (attention * (weighted[:, 1] - total * p)).sum(0)
            curvature = (attention**2 * total * p * (1 - p)).sum(0)
            slope = slope - (eta - centre) / ETA_PRIOR_VARIANCE
            step = slope / (curvature + 1 / ETA_PRIOR_VARIANCE)
            eta = (eta + step.clamp(-1, 1)).clamp(-6, 6)
        return eta

    def _eta_prior_mean(self) -> Tensor:
        """Attention 1 means about nine right answers in ten; it also fixes eta's scale."""
        if self.two_rate:
            return torch.tensor([2.0, -2.0], dtype=torch.float64)
        eye = torch.eye(self.eta.shape[0], dtype=torch.bool)
        # A cell falls back to what all cells of its kind say.
        return torch.where(eye, self.eta[eye].mean(), self.eta[~eye].mean())
