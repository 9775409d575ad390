"""The pairwise objective over batches that share their items, in the one training loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise.metrics import matched_accuracy
from likewise.nn.model import InputLayer, Model
from likewise.nn.networks import MLP
from likewise.pairs import Pairs
from likewise.training.objectives.pairwise import ListedPairwise, PairwiseLoss
from likewise.training.objectives.shared_pairs import SharedPairwise, listed_objective, shared_batch
from likewise.training.recipe import Recipe
from likewise.training.run import TrainingRun
from tiny import pictures

CPU = torch.device("cpu")


def blobs(n_items: int, per_item: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, Pairs]:
    """Three well separated classes and consistent judgements about random pairs."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_items) % 3
    x = rng.standard_normal((n_items, 4)).astype(np.float32) + 4 * np.eye(4, dtype=np.float32)[y]
    return x, y, Pairs.from_labels(y, per_item=per_item, random_state=seed)


def weighted(pairs: Pairs) -> Pairs:
    weight = np.random.default_rng(1).random(len(pairs))
    return Pairs(pairs.left, pairs.right, pairs.same, weight=weight, n_items=pairs.n_items)


@pytest.mark.parametrize("kind", ["mcl", "kcl"])
@pytest.mark.parametrize("weigh", [False, True])
def test_one_batch_of_all_is_the_listed_loss(kind: str, weigh: bool) -> None:
    pairs = blobs(20, 6)[2]
    if weigh:
        pairs = weighted(pairs)
    shared = SharedPairwise(PairwiseLoss(kind), pairs, pairs, CPU, len(pairs))
    listed = ListedPairwise(PairwiseLoss(kind), pairs, pairs, CPU, batch=50)
    logits = torch.randn(20, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    row, rows = torch.zeros(1, dtype=torch.int64), torch.arange(len(pairs))
    assert shared.n_rows == 1
    loss = shared.loss(logits[shared.items_of(row)], row)
    expected = listed.loss(logits[listed.items_of(rows)], rows)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(
        torch.autograd.grad(loss, logits)[0], torch.autograd.grad(expected, logits)[0]
    )
    torch.testing.assert_close(shared.score(logits), listed.score(logits))


def test_the_rows_of_an_epoch_are_all_judgements_and_epochs_differ() -> None:
    pairs = blobs(60, 20)[2]
    objective = SharedPairwise(PairwiseLoss("mcl"), pairs, pairs, CPU, 50)

    def batches() -> list[list[int]]:
        rows = torch.arange(objective.n_rows)[:, None]
        return [objective._batch_of(row).rows.tolist() for row in rows]

    first = batches()
    assert sorted(row for batch in first for row in batch) == list(range(len(pairs)))
    objective.refine(torch.empty(0), 1, 2)
    second = batches()
    assert sorted(row for batch in second for row in batch) == list(range(len(pairs)))
    assert first != second
    objective.tensors()["epoch"].zero_()  # as a checkpoint of the first epoch would
    assert batches() == first


def test_it_trains_in_the_one_loop() -> None:
    x, y, pairs = blobs(300, 20)
    objective = SharedPairwise(PairwiseLoss("mcl", balance=0.03), pairs, pairs, CPU, 200)
    torch.manual_seed(0)
    recipe = Recipe(epochs=15, batch_size=128, lr=1e-2)
    run = TrainingRun(MLP(4, 3, (16,)), x, x, objective, recipe)
    assert run.steps_per_epoch == objective.n_rows > 5
    run.train()
    predicted = run.select()(torch.from_numpy(x)).argmax(1).numpy()
    assert matched_accuracy(predicted, y) > 0.95


def test_images_in_batches_of_different_sizes_are_moved_too() -> None:
    images, y = pictures(n=120, size=8)
    pairs = Pairs.from_labels(y, 20, random_state=0)
    objective = SharedPairwise(PairwiseLoss("mcl"), pairs, pairs, CPU, 60)
    recipe = Recipe(epochs=2, lr=1e-2, shift=1, flip=True)
    network = Model(InputLayer.fit(images), MLP(64, 2, (8,)))
    run = TrainingRun(network, images, images, objective, recipe)
    sizes = {len(objective.items_of(torch.tensor([k]))) for k in range(objective.n_rows)}
    assert len(sizes) > 1
    run.train()
    assert run.finished


def test_a_batch_size_that_was_asked_for_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.training.objectives.shared_pairs.MANY_JUDGEMENTS", 100)
    pairs = blobs(60, 20)[2]
    asked = listed_objective(PairwiseLoss("mcl"), pairs, pairs, CPU, 64, seed=0)
    own = listed_objective(PairwiseLoss("mcl"), pairs, pairs, CPU, None, seed=0)
    assert isinstance(asked, SharedPairwise)
    assert isinstance(own, SharedPairwise)
    assert asked.schedule.batch_judgements == 64
    assert own.schedule.batch_judgements == shared_batch(len(pairs), 60)


def test_few_judgements_come_in_random_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = blobs(60, 20)[2]
    loss = PairwiseLoss("mcl")
    assert isinstance(listed_objective(loss, pairs, pairs, CPU, 64, seed=0), ListedPairwise)
    monkeypatch.setattr("likewise.training.objectives.shared_pairs.MANY_JUDGEMENTS", 100)
    assert isinstance(listed_objective(loss, pairs, pairs, CPU, 64, seed=0), SharedPairwise)


@pytest.mark.parametrize(
    ("judgements", "items", "expected"),
    [(10**7, 10**6, 333_000), (10**8, 10**6, 39_200), (10**6, 10**6, 167_000), (10**6, 100, 1024)],
)
def test_denser_judgements_need_smaller_batches(judgements: int, items: int, expected: int) -> None:
    assert shared_batch(judgements, items) == pytest.approx(expected, rel=0.02)


def test_a_resumed_run_sees_the_batches_it_would_have_seen() -> None:
    x, _, pairs = blobs(120, 20)

    def start() -> TrainingRun:
        torch.manual_seed(0)
        objective = SharedPairwise(PairwiseLoss("mcl"), pairs, pairs, CPU, 100)
        recipe = Recipe(epochs=4, batch_size=128, lr=1e-2)
        return TrainingRun(MLP(4, 3, (8,)), x, x, objective, recipe)

    whole = start()
    whole.train()
    interrupted = start()
    for _ in range(2):
        interrupted.begin_epoch()
        for _ in range(interrupted.steps_per_epoch):
            interrupted.step()
        interrupted.end_epoch()
    resumed = start()
    resumed.begin_epoch()
    resumed.step()  # so that its optimiser has a state to take over
    resumed.restore(interrupted.snapshot())
    resumed.epoch = 2
    resumed.train()
    for a, b in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=0, rtol=0)
