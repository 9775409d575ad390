"""Starts and heads are chosen by judgements that they have not seen; features earn their say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from likewise import SimilarityClassifier
from likewise.inference import fit, fit_joint
from likewise.inference.em import Options, State, first_targets
from likewise.inference.heads.cross_fitting import Targets
from likewise.inference.heads.gaussian import Features, GaussianHead
from likewise.inference.heads.silent_heads import (
    AsFoundHead,
    FlatHead,
    PerceivedHead,
    PriorHead,
    ShuffledHead,
    with_best_classifier,
)
from likewise.inference.problem import make_problem
from likewise.inference.propagation.graph import Graph
from likewise.inference.propagation.posterior import Posterior
from likewise.inference.selection import fit_selection
from likewise.inference.selection.channel_selection import Comparison
from likewise.inference.selection.fit_selection import fit_selected
from likewise.inference.selection.start_selection import (
    Start,
    distinct,
    from_clusters,
    from_graph,
    from_mixture,
    from_network,
    from_partition,
    from_supervised,
    promising_starts,
)
from likewise.inference.selection.trials import (
    Trial,
    explains_more,
    fit_with,
    is_better,
    most_telling,
)
from likewise.metrics import matched_accuracy
from likewise.noise.annotators import AnnotatorChannel
from likewise.noise.channels import RateChannel
from likewise.pairs import Pairs

N_ITEMS, N_CLASSES = 150, 3
FAST = Options(folds=2, epochs=12, start_steps=150)  # of networks


def people(z: NDArray[np.int64], rng: np.random.Generator, total: int = 2400) -> Pairs:
    """30 answers a person, nine in ten right, of what everybody sees in the items."""
    left = rng.integers(0, len(z), total)
    right = (left + rng.integers(1, len(z), total)) % len(z)
    same = np.where(rng.random(total) < 0.9, z[left] == z[right], z[left] != z[right])
    return Pairs(left, right, same, [f"p{k // 30:03d}" for k in range(total)], n_items=len(z))


def crowd(apart: float, misled: float, seed: int = 0) -> tuple[NDArray[np.float32], ...]:
    """Items, their classes, and what everybody takes them for."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, N_CLASSES, N_ITEMS)
    z = np.where(rng.random(N_ITEMS) < misled, (y + 1) % N_CLASSES, y)
    items = apart * rng.normal(size=(N_CLASSES, 60))[y] + rng.normal(size=(N_ITEMS, 60)) + 3
    return items.astype(np.float32), y, z


@pytest.mark.usefixtures("few_draws")
def test_features_that_say_nothing_have_no_say() -> None:
    items, y, _ = crowd(apart=0.0, misled=0.0)
    rng = np.random.default_rng(1)
    pairs = people(y, rng)
    problem = make_problem(items, pairs, N_CLASSES, None, "estimate", rng, "cpu", Options())
    people_channel = AnnotatorChannel.from_rates(0.8, 0.2, problem.n_annotators)
    state, head = fit_selected(problem, people_channel)
    assert isinstance(head, FlatHead)
    assert matched_accuracy(state.targets.classes.argmax(1).numpy(), y) == 1.0
    assert float(state.transition.diagonal().min()) > 0.99


@pytest.mark.usefixtures("few_draws")
def test_columns_that_say_nothing_do_not_touch_what_judgements_say() -> None:
    """A network that is trained on them afterwards knows nothing, and its posterior is not told."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 4, 100)
    items = rng.normal(size=(100, 8)).astype(np.float32)
    clf = SimilarityClassifier(4, recipe={"epochs": 20}, random_state=0, verbose=False)
    clf.fit(items, people(y, rng, 1500))
    assert matched_accuracy(np.asarray(clf.labels_), y) > 0.97


@pytest.mark.usefixtures("few_draws")
def test_features_that_show_the_classes_mend_what_people_take_for_another() -> None:
    items, y, z = crowd(apart=1.0, misled=0.2)
    pairs = people(z, np.random.default_rng(1))
    result = fit_joint(items, pairs, N_CLASSES, random_state=0)
    assert matched_accuracy(result.posterior.argmax(1), z) > 0.97
    assert matched_accuracy(result.classes.argmax(1), y) > 0.97
    assert result.module is not None


@pytest.mark.usefixtures("few_draws")
def test_many_classes_begin_from_the_partition_of_the_judgements() -> None:
    """18 classes of five: neither eigenvectors nor clusters of empty features find them."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 18
    i, j = np.triu_indices(90, 1)
    asked = np.flatnonzero((y[i] == y[j]) | (rng.random(len(i)) < 0.15))
    asked = np.repeat(asked, 3)
    left, right = i[asked], j[asked]
    right_answer = rng.random(len(left)) < 0.9
    same = np.where(right_answer, y[left] == y[right], y[left] != y[right])
    names = [f"p{k % 20:02d}" for k in range(len(left))]
    pairs = Pairs(left, right, same, names, n_items=90)
    items = rng.normal(size=(90, 40)).astype(np.float32)
    result = fit_joint(items, pairs, 18, random_state=0)
    assert matched_accuracy(result.classes.argmax(1), y) > 0.95


