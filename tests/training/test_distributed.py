"""Two processes that train one model give what one process gives with the same batches."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import multiprocessing

from likewise import load
from likewise.errors import TrainingError
from likewise.inference.propagation.crowd_beliefs import crowd_beliefs
from likewise.nn.model import InputLayer, Model
from likewise.nn.networks import build_network
from likewise.noise import corrupt_labels, symmetric
from likewise.noise.estimation import one_hot_evidence
from likewise.pairs import Pairs
from likewise.pairs.shards import PairShard, read_shard
from likewise.runs.run import Run
from likewise.training.distributed import (
    ProcessGroup,
    _ended,
    current_process_group,
    process_group_of_torchrun,
)
from likewise.training.objectives.forward_corrected import ForwardCorrected
from likewise.training.objectives.pairwise import (
    CompletePairwise,
    ListedPairwise,
    Objective,
    PairwiseLoss,
)
from likewise.training.recipe import Recipe
from likewise.training.run import TrainingRun

CPU = torch.device("cpu")
KINDS = ("complete", "listed", "joint", "taught")


def make_run(kind: str, process_group: ProcessGroup | None = None, shards: int = 1) -> TrainingRun:
    rng = np.random.default_rng(0)
    classes = rng.integers(4, size=203)  # an odd number, so that the shards differ
    items = (np.eye(4)[classes] * 2 + rng.normal(size=(203, 4))).astype(np.float32)
    z = corrupt_labels(classes, symmetric(4, 0.2), 0)
    held, train = np.arange(40), np.arange(40, 203)
    pairs = Pairs.from_labels(z)
    recipe = Recipe(epochs=5, batch_size=32, lr=0.01, optimizer="sgd", ema_decay=0.9)
    objective: Objective
    if kind in ("joint", "taught"):
        ids = np.where(np.arange(203) % 7 == 0, -1, pairs.components())  # some are unknown
        evidence = one_hot_evidence(torch.from_numpy(ids), 4, torch.float32)
        objective = ForwardCorrected(evidence[train], evidence[held], CPU)
        recipe = recipe.with_(mixup=0.5, mean_teacher_from=0.2 if kind == "taught" else None)
    elif kind == "complete":
        loss = PairwiseLoss("mns", torch.as_tensor(symmetric(4, 0.2), dtype=torch.float32))
        objective = CompletePairwise(loss, pairs.subset(train), pairs.subset(held), CPU)
        recipe = recipe.with_(lr=0.1)  # pairs say little at first, where all classes are alike
    else:
        listed = Pairs.from_labels(z, per_item=10, random_state=0)
        parts = listed.subset(train), listed.subset(held)
        objective = ListedPairwise(PairwiseLoss("mcl"), *parts, CPU, batch=32)
    model = Model(InputLayer.fit(items), build_network("mlp", (4,), 4))
    return TrainingRun(
        model,
        items[train],
        items[held],
        objective,
        recipe,
        process_group=process_group,
        shards=shards,
    )


def parameters_after(run: TrainingRun, steps: int = 20) -> torch.Tensor:
    done = 0
    while done < steps:
        run.begin_epoch()
        for _ in range(run.steps_per_epoch):
            run.step()
            done += 1
        run.end_epoch()
    return torch.cat([p.detach().reshape(-1) for p in run.model.parameters()])


def work_as_rank(rank: int, port: int, folder: str) -> None:
    """All that ranks do in these tests, one after the other: to start them is what takes time."""
    torch.set_num_threads(1)
    environment = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank)}
    os.environ |= environment | {"WORLD_SIZE": "2"}
    with process_group_of_torchrun() as group:
        assert group is not None
        for kind in KINDS:
            run = make_run(kind, group)
            own = (82, 81)[rank] if run.objective.rows_are_items else 163
            assert len(run.batches.source) == own
            torch.save(parameters_after(run), Path(folder) / f"{kind}{rank}.pt")
        rows = np.arange(6, dtype=np.float32).reshape(3, 2)
        found = group.gather_rows(rows[: 1 + rank] if rank else rows)
        single = group.gather_rows(np.array([10 + rank], np.int64))
        np.savez(Path(folder) / f"gathered{rank}.npz", found=found, single=single)
        shard = read_shard(Path(folder) / "crowd.parquet", group, n_items=203)
        assert isinstance(shard, PairShard)
        beliefs = crowd_beliefs(shard, 4, seed=0)
        assert beliefs is not None
        rates = beliefs.channel.rates().numpy()
        np.savez(Path(folder) / f"crowd{rank}.npz", evidence=beliefs.evidence, rates=rates)


def crowd(n_items: int, per_item: int) -> Pairs:
    """Judgements by five people, of whom one answers without looking."""
    rng = np.random.default_rng(0)
    clean = Pairs.from_labels(np.arange(n_items) % 3, per_item, random_state=0)
    person = rng.integers(5, size=len(clean))
    same = clean.same ^ (rng.random(len(clean)) < np.array([0.02, 0.05, 0.1, 0.2, 0.5])[person])
    return Pairs(clean.left, clean.right, same, [f"p{k}" for k in person], n_items=n_items)


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


@pytest.fixture(scope="module")
def of_two_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two ranks have left in a folder."""
    folder = tmp_path_factory.mktemp("ranks")
    crowd(203, 60).write(folder / "crowd.parquet")
    # Copies of this process: new ones would import PyTorch, for longer than they work.
    given = free_port(), str(folder)
    multiprocessing.start_processes(work_as_rank, given, nprocs=2, start_method="fork")
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_two_ranks_train_as_one_process(kind: str, of_two_ranks: Path) -> None:
    first, second = (torch.load(of_two_ranks / f"{kind}{rank}.pt") for rank in range(2))
    alone = parameters_after(make_run(kind, shards=2))
    start = torch.cat([p.detach().reshape(-1) for p in make_run(kind).model.parameters()])
    assert (alone - start).abs().max() > 1e-3  # something was learned
    torch.testing.assert_close(first, second, atol=1e-6, rtol=0)
    torch.testing.assert_close(first, alone, atol=1e-5, rtol=0)


