"""What is minimised: from a model's outputs and judgements to a loss, and to a held-out score.

An objective owns the supervision as tensors on the device. Training hands it *rows* (positions
among its `n_rows` training rows: items, or listed judgements), asks which items to forward for
them, and gives their logits back. No true class ever enters here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from likewise import functional
from likewise.nn import cpu_kernels
from likewise.nn.compiled import compiled
from likewise.pairs import Pairs
from likewise.pairs.columns import for_torch

# Held-out pairs are scored in square blocks of this many items: enough of them, in bounded memory.
HELD_BLOCK = 1024


class Objective(ABC):
    """A loss over training rows and a score, lower is better, over held-out judgements."""

    n_rows: int
    rows_are_batches = False  # whether a row is all that a step should take
    rows_are_items = False  # whether a row is one item, so that ranks may share the items out

    @abstractmethod
    def items_of(self, rows: Tensor) -> Tensor:
        """(n,) items to forward for these rows (B,)."""

    @abstractmethod
    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Loss of (n, C) logits of ``items_of(rows)``."""

    @abstractmethod
    def score(self, logits: Tensor) -> Tensor:
        """Cost of held-out judgements, from the (h, C) logits of the held-out items."""

    def refine(self, logits: Tensor, done: int, epochs: int) -> None:  # noqa: B027 (most need none)
        """After ``done`` of the ``epochs``: whatever is estimated along the way, from held-out
        logits."""

    def agreement(self, items: Tensor, features: Tensor) -> tuple[Tensor, Tensor] | None:
        """Two (k, k) sums of x_i x_j' over training pairs among ``items`` (n,), with their
        ``features`` x (n, k): over pairs judged the same, and over all that were judged.

        None where that cannot be had.
        """
        return None

    def tensors(self) -> dict[str, Tensor]:
        """What is estimated along the way: the tensors themselves, by name."""
        return {}

    def state_dict(self) -> dict[str, Tensor]:
        return self.tensors()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        for name, tensor in self.tensors().items():
            tensor.copy_(state[name])


class PairwiseLoss:
    """Which pairwise loss: MCL, MNS (with T) or KCL.

    ``rates`` (a, b) are those of "same" for items of one class and of two: answers are compared
    with b + (a - b) f_i . f_j. ``balance`` is the weight of H(mean g), which keeps all classes
    alive. ``stop_by`` is what chooses the epoch: the "cost" or the "error" of held-out judgements.
    With ``self_pairs``, all pairs of a batch include those of an item with itself, as in the
    authors' code: answers that nobody gave, free of the noise that T stands for. ``compile``: the
    loss of a step over all pairs is compiled, dozens of small operations into a few.
    """

    def __init__(
        self,
        kind: str,
        transition: Tensor | None = None,
        rates: tuple[float, float] = (1.0, 0.0),
        balance: float = 0.0,
        self_pairs: bool = False,
        stop_by: str = "cost",
        compile: bool = False,
    ) -> None:
        self.kind = kind
        self.stop_by = stop_by
        self.transition = transition
        self.rates = rates
        self.balance = balance
        self.self_pairs = self_pairs
        self.compile = compile

    def all_pairs(self, logits: Tensor, same: Tensor) -> Tensor:
        with torch.autocast(logits.device.type, enabled=False):
            p = cpu_kernels.softmax(logits.float())
            f = self._perceived(p)
            if self.kind == "kcl":
                return self._balanced(functional.kcl_loss(f, same), p)
            if self._noiseless:
                return self._balanced(functional.mcl_loss(f, same, self_pairs=self.self_pairs), p)
            weight = None if self.self_pairs else 1 - torch.eye(len(f), device=f.device)
            return self._balanced(self._through_rates(f @ f.T, same, weight), p)

    def listed(
        self, logits: Tensor, left: Tensor, right: Tensor, same: Tensor, weight: Tensor | None
    ) -> Tensor:
        with torch.autocast(logits.device.type, enabled=False):
            p = cpu_kernels.softmax(logits.float())
            f = self._perceived(p)
            if self.kind == "kcl":
                cost = functional.kcl_loss_pairs(f[left], f[right], same, weight)
                return self._balanced(cost, p)
            if not self._noiseless:
                similarity = cpu_kernels.similarities(f, left, right)
                return self._balanced(self._through_rates(similarity, same, weight), p)
            # An answer needs one of two probabilities: those of "different" stand below.
            table = torch.cat([f, functional.unequal(f)])  # (2n, C)
            asked = torch.where(same, right, right + len(f))
            given = cpu_kernels.similarities(table, left, asked)
            return self._balanced(functional.answer_cost(given, weight), p)

    def classification_error(self, logits: Tensor, perceived: Tensor) -> Tensor:
        """() share of items whose likeliest perceived class is another than ``perceived`` (n,),
        under the best matching: the paper's stopping rule. Waits for the device."""
        f = self._perceived(logits.float().softmax(dim=1))
        rows, columns = f.argmax(dim=1), perceived
        size = int(max(f.shape[1], int(columns.max()) + 1))
        counts = torch.bincount(rows * size + columns, minlength=size * size).reshape(size, size)
        table = counts.cpu().numpy()
        matched = table[linear_sum_assignment(table, maximize=True)].sum()
        return logits.new_tensor(1 - matched / max(len(perceived), 1), dtype=torch.float32)

    @property
    def _noiseless(self) -> bool:
        return self.rates == (1.0, 0.0)

    def _through_rates(self, similarity: Tensor, same: Tensor, weight: Tensor | None) -> Tensor:
        """The cost where single answers are noisy: no answer is so unlikely that it rounds to 0."""
        a, b = self.rates
        return functional.similarity_cross_entropy(b + (a - b) * similarity, same, weight)

    def _perceived(self, p: Tensor) -> Tensor:
        return p if self.transition is None else functional.perceived(p, self.transition)

    def _balanced(self, cost: Tensor, p: Tensor) -> Tensor:
        return cost - self.balance * functional.balance_entropy(p) if self.balance else cost