def test_a_prior_head_lets_features_help_and_never_say_that_people_err() -> None:
    items, y, z = crowd(apart=1.0, misled=0.2)
    rng = np.random.default_rng(1)
    pairs = people(z, rng)
    problem = make_problem(items, pairs, N_CLASSES, None, "estimate", rng, "cpu", Options())
    start = torch.eye(N_CLASSES)[torch.from_numpy(z)], RateChannel(0.9, 0.1)
    stiff = problem.heads()[0]
    free = fit_with(problem, stiff, start)
    bound = fit_with(problem, PriorHead(stiff), start)
    assert matched_accuracy(free.targets.classes.argmax(1).numpy(), y) > 0.97
    assert matched_accuracy(bound.targets.classes.argmax(1).numpy(), z) > 0.97
    assert float(bound.transition.diagonal().min()) > 0.99
    assert float(bound.log_g.exp().amax(1).mean()) > 0.7  # it does look at the items


def test_a_shuffled_head_sees_every_item_with_the_features_of_another() -> None:
    items, y, _ = crowd(apart=1.0, misled=0.0)
    rng = np.random.default_rng(1)
    pairs = people(y, rng)
    order = torch.from_numpy(rng.permutation(N_ITEMS))
    moved = np.empty_like(items)
    moved[order] = items
    targets = first_targets(torch.eye(N_CLASSES)[torch.from_numpy(y)])
    folds = torch.arange(N_ITEMS) % 5
    found = []
    for features, wrap in ((moved, None), (items, order)):
        problem = make_problem(features, pairs, N_CLASSES, None, "estimate", rng, "cpu", Options())
        head = problem.heads()[0]
        head = head if wrap is None else ShuffledHead(head, wrap)
        log_g = head.crossfit(targets, torch.eye(N_CLASSES), folds, torch.Generator())
        found.append(log_g.log_softmax(1).exp())
    assert torch.allclose(*found, atol=1e-3)
    assert matched_accuracy(found[1].argmax(1).numpy(), y) < 0.6


def test_starts_that_lead_to_one_place_are_tried_once() -> None:
    rng = np.random.default_rng(0)
    belief = torch.eye(4)[torch.from_numpy(rng.integers(0, 4, 400))]
    few_moved, many_moved = belief.clone(), belief.clone()
    few_moved[:3] = torch.eye(4)[(belief[:3].argmax(1) + 1) % 4]
    many_moved[:40] = torch.eye(4)[(belief[:40].argmax(1) + 1) % 4]
    starts = [(b, RateChannel()) for b in (belief, belief[:, [2, 0, 3, 1]], few_moved, many_moved)]
    kept = distinct(starts)
    assert [id(start[0]) for start in kept] == [id(belief), id(many_moved)]


def test_several_people_about_a_small_table_have_all_starts_and_heads() -> None:
    rng = np.random.default_rng(0)
    items, y, _ = crowd(apart=1.0, misled=0.0)
    few = items[:, :6]
    problem = make_problem(few, people(y, rng), N_CLASSES, None, "estimate", rng, "cpu", Options())
    assert [type(head).__name__ for head in problem.heads()][-2:] == ["GaussianHead", "NetworkHead"]
    by_features = [from_clusters, from_mixture, from_supervised, from_network]
    assert promising_starts(problem) == [from_graph, from_partition, *by_features]
    nobody = Pairs(problem.pairs.left, problem.pairs.right, problem.pairs.same)
    alone = make_problem(few, nobody, N_CLASSES, None, "estimate", rng, "cpu", Options())
    assert alone.features is None  # lifting and a network of its own recipe take it


