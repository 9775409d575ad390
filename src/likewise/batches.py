"""Items on the device as they came, and batches of them made there.

All randomness of an epoch (order, crops, flips, mixing) is drawn before it begins, from (seed,
epoch) alone: so a run can be captured as a CUDA graph, resumed at any epoch, or run beside others
without changing what it sees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from torch import Tensor, nn

from likewise.errors import InputError
from likewise.recipes import Recipe

Items = Union[Tensor, NDArray[Any], "Selection"]


def check_items(X: ArrayLike, shape: tuple[int, ...] | None = None) -> NDArray[Any]:
    """Items as an array: float features (N, d), or images (N, H, W) or (N, H, W, channels).

    uint8 stays uint8, other numbers become float32; memory maps stay where they are if they can.
    ``shape`` is what an item must look like, where a model was fitted before.
    """
    array = _as_numbers(X)
    if array.ndim not in (2, 3, 4):
        raise InputError(
            "items must be features (N, d) or images (N, H, W) or (N, H, W, channels), but have "
            f"shape {array.shape}. Reshape your data: X.reshape(1, -1) makes one item of a row."
        )
    _check_shape(array.shape, shape)
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind == "f":
        _check_finite(array)
    return array.astype(np.float32, copy=False)


def _as_numbers(X: ArrayLike) -> NDArray[Any]:
    if issparse(X):
        raise InputError("sparse items are not supported; give X.toarray().")
    array = X if isinstance(X, np.ndarray) else np.asarray(X)
    if array.dtype.kind == "O":  # as of a table with columns of several types
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"items must be numbers, but some are not: {error}.") from None
    if array.dtype.kind == "c":
        raise InputError("items must be real numbers. Complex data not supported.")
    if array.dtype.kind not in "iufb":
        raise InputError(f"items must be numbers, but are {array.dtype}.")
    return array


def _check_shape(found: tuple[int, ...], fitted: tuple[int, ...] | None) -> None:
    """The words are those of scikit-learn where it has some, since its users look for them."""
    if found[0] == 0:
        raise InputError(
            f"there are no items: 0 sample(s) (shape={found}) while a minimum of 1 is required."
        )
    if 0 in found[1:]:
        raise InputError(
            f"the items are empty: 0 feature(s) (shape={found}) while a minimum of 1 is required."
        )
    if fitted is None or found[1:] == fitted:
        return
    if len(found) == 2 and len(fitted) == 1:
        raise InputError(
            f"X has {found[1]} features, but SimilarityClassifier is expecting {fitted[0]} "
            "features as input."
        )
    raise InputError(
        f"the model was fitted to items of shape {fitted}, but these have {found[1:]}."
    )


def _check_finite(array: NDArray[Any]) -> None:
    step = max(1, 2**24 // max(1, array[0].size))
    for start in range(0, len(array), step):
        finite = np.abs(array[start : start + step]) <= np.finfo(np.float32).max
        if not finite.all():
            where = np.argwhere(~finite)[0]
            where[0] += start
            value = array[tuple(where)]
            value = "NaN" if np.isnan(value) else value
            raise InputError(
                f"item {where[0]} has {value} at position {tuple(map(int, where[1:]))}: "
                "items must be finite; remove or fill such values."
            )


def network_shape(items: NDArray[Any]) -> tuple[int, ...]:
    """What a network sees of one item: (d,) features, or (channels, H, W)."""
    if items.ndim == 2:
        return (items.shape[1],)
    channels = 1 if items.ndim == 3 else items.shape[3]
    return (channels, items.shape[1], items.shape[2])


class InputLayer(nn.Module):
    """From items as they came to what a network takes: channels first, centred, scaled.

    Features are scaled one by one, images channel by channel, by statistics of the training items.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, mean: Tensor, scale: Tensor, images: bool) -> None:
        super().__init__()
        self.images = images
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)

    @classmethod
    def fit(cls, items: NDArray[Any], rows: NDArray[Any] | None = None) -> InputLayer:
        """Statistics of the items (of those at ``rows``); of an even sample where they are many."""
        enough = 50_000 if items.ndim == 2 else 5_000
        rows = np.arange(len(items)) if rows is None else rows
        sample = rows if len(rows) <= enough else rows[:: len(rows) // enough + 1]
        values = np.asarray(items[sample], np.float64)
        if items.ndim == 2:
            mean, deviation = values.mean(axis=0), values.std(axis=0)
            # A nearly constant feature carries rare events; scaled up fully, they would drown all
            # else. The floor is the typical deviation of the others.
            usual = np.median(deviation[deviation > 0]) if (deviation > 0).any() else 1.0
            deviation = np.maximum(deviation, 0.3 * usual)
        else:
            axes = (0, 1, 2)
            mean, deviation = values.mean(axis=axes), values.std(axis=axes)
            deviation = np.where(deviation > 0, deviation, 1.0)
        return cls(
            torch.as_tensor(np.atleast_1d(mean), dtype=torch.float32),
            torch.as_tensor(np.atleast_1d(1 / deviation), dtype=torch.float32),
            images=items.ndim > 2,
        )

    def forward(self, x: Tensor) -> Tensor:
        if self.images and x.ndim == 3:
            x = x.unsqueeze(-1)  # (n, H, W, 1)
        if x.is_floating_point():
            x = x.to(self.mean.dtype)
        x = (x - self.mean) * self.scale  # bytes become floating point on the way
        # Permuting channels-last data gives PyTorch's channels_last layout without a copy.
        return x.permute(0, 3, 1, 2) if self.images else x


class Model(nn.Module):
    """A network behind its input layer: raw items in, (n, C) logits out.

    With ``mirror`` (images whose training flips them) predictions are the mean over both sides.
    """

    def __init__(self, inputs: InputLayer, network: nn.Module, mirror: bool = False) -> None:
        super().__init__()
        self.inputs = inputs
        self.network = network
        self.mirror = mirror

    def forward(self, x: Tensor) -> Tensor:
        x = self.inputs(x)
        if self.mirror and not self.training:
            mean: Tensor = (self.network(x) + self.network(x.flip(-1))) / 2
            return mean
        return self.network(x)  # type: ignore[no-any-return]


def one_sided(model: nn.Module) -> nn.Module:
    """The same layers without the mirrored view, which is for prediction alone."""
    if isinstance(model, Model):
        return nn.Sequential(model.inputs, model.network)
    return model


def outputs(
    model: nn.Module, items: Items, device: torch.device, batch: int = 4096
) -> Iterator[Tensor]:
    """The model's outputs for all items, in order, batch by batch, without gradients."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            for start in range(0, len(items), batch):
                part = items[start : start + batch]
                tensor = part if isinstance(part, Tensor) else torch.from_numpy(np.array(part))
                yield model(tensor.to(device, non_blocking=True))
    finally:
        model.train(was_training)


def logits_of(model: nn.Module, items: Items, device: torch.device, batch: int = 4096) -> Tensor:
    """(N, C) logits of all items, in single precision."""
    return torch.cat([part.float() for part in outputs(model, items, device, batch)])


def check_outputs(model: nn.Module, items: NDArray[Any], n_classes: int) -> None:
    """Refuse a network of the user's that does not turn an item into one number a class."""
    parameter = next(model.parameters(), None)
    device = torch.device("cpu") if parameter is None else parameter.device
    few = items[:2]
    try:
        found = tuple(logits_of(model, few, device).shape[1:])
    except Exception as error:  # whatever a module raises on items it is not made for
        raise InputError(
            f"the network cannot take items of shape {network_shape(items)}: {error}"
        ) from error
    if found != (n_classes,):
        outputs_ = " x ".join(map(str, found))
        raise InputError(
            f"the network gives {outputs_} outputs an item, but {n_classes} classes need "
            f"{n_classes}."
        )


@dataclass
class EpochPlan:
    """What happens at each step of one epoch, on the device.

    ``rows`` (steps, B) are positions in the objective's rows; ``shift`` (steps, n, 2, 2) and
    ``flip`` (steps, n, 2) say how each of the n images of a step is moved, for student and teacher;
    ``mix`` (steps,) are mixing shares.
    """

    rows: Tensor
    shift: Tensor | None
    flip: Tensor | None
    mix: Tensor | None

    @classmethod
    def draw(
        cls,
        recipe: Recipe,
        seed: int,
        epoch: int,
        shards: Sequence[NDArray[np.int64]],
        batch: int,
        forwards: int,
    ) -> EpochPlan:
        """The plan of an epoch: each batch takes as many rows of one shard as of another."""
        rng = np.random.default_rng([seed, epoch])
        steps, share = steps_of(shards, batch), batch // len(shards)
        orders = [rng.permutation(shard)[: steps * share] for shard in shards]
        rows = torch.from_numpy(np.hstack([order.reshape(steps, share) for order in orders]))
        shift = flip = mix = None
        if recipe.shift:
            width = 2 * recipe.shift + 1
            shift = torch.from_numpy(
                rng.integers(width, size=(steps, forwards, 2, 2)) - recipe.shift
            )
        if recipe.flip:
            flip = torch.from_numpy(rng.random((steps, forwards, 2)) < 0.5)
        if recipe.mixup:
            mix = torch.from_numpy(rng.beta(recipe.mixup, recipe.mixup, steps).astype(np.float32))
        return cls(rows, shift, flip, mix)

    def copy_(self, other: EpochPlan) -> None:
        """Take over another plan's content in place, so that a captured graph sees it."""
        for mine, theirs in zip(self._tensors(), other._tensors()):
            mine.copy_(theirs, non_blocking=True)

    def to(self, device: torch.device) -> EpochPlan:
        def move(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device)

        return EpochPlan(self.rows.to(device), move(self.shift), move(self.flip), move(self.mix))

    def _tensors(self) -> list[Tensor]:
        return [t for t in (self.rows, self.shift, self.flip, self.mix) if t is not None]


def steps_of(shards: Sequence[NDArray[np.int64]], batch: int) -> int:
    """How many whole batches an epoch has."""
    return max(1, min(map(len, shards)) // (batch // len(shards)))


class Selection:
    """Some rows of an array that is too large to be copied: read from it when they are needed."""

    def __init__(self, items: NDArray[Any], rows: NDArray[Any]) -> None:
        self.items, self.rows = items, rows
        self.ndim, self.shape = items.ndim, (len(rows), *items.shape[1:])

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, part: slice) -> NDArray[Any]:
        return np.asarray(self.items[self.rows[part]])

    def every(self, start: int, step: int) -> Selection:
        """Each ``step``-th row from ``start`` on."""
        return Selection(self.items, self.rows[start::step])

    def read(self, index: Tensor) -> Tensor:
        """The rows at ``index`` (n,), on its device."""
        return torch.from_numpy(self.items[self.rows[index.cpu().numpy()]]).to(index.device)


def take(
    items: Tensor | Selection, index: Tensor, shift: Tensor | None, flip: Tensor | None
) -> Tensor:
    """Items at ``index`` (n,), images moved by ``shift`` (n, 2) and mirrored where ``flip`` (n,).

    One gather does selection, reflected crop and flip at once, in the items' own type.
    """
    if isinstance(items, Selection):
        items, index = items.read(index), torch.arange(len(index), device=index.device)
    if items.ndim == 2 or (shift is None and flip is None):
        return items[index]
    height, width = items.shape[1], items.shape[2]
    rows = torch.arange(height, device=items.device)[None]  # (1, H)
    columns = torch.arange(width, device=items.device)[None]
    if shift is not None:
        rows = _reflect(rows + shift[:, :1], height)  # (n, H)
        columns = _reflect(columns + shift[:, 1:], width)
    if flip is not None:
        columns = torch.where(flip[:, None], width - 1 - columns, columns)
    return items[index[:, None, None], rows[:, :, None], columns[:, None, :]]


def _reflect(position: Tensor, size: int) -> Tensor:
    return size - 1 - (size - 1 - position.abs()).abs()