class CompletePairwise(Objective):
    """All pairs of a batch, answers from the partition of a complete set of judgements."""

    rows_are_items = True

    def __init__(self, loss: PairwiseLoss, train: Pairs, held: Pairs, device: torch.device) -> None:
        self.pairwise = loss
        self._step_cost = compiled(_partition_cost) if loss.compile else _partition_cost
        self.ids = torch.from_numpy(train.components()).to(device)
        self.held_ids = torch.from_numpy(held.components()).to(device)
        self.n_rows = train.n_items

    def items_of(self, rows: Tensor) -> Tensor:
        return rows

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        return self._step_cost(self.pairwise, logits, self.ids[rows])

    def score(self, logits: Tensor) -> Tensor:
        if self.pairwise.stop_by == "error":
            return self.pairwise.classification_error(logits, self.held_ids)
        costs = []
        for start in range(0, len(logits), HELD_BLOCK):
            part = logits[start : start + HELD_BLOCK]
            ids = self.held_ids[start : start + HELD_BLOCK]
            costs.append(_partition_cost(self.pairwise, part, ids) * (len(part) / len(logits)))
        return torch.stack(costs).sum()

    def agreement(self, items: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        groups = features.new_zeros(int(self.ids.max()) + 1, features.shape[1])
        groups.index_add_(0, self.ids[items], features)
        total, alone = features.sum(dim=0), features.T @ features  # nobody is compared with itself
        return groups.T @ groups - alone, torch.outer(total, total) - alone


def _partition_cost(loss: PairwiseLoss, logits: Tensor, ids: Tensor) -> Tensor:
    """() of all pairs of some items, judged the same where their ids (n,) are."""
    return loss.all_pairs(logits, ids[:, None] == ids)


class ListedPairwise(Objective):
    """Listed judgements: batches of them, forwarding the items that they name.

    Where the items are few, all are forwarded at once and serve every judgement of the batch.
    """

    def __init__(
        self, loss: PairwiseLoss, train: Pairs, held: Pairs, device: torch.device, batch: int
    ) -> None:
        self.pairwise = loss
        self.left, self.right, self.same, self.weight = _columns(train, device)
        self.held = _columns(held, device)
        self.n_rows = len(train)
        self.everyone = (
            torch.arange(train.n_items, device=device) if train.n_items <= 2 * batch else None
        )

    def items_of(self, rows: Tensor) -> Tensor:
        if self.everyone is not None:
            return self.everyone
        return torch.cat([self.left[rows], self.right[rows]])

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        if self.everyone is not None:
            left, right = self.left[rows], self.right[rows]
        else:
            left = torch.arange(len(rows), device=rows.device)
            right = left + len(rows)
        weight = None if self.weight is None else self.weight[rows]
        return self.pairwise.listed(logits, left, right, self.same[rows], weight)

    def score(self, logits: Tensor) -> Tensor:
        left, right, same, weight = self.held
        return self.pairwise.listed(logits, left, right, same, weight)

    def agreement(self, items: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        n_items = int(max(self.left.max(), self.right.max(), items.max())) + 1
        row = torch.full((n_items,), -1, dtype=torch.int64, device=items.device)
        row[items] = torch.arange(len(items), device=items.device)
        both = torch.nonzero((row[self.left] >= 0) & (row[self.right] >= 0)).squeeze(1)
        left, right = features[row[self.left[both]]], features[row[self.right[both]]]
        same = (left * self.same[both].to(left.dtype)[:, None]).T @ right
        asked = left.T @ right
        return same + same.T, asked + asked.T


def _columns(pairs: Pairs, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    weight = None if pairs.weight is None else torch.from_numpy(for_torch(pairs.weight)).to(device)
    return (
        torch.from_numpy(for_torch(pairs.left)).to(device),
        torch.from_numpy(for_torch(pairs.right)).to(device),
        torch.from_numpy(for_torch(pairs.same)).to(device),
        weight,
    )
