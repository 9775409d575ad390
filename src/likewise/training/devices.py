"""The device that computes: which one, what is put on it, and its convolutions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from likewise.errors import InputError
from likewise.items import Items, Selection


def choose_device(device: str | torch.device = "auto") -> torch.device:
    """The device to train on; "auto" takes CUDA, then MPS, then the CPU."""
    if isinstance(device, torch.device):
        return device
    if device != "auto":
        try:
            chosen = torch.device(device)
            torch.zeros(1, device=chosen).item()  # is it there, and does it compute?
        except (RuntimeError, NotImplementedError, AssertionError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(f"there is no device {device[:40]!r} here: {reason[:200]}") from error
        return chosen
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def on_device(items: Items, device: torch.device) -> Tensor | Selection:
    """Items as a tensor on the device, in their own type; a selection stays where it is."""
    if isinstance(items, np.ndarray):
        return torch.from_numpy(items).to(device)
    return items.to(device) if isinstance(items, Tensor) else items


@contextlib.contextmanager
def fastest_convolutions() -> Iterator[None]:
    """cuDNN tries its algorithms and keeps the fastest, unless deterministic ones are asked for."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = not torch.are_deterministic_algorithms_enabled()
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def new_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def own_cublas_workspaces() -> Iterator[None]:
    """What is captured here gets cuBLAS workspaces of its own, in the memory of its graph.

    PyTorch keeps one for every stream and has 32 streams to give, again and again: two graphs that
    were captured on the same one would write to the same workspace when they are replayed side by
    side, and so would a graph and whatever runs on that stream.
    """
    torch._C._cuda_clearCublasWorkspaces()
    try:
        yield
    finally:
        torch._C._cuda_clearCublasWorkspaces()