@pytest.mark.usefixtures("few_draws")
def test_where_judgements_say_little_a_network_learns_from_what_em_believes() -> None:
    """9 kinds of 9 items, 6 columns that show them: few judgements for each two kinds."""
    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(9), 9)
    items = (3 * rng.normal(size=(9, 6))[y] + rng.normal(size=(81, 6))).astype(np.float32)
    result = fit_joint(items, people(y, rng, 360), 9, random_state=0, options=FAST)
    assert result.features_say_more
    assert result.module is None
    clear = fit_joint(items[:27], people(y[:27], rng, 500), 3, random_state=0, options=FAST)
    assert not clear.features_say_more


def test_a_fit_that_has_faded_is_not_taken_for_a_likely_one() -> None:
    """It foretells what nothing foretells, and no mistake lowers its evidence."""
    rng = np.random.default_rng(0)
    _, y, _ = crowd(apart=0.0, misled=0.0)
    graph = Graph.from_pairs(people(y, rng, 400))
    sure = 0.9 * torch.eye(N_CLASSES)[torch.from_numpy(y)] + 0.1 / N_CLASSES
    flat = torch.full_like(sure, 1 / N_CLASSES)
    scores = torch.from_numpy(rng.normal(size=400))
    decided, faded, likelier = (
        trial_of(belief, evidence, scores)
        for belief, evidence in ((sure, -900.0), (flat, -100.0), (sure, -800.0))
    )
    assert most_telling([decided, faded], graph) is decided
    assert most_telling([decided, faded, likelier], graph) is likelier
    assert most_telling([faded], graph) is faded


def test_items_as_such_do_not_outvote_what_all_judgements_say() -> None:
    """Density of the features is part of a fit's evidence; unseen answers are part of all."""
    rng = np.random.default_rng(0)
    _, y, _ = crowd(apart=0.0, misled=0.0)
    graph = Graph.from_pairs(people(y, rng, 400))
    sure = 0.9 * torch.eye(N_CLASSES)[torch.from_numpy(y)] + 0.1 / N_CLASSES
    scores = torch.from_numpy(rng.normal(size=400))
    by_people = trial_of(sure, -900.0, scores)
    dense = trial_of(sure, -950.0, scores)
    dense = replace(dense, state=replace(dense.state, evidence=500.0))
    assert most_telling([dense, by_people], graph) is by_people
    noise = torch.from_numpy(rng.normal(size=400))
    told = replace(dense, scores=scores + noise - noise.mean() + 0.15)  # 60 nats, unsurely
    assert most_telling([by_people, told], graph) is told


def test_a_silent_head_ends_in_the_classifier_that_tells_unseen_items_best() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    spread = np.array([12.0, 1.0, 1.0, 12.0])  # classes differ where items hardly do
    points = rng.normal(size=(300, 4)) * spread
    points[:, 1:3] += 4 * np.eye(3, 2)[y]
    features = Features.of(torch.from_numpy(points.astype(np.float32)))
    stiff, flexible = GaussianHead(features, 1.0), GaussianHead(features, 0.2)
    targets = first_targets(torch.eye(3)[torch.from_numpy(y)])
    folds = torch.arange(300) % 4
    rest = targets, torch.eye(3, dtype=torch.float64), folds, torch.Generator().manual_seed(0)
    for kind in (FlatHead, PriorHead, AsFoundHead):
        silent = with_best_classifier(kind(stiff), [stiff, flexible], *rest)
        assert isinstance(silent, kind)
        assert silent.classifier is flexible
    for chosen in (stiff, PerceivedHead(stiff)):
        assert with_best_classifier(chosen, [stiff, flexible], *rest) is chosen