def test_rows_of_all_ranks_are_gathered_in_order(of_two_ranks: Path) -> None:
    for rank in range(2):
        told = np.load(of_two_ranks / f"gathered{rank}.npz")
        assert told["found"].tolist() == [[0, 1], [2, 3], [4, 5], [0, 1], [2, 3]]
        assert told["single"].tolist() == [10, 11]


def test_two_ranks_tell_people_apart_as_one_process(of_two_ranks: Path) -> None:
    alone = crowd_beliefs(crowd(203, 60), 4, seed=0)
    assert alone is not None
    for rank in range(2):
        found = np.load(of_two_ranks / f"crowd{rank}.npz")
        np.testing.assert_allclose(found["evidence"], alone.evidence, atol=1e-6)
        np.testing.assert_allclose(found["rates"], alone.channel.rates(), atol=1e-9)


def test_a_rank_that_is_told_to_end_says_why() -> None:
    with pytest.raises(TrainingError, match=r"another rank was lost.*--resume"):
        _ended(signal.SIGTERM, None)


def test_alone_there_are_no_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with process_group_of_torchrun() as process_group:
        assert process_group is None
    assert current_process_group() is None


def test_a_block_is_a_ranks_equal_part() -> None:
    rows = torch.arange(6)
    assert ProcessGroup(0, 3).block(rows).tolist() == [0, 1]
    assert ProcessGroup(2, 3).block(rows).tolist() == [4, 5]


def command(folder: Path, port: int, *more: str) -> list[str]:
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    where = ["--master-addr=127.0.0.1", f"--master-port={port}", "-m", "likewise", "fit"]
    files = [str(folder / "items.npy"), str(folder / "pairs.csv"), "--out", str(folder / "run")]
    options = ["--classes", "3", "--method", "joint", "--checkpoint-seconds", "0", *more]
    return [*launch, *where, *files, *options]


@pytest.mark.slow
def test_a_killed_rank_ends_the_training_and_it_resumes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    classes = rng.integers(3, size=301)
    items = np.eye(3)[classes] * 3 + rng.normal(size=(301, 3))
    np.save(tmp_path / "items.npy", items.astype(np.float32))
    Pairs.from_labels(classes).explicit().write(tmp_path / "pairs.csv")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    arguments = ("--epochs", "300")
    running = subprocess.Popen(
        command(tmp_path, free_port(), *arguments), env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    checkpoints = tmp_path / "run.checkpoints"
    deadline = time.monotonic() + 120
    while not any(checkpoints.glob("*.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.2)
    workers = children(running.pid)
    os.kill(workers[-1], signal.SIGKILL)
    _, told = running.communicate(timeout=120)
    assert running.returncode != 0
    assert "another rank was lost" in told
    assert "--resume" in told
    assert not (tmp_path / "run").exists()
    resumed = subprocess.run(
        command(tmp_path, free_port(), *arguments, "--resume"), env=environment,
        text=True, capture_output=True, timeout=400, check=False,
    )  # fmt: skip
    assert resumed.returncode == 0, resumed.stderr
    assert (tmp_path / "run" / "metrics.json").is_file()


def children(parent: int) -> list[int]:
    listing = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=True
    )
    return [int(line) for line in listing.stdout.split()]


@pytest.mark.slow
@pytest.mark.parametrize("people", [False, True])
def test_two_ranks_fit_contradictory_judgements_as_one_process(
    people: bool, tmp_path: Path
) -> None:
    """Each reads the judgements of its own items; beliefs, T, rates and networks are the same."""
    n_items, per_item = (2001, 210) if people else (301, 60)
    rng = np.random.default_rng(0)
    classes = np.arange(n_items) % 3
    items = np.eye(3)[classes] * 3 + rng.normal(size=(n_items, 3))
    np.save(tmp_path / "items.npy", items.astype(np.float32))
    pairs = crowd(n_items, per_item)
    named = pairs if people else Pairs(pairs.left, pairs.right, pairs.same, n_items=n_items)
    named.write(tmp_path / "pairs.csv")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    shared = command(tmp_path, free_port(), "--epochs", "3", "--quiet")
    alone = [sys.executable, *shared[shared.index("-m", 2) :]]
    alone[alone.index(str(tmp_path / "run"))] = str(tmp_path / "alone")
    for started in (shared, alone):
        done = subprocess.run(started, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    one, other = (Run.open(tmp_path / name) for name in ("run", "alone"))
    assert "the graph decides" in other.metrics["choice"]
    for figure in ("transition", "judgements", "score", "choice"):
        assert one.metrics[figure] == other.metrics[figure]
    assert one.channel == other.channel
    assert one.judgements == other.judgements
    if people:
        assert one.annotators["annotator"] == other.annotators["annotator"]
        assert one.annotators["reliability"] == pytest.approx(other.annotators["reliability"])
        assert other.annotators["annotator"][-1] == "p4"
    predictions = [load(run.model).predict_proba(items.astype(np.float32)) for run in (one, other)]
    np.testing.assert_array_equal(*predictions)
