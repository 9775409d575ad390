"""Triton kernels of `likewise.nn.narrow_convolutions`.

Images are (n, H, W, channels) in memory ("channels last"). The three pixels side by side that a row
of a 3x3 window covers are then one stretch of memory, so that a convolution is three matrix
products, one for each row of the window: (pixels, 3 K) with (3 K, C), K channels in and C out. No
matrix of windows is ever written (implicit GEMM, Chetlur et al. 2014), and none is wider than the
channels are.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _window_row(
    x,
    pixel,
    last,
    down,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    K: tl.constexpr,
    ROW: tl.constexpr,
):
    """(pixels, ROW) what row ``down`` of the windows around pixels sees; 0 outside of the image."""
    across = tl.arange(0, ROW)
    row = pixel // WIDTH % HEIGHT + (down - 1)
    column = (pixel % WIDTH)[:, None] + (across // K - 1)[None, :]
    inside = (column >= 0) & (column < WIDTH) & (across < 3 * K)[None, :]
    inside &= ((row >= 0) & (row < HEIGHT) & (pixel < last))[:, None]
    first = (pixel + (down - 1) * WIDTH - 1) * K
    return tl.load(x + first[:, None] + across[None, :], mask=inside, other=0.0)


@triton.jit
def convolve(
    x,
    weight,
    out,
    n_pixels,
    of_place,
    of_k,
    of_c,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    K: tl.constexpr,
    C: tl.constexpr,
    ROW: tl.constexpr,
    TURNED: tl.constexpr,
    PIXELS: tl.constexpr,
):
    """``out`` (n, H, W, C) of ``x`` (n, H, W, K), PIXELS of them by each program.

    The weight from channel k to c at one of the nine places stands at place * of_place + k * of_k +
    c * of_c; TURNED takes the places in reverse, as the gradient of the input does. ROW is 3 K
    rounded up to a power of two.
    """
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    across = tl.arange(0, ROW)
    channel = tl.arange(0, C)
    total = tl.zeros((PIXELS, C), tl.float32)
    for down in tl.static_range(3):
        window = _window_row(x, pixel, n_pixels, down, HEIGHT, WIDTH, K, ROW)
        place = 3 * down + across // K
        if TURNED:
            place = 8 - place
        at = (place * of_place + across % K * of_k)[:, None] + channel[None, :] * of_c
        total += tl.dot(window, tl.load(weight + at, mask=(across < 3 * K)[:, None], other=0.0))
    at = pixel[:, None] * C + channel[None, :]
    tl.store(out + at, total.to(out.dtype.element_ty), mask=(pixel < n_pixels)[:, None])


@triton.jit
def weight_gradient(
    x,
    slope,
    out,
    n_pixels,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    K: tl.constexpr,
    C: tl.constexpr,
    ROW: tl.constexpr,
    PIXELS: tl.constexpr,
    TURNS: tl.constexpr,
):
    """``out`` (programs, 9, K, C): what TURNS times PIXELS pixels each add to the gradient of the
    weights, of images ``x`` (n, H, W, K) and slopes (n, H, W, C)."""
    program = tl.program_id(0)
    across = tl.arange(0, ROW)
    channel = tl.arange(0, C)
    upper = tl.zeros((ROW, C), tl.float32)
    middle = tl.zeros((ROW, C), tl.float32)
    lower = tl.zeros((ROW, C), tl.float32)
    for turn in range(TURNS):
        pixel = (program * TURNS + turn) * PIXELS + tl.arange(0, PIXELS)
        at = pixel[:, None] * C + channel[None, :]
        told = tl.load(slope + at, mask=(pixel < n_pixels)[:, None], other=0.0)
        upper += tl.dot(tl.trans(_window_row(x, pixel, n_pixels, 0, HEIGHT, WIDTH, K, ROW)), told)
        middle += tl.dot(tl.trans(_window_row(x, pixel, n_pixels, 1, HEIGHT, WIDTH, K, ROW)), told)
        lower += tl.dot(tl.trans(_window_row(x, pixel, n_pixels, 2, HEIGHT, WIDTH, K, ROW)), told)
    at = program * 9 * K * C + across[:, None] * C + channel[None, :]
    used = (across < 3 * K)[:, None]
    tl.store(out + at, upper, mask=used)
    tl.store(out + at + 3 * K * C, middle, mask=used)
    tl.store(out + at + 6 * K * C, lower, mask=used)


@triton.jit
def add_up(
    parts,
    out,
    n_parts,
    K: tl.constexpr,
    C: tl.constexpr,
    AT_ONCE: tl.constexpr,
    NUMBERS: tl.constexpr,
):
    """``out`` (C, 9, K): the sums of ``parts`` (n_parts, 9, K, C), NUMBERS by each program."""
    number = tl.program_id(0) * NUMBERS + tl.arange(0, NUMBERS)
    inside = number < 9 * K * C
    total = tl.zeros((NUMBERS,), tl.float32)
    for first in range(0, n_parts, AT_ONCE):
        part = first + tl.arange(0, AT_ONCE)
        at = part[:, None] * (9 * K * C) + number[None, :]
        some = tl.load(parts + at, mask=(part < n_parts)[:, None] & inside[None, :], other=0.0)
        total += tl.sum(some, axis=0)
    tl.store(out + number % C * (9 * K) + number // C, total.to(out.dtype.element_ty), mask=inside)
