"""`fit_joint`: from items and judgements to a classifier, by what the judgements say together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from likewise.errors import InputError
from likewise.inference.annotator_table import annotator_table
from likewise.inference.em import Options, State, fold_of_items
from likewise.inference.heads.cross_fitting import Head, log_perceived
from likewise.inference.heads.silent_heads import with_best_classifier
from likewise.inference.problem import JointProblem, make_problem, nearly_identity, spanning
from likewise.inference.propagation.graph import contract
from likewise.inference.propagation.posterior import entropy, guess
from likewise.inference.propagation.sort_graph import sorts_of
from likewise.inference.selection.channel_selection import (
    ENOUGH_TESTS,
    candidates,
    compare_channels,
)
from likewise.inference.selection.final_fit import criterion
from likewise.inference.selection.fit_selection import fit_selected, fit_sorted
from likewise.inference.selection.start_selection import (
    as_rates,
    fit_exact,
    fit_from_starts,
    select_starts,
)
from likewise.inference.selection.trials import fit_with, has_faded
from likewise.io.progress import stage
from likewise.noise.channels import Channel
from likewise.noise.registry import channel_for, noise_names
from likewise.pairs import Pairs
from likewise.pairs.rates import moment_rates
from likewise.training.replay_cache import ReplayCache

NOISES = noise_names()
FEW_FLIPS = 0.03
COMPLETE = "class: all pairs were judged, and no judgement contradicts"


@dataclass(frozen=True)
class JointResult:
    """What `fit_joint` found."""

    module: nn.Module | None
    """Items to (n, C) logits of g, where EM ends in a classifier of its own."""
    transition: NDArray[np.float64]
    """(C, C) T, from out-of-fold predictions of all items."""
    channel: Channel
    """How an answer comes from two perceived classes."""
    posterior: NDArray[np.float32]
    """(N, C) of the perceived class z."""
    judged: NDArray[np.float32]
    """(N, C) likelihood of each item's judgements for each z, the item left out."""
    classes: NDArray[np.float32]
    """(N, C) of the class y."""
    annotators: dict[str, list[Any]]
    """A table by columns, most reliable first."""
    history: list[dict[str, Any]]
    """A row for each round."""
    choice: str
    """Which noise model, and why."""
    evidence: dict[str, float] = field(default_factory=dict)
    """The figures behind it."""
    features_say_more: bool = False
    """Whether its features say more about a usual item than its judgements do."""


@dataclass(frozen=True)
class _Fit:
    """EM's last state, the head that led there, and why this noise model."""

    state: State
    head: Head
    choice: str
    evidence: dict[str, float] = field(default_factory=dict)


def fit_joint(
    X: ArrayLike,
    pairs: Pairs,
    n_classes: int,
    *,
    network: str | nn.Module | None = None,
    noise: str = "auto",
    transition: str | ArrayLike | None = "estimate",
    random_state: int | np.random.Generator | None = None,
    device: str | torch.device = "cpu",
    options: Options | None = None,
    replay_cache: ReplayCache | None = None,
    known: Tensor | None = None,
) -> JointResult:
    """Fit a classifier to judgements by their joint likelihood; nothing but them is used.

    ``transition``: "estimate", a (C, C) array, or None for no class flips. ``noise="auto"``
    chooses the channel by consistency and by held-out judgement likelihood, and says why. With a
    ``replay_cache``, a fit that was cut short goes on. ``known`` (N, C) are classes that are
    certain beforehand (`likewise.inference.propagation.known`).
    """
    if noise not in NOISES:
        raise InputError(f"noise must be one of {', '.join(NOISES)}, not {noise!r}.")
    if noise == "annotator" and pairs.annotator_names is None:
        raise InputError("noise='annotator' needs judgements with an annotator column.")
    names = pairs.annotator_names
    complete = pairs.is_complete and noise in ("auto", "class")
    if complete:  # consistent as it is, a few of its judgements say as much as all
        pairs, noise = spanning(pairs), "class"
    rng = np.random.default_rng(random_state)
    problem = make_problem(
        X,
        pairs,
        n_classes,
        network=network,
        transition=transition,
        rng=rng,
        device=device,
        options=options or Options(),
        replay_cache=replay_cache,
        known=known,
    )
    fit = _fit_auto(problem) if noise == "auto" else _fit_kind(problem, noise)
    state = fit.state
    module = _finished(problem, fit)
    table = {} if names is None else annotator_table(problem.graph, state.targets.classes, names)
    return JointResult(
        module=module,
        transition=state.transition.cpu().numpy(),
        channel=state.channel,
        posterior=state.targets.perceived.cpu().numpy(),
        judged=state.targets.judged.cpu().float().numpy(),
        classes=state.targets.classes.cpu().float().numpy(),
        annotators=table,
        history=state.history,
        choice=COMPLETE if complete else fit.choice,
        evidence=fit.evidence | {"evidence": state.evidence},
        features_say_more=problem.features is not None and _features_say_more(state),
    )


