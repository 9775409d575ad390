"""Gaussian heads: out of fold, and as sure as the items, not the judgements, allow."""

from __future__ import annotations

import numpy as np
import torch
from scipy.stats import multivariate_normal
from torch import Tensor

from likewise.inference.heads.cross_fitting import Targets
from likewise.inference.heads.gaussian import Discriminants, Features, GaussianHead


def targets_of(classes: Tensor) -> Targets:
    return Targets(classes, classes, classes, torch.ones(len(classes)))


def test_discriminants_are_gaussians_in_the_plane_of_the_contrasts() -> None:
    """Against densities written out."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    scores = torch.from_numpy(rng.normal(size=(300, 3)) + 3 * np.eye(3)[y])
    classes = torch.eye(3, dtype=torch.float64)[torch.from_numpy(y)]
    found = Discriminants.of(scores, classes)
    points = (scores @ found.contrasts).numpy()
    assert np.allclose(found.contrasts.sum(0), 0)
    within = (found.root @ found.root.T).numpy()
    expected = [multivariate_normal(mean, within).logpdf(points) for mean in found.means.numpy()]
    joint = np.stack(expected, axis=1) + np.log(1 / 3)
    constant = np.log(2 * np.pi)  # of two dimensions: it says nothing about classes
    np.testing.assert_allclose(found.log_joint(scores).numpy(), joint + constant, atol=1e-6)
    weight, bias = found.linear()
    logits = torch.log_softmax(scores @ weight + bias, dim=1)
    torch.testing.assert_close(logits, found.log_joint(scores).log_softmax(dim=1))


def test_a_gaussian_head_is_fitted_without_the_items_it_predicts() -> None:
    """Directions against a fit from scratch to the other items alone."""
    rng = np.random.default_rng(0)
    features = Features.of(torch.from_numpy(rng.random((40, 12))))
    assert features is not None
    classes = torch.from_numpy(rng.dirichlet(np.ones(3), 40))
    folds = torch.arange(40) % 4
    head = GaussianHead(features, 0.3)
    scores = head._out_of_fold(classes, folds)
    mine, p = (folds != 1), features.points
    q, x = classes[mine], p[mine]
    mass, means = q.sum(0), (q.T @ x) / q.sum(0)[:, None]
    within = (x.T @ x - (means.T * mass) @ means) / mass.sum()
    shape = 0.7 * within + 0.3 * within.trace() / len(within) * torch.eye(len(within))
    expected = p[~mine] @ torch.linalg.solve(shape, means.T)
    torch.testing.assert_close(scores[folds == 1], expected)
    log_joint = head.crossfit(targets_of(classes), torch.eye(3), folds, torch.Generator())
    expected = Discriminants.of(scores[mine], classes[mine]).log_joint(scores[~mine])
    torch.testing.assert_close(log_joint[~mine].softmax(dim=1), expected.softmax(dim=1))
    # Classes by chance: the density of one Gaussian for all is no worse.
    assert float(torch.logsumexp(log_joint, dim=1).mean()) < 0.1


def test_a_head_is_sure_where_items_lie_apart_and_in_doubt_where_they_overlap() -> None:
    """A fifth of the items are said to be of another class: that is no reason for doubt."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    z = np.where(rng.random(200) < 0.2, 1 - y, y)
    classes = torch.eye(2)[torch.from_numpy(y)]
    said = torch.eye(2)[torch.from_numpy(z)]
    sure = []
    for apart in (0.0, 4.0):
        items = rng.normal(size=(200, 40)) + apart * np.eye(2, 40)[y] + 10
        features = Features.of(torch.from_numpy(items))
        assert features is not None
        folds = torch.arange(200) % 4
        targets = Targets(said, said, classes, torch.ones(200))
        found = GaussianHead(features).crossfit(targets, torch.eye(2), folds, torch.Generator())
        sure.append(float(found.softmax(dim=1).amax(dim=1).mean()))
    assert sure[0] < 0.75
    assert sure[1] > 0.9


def test_items_that_repeat_or_do_not_differ_at_all_have_heads_too() -> None:
    label = torch.arange(40) % 4
    features = Features.of(torch.eye(12)[label])
    assert features is not None
    classes = torch.softmax(30 * torch.eye(4)[label], dim=1) * (1 + 1e-6)  # as rounding leaves them
    for stiffness in (1.0, 0.2):
        head = GaussianHead(features, stiffness)
        found = head.crossfit(
            targets_of(classes), torch.eye(4), torch.arange(40) % 3, torch.Generator()
        )
        assert (found.argmax(1) == label).all()
        assert bool(found.isfinite().all())
        module = head.finish(targets_of(classes), torch.Generator().manual_seed(0))
        assert (module(torch.eye(12)[label]).argmax(1) == label).all()
    assert Features.of(torch.ones(40, 12)) is None
