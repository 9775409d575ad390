"""Numbers that stop being finite are named by epoch and batch, or skipped and counted; and what a
person should know of a doubtful fit is said in words."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from likewise import SimilarityClassifier
from likewise.errors import InputError, TrainingError
from likewise.methods.joint import joint_program
from likewise.methods.problem import Problem
from likewise.methods.warnings import judged_area
from likewise.pairs import Pairs
from likewise.training.nonfinite import complaint
from likewise.training.objectives.forward_corrected import ForwardCorrected
from likewise.training.recipe import Recipe
from likewise.training.run import TrainingRun
from likewise.training.scheduler import interleave, run_program

RECIPE = Recipe(epochs=3, batch_size=20, lr=0.01)


def blobs(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=n)
    return (rng.normal(size=(n, 5)) + 3 * np.eye(3, 5)[labels]).astype(np.float32), labels


def new_run(recipe: Recipe = RECIPE, network: str | nn.Module | None = None) -> TrainingRun:
    items, labels = blobs()
    problem = Problem(items, Pairs.from_labels(labels), 3, recipe=recipe, network=network)
    return next(joint_program(problem))


def poison(run: TrainingRun, step: int, value: float = float("nan")) -> None:
    """Make the loss of one step (counted over the epochs) non-finite, and its gradient with it."""
    objective = run.objective
    assert isinstance(objective, ForwardCorrected)
    whole = objective.loss

    def loss(logits: Tensor, rows: Tensor) -> Tensor:
        factor = value if int(run.counter.in_run) == step else 1.0
        return whole(logits, rows) * factor

    objective.loss = loss  # type: ignore[method-assign]


def test_the_epoch_and_batch_are_named() -> None:
    run = new_run()
    assert run.steps_per_epoch == 9
    poison(run, step=9 + 4)
    with pytest.raises(
        TrainingError, match=r"epoch 1, batch 4 of 9.*lower learning rate than 0.01"
    ):
        run.train()


def test_an_infinite_loss_counts_too() -> None:
    run = new_run()
    poison(run, step=2, value=float("inf"))
    with pytest.raises(TrainingError, match="epoch 0, batch 2 of 9"):
        run.train()


def test_the_first_batch_has_another_cause() -> None:
    run = new_run()
    poison(run, step=0)
    with pytest.raises(TrainingError, match=r"from the first batch on.*smaller scale"):
        run.train()


def test_a_gradient_that_overflows_in_the_last_batch_is_caught_by_the_held_out_cost() -> None:
    message = complaint(epoch=2, loss=0.5, held_out=float("nan"), batch=-1, batches=9, lr=0.1)
    assert message is not None
    assert "held-out cost became nan after epoch 2" in message
    assert complaint(0, 1.0, 1.0, -1, 9, 0.1) is None


class Normalised(nn.Sequential):
    """A network with running statistics, which a NaN would poison for good."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def test_skipped_batches_are_counted_and_leave_no_trace() -> None:
    torch.manual_seed(0)
    run = new_run(RECIPE.with_(nonfinite="skip"), Normalised())
    poison(run, step=9 + 4)
    poison_forward(run, step=2 * 9 + 1)
    run.train()
    assert [row["skipped"] for row in run.history] == [0, 1, 1]
    assert all(np.isfinite(list(row.values())).all() for row in run.history)
    assert all(t.isfinite().all() for t in run.model.state_dict().values())


def poison_forward(run: TrainingRun, step: int) -> None:
    """Make the items of one step NaN, so that they reach the statistics of the network."""
    forward = run.model.forward

    def poisoned(x: Tensor) -> Tensor:
        bad = run.model.training and int(run.counter.in_run) == step
        return forward(x.float() * float("nan") if bad else x)

    run.model.forward = poisoned  # type: ignore[method-assign]


def test_a_skipped_batch_changes_no_weight() -> None:
    run = new_run(RECIPE.with_(nonfinite="skip", optimizer="sgd", momentum=0.0))
    poison(run, step=0)
    before = {k: v.clone() for k, v in run.model.state_dict().items()}
    run.begin_epoch()
    run.step()
    assert all(torch.equal(v, before[k]) for k, v in run.model.state_dict().items())
    run.step()
    assert not all(torch.equal(v, before[k]) for k, v in run.model.state_dict().items())


def test_where_nothing_is_finite_skipping_stops_too() -> None:
    run = new_run(RECIPE.with_(nonfinite="skip"))
    whole = run.objective.loss
    run.objective.loss = lambda logits, rows: whole(logits, rows) * float("nan")  # type: ignore[method-assign]
    with pytest.raises(TrainingError):
        run.train()


def fitted(
    items: np.ndarray, labels: np.ndarray, n_classes: int = 3, **options: object
) -> list[str]:
    recipe = Recipe(epochs=15, batch_size=32, lr=0.002)
    classifier = SimilarityClassifier(
        n_classes, method="mcl", recipe=recipe, random_state=0, verbose=False, **options
    )
    return classifier.fit(items, Pairs.from_labels(labels)).warnings_


def test_a_good_fit_gives_no_warnings() -> None:
    assert fitted(*blobs()) == []


def test_judgements_without_information_are_said_to_be_so() -> None:
    items, labels = blobs(400)
    shuffled = np.random.default_rng(1).permutation(labels)
    found = fitted(items, shuffled)
    assert any("AUC 0." in sentence and "by chance" in sentence for sentence in found)


def test_dead_classes_are_said_to_be_so() -> None:
    found = fitted(*blobs(), n_classes=12)
    assert any("of 12 classes are never predicted" in sentence for sentence in found)


def test_the_area_is_that_of_scikit_learn() -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=30)
    listed = Pairs.from_labels(rng.integers(3, size=30)).explicit()
    area, _ = judged_area(p, listed.left, listed.right, listed.same)
    score = (p[listed.left] * p[listed.right]).sum(axis=1)
    assert area == pytest.approx(roc_auc_score(listed.same, score))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), "batch_size"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "batch_size"),
        (RuntimeError("CUDA error: unspecified launch failure\nmore"), "last checkpoint"),
    ],
)
def test_a_device_that_fails_is_said_to(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: TrainingRun) -> None:
        raise error

    monkeypatch.setattr(TrainingRun, "step", fail)
    items, labels = blobs()
    problem = Problem(items, Pairs.from_labels(labels), 3, recipe=RECIPE)
    with pytest.raises(TrainingError, match=words) as caught:
        run_program(joint_program(problem))
    assert "\n" not in str(caught.value)
    with pytest.raises(TrainingError, match=words):
        interleave([joint_program(problem)], 1)


def test_other_errors_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: TrainingRun) -> None:
        raise RuntimeError("a module of the user's")

    monkeypatch.setattr(TrainingRun, "step", fail)
    items, labels = blobs()
    with pytest.raises(RuntimeError, match="of the user's"):
        run_program(joint_program(Problem(items, Pairs.from_labels(labels), 3, recipe=RECIPE)))


def test_items_too_small_to_scale_are_called_so() -> None:
    items = np.random.default_rng(0).normal(size=(30, 3)) * 1e-42
    pairs = Pairs.from_labels(np.arange(30) % 2)
    with pytest.raises(InputError, match="single precision cannot scale them"):
        SimilarityClassifier(2, recipe={"epochs": 1}, verbose=False).fit(items, pairs)
