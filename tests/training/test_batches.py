"""Items as they came, the input layer, the plan of an epoch, and crops by one gather."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from torch import nn
from torch.nn import functional as F

from likewise.errors import InputError
from likewise.items import check_items, network_shape
from likewise.nn.model import InputLayer, Model, logits_of, outputs
from likewise.training.batches import Batches, EpochPlan
from likewise.training.objectives.forward_corrected import ForwardCorrected
from likewise.training.recipe import Recipe
from likewise.training.sources import cropped

CPU = torch.device("cpu")


# -- checking ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int64, np.int8, bool, np.uint16])
def test_numbers_become_single_precision(dtype):
    given_ = np.ones((3, 4), dtype)
    items = check_items(given_)
    assert items.dtype == np.float32
    np.testing.assert_array_equal(items, given_)


def test_what_fits_is_not_copied(tmp_path):
    images = np.zeros((3, 8, 8), np.uint8)
    assert check_items(images) is images
    features = np.zeros((3, 4), np.float32)
    assert np.shares_memory(check_items(features), features)
    np.save(tmp_path / "x.npy", features)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert isinstance(check_items(mapped), np.memmap)


def test_tables_of_objects_are_items_if_they_are_numbers():
    table = np.array([[1, 2.5], [True, 3]], object)
    np.testing.assert_array_equal(check_items(table), [[1, 2.5], [1, 3]])


def test_lists_are_items_too():
    np.testing.assert_array_equal(check_items([[1, 2], [3, 4]]), [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([["a"]], r"^items must be numbers, but are <U1"),
        (np.zeros(3), r"^items must be features .* but have shape \(3,\)"),
        (np.zeros((1, 2, 3, 4, 5)), r"but have shape \(1, 2, 3, 4, 5\)"),
        (np.zeros((0, 3)), r"^there are no items: 0 sample\(s\) \(shape=\(0, 3\)\)"),
        (np.zeros((3, 0)), r"^the items are empty: 0 feature\(s\)"),
        (np.zeros((3, 8, 0)), r"^the items are empty"),
        ([[1.0, 2.0], [np.nan, 1.0]], r"^item 1 has NaN at position \(0,\): items must be finite"),
        (np.array([[1, "a"]], object), r"^items must be numbers, but some are not: could not"),
        (np.array([[1, None]], object), r"^item 0 has NaN|some are not"),
        (np.ones((2, 2), complex), r"Complex data not supported"),
        (sparse.csr_matrix(np.eye(2)), r"^sparse items are not supported; give X.toarray"),
        (np.full((2, 3, 3), np.inf), r"^item 0 has inf at position \(0, 0\)"),
    ],
)
def test_what_is_no_array_of_items(items, message):
    with pytest.raises(InputError, match=message):
        check_items(items)


def test_a_bad_value_far_down_is_found(monkeypatch):
    items = np.zeros((9, 2**22), np.float32)
    items[7, 5] = -np.inf
    with pytest.raises(InputError, match=r"item 7 has -inf at position \(5,\)"):
        check_items(items)


def test_a_fitted_model_knows_its_shape():
    check_items(np.zeros((2, 4)), (4,))
    with pytest.raises(InputError, match=r"X has 5 features, but .* is expecting 4 features"):
        check_items(np.zeros((2, 5)), (4,))
    with pytest.raises(InputError, match=r"to items of shape \(4,\), but these have \(2, 2\)"):
        check_items(np.zeros((2, 2, 2)), (4,))


@pytest.mark.parametrize(
    ("shape", "seen"),
    [((9, 4), (4,)), ((9, 8, 7), (1, 8, 7)), ((9, 8, 7, 3), (3, 8, 7))],
)
def test_what_a_network_sees(shape, seen):
    assert network_shape(np.zeros(shape)) == seen


# -- input layer ---------------------------------------------------------------------------------


def test_features_are_centred_and_scaled_one_by_one():
    rng = np.random.default_rng(0)
    items = rng.normal([1.0, -5.0, 100.0], [1.0, 2.0, 0.5], (1000, 3)).astype(np.float32)
    out = InputLayer.fit(items)(torch.from_numpy(items))
    torch.testing.assert_close(out.mean(dim=0), torch.zeros(3), atol=1e-3, rtol=0)
    torch.testing.assert_close(out.std(dim=0), torch.ones(3), atol=1e-2, rtol=0)


def test_constant_and_nearly_constant_features_do_not_blow_up():
    items = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)
    items[:, 1] = 7.0
    items[:, 2] = 0.0
    items[0, 2] = 1.0  # a rare event
    out = InputLayer.fit(items)(torch.from_numpy(items))
    assert torch.isfinite(out).all()
    assert not out[:, 1].any()
    assert out[0, 2] < 7  # scaled up fully it would be 31
    flat = np.full((4, 2), 3.0, np.float32)
    assert not InputLayer.fit(flat)(torch.from_numpy(flat)).any()


@pytest.mark.parametrize("shape", [(50, 6, 5), (50, 6, 5, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_images_are_scaled_by_channel_and_put_channels_first(shape, dtype):
    items = np.random.default_rng(0).integers(256, size=shape).astype(dtype)
    out = InputLayer.fit(items)(torch.from_numpy(items))
    channels = 1 if len(shape) == 3 else 3
    assert out.shape == (50, channels, 6, 5)
    assert out.dtype == torch.float32
    torch.testing.assert_close(out.mean(dim=(0, 2, 3)), torch.zeros(channels), atol=1e-3, rtol=0)
    torch.testing.assert_close(out.std(dim=(0, 2, 3)), torch.ones(channels), atol=1e-2, rtol=0)
    channel = items if len(shape) == 3 else items[..., 1]
    pixel = out[:, channels // 2, 2, 3].numpy()
    assert np.corrcoef(pixel, channel[:, 2, 3])[0, 1] > 0.9999


def test_black_images_stay_finite():
    items = np.zeros((4, 8, 8, 3), np.uint8)
    assert not InputLayer.fit(items)(torch.from_numpy(items)).any()


def test_scaling_of_many_items_comes_from_a_sample():
    items = np.random.default_rng(0).normal(2.0, 3.0, (120_000, 1)).astype(np.float32)
    layer = InputLayer.fit(items)
    assert float(layer.mean) == pytest.approx(2.0, abs=0.1)
    assert float(1 / layer.scale) == pytest.approx(3.0, abs=0.1)


# -- models over many items ----------------------------------------------------------------------


def test_logits_do_not_depend_on_the_batch_and_leave_the_mode(generator):
    items = np.random.default_rng(0).normal(size=(11, 4)).astype(np.float32)
    model = Model(InputLayer.fit(items), nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)))
    model.train()
    whole = logits_of(model, items, CPU)
    assert model.training
    torch.testing.assert_close(logits_of(model, items, CPU, batch=4), whole)
    torch.testing.assert_close(logits_of(model, torch.from_numpy(items), CPU, batch=3), whole)
    assert [len(part) for part in outputs(model, items, CPU, batch=4)] == [4, 4, 3]
    assert not whole.requires_grad


def test_a_mirroring_model_sees_both_sides_when_it_predicts():
    items = np.random.default_rng(0).integers(256, size=(4, 6, 6, 3)).astype(np.uint8)
    network = nn.Sequential(nn.Flatten(), nn.Linear(108, 2))
    plain = Model(InputLayer.fit(items), network)
    flip_tta = Model(plain.inputs, network, flip_tta=True)
    flipped = np.ascontiguousarray(items[:, :, ::-1])
    expected = (logits_of(plain, items, CPU) + logits_of(plain, flipped, CPU)) / 2
    torch.testing.assert_close(logits_of(flip_tta, items, CPU), expected)
    torch.testing.assert_close(logits_of(flip_tta, flipped, CPU), expected)
    flip_tta.train()
    torch.testing.assert_close(flip_tta(torch.from_numpy(items)), plain(torch.from_numpy(items)))


# -- plans ---------------------------------------------------------------------------------------

MOVING = Recipe(shift=2, flip=True, mixup=0.5)


def test_a_plan_depends_on_seed_and_epoch_alone():
    def tensors(seed: int, epoch: int) -> list[torch.Tensor]:
        return EpochPlan.draw(MOVING, seed, epoch, [np.arange(20)], 6, 6)._tensors()

    for one, two in zip(tensors(1, 2), tensors(1, 2)):
        assert torch.equal(one, two)
    for other in (tensors(1, 3), tensors(2, 2)):
        assert not torch.equal(other[0], tensors(1, 2)[0])


def test_a_plan_names_each_row_at_most_once():
    plan = EpochPlan.draw(MOVING, 0, 0, [np.arange(20)], 6, 12)
    assert plan.rows.shape == (3, 6)
    assert len(plan.rows.flatten().unique()) == 18
    assert plan.shift.shape == (3, 12, 2, 2)
    assert plan.flip.shape == (3, 12, 2)
    assert plan.mix.shape == (3,)
    assert plan.shift.min() >= -2
    assert plan.shift.max() <= 2
    assert ((plan.mix >= 0) & (plan.mix <= 1)).all()


def test_shifts_and_flips_of_all_kinds_occur():
    plan = EpochPlan.draw(MOVING, 0, 0, [np.arange(600)], 300, 300)
    assert plan.shift.unique().tolist() == [-2, -1, 0, 1, 2]
    assert 0.4 < plan.flip.float().mean() < 0.6
    plain = EpochPlan.draw(Recipe(), 0, 0, [np.arange(20)], 6, 6)
    assert plain.shift is plain.flip is plain.mix is None


def test_a_plan_is_taken_over_in_place():
    plan, other = (EpochPlan.draw(MOVING, 0, epoch, [np.arange(20)], 6, 6) for epoch in (0, 1))
    held = plan.to(CPU)
    address = held.rows.data_ptr()
    held.copy_(other)
    assert held.rows.data_ptr() == address
    for one, two in zip(held._tensors(), other._tensors()):
        assert torch.equal(one, two)


# -- crops ---------------------------------------------------------------------------------------


def crop_by_padding(image: torch.Tensor, down: int, along: int) -> torch.Tensor:
    """What augmentation libraries do: reflect at the border, then cut."""
    height, width = image.shape[:2]
    channels_first = image.permute(2, 0, 1)[None].float()
    padded = F.pad(channels_first, (3,) * 4, mode="reflect")[0].permute(1, 2, 0)
    return padded[3 + down : 3 + down + height, 3 + along : 3 + along + width]


@given(st.integers(-3, 3), st.integers(-3, 3), st.booleans(), st.integers(0, 4))
def test_one_gather_is_padding_cropping_and_flipping(down, along, flip, index):
    items = (torch.arange(5 * 6 * 7 * 2) % 251).reshape(5, 6, 7, 2).to(torch.uint8)
    found = cropped(
        items, torch.tensor([index]), torch.tensor([[down, along]]), torch.tensor([flip])
    )
    assert found.dtype == torch.uint8
    image = items[index].flip(1) if flip else items[index]
    assert torch.equal(found[0].float(), crop_by_padding(image, down, along))


def test_without_moves_items_are_taken_as_they_are():
    features = torch.arange(12.0).reshape(4, 3)
    index = torch.tensor([3, 0, 0])
    assert torch.equal(cropped(features, index, torch.ones(3, 2).long(), None), features[index])
    images = torch.arange(4 * 3 * 3).reshape(4, 3, 3)
    assert torch.equal(cropped(images, index, None, None), images[index])
    flipped = cropped(images, index, None, torch.tensor([True, False, True]))
    assert torch.equal(flipped[0], images[3].flip(1))
    assert torch.equal(flipped[1], images[0])
    assert torch.equal(cropped(images, index, torch.zeros(3, 2).long(), None), images[index])


def test_nothing_to_train_on_is_a_sentence():
    """Few judgements, and all of them about items that were held out."""
    objective = ForwardCorrected(torch.zeros(5, 3), torch.eye(3), CPU)
    with pytest.raises(InputError, match="tell nothing of the items to be trained on"):
        Batches(
            np.zeros((5, 2), np.float32),
            objective,
            Recipe(),
            seed=0,
            device=CPU,
            process_group=None,
            shards=1,
        )
