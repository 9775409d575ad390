"""Strong augmentation of images, batched and on the device.

A random affine map, light and colour, and a cut-out square (Cutout, DeVries & Taylor, 2017), each
as strong as one number says: what RandAugment (Cubuk et al., 2020) does image by image, in one
pass over the batch. For learning only: beliefs, teachers and scores look at weak views (crop and
flip).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from likewise.nn.compiled import compiled

DRAWS = 11  # numbers that one image takes
# At strength 1: radians, share of the size, of the spread of colours, of the side cut out.
TURN, ZOOM, SHEAR, MOVE = 0.5, 0.25, 0.25, 0.15
CONTRAST, LIGHT, COLOUR = 0.5, 0.5, 0.8
CUT = 0.4


def strong_views(strength: float, compile: bool) -> Callable[[Tensor, Tensor], Tensor]:
    """`strong_view` at a strength, compiled where asked: many small operations become few."""
    view = functools.partial(strong_view, strength=strength)
    return compiled(view) if compile else view


def strong_view(images: Tensor, draws: Tensor, strength: float) -> Tensor:
    """(n, H, W[, channels]) images, each changed by its row of ``draws`` (n, DRAWS) in [-1, 1].

    Floating point, in the layout and the range of the images.
    """
    x = images.float()
    x = x.unsqueeze(-1) if images.ndim == 3 else x
    by = strength * draws.to(x.dtype)
    x = _warped(x.permute(0, 3, 1, 2), by)  # (n, channels, H, W)
    x = _coloured(x, by)
    x = _cut_out(x, draws, strength).permute(0, 2, 3, 1)
    return x.squeeze(-1) if images.ndim == 3 else x


def affine_maps(by: Tensor) -> Tensor:
    """(n, 2, 3) from where an output pixel is taken, in coordinates of -1 to 1."""
    turn, zoom = TURN * by[:, 0], 1 + ZOOM * by[:, 1]
    cos, sin = turn.cos() * zoom, turn.sin() * zoom
    along = torch.stack([cos, -sin + SHEAR * by[:, 2], 2 * MOVE * by[:, 4]], dim=1)
    down = torch.stack([sin + SHEAR * by[:, 3], cos, 2 * MOVE * by[:, 5]], dim=1)
    return torch.stack([along, down], dim=1)


def _warped(x: Tensor, by: Tensor) -> Tensor:
    grid = F.affine_grid(affine_maps(by), list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)


def _coloured(x: Tensor, by: Tensor) -> Tensor:
    """Contrast and light of each image, and how far its channels are from their mean."""
    contrast, light, colour = (by[:, k, None, None, None] for k in (6, 7, 8))
    mean = x.mean(dim=(1, 2, 3), keepdim=True)
    spread = (x - mean).square().mean(dim=(1, 2, 3), keepdim=True).sqrt()
    grey = x.mean(dim=1, keepdim=True)
    x = grey + (1 + COLOUR * colour) * (x - grey)
    return mean + (1 + CONTRAST * contrast) * (x - mean) + LIGHT * light * spread


def _cut_out(x: Tensor, draws: Tensor, strength: float) -> Tensor:
    """A square of each image, anywhere, at the image's mean."""
    height, width = x.shape[2:]
    half = 0.5 * CUT * strength * min(height, width)
    rows = torch.arange(height, device=x.device) + 0.5
    columns = torch.arange(width, device=x.device) + 0.5
    centre = (draws[:, 9:11].to(x.dtype) + 1) / 2
    inside_rows = (rows - centre[:, :1] * height).abs() < half  # (n, H)
    inside_columns = (columns - centre[:, 1:] * width).abs() < half
    inside = (inside_rows[:, :, None] & inside_columns[:, None, :])[:, None]
    return torch.where(inside, x.mean(dim=(2, 3), keepdim=True), x)
