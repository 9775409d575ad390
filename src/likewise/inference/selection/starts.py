"""Where EM starts: a first guess of the perceived classes that does not collapse.

- `component_start`: the largest groups that "same" joins and "different" holds apart (exact
  channels; needs no features);
- `spectral_start`: the leading eigenvectors of the centred judgement graph (noisy channels, enough
  judgements an item; needs no features);
- `pairwise_start`: a network trained on single judgements (sparse and noisy: features carry it).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor, nn

from likewise.inference.propagation.belief_propagation import infer
from likewise.inference.propagation.edge_posteriors import edge_statistics
from likewise.inference.propagation.graph import Contraction, Graph
from likewise.inference.propagation.posterior import Posterior
from likewise.io.progress import tracked
from likewise.nn.cpu_kernels import similarities, softmax
from likewise.noise.channels import Channel
from likewise.pairs import spectrum
from likewise.training.adamw import AdamW

CANDIDATES = 50  # groups looked at for each class
MAX_SPECTRAL_ITEMS = 300_000
HINT = 0.3  # how much the spectral clusters count at first
UPDATE_AT = (100, 150, 200, 300, 400, 500)  # steps at which the pairwise start refits the channel


def component_start(merged: Contraction, n_classes: int) -> Tensor:
    """(N,) class of the items in the largest groups that are pairwise "different"; -1 elsewhere."""
    sizes = merged.sizes.cpu().numpy()
    largest = np.argsort(-sizes, kind="stable")[: CANDIDATES * n_classes]
    rank = np.full(len(sizes), -1)
    rank[largest] = np.arange(len(largest))
    left, right = rank[merged.graph.left.cpu().numpy()], rank[merged.graph.right.cpu().numpy()]
    both = (left >= 0) & (right >= 0)
    apart = np.zeros((len(largest), len(largest)), bool)
    apart[left[both], right[both]] = apart[right[both], left[both]] = True
    chosen: list[int] = []
    for candidate in range(len(largest)):
        if apart[candidate, chosen].all():
            chosen.append(candidate)
        if len(chosen) == n_classes:
            break
    label_of_node = np.full(len(sizes), -1)
    label_of_node[largest[chosen]] = np.arange(len(chosen))
    return torch.from_numpy(label_of_node).to(merged.component.device)[merged.component]


def spectral_embedding(graph: Graph, n_vectors: int) -> tuple[np.ndarray, np.ndarray]:
    """Leading ``(values (n,), vectors (N, n))`` of the centred judgement matrix, largest first."""
    return spectrum.spectral_embedding(
        left=graph.left.cpu().numpy(),
        right=graph.right.cpu().numpy(),
        same=graph.same.cpu().numpy(),
        weight=None if graph.weight is None else graph.weight.cpu().numpy(),
        annotator=None if graph.annotator is None else graph.annotator.cpu().numpy(),
        n_items=graph.n_items,
        n_vectors=n_vectors,
    )


def spectral_start(
    graph: Graph, channel: Channel, n_classes: int, seed: int, rounds: int = 5
) -> tuple[Posterior, Channel]:
    """Posterior of z from the judgements alone, and the channel refitted to it."""
    values, vectors = spectral_embedding(graph, max(n_classes - 1, 1))
    embedding = vectors * np.maximum(values, 0)
    labels = KMeans(n_classes, n_init=10, random_state=seed).fit(embedding).labels_
    hint = torch.full((graph.n_items, n_classes), 0.1 / n_classes, device=graph.device)
    hint[torch.arange(graph.n_items), torch.from_numpy(labels).long().to(graph.device)] += 0.9
    log_hint = torch.log(hint)
    channel = channel.update(edge_statistics(Posterior(log_hint, 0.0, 0, False), graph, channel))
    posterior = infer(HINT * log_hint, graph, channel, iterations=20)
    for number in range(rounds):
        # Let go of the hint bit by bit: at once, a channel that still looks too noisy would have
        # every belief fall back to "any class".
        held = HINT * max(0.0, 1 - number / (0.4 * rounds))
        posterior = infer(held * log_hint, graph, channel, iterations=20, start=posterior)
        channel = channel.update(edge_statistics(posterior, graph, channel))
    return posterior, channel


def pairwise_start(
    graph: Graph,
    items: Tensor,
    build: Callable[[int], nn.Module],
    channel: Channel,
    generator: torch.Generator,
    steps: int = 600,
) -> tuple[Tensor, Channel]:
    """(N, C) log g of a network trained on single judgements, and the channel refitted to it.

    An entropy term on the mean prediction keeps every class alive while the loss is still flat.
    """
    seed = int(torch.randint(2**31 - 1, (1,), generator=generator))
    module = build(seed).to(items.device)
    optimizer = AdamW(module.parameters(), lr=1e-3, weight_decay=1e-2)
    edge_table = _edge_table(graph, channel)
    batch_size = int(np.clip(len(graph) // 20, min(512, len(graph)), 2048))
    for step in tracked(range(steps), of=steps):
        if step in UPDATE_AT:
            channel = _refit(channel, graph, _predict(module, items))
            edge_table = _edge_table(graph, channel)
        module.train()
        edges = torch.randint(len(graph), (batch_size,), generator=generator).to(items.device)
        left, right = graph.left[edges].long(), graph.right[edges].long()
        shown, position = torch.unique(torch.cat([left, right]), return_inverse=True)
        g = softmax(module(items[shown]))
        equal = similarities(g, position[:batch_size], position[batch_size:])
        rows = edge_table[edges]
        likelihood = rows[:, 1] + (rows[:, 0] - rows[:, 1]) * equal
        mean = g.mean(0)
        entropy = -(mean * torch.log(mean.clamp_min(1e-12))).sum()
        loss = -torch.log(likelihood.clamp_min(1e-12)).mean() - 0.02 * entropy
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return torch.log(_predict(module, items).clamp_min(1e-3)), channel


def _edge_table(graph: Graph, channel: Channel) -> Tensor:
    """(M, 2) likelihood of each answer, given equal and given different classes."""
    table = channel.log_table().to(graph.device, torch.float32)
    rows = [graph.edge_log_table(channel, part, table) for part in graph.chunks()]
    return torch.cat(rows).exp()


@torch.no_grad()
def _predict(module: nn.Module, items: Tensor) -> Tensor:
    module.eval()
    return torch.cat([torch.softmax(module(part), dim=1) for part in torch.split(items, 8192)])


def _refit(channel: Channel, graph: Graph, g: Tensor) -> Channel:
    """A few EM updates of the channel with the network held fixed, judgement by judgement."""
    equal = torch.cat(
        [(g[graph.left[part]] * g[graph.right[part]]).sum(1) for part in graph.chunks()]
    )
    prior = torch.stack([equal, 1 - equal], dim=1)
    group = channel.groups(graph.same, graph.annotator)
    for _ in range(5):
        table = channel.log_table().to(g)
        joint = prior * table[group].exp()
        joint = joint / joint.sum(1, keepdim=True).clamp_min(1e-30)
        if graph.weight is not None:
            joint = joint * graph.weight[:, None]
        counts = torch.zeros_like(table).index_add_(0, group, joint)
        channel = channel.update(counts.double().cpu())
    return channel
