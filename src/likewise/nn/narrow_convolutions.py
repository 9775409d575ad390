"""3x3 convolutions of few channels on a GPU, in bfloat16.

cuDNN computes tiles of 32 to 256 channels: with the 16 and 32 of ResNet-32's first stages most of a
tile is thrown away, and its convolutions take two thirds of a step. The kernels here
(`likewise.nn.narrow_kernels`) have tiles as wide as the channels. Other convolutions stay with
cuDNN.
"""

from __future__ import annotations

from importlib.util import find_spec

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx

HAS_TRITON = find_spec("triton") is not None
WIDTHS = 16, 32  # the fewest and most channels with which these kernels are the faster ones
# Of a program (benchmarks/narrow_convolutions.py): pixels and warps.
PIXELS, WARPS = 128, 4
# For the gradient of the weights: pixels at a time, and programs, whose parts are then added up.
GRADIENT_PIXELS, PROGRAMS, STAGES = 64, 256, 2
PARTS_AT_ONCE, NUMBERS = 64, 32
LAST = torch.channels_last


class Convolution(nn.Conv2d):
    """`nn.Conv2d`, computed by the kernels for few channels where these are faster."""

    def forward(self, x: Tensor) -> Tensor:
        if self._is_plain and _suits(x, self.weight):
            result: Tensor = convolution(x, self.weight)
            return result
        return super().forward(x)

    @property
    def _is_plain(self) -> bool:
        return (
            self.kernel_size == (3, 3)
            and self.stride == self.padding == self.dilation == (1, 1)
            and self.groups == 1
            and self.bias is None
        )


def _suits(x: Tensor, weight: Tensor) -> bool:
    half = x.dtype == weight.dtype == torch.bfloat16
    narrow = all(WIDTHS[0] <= n <= WIDTHS[1] and n & (n - 1) == 0 for n in weight.shape[:2])
    return x.is_cuda and half and narrow and HAS_TRITON


@torch.library.custom_op("likewise::narrow_convolution", mutates_args=())
def convolution(x: Tensor, weight: Tensor) -> Tensor:
    """(n, C, H, W) images of ``x`` (n, K, H, W), their borders padded by one, and ``weight`` (C, K,
    3, 3)."""
    return _convolved(x, weight, of_k=weight.stride(1), of_c=weight.stride(0), turned=False)


@torch.library.custom_op("likewise::narrow_convolution_input", mutates_args=())
def input_gradient(slope: Tensor, weight: Tensor) -> Tensor:
    """(n, K, H, W) gradient of the images, of ``slope`` (n, C, H, W): a convolution, turned."""
    return _convolved(slope, weight, of_k=weight.stride(0), of_c=weight.stride(1), turned=True)


@torch.library.custom_op("likewise::narrow_convolution_weight", mutates_args=())
def weight_gradient(slope: Tensor, x: Tensor) -> Tensor:
    """(C, K, 3, 3) gradient of the weights, added up in single precision."""
    from likewise.nn import narrow_kernels

    slope, x = (t.contiguous(memory_format=LAST) for t in (slope, x))
    n, k, height, width = x.shape
    c, pixels = slope.shape[1], n * height * width
    turns = -(-pixels // (GRADIENT_PIXELS * PROGRAMS))
    parts = torch.empty(-(-pixels // (GRADIENT_PIXELS * turns)), 3, 3, k, c, device=x.device)
    narrow_kernels.weight_gradient[(len(parts),)](
        x, slope, parts, pixels,
        HEIGHT=height, WIDTH=width, K=k, C=c, ROW=_power_of_two(3 * k),
        PIXELS=GRADIENT_PIXELS, TURNS=turns, num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    out = torch.empty((c, k, 3, 3), dtype=x.dtype, device=x.device, memory_format=LAST)
    narrow_kernels.add_up[(-(-9 * k * c // NUMBERS),)](
        parts, out, len(parts), K=k, C=c, AT_ONCE=PARTS_AT_ONCE, NUMBERS=NUMBERS
    )
    return out


def _convolved(x: Tensor, weight: Tensor, of_k: int, of_c: int, turned: bool) -> Tensor:
    from likewise.nn import narrow_kernels

    x = x.contiguous(memory_format=LAST)
    n, k, height, width = x.shape
    c, pixels = weight.numel() // (9 * k), n * height * width
    out = torch.empty((n, c, height, width), dtype=x.dtype, device=x.device, memory_format=LAST)
    narrow_kernels.convolve[(-(-pixels // PIXELS),)](
        x, weight, out, pixels, weight.stride(3), of_k, of_c,
        HEIGHT=height, WIDTH=width, K=k, C=c, ROW=_power_of_two(3 * k),
        TURNED=turned, PIXELS=PIXELS, num_warps=WARPS,
    )  # fmt: skip
    return out


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


@convolution.register_fake
def _(x: Tensor, weight: Tensor) -> Tensor:
    return _like(x, (len(x), weight.shape[0], *x.shape[2:]))


@input_gradient.register_fake
def _(slope: Tensor, weight: Tensor) -> Tensor:
    return _like(slope, (len(slope), weight.shape[1], *slope.shape[2:]))


@weight_gradient.register_fake
def _(slope: Tensor, x: Tensor) -> Tensor:
    return _like(x, (slope.shape[1], x.shape[1], 3, 3))


def _like(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    return tensor.new_empty(shape).contiguous(memory_format=LAST)


def _save(ctx: FunctionCtx, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _gradients(ctx: FunctionCtx, slope: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, weight = ctx.saved_tensors  # type: ignore[attr-defined]
    to_input, to_weight = ctx.needs_input_grad  # type: ignore[attr-defined]
    return (
        input_gradient(slope, weight) if to_input else None,
        weight_gradient(slope, x) if to_weight else None,
    )


convolution.register_autograd(_gradients, setup_context=_save)
