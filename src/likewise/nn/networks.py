"""The networks of the paper, by name: MLP for features, LeNet, ResNet-32, VGG8, ResNet-18, -50.

Images arrive as (n, channels, H, W), features as (n, d); a network returns (n, C) logits. Any
`nn.Module` of the user's that does the same may stand in their place.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from likewise.errors import InputError
from likewise.nn.l2c import L2CVGG8, L2CLeNet
from likewise.nn.narrow_convolutions import Convolution

Shape = tuple[int, ...]


class MLP(nn.Sequential):
    """Fully connected layers with ReLU between, for feature vectors (or flattened images)."""

    def __init__(self, n_inputs: int, n_classes: int, hidden: tuple[int, ...] = (128, 128)) -> None:
        sizes = (n_inputs, *hidden)
        layers: list[nn.Module] = [nn.Flatten()]
        for fan_in, fan_out in itertools.pairwise(sizes):
            layers += [nn.Linear(fan_in, fan_out), nn.ReLU(inplace=True)]
        super().__init__(*layers, nn.Linear(sizes[-1], n_classes))


class UnitLength(nn.Module):
    """Items (n, ...) as rows of length 1."""

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(1)
        length: Tensor = rows.norm(dim=1, keepdim=True)
        return rows / length.clamp_min(1e-12)


class UnitLinear(nn.Sequential):
    """A linear softmax on features scaled to length 1: what Gaussians of one shape amount to."""

    def __init__(self, n_inputs: int, n_classes: int) -> None:
        super().__init__(UnitLength(), nn.Linear(n_inputs, n_classes))

    @property
    def linear(self) -> nn.Linear:
        layer = self[1]
        assert isinstance(layer, nn.Linear)
        return layer


class LeNet(nn.Sequential):
    """LeCun's network with ReLU and max-pooling: two 5x5 convolutions, three linear layers."""

    def __init__(self, channels: int, height: int, width: int, n_classes: int) -> None:
        rows, columns = (((size - 4) // 2 - 4) // 2 for size in (height, width))
        _check_size("lenet", height, width, smallest=16)
        super().__init__(
            nn.Conv2d(channels, 20, 5),  # (n, 20, H-4, W-4)
            nn.MaxPool2d(2),  # before the ReLU, with which it commutes: a quarter of the work
            nn.ReLU(),
            nn.Conv2d(20, 50, 5),
            nn.MaxPool2d(2),  # (n, 50, rows, columns)
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(50 * rows * columns, 500),
            nn.ReLU(),
            nn.Linear(500, n_classes),
        )


class BatchNorm(nn.BatchNorm2d):
    """Batch normalisation that does not count its batches: with a fixed momentum nobody reads the
    count, and on a GPU one more operation for each layer of a small network is felt."""

    def forward(self, x: Tensor) -> Tensor:
        momentum = 0.0 if self.momentum is None else self.momentum
        return F.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, self.training,
            momentum, self.eps,
        )  # fmt: skip


class _ResidualBlock(nn.Module):
    """Two 3x3 convolutions around a shortcut; a 1x1 projection where the shape changes."""

    def __init__(self, fan_in: int, fan_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = Convolution(fan_in, fan_out, 3, stride, padding=1, bias=False)
        self.norm1 = BatchNorm(fan_out)
        self.conv2 = Convolution(fan_out, fan_out, 3, padding=1, bias=False)
        self.norm2 = BatchNorm(fan_out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or fan_in != fan_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(fan_in, fan_out, 1, stride, bias=False), BatchNorm(fan_out)
            )

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.norm1(self.conv1(x)), inplace=True)
        out = self.norm2(self.conv2(out))
        return F.relu(out + self.shortcut(x), inplace=True)


class ResNet(nn.Sequential):
    """Residual network for small images: a 3x3 stem, then stages that halve the size."""

    def __init__(
        self, channels: int, n_classes: int, widths: tuple[int, ...], blocks: tuple[int, ...]
    ) -> None:
        layers: list[nn.Module] = [
            nn.Conv2d(channels, widths[0], 3, padding=1, bias=False),
            BatchNorm(widths[0]),
            nn.ReLU(inplace=True),
        ]
        fan_in = widths[0]
        for stage, (width, count) in enumerate(zip(widths, blocks)):
            for block in range(count):
                stride = 2 if stage > 0 and block == 0 else 1
                layers.append(_ResidualBlock(fan_in, width, stride))
                fan_in = width
        super().__init__(
            *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(fan_in, n_classes)
        )
        _initialise_convolutions(self)


class VGG8(nn.Sequential):
    """Five 3x3 convolutions, the image halved after each of the first three, two linear layers."""

    def __init__(self, channels: int, height: int, width: int, n_classes: int) -> None:
        _check_size("vgg8", height, width, smallest=8)
        layers: list[nn.Module] = []
        fan_in = channels
        for fan_out, halved in ((64, True), (128, True), (256, True), (512, False), (512, False)):
            layers += [
                nn.Conv2d(fan_in, fan_out, 3, padding=1, bias=False),
                BatchNorm(fan_out),
                nn.MaxPool2d(2) if halved else nn.Identity(),  # commutes with the ReLU: as in LeNet
                nn.ReLU(inplace=True),
            ]
            fan_in = fan_out
        super().__init__(
            *layers,
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(512, 512),
            nn.ReLU(),
            nn.Linear(512, n_classes),
        )
        _initialise_convolutions(self)


def resnet50(channels: int, n_classes: int, weights: str | Path | None = None) -> nn.Module:
    """torchvision's ResNet-50 with a new last layer.

    ``weights`` is None, "imagenet" (torchvision's, which it may have to download) or a file of a
    saved state dict.
    """
    try:
        from torchvision import models
    except ImportError as error:
        raise InputError("resnet50 needs torchvision: pip install 'likewise[vision]'.") from error
    pretrained = models.ResNet50_Weights.DEFAULT if weights == "imagenet" else None
    network: nn.Module = models.resnet50(weights=pretrained)
    if weights is not None and weights != "imagenet":
        state = torch.load(weights, map_location="cpu", weights_only=True)
        network.load_state_dict(state)
    if channels != 3:
        network.conv1 = nn.Conv2d(channels, 64, 7, 2, 3, bias=False)
    network.fc = nn.Linear(2048, n_classes)
    return network


Builder = Callable[[Shape, int], nn.Module]


def _images_only(name: str, build: Callable[[int, int, int, int], nn.Module]) -> Builder:
    def checked(shape: Shape, n_classes: int) -> nn.Module:
        if len(shape) != 3:
            raise InputError(
                f"network {name!r} is for images, but the items have shape {shape}; use 'mlp'."
            )
        return build(*shape, n_classes)

    return checked


def _mlp(shape: Shape, n_classes: int) -> nn.Module:
    return MLP(int(torch.Size(shape).numel()), n_classes)


NETWORKS: dict[str, Builder] = {
    "mlp": _mlp,
    "linear": lambda shape, c: MLP(int(torch.Size(shape).numel()), c, hidden=()),
    "unit_linear": lambda shape, c: UnitLinear(int(torch.Size(shape).numel()), c),
    "lenet": _images_only("lenet", LeNet),
    "resnet32": _images_only(
        "resnet32", lambda ch, h, w, c: ResNet(ch, c, (16, 32, 64), (5, 5, 5))
    ),
    "resnet18": _images_only(
        "resnet18", lambda ch, h, w, c: ResNet(ch, c, (64, 128, 256, 512), (2, 2, 2, 2))
    ),
    "vgg8": _images_only("vgg8", VGG8),
    "resnet50": _images_only("resnet50", lambda ch, h, w, c: resnet50(ch, c)),
    "lenet_l2c": _images_only("lenet_l2c", L2CLeNet),
    "vgg8_l2c": _images_only("vgg8_l2c", L2CVGG8),
    # A new network goes here.
}


def build_network(
    network: str | nn.Module | None, shape: Shape, n_classes: int, seed: int = 0
) -> nn.Module:
    """A fresh network for items of ``shape`` ((d,) or (channels, H, W)) and C classes.

    By name, or a copy of the user's module; None chooses: an MLP for features, LeNet for small
    grey images, ResNet-32 for other images. The weights depend on ``seed`` alone.
    """
    if isinstance(network, nn.Module):
        return copy.deepcopy(network)
    name = default_network(shape) if network is None else network
    if name not in NETWORKS:
        raise InputError(f"there is no network {name!r}; choose from {', '.join(NETWORKS)}.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return NETWORKS[name](shape, n_classes)


def default_network(shape: Shape) -> str:
    """The network for items of a shape, where none was asked for."""
    if len(shape) == 1:
        return "mlp"
    channels, height, width = shape
    if min(height, width) < 16:
        return "mlp"
    return "lenet" if channels == 1 and max(height, width) <= 32 else "resnet32"


def last_linear(module: nn.Module) -> nn.Linear | None:
    """The last linear layer, whose input is the embedding."""
    linears = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    return linears[-1] if linears else None


def embed(module: nn.Module, inputs: Tensor) -> Tensor:
    """(n, e) what goes into the last linear layer; the output itself where there is none.

    The mean, where it is used more than once, as by models that see an image from both sides.
    """
    layer = last_linear(module)
    caught: list[Tensor] = []
    if layer is None:
        return module(inputs).flatten(1)  # type: ignore[no-any-return]
    handle = layer.register_forward_pre_hook(lambda _, args: caught.append(args[0]))
    try:
        module(inputs)
    finally:
        handle.remove()
    return torch.stack(caught).mean(dim=0).flatten(1)


def temperature_scaled(
    model: nn.Module, temperature: float, logits: Callable[[nn.Module], Tensor]
) -> nn.Module:
    """The same model with its logits divided by a temperature, by scaling its last layer.

    A model whose last linear layer is not its output is left as it is: ``logits`` (a model's, of a
    few items) tell.
    """
    layer = last_linear(scaled := copy.deepcopy(model))
    if layer is None or temperature == 1.0:
        return model
    with torch.no_grad():
        layer.weight.div_(temperature)
        if layer.bias is not None:
            layer.bias.div_(temperature)
        expected = logits(model) / temperature
        agrees = torch.allclose(logits(scaled), expected, rtol=1e-3, atol=1e-3)
    return scaled if agrees else model


def _initialise_convolutions(module: nn.Module) -> None:
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")


def _check_size(name: str, height: int, width: int, smallest: int) -> None:
    if min(height, width) < smallest:
        raise InputError(
            f"network {name!r} needs images of at least {smallest} x {smallest} pixels, "
            f"but they are {height} x {width}."
        )
