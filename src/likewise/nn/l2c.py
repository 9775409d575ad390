"""The networks of the authors' base code, for the rows that repeat the paper as it was written.

Learning to cluster (L2C: Hsu, Lv & Kira, ICLR 2018): a LeNet and a VGG8 with batch normalisation
after every layer but the last, which is the one linear layer of VGG8.
"""

from __future__ import annotations

import itertools

from torch import nn


class L2CLeNet(nn.Sequential):
    """Two padded 5x5 convolutions, each pooled, and two linear layers."""

    def __init__(self, channels: int, height: int, width: int, n_classes: int) -> None:
        super().__init__(
            *_convolution(channels, 20, size=5),  # (n, 20, H/2, W/2)
            *_convolution(20, 50, size=5),  # (n, 50, H/4, W/4)
            nn.Flatten(),
            nn.Linear(50 * (height // 4) * (width // 4), 500),
            nn.BatchNorm1d(500),
            nn.ReLU(),
            nn.Linear(500, n_classes),
        )


class L2CVGG8(nn.Sequential):
    """Five 3x3 convolutions, the image halved after each, and one linear layer."""

    def __init__(self, channels: int, height: int, width: int, n_classes: int) -> None:
        widths = (channels, 64, 128, 256, 512, 512)
        layers = (_convolution(*pair, size=3) for pair in itertools.pairwise(widths))
        super().__init__(
            *(layer for block in layers for layer in block),
            nn.Flatten(),
            nn.Linear(512 * (height // 32) * (width // 32), n_classes),
        )


def _convolution(fan_in: int, fan_out: int, size: int) -> list[nn.Module]:
    return [
        nn.Conv2d(fan_in, fan_out, size, padding=size // 2),
        nn.BatchNorm2d(fan_out),
        nn.ReLU(),
        nn.MaxPool2d(2),
    ]
