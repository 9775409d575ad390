"""Your own PyTorch loop, with Likewise's losses as pure functions.

    python examples/own_loop.py [--quick]

Stage 1 learns without the noise (MCL), stage 2 with a known transition matrix (MNS). Judgements
are those of a batch with itself: (n, n) of 1 and 0, never a list.
"""

from __future__ import annotations

import sys

import torch
from sklearn.datasets import load_digits
from torch import nn

import likewise as lw
import likewise.functional as lf
from likewise.metrics import matched_accuracy

EPOCHS = 2 if "--quick" in sys.argv else 30


def train(network: nn.Module, items: torch.Tensor, perceived: torch.Tensor, T: torch.Tensor | None):
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(items)).split(128):
            g = torch.softmax(network(items[rows]), dim=1)
            same = perceived[rows][:, None] == perceived[rows][None, :]
            loss = lf.mcl_loss(g, same) if T is None else lf.mns_loss(g, T, same)
            loss = loss - 0.03 * lf.balance_entropy(g)  # keeps every class alive
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    X, y = load_digits(return_X_y=True)
    T = lw.noise.symmetric(10, 0.3)
    items = torch.tensor(X / 16, dtype=torch.float32)
    perceived = torch.tensor(lw.noise.corrupt_labels(y, T, random_state=0))
    network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    stages = [("stage 1, MCL", None), ("stage 2, MNS", torch.tensor(T, dtype=torch.float32))]
    for name, matrix in stages:  # the second goes on from the first, whose classes T is about
        train(network, items, perceived, matrix)
        predicted = network(items).argmax(dim=1).numpy()
        print(f"{name}: {matched_accuracy(predicted, y):.1%} under the best matching")


if __name__ == "__main__":
    main()
