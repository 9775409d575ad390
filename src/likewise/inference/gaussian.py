"""Heads that cannot memorise, for few items with rich features: Gaussians of one shared shape.

Features are scaled to length 1. With a shared covariance the class posterior is a linear softmax;
the covariance decides how flexible it is: a sphere only knows the class means, a full one can
follow whatever the judgements say, people's shared mistakes included.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from likewise.inference.cross_fitting import Targets
from likewise.nn.model import InputLayer, Model
from likewise.nn.networks import UnitLength, UnitLinear

DRAWN = 0.5  # how far the covariance that features are judged by is drawn to a sphere


@dataclass(frozen=True)
class Features:
    """Items of length 1 in their own principal axes: ``points`` (N, r) = (x - mean) @ axes."""

    points: Tensor
    mean: Tensor
    axes: Tensor

    @classmethod
    def of(cls, items: Tensor) -> Features | None:
        """None where no item differs from another."""
        x = UnitLength()(items).double()
        mean = x.mean(0)
        _, values, axes = torch.linalg.svd(x - mean, full_matrices=False)
        keep = values > 1e-6 * values.max().clamp_min(1e-12)
        if not keep.any():
            return None
        axes = axes[keep].T
        return cls((x - mean) @ axes, mean, axes)

    @cached_property
    def variance(self) -> Tensor:
        """(r,) of the points along each axis; between the axes there is none."""
        return self.points.square().mean(0)

    def between(self, classes: Tensor) -> Tensor:
        """(C, r) root of the covariance between classes (N, C), which is ``root.T @ root``."""
        classes = classes.double()
        mass = classes.sum(0).clamp_min(1e-9)
        return classes.T @ self.points / (mass * len(self.points)).sqrt()[:, None]

    def dimensions(self, classes: Tensor) -> float:
        """How many independent directions the spread within classes amounts to.

        (sum of eigenvalues)² / sum of their squares, of the covariance within classes.
        """
        root = self.between(classes)
        trace = self.variance.sum() - root.square().sum()
        squares = self.variance.square().sum() - 2 * (root.square() @ self.variance).sum()
        squares = squares + (root @ root.T).square().sum()
        return float(trace**2 / squares.clamp_min(1e-300))

    def log_density(self, classes: Tensor) -> float:
        """Log density of the points, one Gaussian a class, over that of one Gaussian for all.

        All of one covariance, drawn halfway to a sphere: directions in which items hardly differ
        are not evidence of anything, and the others count by what the classes explain of them, be
        they large or small.
        """
        shape = DRAWN * self.variance.mean() + (1 - DRAWN) * self.variance
        root = self.between(classes)
        explained = (1 - DRAWN) * (root / shape) @ root.T  # (C, C): log det by its lemma
        eye = torch.eye(len(root), dtype=root.dtype, device=root.device)
        return float(-0.5 * len(self.points) * torch.logdet(eye - explained))


@dataclass(frozen=True)
class GaussianHead:
    """One Gaussian a class; ``stiffness`` 1 is a sphere, less lets the covariance take its shape.

    The sphere's spread is counted over ``dimensions`` independent directions; with any other shape
    the scale of the logits is left to the temperature that EM fits.
    """

    features: Features
    dimensions: float
    stiffness: float = 1.0

    @property
    def temperatures(self) -> tuple[float, ...]:
        if self.stiffness >= 1:
            return (1.0,)
        return (1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0)

    def own_evidence(self, classes: Tensor) -> float:
        return self.features.log_density(classes)

    def crossfit(
        self, targets: Targets, transition: Tensor, folds: Tensor, generator: torch.Generator
    ) -> Tensor:
        points = self.features.points
        classes = targets.classes.double() * (targets.weight > 0).double()[:, None]
        log_g = torch.zeros_like(classes)
        for fold in range(int(folds.max()) + 1):
            held = folds == fold
            weight, bias = self._fit(held, classes)
            log_g[held] = torch.log_softmax(points[held] @ weight + bias, dim=1)
        return log_g.to(targets.classes)

    def finish(self, targets: Targets, temperature: float, generator: torch.Generator) -> nn.Module:
        nobody = torch.zeros(len(targets.classes), dtype=torch.bool, device=targets.classes.device)
        weight, bias = self._fit(nobody, targets.classes.double())
        full = self.features.axes @ weight / temperature  # (d, C)
        network = UnitLinear(*full.shape)
        with torch.no_grad():
            network.linear.weight.copy_(full.T)
            network.linear.bias.copy_(bias / temperature - self.features.mean @ full)
        inputs = InputLayer(torch.zeros(len(full)), torch.ones(len(full)), images=False)
        return Model(inputs, network).to(full.device).eval()

    def _fit(self, held: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        """``(weight (r, C), bias (C,))`` of the linear softmax, from the items not ``held``."""
        points, left_out = self.features.points, self.features.points[held]
        classes = classes * ~held[:, None]
        mass = classes.sum(0).clamp_min(1e-3)
        means = classes.T @ points / mass[:, None]  # (C, r)
        n_dims = points.shape[1]
        # Principal axes: the products of all points are known, only those left out are missing.
        whole = self.features.variance * len(points)
        spread = whole.sum() - left_out.square().sum() - (means.square().sum(1) * mass).sum()
        # Where items repeat, classes may explain everything: a little is left all the same.
        spread = (spread / mass.sum()).clamp_min(1e-6 * self.features.variance.sum())
        if self.stiffness >= 1:
            weight = means.T * (self.dimensions / spread)
        else:
            scatter = torch.diag(whole) - left_out.T @ left_out - (means.T * mass) @ means
            shape = (1 - self.stiffness) / mass.sum() * scatter
            floor = 1e-6 * self.features.variance.max()
            shape.diagonal().add_((self.stiffness * spread / n_dims).clamp_min(floor))
            weight = torch.cholesky_solve(means.T, torch.linalg.cholesky(shape))
        bias = torch.log(mass / mass.sum()) - 0.5 * (means.T * weight).sum(0)
        return weight, bias