def trial_of(belief: torch.Tensor, evidence: float, scores: torch.Tensor) -> Trial:
    """A fit of these beliefs and this evidence, that foretells unseen answers so well."""
    posterior = Posterior(belief.log(), evidence, 0, True)
    targets = Targets(belief, belief, belief, torch.ones(len(belief)))
    eye = torch.eye(belief.shape[1], dtype=torch.float64)
    state = State(targets, eye, RateChannel(), belief.log(), posterior, evidence)
    features = Features.of(torch.randn(6, 3))
    return Trial(state, GaussianHead(features, 1.0), scores, (belief, RateChannel()))


def test_a_less_stiff_head_begins_from_the_classes_of_the_one_before(monkeypatch) -> None:
    graph = Graph(torch.arange(8), torch.arange(8) + 1, torch.ones(8, dtype=torch.bool), 9)
    scores = torch.linspace(-0.3, -0.2, 8, dtype=torch.float64)
    features = Features.of(torch.randn(9, 3))
    heads = [GaussianHead(features, stiffness) for stiffness in (0.5, 0.2, 0.1)]
    foretold = {0.5: scores - 5e-4, 0.2: scores + 5e-4, 0.1: scores - 4e-3}
    likelier = {0.5: 1.0, 0.2: 2.0, 0.1: 9.0}  # what they have seen
    begun = []

    def tried(seen: object, unseen: Graph, head: GaussianHead, start: Start) -> Trial:
        begun.append(start[0].clone())
        belief = torch.softmax(head.stiffness * torch.arange(18.0).reshape(9, 2), dim=1)
        trial = trial_of(belief, likelier[head.stiffness], foretold[head.stiffness])
        return replace(trial, head=head)

    monkeypatch.setattr(fit_selection, "tried", tried)
    first = trial_of(torch.full((9, 2), 0.5), 0.0, scores)
    seen = None  # not looked at by what stands in for a fit
    best = fit_selection._loosened(seen, graph, first, heads)  # type: ignore[arg-type]
    # Half an error worse is as good where all judgements are likelier; five errors, of a thousandth
    # each, end it.
    assert best.head is heads[1]
    assert torch.equal(begun[0], first.state.targets.classes)
    assert len(begun) == 3
    assert torch.equal(begun[2], best.state.targets.classes)
    kept = fit_selection._loosened(seen, graph, best, heads[2:] + heads[:1])  # type: ignore[arg-type]
    assert kept is best
    assert len(begun) == 4


def test_of_two_that_foretell_alike_the_one_that_makes_all_judgements_likelier_is_better() -> None:
    graph = Graph(torch.arange(8), torch.arange(8) + 1, torch.ones(8, dtype=torch.bool), 9)
    scores = torch.linspace(-0.3, -0.2, 8, dtype=torch.float64)
    belief = torch.full((9, 2), 0.5)
    usual = trial_of(belief, -50.0, scores)
    likelier = trial_of(belief, -40.0, scores - 5e-4)
    worse = trial_of(belief, -40.0, scores - 4e-3)
    ahead = trial_of(belief, -60.0, scores + 4e-3)
    assert is_better(likelier, usual, graph)
    assert not is_better(usual, likelier, graph)
    assert not is_better(worse, usual, graph)
    assert is_better(ahead, usual, graph)


