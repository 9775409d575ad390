"""Items in a memory map that is too large to copy: read by batch, to the same result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from likewise.inference.lifting.lifted_start import embeddings
from likewise.inference.selection import count_by_lifting
from likewise.items import Selection
from likewise.methods import item_noise, lifted_evidence
from likewise.methods import problem as problems
from likewise.methods.joint import joint_program
from likewise.methods.pairwise import pairwise_program
from likewise.methods.problem import Problem
from likewise.methods.teachers import CrossFit
from likewise.pairs import Pairs
from likewise.training.recipe import Recipe
from likewise.training.scheduler import run_program
from likewise.training.sources import MappedItems, ResidentItems


def make_problem(items: np.ndarray) -> Problem:
    classes = np.random.default_rng(0).integers(3, size=len(items))
    recipe = Recipe(epochs=3, batch_size=32)
    return Problem(items, Pairs.from_labels(classes), 3, "mlp", recipe, 0.2)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    np.save(tmp_path / "items.npy", rng.normal(size=(120, 5)).astype(np.float32))
    return tmp_path / "items.npy"


@pytest.mark.parametrize("method", ["joint", "mcl"])
def test_a_large_map_is_never_copied_and_gives_the_same_model(
    stored: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(problems, "LARGEST_COPY", 0)
    models = []
    for items in (np.load(stored), np.load(stored, mmap_mode="r")):
        problem = make_problem(items)
        assert isinstance(problem.take(np.arange(3)), Selection) == isinstance(items, np.memmap)
        program = joint_program(problem) if method == "joint" else pairwise_program(problem, "mcl")
        models.append(run_program(program).model)
    for left, right in zip(models[0].parameters(), models[1].parameters()):
        assert torch.equal(left, right)


def test_small_maps_are_copied(stored: Path) -> None:
    items = np.load(stored, mmap_mode="r")
    assert not isinstance(make_problem(items).take(np.arange(3)), Selection)


def test_pictures_are_moved_alike() -> None:
    pictures = np.random.default_rng(2).integers(256, size=(20, 6, 7, 3), dtype=np.uint8)
    rows, index = np.array([3, 5, 8, 13]), torch.tensor([2, 0, 3])
    shift, flip = torch.tensor([[1, -2], [0, 0], [2, 1]]), torch.tensor([True, False, True])
    there = MappedItems(Selection(pictures, rows)).take(index, shift, flip)
    here = ResidentItems(torch.from_numpy(pictures[rows])).take(index, shift, flip)
    assert torch.equal(there, here)
    assert len(Selection(pictures, rows).every(1, 2)) == 2


class Seen(Exception):
    """What was handed on."""


def test_points_are_made_from_the_map_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Part by part: a copy in single precision would be four times a file of pictures."""
    pictures = np.random.default_rng(3).integers(256, size=(120, 6, 5), dtype=np.uint8)
    np.save(tmp_path / "pictures.npy", pictures)
    items = np.load(tmp_path / "pictures.npy", mmap_mode="r")
    flat = pictures.astype(np.float32).reshape(120, -1)
    for one, other in zip(embeddings(items, 3), embeddings(flat, 3), strict=True):
        np.testing.assert_array_equal(one, other)

    def look(given: np.ndarray, *rest: object, **options: object) -> None:
        raise Seen(given)

    for module in (count_by_lifting, lifted_evidence):
        monkeypatch.setattr(module, "embeddings", look)
    monkeypatch.setattr(item_noise, "principal_components", look)
    monkeypatch.setattr(item_noise, "UNEXPLAINED", -1.0)
    pairs = Pairs.from_labels(np.arange(120) % 3, 4, 0)
    problem, evidence = Problem(items, pairs, 3), torch.eye(3)[torch.arange(120) % 3]
    found = CrossFit((0.9 * evidence + 0.03).log(), torch.eye(3), [], Recipe())
    for call in (
        lambda: count_by_lifting.count_by_lifting(items, pairs, 2, 0),
        lambda: lifted_evidence.lift_judgements(problem, "estimate"),
        lambda: item_noise.depends_on_items(problem, evidence, found),
    ):
        with pytest.raises(Seen) as seen:
            call()
        assert seen.value.args[0] is items
