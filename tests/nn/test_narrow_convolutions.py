"""Convolutions of few channels: Triton's kernels against PyTorch's convolution."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from likewise.nn import narrow_convolutions as narrow
from likewise.nn.narrow_convolutions import Convolution

KERNELS = """
import torch
from torch.nn import functional as F
from likewise.nn.narrow_convolutions import convolution

torch.manual_seed(0)
last = torch.channels_last
for n, k, c, height, width, layout in (
    (3, 16, 16, 8, 8, last), (2, 16, 32, 5, 7, torch.contiguous_format), (1, 32, 16, 3, 50, last)
):
    x = torch.randn(n, k, height, width).requires_grad_()
    weight = torch.randn(c, k, 3, 3).contiguous(memory_format=layout).requires_grad_()
    found, expected = convolution(x, weight), F.conv2d(x, weight, padding=1)
    slope = torch.randn_like(expected)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    for a, b in zip(*(torch.autograd.grad(y, (x, weight), slope) for y in (found, expected))):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
def test_outputs_and_gradients_are_pytorchs() -> None:
    """In Triton's interpreter, which a process has to choose before it loads Triton."""
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", KERNELS], env=environment, check=True)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [((16, 16, 3), {"padding": 1}), ((3, 16, 3), {"padding": 1}), ((16, 32, 3, 2), {"padding": 1})],
)
def test_elsewhere_it_is_pytorchs_layer(
    generator: torch.Generator, arguments: tuple[int, ...], options: dict[str, int]
) -> None:
    ours = Convolution(*arguments, **options, bias=False)
    x = torch.randn(2, arguments[0], 8, 8, generator=generator)
    expected = F.conv2d(x, ours.weight, stride=ours.stride, padding=1)
    torch.testing.assert_close(ours(x), expected)
    assert (
        ours.state_dict().keys() == nn.Conv2d(*arguments, **options, bias=False).state_dict().keys()
    )


class OnGpu:
    """As much of a tensor as is asked."""

    def __init__(self, dtype: torch.dtype = torch.bfloat16, is_cuda: bool = True) -> None:
        self.dtype, self.is_cuda = dtype, is_cuda


@pytest.mark.parametrize(
    ("x", "channels", "expected"),
    [
        (OnGpu(), (16, 16), True),
        (OnGpu(), (32, 16), True),
        (OnGpu(), (64, 64), False),  # cuDNN is faster
        (OnGpu(), (24, 16), False),
        (OnGpu(), (16, 3), False),
        (OnGpu(torch.float32), (16, 16), False),
        (OnGpu(is_cuda=False), (16, 16), False),
    ],
)
def test_only_few_channels_in_bfloat16_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch, x: OnGpu, channels: tuple[int, int], expected: bool
) -> None:
    monkeypatch.setattr(narrow, "HAS_TRITON", True)
    weight = torch.empty(*channels, 3, 3, dtype=torch.bfloat16)
    assert narrow._suits(x, weight) is expected
    monkeypatch.setattr(narrow, "HAS_TRITON", False)
    assert not narrow._suits(x, weight)


@pytest.mark.parametrize(
    "changes",
    [
        {"kernel_size": 1, "padding": 1},
        {"stride": 2, "padding": 1},
        {"padding": 0},
        {"padding": 1, "dilation": 2},
        {"padding": 1, "groups": 2},
        {"padding": 1, "bias": True},
    ],
)
def test_only_plain_ones(changes: dict[str, int]) -> None:
    plain = {"kernel_size": 3, "padding": 1, "bias": False}
    assert Convolution(16, 16, **plain)._is_plain
    assert not Convolution(16, 16, **plain | changes)._is_plain


def test_shapes_are_known_without_computing() -> None:
    """What torch.compile asks for."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x, weight = torch.empty(5, 16, 7, 9), torch.empty(32, 16, 3, 3)
        out = narrow.convolution(x, weight)
        assert out.shape == (5, 32, 7, 9)
        assert out.is_contiguous(memory_format=torch.channels_last)
        assert narrow.input_gradient(out, weight).shape == x.shape
        assert narrow.weight_gradient(out, x).shape == weight.shape
