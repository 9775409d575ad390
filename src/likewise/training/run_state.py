"""All that training changes in a run, as named tensors: for snapshots, checkpoints and resuming."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from likewise.training.adamw import AdamW
from likewise.training.objectives.pairwise import Objective


class RunState(ABC):
    """The part of a `likewise.training.run.TrainingRun` that knows its own state."""

    device: torch.device
    stream: torch.cuda.Stream | None
    model: nn.Module
    averaged: nn.Module | None  # its weights averaged over the steps, where the recipe asks for it
    objective: Objective
    optimizer: torch.optim.Optimizer | AdamW
    best: list[Tensor]  # of the best epoch: what `_state` lists
    best_objective: dict[str, Tensor]
    epoch: int
    history: list[dict[str, float]]
    seconds_before: float
    _parameters: list[nn.Parameter]
    _records: list[tuple[int, Tensor, Tensor]]

    def snapshot(self) -> dict[str, Tensor]:
        """A copy of everything that training changes, as named tensors."""
        return {name: tensor.detach().clone() for name, tensor in self._named_state().items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Take over a snapshot in place (captured graphs keep working)."""
        with torch.no_grad():
            for name, tensor in self._named_state().items():
                if name in state:
                    tensor.copy_(state[name])
                else:  # optimiser state that did not exist then starts from zero
                    tensor.zero_()

    def resume(
        self,
        state: dict[str, Tensor],
        epoch: int,
        history: list[dict[str, float]],
        *,
        adapted: bool = False,
        seconds: float = 0.0,
    ) -> None:
        """Go on from the snapshot that a run of the same kind made after ``epoch`` epochs."""
        for name, tensor in state.items():
            if name.startswith("optimizer."):  # a fresh optimiser has no state to copy into
                k, key = name.removeprefix("optimizer.").split(".", 1)
                parameter = self._parameters[int(k)]
                # In the parameter's own memory layout: fused optimisers walk both side by side.
                like = parameter if tensor.shape == parameter.shape else tensor
                blank = torch.empty_like(like, dtype=tensor.dtype, device=self.device)
                self.optimizer.state[parameter][key] = blank.requires_grad_(False)
        self.restore(state)
        self.epoch, self.history = epoch, [dict(row) for row in history]
        self._records, self.seconds_before = [], seconds
        if adapted:
            self._change_recipe()
        if self.stream is not None:  # what was copied here is read on the run's own stream
            torch.cuda.synchronize(self.device)

    def is_optimizer_state(self, name: str, tensor: Tensor) -> bool:
        """Whether a tensor of that name and shape can be part of this run's optimiser."""
        head, _, rest = name.partition(".")
        k, _, key = rest.partition(".")
        if head != "optimizer" or not k.isdecimal() or int(k) >= len(self._parameters) or not key:
            return False
        return tensor.ndim == 0 or tensor.shape == self._parameters[int(k)].shape

    def _named_state(self) -> dict[str, Tensor]:
        state = {f"model.{name}": t for name, t in self.model.state_dict().items()}
        if self.averaged is not None:
            state |= {f"averaged.{name}": t for name, t in self.averaged.state_dict().items()}
        state |= {f"best.{k}": t for k, t in enumerate(self.best)}
        state |= {f"objective.{name}": t for name, t in self.objective.tensors().items()}
        state |= {f"best_objective.{name}": t for name, t in self.best_objective.items()}
        for k, parameter in enumerate(self._parameters):
            for name, value in self.optimizer.state.get(parameter, {}).items():
                if isinstance(value, Tensor):
                    state[f"optimizer.{k}.{name}"] = value
        counters = ("step_index", "global_step", "losses", "skipped", "best_score", "best_epoch")
        return state | {f"run.{name}": getattr(self, name) for name in counters}

    def _state(self) -> list[Tensor]:
        module = self.averaged if self.averaged is not None else self.model
        return list(module.state_dict().values())

    @abstractmethod
    def _change_recipe(self) -> None:
        """Go over to what the recipe says for high noise."""
