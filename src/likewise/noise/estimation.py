"""Estimating the transition matrix T from noisy judgements alone.

Three estimators. `anchor_transition` is the paper's: a row of T is the network's own output at the
item it is most sure of (or at a high quantile, which over-confident items mislead less).
`count_transition` and `likelihood_transition` need what is known of the perceived classes (noisy
labels) of *held-out* items, up to a renumbering: a network that has memorised its training items
says nothing there, but cannot have memorised these. `held_out_transition` is what training uses:
the likelihood, as long as counting does not refute it.

What is known of an item's perceived class z is a row of *evidence* (n, C): its judgements'
likelihood for each z, summing to 1. One-hot where z is known, a row of zeros where nothing is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from likewise.errors import InputError

FloatMatrix = NDArray[np.float64]

TINY = 1e-30
STILL = 3e-4  # change of T in an iteration below which EM has converged
RENEW = 8  # iterations of EM between two choices of the prior's strength

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


def one_hot_evidence(perceived: Tensor, n_classes: int, dtype: torch.dtype) -> Tensor:
    """(n, C) evidence of known perceived classes (n,); a row of zeros where the class is -1."""
    classes = torch.arange(n_classes, device=perceived.device)
    return (perceived[:, None] == classes).to(dtype)


def count_transition(logits: Tensor, evidence: Tensor) -> Tensor:
    """(C, C) T by counting perceived classes among the more confident items of each class.

    ``logits`` (n, C) of held-out items, ``evidence`` (n, C) of their perceived classes in the
    network's order. Of each predicted class only the most confident share counts, since the others
    are wrong more often: the share whose rate of agreement is surely the highest, that is by the
    lower end of its error bar. Shrunk towards symmetric noise as far as the counts ask for.
    """
    counts, _ = _confident_counts(logits, evidence)
    return shrunk_transition(counts)[0]


def marginal_transition(logits: Tensor, evidence: Tensor) -> Tensor:
    """(C, C) T over all items, sure or not, by counting perceived classes in each predicted class:
    where noise depends on the item, this is how often a class is taken for another."""
    predicted = torch.nn.functional.one_hot(logits.argmax(dim=1), logits.shape[1])
    return shrunk_transition((predicted.to(evidence).T @ evidence)[None])[0]


def _confident_counts(logits: Tensor, evidence: Tensor, at_least: int = 0) -> tuple[Tensor, Tensor]:
    """((1, C, C) counts of that share, () the lower end of its rate of agreement).

    Shares of fewer than ``at_least`` items do not count; the rate is negative if that leaves none.
    """
    p = logits.float().softmax(dim=1)
    n_classes = p.shape[1]
    predicted = p.argmax(dim=1)
    # By what is left for other classes: the surest items differ there when their top is 1.0.
    doubt = p.scatter(1, predicted[:, None], 0.0).sum(dim=1)
    within = _rank_within(predicted, doubt, n_classes)
    hard = torch.nn.functional.one_hot(predicted, n_classes).to(p.dtype)
    shares = torch.tensor(CONFIDENT_SHARES, device=p.device)
    chosen = (within[None] <= shares[:, None]).to(p.dtype)  # (S, n)
    counts = (hard.T[None] * chosen[:, None]) @ evidence.to(p)  # (S, C, C)
    total = counts.sum(dim=(1, 2))
    # Wilson's interval: few items that all agree prove little.
    centre = (counts.diagonal(dim1=1, dim2=2).sum(dim=1) + 0.5) / (total + 1)
    lower = centre - (centre * (1 - centre) / (total + 1)).sqrt()
    lower = torch.where(total >= at_least, lower, -1.0)
    best = lower.argmax()[None]
    return counts.index_select(0, best), lower.index_select(0, best)[0]


def _rank_within(predicted: Tensor, doubt: Tensor, n_classes: int) -> Tensor:
    """(n,) share of an item's predicted class that is at least as confident, without a loop."""
    # By class, then by doubt: one after the other, since a sum of both would round the latter off.
    order = torch.argsort(doubt, stable=True)
    order = order[torch.argsort(predicted[order], stable=True)]
    ones = torch.ones_like(doubt)
    sizes = torch.zeros(n_classes, device=ones.device).index_add_(0, predicted, ones)
    starts = sizes.cumsum(0) - sizes
    rank = torch.empty_like(doubt)
    rank[order] = torch.arange(len(ones), device=ones.device, dtype=ones.dtype)
    return (rank - starts[predicted] + 0.5) / sizes[predicted]


