"""Which pairs to ask about next: those whose answer is expected to say most.

Not the most informative ones alone: each question about an item makes the next one in the batch
worth half as much, and as far as little is known yet, chance has its share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from likewise.active.group_questions import belief_in_groups, group_questions
from likewise.active.information import (
    class_entropy,
    information,
    same_table,
    tables_of_people,
)
from likewise.active.pool import (
    any_unjudged,
    checked_pool,
    fill,
    likely_pairs,
    reach_of,
    spread,
)
from likewise.errors import InputError
from likewise.inference.fit import JointResult
from likewise.inference.propagation.belief_propagation import infer
from likewise.inference.propagation.graph import Graph
from likewise.methods.groups import Groups
from likewise.noise.annotators import AnnotatorChannel
from likewise.noise.channels import Channel, ConfusionChannel, ExactChannel
from likewise.pairs import Pairs, as_pairs

if TYPE_CHECKING:
    from likewise.classifier import SimilarityClassifier

FloatMatrix = NDArray[np.float64]
Positions = NDArray[np.int64]
DOUBT = 0.05  # of g, shared out evenly: a network is surer of items it was trained on than right


def suggest(
    model: SimilarityClassifier | JointResult | Groups | None,
    X: ArrayLike | None,
    pairs: Pairs | Any,
    n: int,
    *,
    candidates: ArrayLike | None = None,
    annotators: ArrayLike | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> NDArray[np.int64]:
    """(n, 2) pairs of items to ask about next, the most informative first.

    ``candidates`` (K, 2): choose among these pairs only, as `choose` does (which says which of them
    were taken); by default among all that were not judged yet. ``annotators`` (K,): who would
    answer each candidate. A pair is worth half as much for every earlier pair of the batch that
    names one of its items: an item comes often only where there is little to ask about others.
    Fewer than ``n`` come back where there are no more.

    Where items have no features, ``model`` is what `likewise.group` found and ``X`` is None: items
    are asked against those whose group is sure (`group_questions`). Before anything is found,
    ``model`` is None.
    """
    if candidates is not None:
        if model is None:
            raise InputError("before anything is fitted there is nothing to choose candidates by.")
        taken = choose(
            model, X, pairs, n, candidates, annotators=annotators, random_state=random_state
        )
        return np.asarray(candidates, np.int64)[taken]
    if annotators is not None:
        raise InputError("annotators say who would answer each candidate: give candidates too.")
    rng = np.random.default_rng(random_state)
    if model is None or isinstance(model, Groups):
        _check_count(n)
        listed = _listed(X, pairs)
        return group_questions(model, _vectors(X), listed, n, rng)
    known = _known(model, X, pairs, n)
    pool = likely_pairs(known.belief, known.pairs, n, rng)
    table = same_table(known.channel, known.belief.shape[1])
    chosen = pool[_most_telling(known, pool, table, None, n, rng)]
    return fill(chosen, any_unjudged(known.pairs, n, rng), n)


def choose(
    model: SimilarityClassifier | JointResult | Groups,
    X: ArrayLike | None,
    pairs: Pairs | Any,
    n: int,
    candidates: ArrayLike,
    *,
    annotators: ArrayLike | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> Positions:
    """(n,) positions of the questions among ``candidates`` (K, 2) to ask next, most telling first.

    ``annotators`` (K,): names, as in ``pairs``, of who would answer each; the same pair may be
    offered to several. Questions go to people who have shown that they look.
    """
    rng = np.random.default_rng(random_state)
    known = _known(model, X, pairs, n)
    pool = checked_pool(candidates, len(known.belief))
    table, who = same_table(known.channel, known.belief.shape[1]), None
    if annotators is not None:
        table = tables_of_people(known.belief, known.pairs, known.channel)
        who = _positions_of(annotators, known.pairs, len(pool))
    chosen = _most_telling(known, pool, table, who, n, rng)
    rest = np.setdiff1d(np.arange(len(pool)), chosen)
    return np.concatenate([chosen, rng.permutation(rest)])[:n]


@dataclass(frozen=True)
class _Known:
    """The judgements so far, and what is believed (N, C) after them."""

    pairs: Pairs  # the judgements so far, listed
    belief: FloatMatrix  # (N, C) of the perceived classes after them
    channel: Channel  # how answers come from two perceived classes


def _known(
    model: SimilarityClassifier | JointResult | Groups,
    X: ArrayLike | None,
    pairs: Pairs | Any,
    n: int,
) -> _Known:
    _check_count(n)
    listed = _listed(X, pairs)
    return _Known(listed, *current_belief(model, X, listed))


def _check_count(n: int) -> None:
    if n < 1:
        raise InputError(f"ask for at least one pair, not {n}.")


def _listed(X: ArrayLike | None, pairs: Pairs | Any) -> Pairs:
    """The judgements one by one, of all items."""
    given = as_pairs(pairs).explicit()
    return given if X is None else given.about(len(np.asarray(X)))


def _vectors(X: ArrayLike | None) -> FloatMatrix | None:
    return None if X is None else np.asarray(X, np.float64).reshape(len(np.asarray(X)), -1)


def _most_telling(
    known: _Known,
    pool: NDArray[np.int64],
    p_same: FloatMatrix,
    who: Positions | None,
    n: int,
    rng: np.random.Generator,
) -> Positions:
    """Positions in ``pool`` of the most informative pairs: ``n``, less the share of chance."""
    reach = np.ones(len(pool))
    if isinstance(known.channel, ExactChannel):
        reach = reach_of(known.pairs.components(), pool)
    # As far as next to nothing is known, chance asks better than a model that is mostly wrong.
    unknown = float(class_entropy(known.belief).mean() / np.log(known.belief.shape[1]))
    value = reach * information(known.belief, pool, p_same, who) + 1e-9 * rng.random(len(pool))
    return spread(value, pool, n - int(n * unknown))


def _positions_of(annotators: ArrayLike, pairs: Pairs, n_candidates: int) -> Positions:
    """(K,) position of each person among those of ``pairs``; one past the last for a stranger."""
    asked = np.asarray(annotators).astype(str)
    if asked.shape != (n_candidates,):
        raise InputError(
            f"annotators must name one person a candidate, shape ({n_candidates},), but have "
            f"shape {asked.shape}."
        )
    names = [] if pairs.annotator_names is None else pairs.annotator_names.tolist()
    code = {str(name): position for position, name in enumerate(names)}
    return np.array([code.get(name, len(names)) for name in asked.tolist()], np.int64)


def current_belief(
    model: SimilarityClassifier | JointResult | Groups, X: ArrayLike | None, pairs: Pairs
) -> tuple[FloatMatrix, Channel]:
    """(N, C) what is believed of each perceived class, and the channel behind it."""
    if isinstance(model, Groups):
        return belief_in_groups(model, _vectors(X), pairs)
    if X is None:
        raise InputError("give the items that the classifier was fitted to; only groups need none.")
    if isinstance(model, JointResult):
        belief = model.posterior.astype(np.float64)
        return belief, _as_they_answer(model.channel, model.annotators, pairs, belief.shape[1])
    g = np.asarray(model.predict_proba(X), np.float64)
    n_classes = g.shape[1]
    g = (1 - DOUBT) * g + DOUBT / n_classes
    transition = model.transition_ if model.transition_ is not None else np.eye(n_classes)
    channel: Channel = model.channel_ if model.channel_ is not None else ExactChannel()
    if isinstance(channel, AnnotatorChannel):
        known = channel
        channel = _as_they_answer(known, model.annotators_, pairs, n_classes)
        if channel is not known:  # other people: the network alone
            return g @ transition, channel
    log_f = torch.from_numpy(np.log(g @ transition)).float()
    graph = Graph.from_pairs(pairs)
    return infer(log_f, graph, channel, iterations=30).belief.double().numpy(), channel


def _as_they_answer(
    channel: Channel, table: Mapping[str, Sequence[Any]] | None, pairs: Pairs, n_classes: int
) -> Channel:
    """The channel; of people who are others than those of ``pairs``, how a stranger answers.

    ``table`` names the people whom the channel knows (`annotator_table`).
    """
    if not isinstance(channel, AnnotatorChannel):
        return channel
    known = sorted(map(str, (table or {}).get("annotator", ())))
    here = [] if pairs.annotator_names is None else sorted(pairs.annotator_names.tolist())
    if known == here:
        return channel
    return ConfusionChannel(torch.from_numpy(same_table(channel, n_classes)))