def _features_say_more(state: State) -> bool:
    """Of a usual item: its class is less in doubt by its features than by its judgements."""
    return bool(entropy(state.targets.judged).mean() > entropy(state.log_g.exp()).mean())


def _finished(problem: JointProblem, fit: _Fit) -> nn.Module | None:
    """The classifier; None where a network is trained by its own recipe, on what was found here."""
    if problem.features is None or not problem.rich:
        return None
    state, generator = fit.state, problem.generator
    folds = fold_of_items(problem.graph.n_items, problem.options.folds, generator)
    head = with_best_classifier(
        fit.head,
        problem.heads(),
        targets=state.targets,
        transition=state.transition,
        folds=folds.to(state.log_g.device),
        generator=generator,
    )
    return head.finish(state.targets, generator)


def _fit_kind(problem: JointProblem, kind: str) -> _Fit:
    """The noise model that was asked for."""
    why = f"{kind}: as asked"
    if kind == "class":
        return _Fit(*fit_exact(problem), why)
    if kind == "judgement" and problem.options.transition is None:
        problem = problem.with_transition(nearly_identity(problem.n_classes))
    channel = _first_channel(problem, kind)
    if problem.features is not None:
        return _Fit(*fit_selected(problem, channel, confusions=False), why)
    return _Fit(*fit_from_starts(problem, select_starts(problem, channel, confusions=False)), why)


def _first_channel(problem: JointProblem, kind: str) -> Channel:
    """The channel of a noise model at the two rates that triangles of judgements tell."""
    moments = moment_rates(problem.pairs.explicit(), problem.n_classes, problem.rng)
    kind_of_channel = channel_for(kind).load()
    rates = moments.a, moments.b
    return kind_of_channel.at_rates(*rates, problem.n_classes, problem.n_annotators)


def _fit_auto(problem: JointProblem) -> _Fit:
    """Exact where nothing contradicts; else the channel that predicts held-out judgements best."""
    merged = contract(problem.graph)
    tests = merged.redundant
    counts = {"redundant": float(tests), "contradictions": float(merged.contradictions)}
    if merged.contradictions == 0 and tests >= ENOUGH_TESTS:
        why = f"class: none of {tests:,} redundant judgements contradicts the others"
        return _Fit(*fit_exact(problem), why, counts)
    if (
        problem.features is not None
        and (sorts := sorts_of(problem.pairs, problem.graph.n_items)) is not None
    ):
        found = fit_sorted(problem, sorts)
        if found is not None:
            told = f"sorts: {len(sorts.piles_of_sort)} of them, {len(sorts.sort_of_pile)} piles"
            return _Fit(*found, told, counts)
    channel = _first_channel(problem, "annotator" if problem.n_annotators > 1 else "judgement")
    with stage("EM: classes, people and items together", 0.7):
        if problem.features is None:
            state, head = fit_from_starts(problem, select_starts(problem, channel))
        else:
            state, head = fit_selected(problem, channel)
    if merged.contradictions == 0:  # too few tests to tell: both ways, and compare
        exact = _Fit(*fit_exact(problem), "", counts)
        slipping = state.posterior.evidence
        if exact.state.evidence > slipping:
            why = f"class: evidence {exact.state.evidence:.1f}, {slipping:.1f} with slips"
            return replace(exact, choice=why)
    return _fit_best_channel(problem, state, head, counts)


def _fit_best_channel(
    problem: JointProblem, state: State, head: Head, counts: dict[str, float]
) -> _Fit:
    """Compare channels under the first fit's f; where another one wins, fit again with it."""
    options = candidates(
        problem.graph, as_rates(state.channel), problem.n_classes, problem.n_annotators
    )
    log_f = log_perceived(state.log_g, state.transition)
    start = guess(state.targets.perceived)
    best = compare_channels(log_f, problem.graph, options, problem.generator, start=start)
    if _kind(best.channel) != _kind(state.channel):
        targets = state.targets
        with stage("EM with the noise model that answers prefer"):
            if problem.features is None:
                state, head = fit_from_starts(problem, [(targets.perceived, best.channel)])
            else:
                other = fit_with(problem, head, (targets.classes.float(), best.channel))
                # Channels were compared from given beliefs; what one leads to may still be worse.
                likelier = criterion(other, problem.graph) > criterion(state, problem.graph)
                state = other if likelier and not has_faded(other) else state
    flips = 1 - float(state.transition.diagonal().mean())
    scores = ", ".join(f"{name} {value:.4f}" for name, value in best.log_likelihood.items())
    names = {_kind(channel): name for name, channel in options.items()}
    name = names.get(_kind(state.channel), best.chosen)  # a fit that is worse was not taken
    name = "both" if name == "judgement" and flips > FEW_FLIPS else name
    why = f"{name}: held-out log-likelihood a judgement: {scores}; class flips {flips:.2f}"
    held_out = {f"held_out_{name}": value for name, value in best.log_likelihood.items()}
    return _Fit(state, head, why, held_out | counts)


def _kind(channel: Channel) -> tuple[type, bool]:
    return type(channel), channel.two_rate