def held_out_transition(logits: Tensor, evidence: Tensor) -> tuple[Tensor, Tensor]:
    """(T (C, C), temperature ()) from held-out items: by likelihood, unless counting refutes it.

    A network that is trained through a T which is too noisy learns to be too sure, and then that T
    is the likeliest again: it would never leave. But T keeps at least as much as the perceived
    classes of its surest items agree with it, however many of those it gets wrong. The other way
    round, a T that is too clean goes unnoticed where g is as unsure as f: of all that explain the
    items equally well, the smallest in volume is taken (VolMinNet, Li et al. 2021).
    """
    likeliest, temperature, _ = likelihood_transition(logits, evidence)
    counts, surely_kept = _confident_counts(logits, evidence, at_least=ENOUGH)
    counted = shrunk_transition(counts)[0]
    refuted = likeliest.diagonal().mean() < surely_kept
    suited = suited_temperature(logits, counted, evidence)
    return (
        torch.where(refuted, counted.to(likeliest), likeliest),
        torch.where(refuted, suited.to(temperature), temperature),
    )


def suited_temperature(logits: Tensor, transition: Tensor, evidence: Tensor) -> Tensor:
    """() by what to divide the logits of held-out items, to explain them best through a fixed T.

    Temperature scaling (Guo et al., 2017), on what was judged instead of on true classes.
    """
    g = _at_temperatures(logits, TEMPERATURES)
    costs = _mean_cost(_costs(g, evidence.to(g), transition.to(g)), evidence)
    return torch.tensor(TEMPERATURES, device=logits.device)[costs.argmin()]


def likelihood_transition(
    logits: Tensor,
    evidence: Tensor,
    temperatures: Sequence[float] = TEMPERATURES,
    iterations: int = 24,
) -> tuple[Tensor, Tensor, Tensor]:
    """Maximum likelihood of T, and of one temperature of g, on held-out items.

    Maximises sum_i log sum_k (g_i @ T)_k evidence_ik by EM, for each temperature at once, with a
    Dirichlet prior around symmetric noise whose strength is estimated too. Of the temperatures that
    are no worse than the best by more than a standard error, the one whose T has the smallest
    volume: a cautious g would pass for less noise. Returns ``(T (C, C), temperature (), mean
    negative log-likelihood ())`` as tensors on the device of the logits; never waits for it.
    """
    g = _at_temperatures(logits, temperatures)  # (K, n, C)
    z = evidence.to(g)  # (n, C), zero rows where nothing is known
    counts = g.transpose(1, 2) @ z  # (K, C, C) expected (class, perceived class)
    transition = counts
    for number in range(iterations):
        if number % RENEW == 0:
            strength = prior_strength(counts)
        before, transition = transition, shrunk_transition(counts, strength)
        if number % RENEW == RENEW - 1 and _is_still(transition, before):
            break
        seen = ((g @ transition) * z).sum(dim=2, keepdim=True).clamp_min(TINY)
        counts = transition * (g.transpose(1, 2) @ (z / seen))
    costs = _costs(g, z, transition)  # (K, n)
    cost = _mean_cost(costs, evidence)
    least = costs.index_select(0, cost.argmin()[None])
    behind = costs - least  # (K, n)
    known = (z.sum(dim=1) > 0).to(behind)
    n_known = known.sum().clamp_min(1)
    mean = (behind * known).sum(dim=1) / n_known
    error = (((behind - mean[:, None]).square() * known).sum(dim=1) / n_known**2).sqrt()
    volume = torch.linalg.slogdet(_precise(transition)).logabsdet
    best = torch.where(mean <= error, volume, torch.inf).argmin()[None]
    temperature = torch.tensor(temperatures, device=logits.device, dtype=g.dtype)
    return (
        transition.index_select(0, best)[0],
        temperature.index_select(0, best)[0],
        cost.index_select(0, best)[0],
    )


def _is_still(transition: Tensor, before: Tensor) -> bool:
    """Whether an iteration changed next to nothing; asked on the CPU only, which does not wait."""
    if transition.device.type != "cpu":
        return False
    return float((transition - before).abs().max()) < STILL


def _at_temperatures(logits: Tensor, temperatures: Sequence[float]) -> Tensor:
    """(K, n, C) g at each temperature."""
    precise = logits if logits.dtype == torch.float64 else logits.float()
    divisor = torch.tensor(temperatures, device=logits.device, dtype=precise.dtype)
    return (precise[None] / divisor[:, None, None]).softmax(dim=2)


