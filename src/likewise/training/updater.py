"""From a loss to new weights: gradients, optimiser, exponential moving average."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from likewise.training.batches import Batches
from likewise.training.ema import WeightAverage
from likewise.training.nonfinite import drop_batch
from likewise.training.optimizers import make_optimizer, rate_table
from likewise.training.recipe import Recipe


class Updater:
    """The optimiser of a run, its learning rates, and the average of the weights over the steps."""

    def __init__(self, model: nn.Module, recipe: Recipe, batches: Batches) -> None:
        device, total = batches.device, batches.total_steps
        self.model, self.counter, self.process_group = model, batches.counter, batches.process_group
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = make_optimizer(
            self.parameters,
            device,
            optimizer=recipe.optimizer,
            lr=recipe.lr,
            weight_decay=recipe.weight_decay,
            momentum=recipe.momentum,
        )
        self.rates = rate_table(recipe, total, batches.steps_per_epoch).to(device)  # (total,)
        self.average = None
        if recipe.ema_decay:
            self.average = WeightAverage(model, recipe.ema_decay, total, device)
        self.skips_nonfinite = recipe.nonfinite == "skip"

    @property
    def ema(self) -> nn.Module | None:
        """The averaged model, where the recipe asks for one."""
        return None if self.average is None else self.average.model

    def step(self, compute_loss: Callable[[], Tensor]) -> tuple[Tensor, Tensor | None]:
        """One update: (its loss (), whether the batch was skipped () where that may happen)."""
        self._set_rate()
        self.optimizer.zero_grad(set_to_none=True)
        skips, buffers = self.skips_nonfinite, list[Tensor]()
        if skips:
            buffers = [b for b in self.model.buffers() if b.is_floating_point()]
        before = [b.clone() for b in buffers]
        loss = compute_loss()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.process_group is not None:
            self.process_group.sum_gradients(self.parameters)
        skipped = None
        if skips:
            gradients = [p.grad for p in self.parameters if p.grad is not None]
            skipped = drop_batch(loss, gradients, buffers, before)
        self.optimizer.step()
        if self.average is not None:
            self.average.update_(self.counter.in_run)
        return loss.detach(), skipped

    def change(self, recipe: Recipe) -> None:
        """Go over to another recipe's weight decay and EMA; the rates stay."""
        for group in self.optimizer.param_groups:
            group["weight_decay"] = recipe.weight_decay
        if self.average is not None:
            self.average.change_decay(recipe.ema_decay)

    def _set_rate(self) -> None:
        group = self.optimizer.param_groups[0]
        if isinstance(group["lr"], Tensor):
            torch.index_select(self.rates, 0, self.counter.in_run, out=group["lr"].view(1))
        else:
            group["lr"] = float(self.rates[self.counter.in_run])

    def state_dict(self) -> dict[str, Tensor]:
        """The tensors themselves: optimiser state by the parameter's number, and the average."""
        state = {
            f"optimizer.{k}.{name}": value
            for k, parameter in enumerate(self.parameters)
            for name, value in self.optimizer.state.get(parameter, {}).items()
            if isinstance(value, Tensor)
        }
        ema = {} if self.ema is None else self.ema.state_dict()
        return state | {f"ema.{name}": tensor for name, tensor in ema.items()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Take over a state in place; what the optimiser had not gathered by then becomes zero."""
        for name, tensor in state.items():
            head, k, key = name.split(".", 2)
            if head == "optimizer" and key not in self.optimizer.state[self.parameters[int(k)]]:
                self._make_room(self.parameters[int(k)], key, tensor)
        for name, tensor in self.state_dict().items():
            if name in state:
                tensor.copy_(state[name])
            else:
                tensor.zero_()

    def _make_room(self, parameter: nn.Parameter, key: str, tensor: Tensor) -> None:
        """A fresh optimiser has no state to copy into."""
        # In the parameter's own memory layout: fused optimisers walk both side by side.
        like = parameter if tensor.shape == parameter.shape else tensor
        blank = torch.empty_like(like, dtype=tensor.dtype, device=parameter.device)
        self.optimizer.state[parameter][key] = blank.requires_grad_(False)

    def may_hold(self, name: str, tensor: Tensor) -> bool:
        """Whether a tensor of that name and shape can be part of this optimiser's state."""
        head, _, rest = name.partition(".")
        k, _, key = rest.partition(".")
        if head != "optimizer" or not k.isdecimal() or int(k) >= len(self.parameters) or not key:
            return False
        return tensor.ndim == 0 or tensor.shape == self.parameters[int(k)].shape
