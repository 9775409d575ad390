"""The joint fit: its parts against slow or known answers, and that it learns."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch import nn

from likewise.errors import InputError
from likewise.inference import Options, fit_joint
from likewise.inference.annotator_table import annotator_table
from likewise.inference.heads.cross_fitting import NetworkHead, Targets, log_perceived
from likewise.inference.heads.ensemble import Bank, StackedMLPs, make_bank
from likewise.inference.problem import make_problem, spanning
from likewise.inference.propagation.graph import Graph, contract
from likewise.inference.propagation.posterior import guess
from likewise.inference.selection.channel_selection import candidates, compare_channels
from likewise.inference.selection.starts import component_start, spectral_start
from likewise.metrics import matched_accuracy
from likewise.nn.model import InputLayer, Model
from likewise.nn.networks import MLP
from likewise.noise import symmetric
from likewise.noise.annotators import AnnotatorChannel
from likewise.noise.channels import ConfusionChannel, ExactChannel, RateChannel
from likewise.noise.estimation import class_posterior, likelihood_transition
from likewise.pairs import Pairs
from likewise.pairs.rates import moment_rates

FAST = Options(rounds=3, folds=2, epochs=12, final_epochs=20, start_steps=150)


def blobs(n_items: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Well separated Gaussians in eight dimensions, classes balanced."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_items) % n_classes
    return (4 * np.eye(8)[y] + rng.normal(size=(n_items, 8))).astype(np.float32), y


def slipping(pairs: Pairs, a: float, b: float, seed: int = 0) -> Pairs:
    u = np.random.default_rng(seed).random(len(pairs))
    same = np.where(pairs.same, u < a, u < b)
    return Pairs(pairs.left, pairs.right, same, n_items=pairs.n_items)


def test_it_learns_from_consistent_judgements_through_class_flips():
    X, y = blobs(300, 4)
    rng = np.random.default_rng(1)
    z = np.where(rng.random(300) < 0.3, rng.integers(0, 4, 300), y)
    result = fit_joint(X, Pairs.from_labels(z, 12, 2), 4, random_state=0, options=FAST)
    assert matched_accuracy(result.classes.argmax(1), y) > 0.95
    assert matched_accuracy(result.posterior.argmax(1), z) > 0.95  # of what people perceived
    assert result.choice.startswith("class")
    assert abs(np.mean(np.diag(result.transition)) - 0.775) < 0.08


def test_a_complete_set_needs_no_list_of_its_pairs():
    X, y = blobs(120, 3)
    pairs = Pairs.from_labels(y)
    few = spanning(pairs)
    assert len(few) < 130
    np.testing.assert_array_equal(few.components(), pairs.components())
    assert few.is_consistent()
    result = fit_joint(X, pairs, 3, random_state=0, options=FAST)
    assert matched_accuracy(result.classes.argmax(1), y) > 0.95
    assert "all pairs" in result.choice


def test_it_learns_from_slips_and_finds_their_rates():
    X, y = blobs(200, 3)
    pairs = slipping(Pairs.from_labels(y, 40, 0), 0.75, 0.15)
    # By the rule of one standard error another channel is taken in one draw of ten.
    result = fit_joint(X, pairs, 3, random_state=1, options=FAST)
    assert matched_accuracy(result.classes.argmax(1), y) > 0.95
    assert isinstance(result.channel, RateChannel)
    assert (result.channel.a, result.channel.b) == pytest.approx((0.75, 0.15), abs=0.04)
    assert result.choice.startswith("judgement")


@pytest.mark.usefixtures("few_draws")
def test_it_sets_careless_people_aside():
    X, y = blobs(120, 3)
    base = Pairs.from_labels(y, 40, 0)
    rng = np.random.default_rng(0)
    person = rng.integers(0, 20, len(base))
    u = rng.random(len(base))
    same = np.where(person < 12, base.same ^ (u < 0.1), np.where(person < 17, u < 0.5, False))
    pairs = Pairs(base.left, base.right, same, [f"p{k:02d}" for k in person], n_items=120)
    result = fit_joint(X, pairs, 3, random_state=0, options=FAST)
    assert "annotator" in result.choice.split(":")[0]
    assert set(result.annotators["annotator"][:12]) == {f"p{k:02d}" for k in range(12)}
    assert result.annotators["reliability"] == sorted(result.annotators["reliability"])[::-1]


def test_the_same_seed_gives_the_same_model():
    X, y = blobs(90, 3)
    pairs = slipping(Pairs.from_labels(y, 15, 0), 0.8, 0.1)
    first, second = (
        fit_joint(X, pairs, 3, noise="both", random_state=3, options=FAST) for _ in range(2)
    )
    np.testing.assert_array_equal(first.classes, second.classes)
    np.testing.assert_array_equal(first.judged, second.judged)
    np.testing.assert_array_equal(first.transition, second.transition)
    other = fit_joint(X, pairs, 3, noise="both", random_state=4, options=FAST)
    assert not np.array_equal(first.classes, other.classes)


def test_evidence_is_of_the_judgements_and_not_of_the_item():
    """Its rows are likelihoods that sum to 1; with what f says they give the posterior of z."""
    X, y = blobs(90, 3)
    result = fit_joint(
        X, slipping(Pairs.from_labels(y, 15, 0), 0.8, 0.1), 3, random_state=0, options=FAST
    )
    np.testing.assert_allclose(result.judged.sum(axis=1), 1, atol=1e-5)
    assert matched_accuracy(result.judged.argmax(1), y) > 0.9


def test_an_item_that_nobody_judged_has_flat_evidence():
    X, y = blobs(90, 3)
    pairs = slipping(Pairs.from_labels(y, 15, 0), 0.8, 0.1)
    kept = pairs.select((pairs.left != 4) & (pairs.right != 4))
    result = fit_joint(X, kept, 3, random_state=0, options=FAST)
    np.testing.assert_allclose(result.judged[4], 1 / 3, atol=1e-4)
    assert result.classes[4].max() > 0.5  # its features tell


def test_only_gaussian_heads_end_in_a_classifier():
    """A network is trained by its own recipe, on what was found here."""
    X, y = blobs(60, 3)
    pairs = slipping(Pairs.from_labels(y, 20, 0), 0.9, 0.05)
    assert fit_joint(X, pairs, 3, random_state=0, options=FAST).module is None
    rich = np.concatenate([X] * 3, axis=1) + np.random.default_rng(0).normal(size=(60, 24))
    module = fit_joint(rich.astype(np.float32), pairs, 3, random_state=0, options=FAST).module
    assert isinstance(module, nn.Module)


def test_mistakes_are_refused_in_words():
    X, y = blobs(30, 3)
    pairs = Pairs.from_labels(y, 5, 0)
    with pytest.raises(InputError, match="noise must be one of"):
        fit_joint(X, pairs, 3, noise="psychic")
    with pytest.raises(InputError, match="annotator column"):
        fit_joint(X, pairs, 3, noise="annotator")
    with pytest.raises(InputError, match="only 10 items"):
        fit_joint(X[:10], pairs, 3)
    with pytest.raises(InputError, match="no judgements"):
        fit_joint(X, Pairs([], [], [], n_items=30), 3)


# -- its parts ----------------------------------------------------------------------------------


def test_rates_by_moments_do_not_mind_class_flips():
    rng = np.random.default_rng(0)
    z = rng.integers(0, 5, 500)  # perceived classes: flips of true ones leave these balanced too
    pairs = slipping(Pairs.from_labels(z, 100, 0), 0.7, 0.05)
    found = moment_rates(pairs, 5, rng)
    assert (found.a, found.b) == pytest.approx((0.7, 0.05), abs=0.03)


def test_the_component_start_names_groups_that_differ():
    z = np.random.default_rng(0).integers(0, 4, 200)
    merged = contract(Graph.from_pairs(Pairs.from_labels(z, 30, 0)))
    label = component_start(merged, 4).numpy()
    named = label >= 0
    assert named.mean() > 0.8
    assert matched_accuracy(label[named], z[named]) == 1.0


def test_the_spectral_start_finds_the_classes_from_judgements_alone():
    z = np.random.default_rng(0).integers(0, 3, 150)
    graph = Graph.from_pairs(slipping(Pairs.from_labels(z, 60, 0), 0.75, 0.2))
    posterior, channel = spectral_start(graph, RateChannel(0.6, 0.3), 3, seed=0)
    assert matched_accuracy(posterior.belief.argmax(1).numpy(), z) > 0.95
    assert (channel.a, channel.b) == pytest.approx((0.75, 0.2), abs=0.04)


def test_transition_and_temperature_are_recovered_from_soft_evidence():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 4000)
    T = 0.6 * np.eye(4) + 0.4 * np.roll(np.eye(4), 1, axis=1)  # a pair flip: not symmetric
    z = np.array([rng.choice(4, p=T[c]) for c in y])
    log_g = torch.log_softmax(2.0 * torch.eye(4)[torch.from_numpy(y)], dim=1)  # too cautious
    judged = 0.9 * torch.eye(4)[torch.from_numpy(z)] + 0.025
    found, temperature, _ = likelihood_transition(log_g, judged, (0.5, 0.75, 1.0), iterations=30)
    np.testing.assert_allclose(found.numpy(), T, atol=0.06)
    assert temperature < 1


def test_class_posterior_is_bayes():
    log_g = torch.log(torch.tensor([[0.7, 0.3]]))
    T = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    judged = torch.tensor([[0.25, 0.75]])
    joint = torch.tensor([0.7 * (0.9 * 0.25 + 0.1 * 0.75), 0.3 * (0.2 * 0.25 + 0.8 * 0.75)])
    torch.testing.assert_close(class_posterior(log_g, T, judged)[0], joint / joint.sum())


def test_log_perceived_is_the_log_of_the_product():
    log_g = torch.log_softmax(torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), dim=1)
    T = torch.as_tensor(symmetric(3, 0.3), dtype=torch.float32)
    torch.testing.assert_close(log_perceived(log_g, T), torch.log(log_g.exp() @ T))


def test_a_stacked_bank_computes_what_its_networks_do():
    X = torch.randn(3, 7, 8, generator=torch.Generator().manual_seed(0))
    scaling = InputLayer(torch.ones(8), torch.full((8,), 2.0), images=False)
    networks = [Model(scaling, MLP(8, 4, hidden=(5,))) for _ in range(3)]
    bank = make_bank(networks)
    assert isinstance(bank, StackedMLPs)
    prepared = bank.prepare(X.flatten(0, 1)).unflatten(0, (3, 7))
    torch.testing.assert_close(bank(prepared), Bank(networks)(X))
    torch.testing.assert_close(bank.network(1)(X[1]), networks[1](X[1]))
    assert type(make_bank([nn.Linear(8, 4)])) is Bank


def test_an_items_prediction_never_saw_its_own_judgements():
    """Labels are pure noise: whoever predicts them well has peeked (stopping may, a little)."""
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.normal(size=(200, 8)).astype(np.float32))
    label = torch.from_numpy(rng.integers(0, 2, 200))
    target = torch.eye(2)[label]

    def build(seed: int) -> nn.Module:
        torch.manual_seed(seed)
        return Model(InputLayer(torch.zeros(8), torch.ones(8), False), MLP(8, 2))

    head = NetworkHead(X, build, epochs=20, patience=20)
    targets = Targets(target, target, target, torch.ones(200))
    folds = torch.arange(200) % 4
    generator = torch.Generator().manual_seed(0)
    log_g = head.crossfit(targets, torch.eye(2), folds, generator)
    assert float((log_g.argmax(1) == label).float().mean()) < 0.7


def test_a_fold_that_leaves_nobody_says_nothing() -> None:
    """One item is named, so that its own fold knows of none."""
    X = torch.randn(12, 3, generator=torch.Generator().manual_seed(0))
    even = torch.full((12, 2), 0.5)
    targets = Targets(even, even, even, torch.eye(12)[0])
    head = NetworkHead(X, lambda seed: nn.Linear(3, 2))
    log_g = head.crossfit(targets, torch.eye(2), torch.arange(12) % 4, torch.Generator())
    torch.testing.assert_close(log_g.exp(), even)


def crowd(seed: int = 0) -> tuple[np.ndarray, np.ndarray, Pairs]:
    """120 items of 3 kinds, 60 features; pictures of kind 2 that lean to kind 0 fool everybody."""
    rng = np.random.default_rng(seed)
    y = np.arange(120) % 3
    lean = rng.random(120)
    latent = 4 * np.eye(3)[y] + 0.7 * rng.normal(size=(120, 3))
    X = np.maximum(latent @ rng.normal(size=(3, 60)) + 0.5 * rng.normal(size=(120, 60)), 0)
    z = np.where((y == 2) & (lean < 0.3), 0, y)
    pairs = Pairs.from_labels(z, 40, seed)
    person = rng.integers(0, 80, len(pairs))
    u = rng.random(len(pairs))
    same = np.where(person < 60, pairs.same ^ (u < 0.2), u < 0.5)
    named = Pairs(pairs.left, pairs.right, same, [f"p{k:02d}" for k in person], n_items=120)
    return X.astype(np.float32), y, named


@pytest.mark.slow  # test_fit_selection.py has another crowd that features mend
def test_features_mend_what_people_agree_to_get_wrong():
    X, y, pairs = crowd()
    result = fit_joint(X, pairs, 3, random_state=0)
    assert matched_accuracy(result.module(torch.from_numpy(X)).argmax(1).numpy(), y) > 0.97
    assert matched_accuracy(result.posterior.argmax(1), y) < 0.97  # people's own view stays theirs
    assert result.transition.diagonal().min() < 0.85


@pytest.mark.usefixtures("few_draws")
def test_judgements_keep_apart_what_features_blur():
    """Two kinds nearly alike in the features, another that falls in two: k-means gets it wrong."""
    rng = np.random.default_rng(0)
    y = np.arange(160) % 4
    centre = 4.0 * np.eye(6)[:4]
    centre[1] = centre[0] + 1.2 * np.eye(6)[4]
    latent = centre[y] + 0.4 * rng.normal(size=(160, 6))
    latent[(y == 2) & (rng.random(160) < 0.5)] += 4 * np.eye(6)[5]
    X = np.maximum(latent @ rng.normal(size=(6, 300)), 0).astype(np.float32)
    pairs = slipping(Pairs.from_labels(y, 40, 0), 0.8, 0.2)
    result = fit_joint(X, pairs, 4, random_state=0)
    assert matched_accuracy(result.module(torch.from_numpy(X)).argmax(1).numpy(), y) > 0.95


def test_held_out_judgements_choose_the_channel_and_prefer_the_simple_one():
    z = np.random.default_rng(0).integers(0, 3, 120)
    pairs = slipping(Pairs.from_labels(z, 50, 0), 0.8, 0.1)
    graph = Graph.from_pairs(pairs)
    log_f = torch.log(0.7 * torch.eye(3)[torch.from_numpy(z)] + 0.1)
    options = candidates(graph, RateChannel(0.7, 0.2), 3, 0) | {"class": ExactChannel()}
    found = compare_channels(log_f, graph, options, torch.Generator().manual_seed(0))
    assert found.chosen == "judgement"
    assert found.log_likelihood["class"] < found.log_likelihood["judgement"]


def test_channels_are_compared_from_given_beliefs_where_items_say_nothing():
    """Two of three classes are taken for each other in half of the cases; f is flat, and there are
    so few answers that classes cannot grow out of rounding."""
    rng = np.random.default_rng(0)
    z = np.arange(600) % 3
    left, step = rng.integers(0, 600, 3000), rng.integers(1, 600, 3000)
    right = (left + step) % 600
    kinds = np.sort(np.stack([z[left], z[right]]), axis=0)
    alike = (kinds[0] == 0) & (kinds[1] == 1)
    chance = np.where(kinds[0] == kinds[1], 0.9, np.where(alike, 0.5, 0.1))
    graph = Graph.from_pairs(Pairs(left, right, rng.random(3000) < chance, n_items=600))
    options = candidates(graph, RateChannel(0.8, 0.2), 3, 0)
    flat = torch.full((600, 3), 1 / 3).log()
    start = guess(0.9 * torch.eye(3)[torch.from_numpy(z)] + 0.1 / 3)
    chosen = [
        compare_channels(flat, graph, options, torch.Generator().manual_seed(0), start=begun).chosen
        for begun in (None, start)
    ]
    assert chosen == ["judgement", "confusion"]


def test_reliability_gives_nothing_for_always_saying_different():
    classes = torch.eye(5)[torch.arange(50) % 5]
    left, right = np.triu_indices(50, 1)
    truth = (left % 5) == (right % 5)
    rng = np.random.default_rng(0)
    person = rng.integers(0, 3, len(left))
    same = np.where(person == 0, truth, np.where(person == 1, False, rng.random(len(left)) < 0.5))
    pairs = Pairs(left, right, same, np.array(["good", "never", "coin"])[person], n_items=50)
    table = annotator_table(Graph.from_pairs(pairs), classes, pairs.annotator_names)
    reliability = dict(zip(table["annotator"], table["reliability"]))
    assert table["annotator"][0] == "good"
    assert reliability["good"] == pytest.approx(1, abs=1e-6)
    assert reliability["never"] == pytest.approx(0, abs=0.01)
    assert abs(reliability["coin"]) < 0.15


def test_people_who_look_are_ranked_by_how_often_they_are_right():
    """Whatever they lean to: of five classes, who leans to "different" is right more often."""
    rng = np.random.default_rng(0)
    y = np.arange(100) % 5
    left = rng.integers(0, 100, 4000)
    right = (left + rng.integers(1, 100, 4000)) % 100
    person = np.arange(4000) // 40
    equal = y[left] == y[right]
    # The first half miss much and never imagine, the others the other way round.
    rates = np.where(person[:, None] < 50, [0.6, 0.02], [0.95, 0.25])
    same = rng.random(4000) < np.where(equal, rates[:, 0], rates[:, 1])
    pairs = Pairs(left, right, same, [f"p{k:02d}" for k in person], n_items=100)
    table = annotator_table(
        Graph.from_pairs(pairs), torch.eye(5)[torch.from_numpy(y)], pairs.annotator_names
    )
    share = np.bincount(person, same == equal) / 40
    ranked = [share[int(name[1:])] for name in table["annotator"]]
    assert spearmanr(ranked, table["reliability"]).statistic > 0.95


def test_judgements_of_weight_0_are_none():
    """Neither in what EM works on, nor in what is told of the people."""
    X, y = blobs(60, 3)
    base, rng = Pairs.from_labels(y, 8, 0), np.random.default_rng(0)
    weight = np.where(np.arange(len(base)) % 3, 1.0, 0.0)
    names = [f"p{k}" for k in rng.integers(0, 4, len(base))]
    given = Pairs(base.left, base.right, base.same, names, weight, n_items=60)
    kept = given.select(weight > 0)
    about = 3, None, "estimate", rng, "cpu", Options()
    problem = make_problem(X, given, *about)
    assert len(problem.graph) == len(problem.pairs) == len(kept)
    assert problem.graph.left.tolist() == kept.left.tolist()
    classes = torch.eye(3)[torch.from_numpy(y)]
    tables = [
        annotator_table(Graph.from_pairs(pairs), classes, given.annotator_names)
        for pairs in (given, kept)
    ]
    assert tables[0] == tables[1]
    assert sum(tables[0]["judgements"]) == len(kept)
    with pytest.raises(InputError, match="no judgements"):
        make_problem(X, given.select(weight == 0), *about)


def test_spectral_clusters_are_let_go_of_bit_by_bit():
    """Few judgements, some by lazy people: let go of at once, beliefs fall back to "any class"."""
    rng = np.random.default_rng(2)
    z = rng.integers(0, 4, 400)
    base = Pairs.from_labels(z, 12, 2)
    person = np.arange(len(base)) // 30
    kind = rng.random(person.max() + 1)[person]
    honest = np.where(base.same, rng.random(len(base)) < 0.85, rng.random(len(base)) < 0.1)
    same = np.where(kind < 0.05, False, np.where(kind < 0.1, True, honest))
    pairs = Pairs(base.left, base.right, same, [f"p{k:03d}" for k in person], n_items=400)
    rates = moment_rates(pairs, 4, rng)
    channel = AnnotatorChannel.from_rates(rates.a, rates.b, len(pairs.annotator_names))
    posterior, _ = spectral_start(Graph.from_pairs(pairs), channel, 4, seed=0, rounds=25)
    assert matched_accuracy(posterior.belief.argmax(1).numpy(), z) > 0.8


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(
    ("kind", "n_features"),
    [
        ("confusion", 20),
        ("annotator", 20),
        pytest.param("confusion", 8, marks=pytest.mark.slow),  # a network beside Gaussian heads
    ],
)
def test_the_noise_model_that_was_asked_for_is_taken(kind: str, n_features: int) -> None:
    """However few or many judgements the cells of two classes have."""
    rng = np.random.default_rng(0)
    n_classes = 4 if kind == "confusion" else 3
    y = np.arange(36) % n_classes
    X = 2 * rng.normal(size=(n_classes, n_features))[y] + rng.normal(size=(36, n_features))
    chosen = rng.choice(36 * 35 // 2, 120, replace=False)
    left, right = (end[chosen] for end in np.triu_indices(36, 1))
    same = (y[left] == y[right]) ^ (rng.random(120) < 0.1)
    pairs = Pairs(left, right, same, rng.choice(list("abc"), 120), n_items=36)
    result = fit_joint(X, pairs, n_classes, noise=kind, random_state=0, options=FAST)
    assert result.choice == f"{kind}: as asked"
    assert isinstance(result.channel, ConfusionChannel if kind == "confusion" else AnnotatorChannel)
    assert result.channel.two_rate == (kind == "annotator")
    assert matched_accuracy(result.classes.argmax(1), y) > 0.8