def _costs(g: Tensor, evidence: Tensor, transition: Tensor) -> Tensor:
    """(K, n) negative log-likelihood of the evidence (n, C) at each temperature; 0 where none."""
    likelihood = ((g @ transition) * evidence).sum(dim=2)
    return torch.where(evidence.sum(dim=1) > 0, -likelihood.clamp_min(TINY).log(), 0.0)


def _mean_cost(costs: Tensor, evidence: Tensor) -> Tensor:
    """(K,) mean of the costs (K, n) over the items about which something is known."""
    return costs.sum(dim=1) / (evidence.sum(dim=1) > 0).sum().clamp_min(1)


def class_posterior(log_g: Tensor, transition: Tensor, evidence: Tensor) -> Tensor:
    """(n, C) P(y | x, evidence) from log g, up to a constant an item; zero rows say nothing."""
    likelihood = evidence.to(log_g) @ transition.to(log_g).T  # (n, C): P(evidence | y)
    known = likelihood.sum(dim=1, keepdim=True) > 0
    return (log_g + torch.where(known, likelihood.clamp_min(TINY).log(), 0.0)).softmax(dim=1)


def evidence_costs(logits: Tensor, transition: Tensor, evidence: Tensor) -> Tensor:
    """(n,) -log sum_k (g @ T)_k evidence_k of each item; 0 where nothing is known."""
    g = logits.float().softmax(dim=1)
    return _costs(g[None], evidence.to(g), transition.to(g))[0]


def shrunk_transition(counts: Tensor, strength: Tensor | None = None) -> Tensor:
    """(K, C, C) T from expected counts of (class, perceived class), shrunk to symmetric noise.

    The prior of a row is Dirichlet around [1 - r, r/(C-1), ...], r the pooled rate; its
    ``strength`` (K,) is the one of highest evidence unless given. Where noise is symmetric that
    leaves one number to estimate instead of C(C-1).
    """
    chosen = (prior_strength(counts) if strength is None else strength)[:, None, None]
    on, off = _symmetric_rates(counts)
    shrunk = counts + chosen * off
    shrunk.diagonal(dim1=1, dim2=2).add_((chosen * (on - off))[:, :, 0])
    return shrunk.div_(counts.sum(dim=2, keepdim=True) + chosen)


def prior_strength(counts: Tensor) -> Tensor:
    """(K,) pseudo-counts a row of the highest Dirichlet-multinomial evidence for the counts."""
    # In double: log-gammas of a million pseudo-counts differ by less than single precision holds.
    precise = _precise(counts)
    centre = _symmetric_centre(precise)
    rows = precise.sum(dim=2)  # (K, C)
    strength = torch.tensor(STRENGTHS, device=counts.device, dtype=precise.dtype)
    pseudo = strength[:, None, None, None] * centre  # (S, K, C, C)
    cells = (torch.lgamma(pseudo + precise) - torch.lgamma(pseudo)).sum(dim=(2, 3))
    whole = torch.lgamma(strength)[:, None, None] - torch.lgamma(strength[:, None, None] + rows)
    evidence = cells + whole.sum(dim=2)  # (S, K)
    return strength[evidence.argmax(dim=0)].to(counts)


def _precise(tensor: Tensor) -> Tensor:
    """In double precision, where the device has it."""
    return tensor if tensor.device.type == "mps" else tensor.double()


def _symmetric_centre(counts: Tensor) -> Tensor:
    """(K, C, C) symmetric noise of the pooled rate."""
    on, off = _symmetric_rates(counts)
    eye = torch.eye(counts.shape[-1], device=counts.device, dtype=counts.dtype)
    return on * eye + off * (1 - eye)


def _symmetric_rates(counts: Tensor) -> tuple[Tensor, Tensor]:
    """(K, 1, 1) what symmetric noise of the pooled rate has on its diagonal, and off it."""
    n_classes = counts.shape[-1]
    total = counts.sum(dim=(1, 2), keepdim=True).clamp_min(1e-6)
    kept = counts.diagonal(dim1=1, dim2=2).sum(dim=1)[:, None, None] / total
    kept = kept.clamp(1.0 / n_classes, 1 - 1e-4)
    return kept, (1 - kept) / (n_classes - 1)


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
