"""Estimating the transition matrix T from noisy judgements alone.

Three estimators. `anchor_transition` is the paper's: a row of T is the network's own output at the
item it is most sure of (or at a high quantile, which over-confident items mislead less).
`count_transition` and `likelihood_transition` need the perceived classes of *held-out* items up to
a renumbering (consistent judgements give them as components): a network that has memorised its
training items says nothing there, but cannot have memorised these. `held_out_transition` is what
training uses along the way: the likelihood, as long as counting does not refute it.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from likewise.errors import InputError

FloatMatrix = NDArray[np.float64]

TEMPERATURES = (0.25, 0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0)
# Most confident shares of a predicted class, among which counting chooses.
CONFIDENT_SHARES = (0.03, 0.06, 0.12, 0.25, 0.5)
ENOUGH = 100  # items in a share, for counting to speak against the likelihood
# Strength of the prior in pseudo-counts a row; the best is chosen by evidence.
STRENGTHS = tuple(float(10 ** (k / 3)) for k in range(19))


def anchor_transition(f: ArrayLike, quantile: float | None = None) -> FloatMatrix:
    """(C, C) T from anchor points (the paper's Eq. 9): row c is f at the anchor of class c.

    ``f`` (n, C) is the perceived-class posterior of stage 1. The anchor of class c is the item of
    the highest f_c, or with ``quantile`` (as 0.97) the item at that quantile of f_c.
    """
    posterior = np.asarray(f, np.float64)
    if posterior.ndim != 2 or len(posterior) == 0:
        raise InputError(f"anchors need an (n, C) posterior, not shape {posterior.shape}.")
    if quantile is None:
        anchors = posterior.argmax(axis=0)
    else:
        rank = min(int(np.ceil(quantile * len(posterior))), len(posterior)) - 1
        anchors = np.argsort(posterior, axis=0)[rank]
    rows = posterior[anchors]
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def count_transition(logits: Tensor, perceived: Tensor) -> Tensor:
    """(C, C) T by counting perceived classes among the more confident items of each class.

    ``logits`` (n, C) of held-out items, ``perceived`` (n,) their perceived class in the network's
    order (-1: unknown). Of each predicted class only the most confident share counts, since the
    others are wrong more often: the share whose rate of agreement is surely the highest, that is
    by the lower end of its error bar. Shrunk towards symmetric noise as far as the counts ask for.
    """
    counts, _ = _confident_counts(logits, perceived)
    return shrunk_transition(counts)[0]


def _confident_counts(
    logits: Tensor, perceived: Tensor, at_least: int = 0
) -> tuple[Tensor, Tensor]:
    """((1, C, C) counts of that share, () the lower end of its rate of agreement).

    Shares of fewer than ``at_least`` items do not count; the rate is negative if that leaves none.
    """
    p = logits.float().softmax(dim=1)
    n_classes = p.shape[1]
    top, predicted = p.max(dim=1)
    within = _rank_within(predicted, top, n_classes)
    z = _one_hot(perceived, n_classes, p.dtype)  # (n, C)
    hard = torch.nn.functional.one_hot(predicted, n_classes).to(p.dtype)
    shares = torch.tensor(CONFIDENT_SHARES, device=p.device)
    chosen = (within[None] <= shares[:, None]).to(p.dtype)  # (S, n)
    counts = (hard.T[None] * chosen[:, None]) @ z  # (S, C, C)
    total = counts.sum(dim=(1, 2))
    # Wilson's interval: few items that all agree prove little.
    centre = (counts.diagonal(dim1=1, dim2=2).sum(dim=1) + 0.5) / (total + 1)
    lower = centre - (centre * (1 - centre) / (total + 1)).sqrt()
    lower = torch.where(total >= at_least, lower, -1.0)
    best = lower.argmax()[None]
    return counts.index_select(0, best), lower.index_select(0, best)[0]


def _rank_within(predicted: Tensor, confidence: Tensor, n_classes: int) -> Tensor:
    """(n,) share of an item's predicted class that is at least as confident, without a loop."""
    order = torch.argsort(2 * predicted.to(confidence.dtype) - confidence)
    ones = torch.ones_like(confidence)
    sizes = torch.zeros(n_classes, device=ones.device).index_add_(0, predicted, ones)
    starts = sizes.cumsum(0) - sizes
    rank = torch.empty_like(confidence)
    rank[order] = torch.arange(len(ones), device=ones.device, dtype=ones.dtype)
    return (rank - starts[predicted] + 0.5) / sizes[predicted]


def held_out_transition(logits: Tensor, perceived: Tensor) -> tuple[Tensor, Tensor]:
    """(T (C, C), temperature ()) from held-out items: by likelihood, unless counting refutes it.

    A network that is trained through a T which is too noisy learns to be too sure, and then that T
    is the likeliest again: it would never leave. But T keeps at least as much as the perceived
    classes of its surest items agree with it, however many of those it gets wrong.
    """
    likeliest, temperature, _ = likelihood_transition(logits, perceived)
    counts, surely_kept = _confident_counts(logits, perceived, at_least=ENOUGH)
    counted = shrunk_transition(counts)[0]
    refuted = likeliest.diagonal().mean() < surely_kept
    g = _at_temperatures(logits)
    costs = _costs(g, _one_hot(perceived, logits.shape[1], g.dtype), counted)
    suited = torch.tensor(TEMPERATURES, device=logits.device)[costs.argmin()]
    return (
        torch.where(refuted, counted, likeliest),
        torch.where(refuted, suited, temperature),
    )


def likelihood_transition(
    logits: Tensor, perceived: Tensor, iterations: int = 40
) -> tuple[Tensor, Tensor, Tensor]:
    """Maximum likelihood of T, and of one temperature of g, on held-out items.

    Maximises sum_i log (g_i @ T)[z_i] by EM, for each temperature at once, with a Dirichlet prior
    around symmetric noise whose strength is estimated too. Returns ``(T (C, C), temperature (),
    mean negative log-likelihood ())`` as tensors on the device of the logits; never waits for it.
    """
    g = _at_temperatures(logits)  # (K, n, C)
    z = _one_hot(perceived, logits.shape[1], g.dtype)  # (n, C), zero rows where unknown
    transition = shrunk_transition(g.transpose(1, 2) @ z)  # (K, C, C)
    for _ in range(iterations):
        to_class = z @ transition.transpose(1, 2)  # (K, n, C): T[c, z_i]
        joint = g * to_class
        posterior = joint / joint.sum(dim=2, keepdim=True).clamp_min(1e-30)
        transition = shrunk_transition(posterior.transpose(1, 2) @ z)
    cost = _costs(g, z, transition)
    best = cost.argmin()[None]
    temperature = torch.tensor(TEMPERATURES, device=logits.device)
    return (
        transition.index_select(0, best)[0],
        temperature.index_select(0, best)[0],
        cost.index_select(0, best)[0],
    )


def _at_temperatures(logits: Tensor) -> Tensor:
    """(K, n, C) g at each temperature."""
    temperature = torch.tensor(TEMPERATURES, device=logits.device)
    return (logits.float()[None] / temperature[:, None, None]).softmax(dim=2)


def _costs(g: Tensor, z: Tensor, transition: Tensor) -> Tensor:
    """(K,) mean negative log-likelihood of (n, C) ``z`` at each temperature."""
    likelihood = (g * (z @ transition.transpose(-2, -1))).sum(dim=2).clamp_min(1e-30).log()
    known = z.sum(dim=1)
    return -(likelihood * known).sum(dim=1) / known.sum().clamp_min(1)


def shrunk_transition(counts: Tensor) -> Tensor:
    """(K, C, C) T from expected counts of (class, perceived class), shrunk to symmetric noise.

    The prior of a row is Dirichlet around [1 - r, r/(C-1), ...], r the pooled rate; its strength
    is the one of highest evidence (Dirichlet-multinomial). Where noise is symmetric that leaves
    one number to estimate instead of C(C-1).
    """
    n_classes = counts.shape[-1]
    total = counts.sum(dim=(1, 2)).clamp_min(1e-6)
    kept = counts.diagonal(dim1=1, dim2=2).sum(dim=1) / total
    kept = kept.clamp(1.0 / n_classes, 1 - 1e-4)[:, None, None]
    eye = torch.eye(n_classes, device=counts.device, dtype=counts.dtype)
    centre = kept * eye + (1 - kept) / (n_classes - 1) * (1 - eye)  # (K, C, C)
    rows = counts.sum(dim=2)  # (K, C)
    strength = torch.tensor(STRENGTHS, device=counts.device, dtype=counts.dtype)
    pseudo = strength[:, None, None, None] * centre  # (S, K, C, C)
    cells = (torch.lgamma(pseudo + counts) - torch.lgamma(pseudo)).sum(dim=(2, 3))
    whole = torch.lgamma(strength)[:, None, None] - torch.lgamma(strength[:, None, None] + rows)
    evidence = cells + whole.sum(dim=2)  # (S, K)
    chosen = strength[evidence.argmax(dim=0)][:, None, None]  # (K, 1, 1)
    return (counts + chosen * centre) / (rows[:, :, None] + chosen)


def gram_transition(
    predicted_left: NDArray[np.int64],
    predicted_right: NDArray[np.int64],
    same: NDArray[np.bool_],
    n_classes: int,
) -> FloatMatrix:
    """(C, C) symmetric T from judgements that need not be consistent: a root of T T'.

    (T T')[c, k] is the share of "same" between items of classes c and k. Its two values (within,
    across) are taken from judgements between held-out items of the given predicted classes; T is
    the symmetric-noise matrix with that Gram matrix, the one choice among its rotations that
    favours no class.
    """
    equal = predicted_left == predicted_right
    within = same[equal].mean() if equal.any() else 1.0
    across = same[~equal].mean() if (~equal).any() else 0.0
    # Symmetric noise has T T' = s^2 I + (1 - s^2)/C J, so that within - across = s^2.
    signal = float(np.sqrt(np.clip(within - across, 1e-4, 1.0)))
    return signal * np.eye(n_classes) + (1 - signal) / n_classes


def _one_hot(labels: Tensor, n_classes: int, dtype: torch.dtype) -> Tensor:
    """(n, C), a zero row where the label is -1."""
    classes = torch.arange(n_classes, device=labels.device)
    return (labels[:, None] == classes).to(dtype)
