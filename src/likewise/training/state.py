"""State as named tensors: of a part, and of all parts of a run together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

State = dict[str, Tensor]


class Stateful(Protocol):
    """A part of a run: the tensors that training changes, and how it takes them over in place."""

    def state_dict(self) -> State: ...

    def load_state_dict(self, state: State) -> object: ...


def gather_state(parts: Mapping[str, Stateful]) -> State:
    """The tensors themselves, named ``part.tensor``."""
    return {
        f"{prefix}.{name}": tensor
        for prefix, part in parts.items()
        for name, tensor in part.state_dict().items()
    }


@torch.no_grad()
def scatter_state(parts: Mapping[str, Stateful], state: Mapping[str, Tensor]) -> None:
    """Give each part what `gather_state` named after it, in place."""
    for prefix, part in parts.items():
        head = f"{prefix}."
        own = {k.removeprefix(head): tensor for k, tensor in state.items() if k.startswith(head)}
        part.load_state_dict(own)
