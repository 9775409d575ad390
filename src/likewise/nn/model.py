"""A network behind its input layer, and what it says of items."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise.errors import InputError
from likewise.items import Items, network_shape

TINIEST = 1 / float(np.finfo(np.float32).max)  # a deviation whose inverse is a number still


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
    def fit(cls, items: NDArray[np.generic], rows: NDArray[np.integer] | None = None) -> InputLayer:
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
        if (deviation < TINIEST).any():
            raise InputError(
                f"the items differ by so little (deviations of {float(np.min(deviation)):.1g}) "
                "that single precision cannot scale them; give them on a larger scale."
            )
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

    With ``flip_tta`` (test-time augmentation, for images whose training flips them) predictions are
    the mean over an image and its mirror image.
    """

    def __init__(self, inputs: InputLayer, network: nn.Module, flip_tta: bool = False) -> None:
        super().__init__()
        self.inputs = inputs
        self.network = network
        self.flip_tta = flip_tta

    def forward(self, x: Tensor) -> Tensor:
        x = self.inputs(x)
        if self.flip_tta and not self.training:
            mean: Tensor = (self.network(x) + self.network(x.flip(-1))) / 2
            return mean
        return self.network(x)  # type: ignore[no-any-return]


def without_tta(model: nn.Module) -> nn.Module:
    """The same layers without test-time augmentation, which is for prediction alone."""
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


def check_outputs(model: nn.Module, items: NDArray[np.generic], n_classes: int) -> None:
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
