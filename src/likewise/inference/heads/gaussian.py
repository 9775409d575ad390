"""Heads that cannot memorise, for few items with rich features: Gaussians of one shared shape.

Features are scaled to length 1. With a shared covariance the class posterior is a linear softmax;
the covariance decides how flexible it is: a sphere only knows the class means, a full one can
follow whatever the judgements say, people's shared mistakes included.

How sure that softmax may be is read off the items, not off the judgements: in the plane of the
C - 1 directions that tell the classes apart (linear discriminant analysis, Fisher 1936), out of
fold, the classes are Gaussians of one covariance. Where two of them overlap there, the posterior is
in doubt and judgements decide; where they lie apart, an item in the midst of one class that people
take for another is a mistake that people share.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor, nn

from likewise.inference.heads.cross_fitting import Targets
from likewise.nn.model import InputLayer, Model
from likewise.nn.networks import UnitLength, UnitLinear

FOLDS = 4  # by which the last classifier is calibrated
RIDGE = 1e-4  # of the mean variance, where classes explain everything


@dataclass(frozen=True)
class Features:
    """Items of length 1 in their own principal axes: ``points`` (N, r) = (x - mean) @ axes."""

    points: Tensor
    mean: Tensor
    axes: Tensor

    @classmethod
    def of(cls, items: Tensor) -> Features | None:
        """None where no item differs from another."""
        numbers = items if items.is_floating_point() else items.float()  # bytes have no norm
        x = UnitLength()(numbers).double()
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


@dataclass(frozen=True)
class Discriminants:
    """Classes as Gaussians of one covariance in the plane of their discriminants (r = C - 1)."""

    contrasts: Tensor
    """(C, r) orthonormal: scores (n, C) @ contrasts are points of the plane."""
    means: Tensor
    """(C, r) of the classes."""
    root: Tensor
    """(r, r) Cholesky factor of the covariance within classes."""
    log_share: Tensor
    """(C,) log of how common the classes are."""

    @classmethod
    def of(cls, scores: Tensor, classes: Tensor) -> Discriminants:
        """Fitted to scores (N, C) of items out of fold, and their classes (N, C)."""
        n_items, n_classes = scores.shape
        contrasts = _contrasts(n_classes).to(scores)
        points = scores @ contrasts
        mass = classes.sum(0)
        # One item at the centre for each class: a class of two items has hardly a mean.
        means = (classes.T @ points + points.mean(0)) / (mass + 1)[:, None]
        scatter = points.T @ (points * classes.sum(1, keepdim=True))
        cross = (classes.T @ points).T @ means
        scatter = scatter - cross - cross.T + (means.T * mass) @ means
        covariance = scatter / mass.sum().clamp_min(1e-9)
        root = _shrunk_root(covariance, n_items, points.var(0, correction=0).mean())
        return cls(contrasts, means, root, torch.log((mass + 1) / (mass + 1).sum()))

    def log_joint(self, scores: Tensor) -> Tensor:
        """(n, C) log p(score, class) of scores (n, C)."""
        return _log_density(scores @ self.contrasts, self.means, self.root) + self.log_share

    def linear(self) -> tuple[Tensor, Tensor]:
        """``(weight (C, C), bias (C,))``: scores @ weight + bias are logits of the posterior."""
        half = torch.linalg.solve_triangular(self.root, self.means.T, upper=False)  # (r, C)
        weight = torch.linalg.solve_triangular(self.root.T, half, upper=True)
        return self.contrasts @ weight, self.log_share - 0.5 * half.square().sum(0)


@dataclass(frozen=True)
class GaussianHead:
    """One Gaussian a class; ``stiffness`` 1 is a sphere, less lets the covariance take its shape.

    That shape says in which directions the classes differ; how much they overlap there is asked of
    the items out of fold (`Discriminants`).
    """

    reads_transition: ClassVar[bool] = True
    features: Features
    stiffness: float = 1.0

    @property
    def temperatures(self) -> tuple[float, ...]:
        return (1.0,)

    def crossfit(
        self, targets: Targets, transition: Tensor, folds: Tensor, generator: torch.Generator
    ) -> Tensor:
        classes = targets.classes.double() * (targets.weight > 0).double()[:, None]
        scores = self._out_of_fold(classes, folds)
        found = torch.zeros_like(scores)
        for fold in range(int(folds.max()) + 1):
            held = folds == fold
            found[held] = Discriminants.of(scores[~held], classes[~held]).log_joint(scores[held])
        one_for_all = Discriminants.of(scores, torch.ones_like(scores) / scores.shape[1])
        alone = torch.logsumexp(one_for_all.log_joint(scores), dim=1, keepdim=True)
        return (found - alone).to(targets.classes)

    def finish(self, targets: Targets, generator: torch.Generator) -> nn.Module:
        classes = targets.classes.double()
        folds = torch.randperm(len(classes), generator=generator).to(classes.device) % FOLDS
        weight, bias = Discriminants.of(self._out_of_fold(classes, folds), classes).linear()
        nobody = torch.zeros(len(classes), dtype=torch.bool, device=classes.device)
        full = self.features.axes @ self._directions(nobody, classes) @ weight  # (d, C)
        network = UnitLinear(*full.shape)
        with torch.no_grad():
            network.linear.weight.copy_(full.T)
            network.linear.bias.copy_(bias - self.features.mean @ full)
        inputs = InputLayer(torch.zeros(len(full)), torch.ones(len(full)), images=False)
        return Model(inputs, network).to(full.device).eval()

    def _out_of_fold(self, classes: Tensor, folds: Tensor) -> Tensor:
        """(N, C) scores of every item, by directions found without its fold."""
        scores = torch.zeros_like(classes)
        for fold in range(int(folds.max()) + 1):
            held = folds == fold
            scores[held] = self.features.points[held] @ self._directions(held, classes)
        return scores

    def _directions(self, held: Tensor, classes: Tensor) -> Tensor:
        """(r, C) in which the items not ``held`` differ from class to class."""
        points, left_out = self.features.points, self.features.points[held]
        classes = classes * ~held[:, None]
        mass = classes.sum(0).clamp_min(1e-3)
        means = classes.T @ points / mass[:, None]  # (C, r)
        # Principal axes: the products of all points are known, only those left out are missing.
        whole = self.features.variance * len(points)
        spread = whole.sum() - left_out.square().sum() - (means.square().sum(1) * mass).sum()
        # Where items repeat, classes may explain everything: a little is left all the same.
        spread = (spread / mass.sum()).clamp_min(1e-6 * self.features.variance.sum())
        if self.stiffness >= 1:
            return means.T / spread
        scatter = torch.diag(whole) - left_out.T @ left_out - (means.T * mass) @ means
        shape = (1 - self.stiffness) / mass.sum() * scatter
        floor = 1e-6 * self.features.variance.max()
        shape.diagonal().add_((self.stiffness * spread / points.shape[1]).clamp_min(floor))
        return torch.cholesky_solve(means.T, torch.linalg.cholesky(shape))


def _contrasts(n_classes: int) -> Tensor:
    """(C, C - 1) orthonormal, each summing to 0: what is common to all classes says nothing."""
    start = torch.eye(n_classes, dtype=torch.float64)
    start[:, 0] = 1
    basis: Tensor = torch.linalg.qr(start)[0]
    return basis[:, 1:]


def _shrunk_root(covariance: Tensor, n_items: int, usual: Tensor) -> Tensor:
    """Cholesky factor, off-diagonals shrunk by as much as so few items cannot tell them."""
    n_dims = len(covariance)
    share = min(1.0, n_dims / max(n_items, 1))
    diagonal = torch.diag(covariance.diagonal())
    eye = torch.eye(n_dims, dtype=covariance.dtype, device=covariance.device)
    shrunk = (1 - share) * covariance + share * diagonal
    root: Tensor = torch.linalg.cholesky(shrunk + (RIDGE * usual + 1e-12) * eye)
    return root


def _log_density(points: Tensor, means: Tensor, root: Tensor) -> Tensor:
    """(n, k) of points (n, r) under Gaussians of means (k, r), up to a constant of r."""
    white = torch.linalg.solve_triangular(root, points.T, upper=False)
    centre = torch.linalg.solve_triangular(root, means.T, upper=False)
    distance: Tensor = (
        white.square().sum(0)[:, None] + centre.square().sum(0) - 2 * white.T @ centre
    )
    density: Tensor = -0.5 * distance - root.diagonal().log().sum()
    return density