def test_features_that_explain_far_more_than_those_of_other_items_have_a_say() -> None:
    """A fifth of the 9 log 3 nats that it takes to name the classes of nine items: 1.98."""
    scores = torch.zeros(8, dtype=torch.float64)
    belief = torch.eye(3)[torch.arange(9) % 3]
    shuffled = trial_of(belief, -50.0, scores)
    once = Graph(torch.arange(8), torch.arange(8) + 1, torch.ones(8, dtype=torch.bool), 9)
    assert explains_more(trial_of(belief, -48.0, scores), shuffled, once)
    assert not explains_more(trial_of(belief, -48.1, scores), shuffled, once)
    assert explains_more(trial_of(belief, -48.1, scores + 0.02), shuffled, once)
    twice = once.select(torch.arange(16) // 2)  # answers about one pair err together
    assert not explains_more(trial_of(belief, -48.0, scores), shuffled, twice)
    assert explains_more(trial_of(belief, -46.0, scores), shuffled, twice)


def test_a_fit_that_has_lost_classes_is_not_one_of_so_many() -> None:
    graph = Graph(torch.arange(8), torch.arange(8) + 1, torch.ones(8, dtype=torch.bool), 9)
    scores = torch.linspace(-0.3, -0.2, 8, dtype=torch.float64)
    three = torch.eye(3)[torch.arange(9) % 3] * 0.9 + 0.03
    two = torch.eye(3)[torch.arange(9) % 2] * 0.9 + 0.03
    all_used, lost = trial_of(three, -50.0, scores), trial_of(two, -10.0, scores + 0.01)
    assert most_telling([all_used, lost], graph) is all_used
    assert most_telling([lost], graph) is lost


def test_a_head_whose_t_is_not_read_answers_with_what_people_see() -> None:
    items, _, z = crowd(apart=1.0, misled=0.2)
    rng = np.random.default_rng(1)
    pairs = people(z, rng)
    problem = make_problem(items, pairs, N_CLASSES, None, "estimate", rng, "cpu", Options())
    start = torch.eye(N_CLASSES)[torch.from_numpy(z)], RateChannel(0.9, 0.1)
    stiff = problem.heads()[0]
    problem.generator.manual_seed(0)
    free = fit_with(problem, stiff, start)
    problem.generator.manual_seed(0)
    unread = fit_with(problem, PerceivedHead(stiff), start)
    assert float(free.transition.diagonal().mean()) < 0.9
    assert torch.equal(unread.targets.classes, free.targets.perceived)
    assert float(unread.transition.diagonal().min()) > 0.99
    perceived = free.log_g.exp().double() @ free.transition
    torch.testing.assert_close(unread.log_g.exp().double(), perceived, atol=1e-5, rtol=0)


def test_where_em_lets_go_of_every_class_a_start_stands_as_it_was_found(monkeypatch) -> None:
    items, y, _ = crowd(apart=3.0, misled=0.0)
    pairs = people(y, np.random.default_rng(4), total=600)
    problem = make_problem(
        items, pairs, N_CLASSES, None, "estimate", np.random.default_rng(0), "cpu", FAST
    )

    def faded(problem, channel, chosen: Trial) -> State:
        state = fit_with(problem, chosen.head, (chosen.state.targets.classes.float(), channel))
        if isinstance(chosen.head, AsFoundHead):
            return state
        flat = torch.full_like(state.targets.perceived, 1 / N_CLASSES)
        return replace(state, targets=replace(state.targets, perceived=flat, classes=flat))

    monkeypatch.setattr(fit_selection, "fit_chosen", faded)
    channel = AnnotatorChannel.from_rates(0.8, 0.2, problem.n_annotators)
    state, head = fit_selected(problem, channel)
    assert isinstance(head, AsFoundHead)
    assert matched_accuracy(state.targets.classes.argmax(1).numpy(), y) > 0.9


def test_a_noise_model_under_which_classes_fade_is_not_taken_nor_named(monkeypatch) -> None:
    items, y, _ = crowd(apart=3.0, misled=0.0)
    pairs = people(y, np.random.default_rng(4), total=600)
    likely = Comparison("judgement", RateChannel(0.9, 0.1), {"judgement": 0.0, "annotator": -1.0})
    monkeypatch.setattr(fit, "compare_channels", lambda *_, **__: likely)
    monkeypatch.setattr(fit, "has_faded", lambda _: True)
    found = fit_joint(items, pairs, N_CLASSES, random_state=0, options=FAST)
    assert isinstance(found.channel, AnnotatorChannel)
    assert found.choice.startswith("annotator")


def test_many_classes_of_few_answers_are_found_with_the_features() -> None:
    """They differ along all axes alike; from k-means, which sees those that vary most, and from
    judgements alone EM finds a seventh of the items."""
    rng = np.random.default_rng(6)
    y = rng.permutation(np.arange(320) % 20)
    axes = np.arange(1, 31) ** -0.5 * rng.normal(size=(80, 30))
    points = 0.8 * rng.normal(size=(20, 30))[y] + rng.normal(size=(320, 30))
    pairs = people(y, rng, total=2400)
    items = np.maximum(points @ axes.T, 0).astype(np.float32)
    model = SimilarityClassifier(n_classes=20, random_state=0, device="cpu", verbose=False)
    labels = model.fit(items, pairs).labels_
    assert labels is not None
    assert matched_accuracy(labels, y) > 0.4
