"""A refit that keeps the classes of the run before, and what else a person tells a fit."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs

import likewise as lw
from likewise.errors import InputError
from likewise.items.files import read_items
from likewise.methods.reorder import reordered
from likewise.noise.channels import ConfusionChannel
from likewise.runs.fit_job import FitJob
from likewise.runs.like import _arranged
from likewise.runs.told import Told, without_people

NAMES = [f"item {k:03}" for k in range(120)]


def write_data(folder: Path, per_item: int = 20, seed: int = 0) -> tuple[Path, Path, np.ndarray]:
    points, y = make_blobs(120, n_features=6, centers=3, cluster_std=1.5, random_state=1)
    items = folder / "items.csv"
    rows = [",".join([name, *map(str, row)]) for name, row in zip(NAMES, points)]
    items.write_text("\n".join(["id,a,b,c,d,e,f", *rows]) + "\n")
    pairs = lw.Pairs.from_labels(y, per_item, seed)
    lines = ["left,right,same,annotator"]
    for m, (i, j, same) in enumerate(zip(pairs.left, pairs.right, pairs.same)):
        who = ["ann", "bob", "eve"][m % 3]
        lines.append(f"{NAMES[i]},{NAMES[j]},{int(same != (who == 'eve'))},{who}")
    file = folder / f"pairs{seed}.csv"
    file.write_text("\n".join(lines) + "\n")
    return items, file, y


def fit(items: Path, pairs: Path, out: Path, *, seed: int = 0, classes: int = 3, **told):
    classifier = lw.SimilarityClassifier(
        classes, recipe={"epochs": 5}, random_state=seed, verbose=False
    )
    run = FitJob(items, pairs, out, told=Told(**told)).run(classifier)
    assert run is not None
    return run, lw.load(run.model)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    folder = tmp_path_factory.mktemp("like")
    items, pairs, y = write_data(folder)
    labels = folder / "few.csv"
    names = ["ape", "bee", "cow"]
    few = [f"{NAMES[k]},{names[y[k]]}" for k in range(12)]
    labels.write_text("\n".join(["item,label", *few]) + "\n")
    run, _ = fit(items, pairs, folder / "first", known=labels, without_people=("eve",))
    return folder, items, pairs, y, run


def test_known_classes_name_those_of_a_run(first):
    y, run = first[3:]
    assert run.metrics["class_names"] == ["ape", "bee", "cow"]
    named = np.array(["ape", "bee", "cow"])[run.posterior.argmax(1)]
    assert (named == np.array(["ape", "bee", "cow"])[y]).mean() > 0.95
    assert run.config["without_people"] == ["eve"]
    assert run.metrics["judgements"] == 800


@pytest.mark.parametrize("seed", [1, 2])
def test_a_refit_keeps_numbers_and_names(first, seed, tmp_path):
    _, items, _, y, run = first
    _, other, _ = write_data(tmp_path, per_item=16, seed=seed)
    again, classifier = fit(
        items, other, tmp_path / "again", seed=seed, like=run.folder, without_people=("eve",)
    )
    assert again.metrics["class_names"] == run.metrics["class_names"]
    kept = (again.posterior.argmax(1) == run.posterior.argmax(1)).mean()
    assert kept >= 0.95
    assert again.metrics["like"]["kept"] == pytest.approx(kept)
    assert again.metrics["like"]["shared"] == 120
    # The saved model, its T and its posterior have the order that the run says.
    assert classifier.labels_ is not None
    assert (classifier.labels_ == np.array(["ape", "bee", "cow"])[y]).mean() > 0.95


def test_a_class_more_gets_a_number_or_name_of_its_own():
    overlap = np.array([[0.0, 9.0, 1.0], [8.0, 0.0, 2.0]])
    order, names = _arranged(overlap, np.array([0, 1]))
    assert order.tolist() == [1, 0, 2]
    assert names.tolist() == [0, 1, 2]
    order, names = _arranged(overlap, np.array(["cat", "class 0"]))
    assert names.tolist() == ["cat", "class 0", "class 1"]


def test_a_class_less_leaves_the_others_their_names():
    order, names = _arranged(np.array([[0.0, 9.0], [1.0, 1.0], [8.0, 0.0]]), np.arange(3))
    assert order.tolist() == [1, 0]
    assert names.tolist() == [0, 2]


def test_everything_that_has_an_order_is_reordered(first):
    *_, run = first
    result = lw.load(run.model).result_
    p_same = torch.tensor([[0.9, 0.1, 0.2], [0.1, 0.8, 0.3], [0.2, 0.3, 0.7]])
    result = result.with_(
        channel=ConfusionChannel(p_same),
        transition=np.arange(9.0).reshape(3, 3),
        labels=np.array([0, 1, 2]),
        posterior=np.eye(3, dtype=np.float32),
    )
    order = np.array([2, 0, 1])
    moved = reordered(result, order)
    x = torch.randn(4, 6)
    assert torch.allclose(moved.model(x), result.model(x)[:, order])
    assert moved.transition.tolist() == [[8, 6, 7], [2, 0, 1], [5, 3, 4]]
    assert moved.labels.tolist() == [1, 2, 0]
    assert moved.posterior.argmax(1).tolist() == [1, 2, 0]
    assert moved.channel.p_same.diagonal().tolist() == pytest.approx([0.7, 0.9, 0.8])


def test_gold_answers_count_more_than_a_crowd(first, tmp_path):
    _, items, pairs, y, _ = first
    gold = tmp_path / "gold.csv"
    gold.write_text(f"left,right,same\n{NAMES[0]},{NAMES[1]},{int(y[0] == y[1])}\n")
    data = read_items(items)
    given = lw.Pairs.read(pairs, item_ids=data.ids, n_items=len(data))
    found = Told(gold=gold).judgements(given, data, {})
    assert len(found) == len(given) + 1
    assert found.weight is not None
    assert found.weight[-1] == 10
    assert found.annotator_names[found.annotator[-1]] == "gold answers"


def test_nobody_of_that_name(first):
    *_, pairs, _, _ = first
    given = lw.Pairs.read(pairs)
    with pytest.raises(InputError, match="nobody is called 'zoe'"):
        without_people(given, ("zoe",))
    with pytest.raises(InputError, match="nobody is left"):
        without_people(given, ("ann", "bob", "eve"))
    kept = without_people(given, ("ann",))
    assert kept.annotator_names.tolist() == ["bob", "eve"]
    assert set(kept.annotator.tolist()) == {0, 1}


def test_a_run_about_other_items_is_refused(first, tmp_path):
    run = first[4]
    np.save(tmp_path / "items.npy", np.random.default_rng(0).normal(size=(30, 6)))
    lw.Pairs.from_labels(np.arange(30) % 3, 10, 0).write(tmp_path / "pairs.csv")
    with pytest.raises(InputError, match="knows none of these items"):
        fit(tmp_path / "items.npy", tmp_path / "pairs.csv", tmp_path / "out", like=run.folder)
