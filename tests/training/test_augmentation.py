"""Strong augmentation: the same draws give the same views, and the maps are what they say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise.pairs import Pairs
from likewise.training.augmentation import DRAWS, _warped, affine_maps, strong_view
from likewise.training.batches import STUDENT, TEACHER, Batches, EpochPlan
from likewise.training.objectives.pairwise import CompletePairwise, PairwiseLoss
from likewise.training.recipe import Recipe


def images(n: int = 5, channels: int | None = 3) -> torch.Tensor:
    shape = (n, 9, 9) if channels is None else (n, 9, 9, channels)
    generator = torch.Generator().manual_seed(0)
    return torch.randint(256, shape, generator=generator, dtype=torch.uint8)


def draws(n: int = 5) -> torch.Tensor:
    return 2 * torch.rand(n, DRAWS, generator=torch.Generator().manual_seed(1)) - 1


@pytest.mark.parametrize("channels", [None, 1, 3])
def test_no_strength_changes_nothing(channels: int | None) -> None:
    x = images(channels=channels)
    found = strong_view(x, draws(), 0.0)
    assert found.shape == x.shape
    torch.testing.assert_close(found, x.float(), atol=1e-3, rtol=1e-5)


def test_each_image_has_its_own_view_and_the_same_one_again() -> None:
    x, u = images(), draws()
    found = strong_view(x, u, 0.7)
    torch.testing.assert_close(found, strong_view(x, u, 0.7))
    torch.testing.assert_close(found[3:4], strong_view(x[3:4], u[3:4], 0.7))
    assert (found - x.float()).abs().mean() > 5


def test_a_move_is_a_shift_with_reflected_edges() -> None:
    x = images(n=1, channels=1)
    u = torch.zeros(1, DRAWS)
    u[0, 4] = 1 / 0.15 / 9  # one of nine pixels along
    u[0, 9:] = 5.0  # the cut lies outside
    found = strong_view(x, u, 1.0)[0, :, :, 0]
    expected = np.pad(x[0, :, :, 0].numpy(), ((0, 0), (0, 1)), mode="symmetric")[:, 1:]
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-2)


def test_maps_turn_about_the_middle() -> None:
    u = torch.zeros(1, DRAWS)
    u[0, 0] = 1.0
    turned = affine_maps(u)[0]
    np.testing.assert_allclose(turned[:, 2].numpy(), 0, atol=1e-7)
    np.testing.assert_allclose((turned[:, :2] @ turned[:, :2].T).numpy(), np.eye(2), atol=1e-6)


def test_the_cut_is_at_the_images_mean() -> None:
    u = torch.zeros(1, DRAWS)  # in the middle
    x = images(n=1)
    found = strong_view(x, u, 1.0)
    middle = found[0, 4, 4]
    torch.testing.assert_close(middle, x[0].float().mean(dim=(0, 1)), atol=1e-2, rtol=1e-4)


def test_an_epoch_draws_them_from_seed_and_epoch() -> None:
    recipe = Recipe(augment_strength=0.5)
    shards = [np.arange(20)]

    def plan(epoch: int) -> torch.Tensor:
        drawn = EpochPlan.draw(recipe, 3, epoch, shards, 5, 5).strong
        assert drawn is not None
        return drawn

    assert plan(0).shape == (4, 5, DRAWS)
    assert plan(0).abs().max() <= 1
    assert torch.equal(plan(1), plan(1))
    assert not torch.equal(plan(0), plan(1))
    assert EpochPlan.draw(Recipe(), 3, 0, shards, 5, 5).strong is None


def reflected(position: float, size: int) -> float:
    """Back into an image of that size, whose edges lie half a pixel outside of its last pixels."""
    span = position + 0.5
    span = abs(span) % (2 * size)
    return min(max(min(span, 2 * size - span) - 0.5, 0.0), size - 1.0)


def slowly_warped(image: np.ndarray, by: torch.Tensor) -> np.ndarray:
    """(H, W) pixel by pixel: where the affine map takes it from, the four pixels around there."""
    size = len(image)
    matrix = affine_maps(by[None])[0].numpy()
    found = np.empty(image.shape)
    for row in range(size):
        for column in range(size):
            here = np.array([(2 * column + 1) / size - 1, (2 * row + 1) / size - 1, 1.0])
            along, down = ((matrix @ here + 1) * size - 1) / 2
            x, y = reflected(along, size), reflected(down, size)
            left, top = min(int(x), size - 2), min(int(y), size - 2)
            a, b = x - left, y - top
            upper = (1 - a) * image[top, left] + a * image[top, left + 1]
            lower = (1 - a) * image[top + 1, left] + a * image[top + 1, left + 1]
            found[row, column] = (1 - b) * upper + b * lower
    return found


def test_the_warp_is_the_slow_one() -> None:
    x, by = images(n=3, channels=1).float(), 0.9 * draws(3)
    found = _warped(x.permute(0, 3, 1, 2), by)[:, 0]
    for image, row, expected in zip(found, by, x[..., 0]):
        np.testing.assert_allclose(image, slowly_warped(expected.numpy(), row), atol=0.05)


def test_only_what_learns_sees_strong_views() -> None:
    x, pairs = images(n=20), Pairs.from_labels(np.arange(20) % 2)
    cpu = torch.device("cpu")
    objective = CompletePairwise(PairwiseLoss("mcl"), pairs, pairs, cpu)
    views = {}
    for strength in (0.0, 0.8):
        recipe = Recipe(batch_size=5, shift=1, flip=True, augment_strength=strength)
        batches = Batches(x, objective, recipe, seed=0, device=cpu, process_group=None, shards=1)
        batches.begin_epoch(recipe, 0)
        index = objective.items_of(batches.rows())
        views[strength] = [batches.take(index, view).float() for view in (STUDENT, TEACHER)]
        plain = torch.cat(list(batches.sample(20, 5)))
        assert torch.equal(plain, x)
    assert torch.equal(views[0.0][TEACHER], views[0.8][TEACHER])
    assert not torch.allclose(views[0.0][STUDENT], views[0.8][STUDENT], atol=1.0)
    assert not torch.allclose(views[0.8][STUDENT], views[0.8][TEACHER], atol=1.0)
