"""A start without any label: contrastive pre-training on the images alone (SimCLR).

The paper starts CIFAR-10 from a "pre-trained ResNet-32" that is not published. This is what anyone
can have instead: the network learns to recognise an image by another random view of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from likewise.datasets import Dataset
from likewise.errors import InputError
from likewise.io.atomic import replacing
from likewise.io.npy import Array
from likewise.items import network_shape
from likewise.nn.model import InputLayer
from likewise.nn.networks import build_network, embed, last_linear


@dataclass(frozen=True)
class Contrast:
    """Settings of the pre-training."""

    epochs: int = 100  # passes over the images
    batch_size: int = 512  # images a step, two views of each
    lr: float = 0.3  # peak learning rate
    weight_decay: float = 1e-4  # of SGD
    temperature: float = 0.5  # of the similarities
    projection: int = 128  # dimensions that are compared


def pretrain(
    items: Array, network: str, device: torch.device, contrast: Contrast, seed: int = 0
) -> dict[str, Tensor]:
    """Weights of a network (all but its last layer) from images (N, H, W[, channels]) alone."""
    if items.ndim < 3:
        raise InputError("self-supervised pre-training needs images: their random views teach.")
    inputs = InputLayer.fit(items).to(device)
    model = build_network(network, network_shape(items), 2, seed).to(device)
    width = _embedding_width(model)
    generator = torch.Generator(device).manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, contrast.projection)
        ).to(device)
    images = torch.from_numpy(items).to(device)
    _train(model, head, inputs, images, contrast, generator)
    return body_weights(model)


def body_weights(model: nn.Module) -> dict[str, Tensor]:
    """The state of a network without its last linear layer."""
    last = last_linear(model)
    name = next(n for n, module in model.named_modules() if module is last)
    state = model.state_dict()
    body = {k: v.detach().cpu() for k, v in state.items() if not k.startswith(f"{name}.")}
    return {k: v.clone(memory_format=torch.contiguous_format) for k, v in body.items()}


def load_body(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Give a fresh network pre-trained weights; its last layer stays as it is."""
    expected = body_weights(model)
    if expected.keys() != weights.keys():
        raise InputError("the pre-trained weights belong to another network.")
    model.load_state_dict(weights, strict=False)


def stored_body(
    folder: Path, dataset: Dataset, network: str, device: torch.device, contrast: Contrast
) -> dict[str, Tensor]:
    """Pre-trained weights for a data set's training images, made and stored on first use."""
    from safetensors.torch import load_file, save_file

    path = folder / f"{dataset.name}-{network}.safetensors"
    if not path.is_file():
        weights = pretrain(dataset.train_x, network, device, contrast)
        with replacing(path) as temporary:
            save_file(weights, temporary)
    return load_file(path)


def contrastive_loss(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """NT-Xent: each row of (n, d) ``first`` must find its partner in ``second``, and vice versa."""
    n = len(first)
    z = F.normalize(torch.cat([first, second]).float(), dim=1)  # (2n, d)
    similarity = (z @ z.T) / temperature
    similarity = similarity.masked_fill(
        torch.eye(2 * n, dtype=torch.bool, device=z.device), float("-inf")
    )
    partner = torch.arange(2 * n, device=z.device).roll(n)
    return F.cross_entropy(similarity, partner)


def random_view(x: Tensor, generator: torch.Generator) -> Tensor:
    """A random crop (a fifth to all of the area), mirrored or not, of changed light and colour.

    ``x`` (n, channels, H, W), scaled; everything is drawn image by image on its device.
    """
    n = len(x)

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        draw = torch.rand((n, *shape), generator=generator, device=x.device)
        return low + (high - low) * draw

    side = uniform(0.2, 1.0).sqrt()
    ratio = uniform(-0.28, 0.28).exp().sqrt()
    width, height = (side * ratio).clamp(max=1), (side / ratio).clamp(max=1)
    mirror = torch.where(uniform(0, 1) < 0.5, -1.0, 1.0)
    affine = x.new_zeros((n, 2, 3), dtype=torch.float32)
    affine[:, 0, 0], affine[:, 1, 1] = width * mirror, height
    affine[:, 0, 2] = uniform(-1, 1) * (1 - width)
    affine[:, 1, 2] = uniform(-1, 1) * (1 - height)
    grid = F.affine_grid(affine, list(x.shape), align_corners=False)
    view = F.grid_sample(x.float(), grid, padding_mode="reflection", align_corners=False)
    return _recoloured(view, uniform)


def _recoloured(view: Tensor, uniform: Callable[..., Tensor]) -> Tensor:
    grey = view.mean(dim=1, keepdim=True)
    saturation = uniform(0.2, 1.8, 1, 1, 1)
    saturation = torch.where(uniform(0, 1, 1, 1, 1) < 0.2, 0.0, saturation)
    view = grey + (view - grey) * saturation
    mean = view.mean(dim=(1, 2, 3), keepdim=True)
    return mean + (view - mean) * uniform(0.6, 1.4, 1, 1, 1) + uniform(-0.4, 0.4, 1, 1, 1)


def _train(
    model: nn.Module,
    head: nn.Module,
    inputs: InputLayer,
    images: Tensor,
    contrast: Contrast,
    generator: torch.Generator,
) -> None:
    parameters = [*model.parameters(), *head.parameters()]
    batch = min(contrast.batch_size, len(images))
    steps = len(images) // batch
    optimizer = torch.optim.SGD(
        *(parameters, contrast.lr * batch / 512, 0.9),
        weight_decay=contrast.weight_decay,
        nesterov=True,
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, contrast.epochs * steps)
    half = torch.autocast(images.device.type, torch.bfloat16, enabled=images.is_cuda)
    layout = torch.channels_last if images.is_cuda else torch.contiguous_format
    model.to(memory_format=layout).train()  # type: ignore[call-overload]
    for _ in range(contrast.epochs):
        order = torch.randperm(len(images), generator=generator, device=images.device)
        for rows in order[: steps * batch].split(batch):  # type: ignore[no-untyped-call]
            x = inputs(images[rows])
            with half:
                views = torch.cat([random_view(x, generator), random_view(x, generator)])
                views = views.contiguous(memory_format=layout)
                first, second = head(embed(model, views)).chunk(2)
            loss = contrastive_loss(first, second, contrast.temperature)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()


def _embedding_width(model: nn.Module) -> int:
    last = last_linear(model)
    if last is None:
        raise InputError("self-supervised pre-training needs a network with a last linear layer.")
    return last.in_features
