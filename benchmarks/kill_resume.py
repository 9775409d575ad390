"""SIGKILL at random moments of every command that writes: all end as if nothing had happened.

A child process runs the command and is killed after a random part of the time that it needs. Then
every file that can be seen is opened: it must be whole. The same command again (``fit`` with
``--resume``) must end with the very files of a run that was left alone, bit for bit. The labelling
server is killed while people answer: every answer that it acknowledged must be in its database.

    python benchmarks/kill_resume.py [--fits 28] [--tables 10] [--others 9] [--servers 10]
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import torch

from label_load import Server, crowd, make_pictures, verify
from likewise import __version__, cli
from likewise.classifier import load
from likewise.errors import InputError
from likewise.experiments import grid
from likewise.io.atomic import write_json
from likewise.noise import corrupt_labels, symmetric
from likewise.pairs import Pairs
from likewise.runs import Run
from likewise.training.checkpoints import read_checkpoint

FITS = {
    "mns": ["--method", "mns", "--epochs", "12"],
    "joint": ["--method", "joint", "--noise", "class", "--epochs", "25"],
    "mcl": ["--method", "mcl", "--epochs", "25"],
    "em": ["--method", "joint", "--noise", "both"],
}
TABLE = """
table = "killed"
title = "Digits"
dataset = "digits"
network = "mlp"
noise_kind = ["symmetric"]
noise = [0.2]
trials = 1
[training]
epochs = 6
[joint]
epochs = 8
"""
SAID = Path(tempfile.gettempdir()) / f"kill_resume.{os.getpid()}.txt"  # by the last command
# What may differ between two runs that are the same: the clock, and what was resumed.
VOLATILE = ("seconds", "date", "commit")


@dataclass(frozen=True)
class Work:
    """A command, and where to look at what it leaves behind."""

    name: str
    folder: Path
    first: list[str]
    again: list[str]
    fingerprint: Callable[[Path], str]


def run_command(arguments: Sequence[str], kill_after: float | None = None) -> int | None:
    """Run a command in a child process; None if it was killed, else its exit status.

    The child is a fork: it starts at once, so that the kill falls into the work and not into
    the import of PyTorch.
    """
    child = os.fork()
    if child == 0:
        told = os.open(SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(told, 1)
        os.dup2(told, 2)
        os._exit(cli.run(list(arguments)))
    if kill_after is None:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    time.sleep(kill_after)
    os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return None if code == -signal.SIGKILL else code


def torn_files(folder: Path) -> list[str]:
    """The files under a folder, other than temporary ones, that are not whole."""
    torn = []
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_dir() or hidden:
            continue
        try:
            _open(path)
        except Exception as error:  # whatever it is, the file is not whole
            torn.append(f"{path.relative_to(folder)}: {error}")
    return torn


def _open(path: Path) -> None:
    if path.suffix == ".json":
        json.loads(path.read_text())
    elif path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            [file[name] for name in file.files]
    elif ".checkpoints" in path.parent.name or path.parent.name == "checkpoints":
        read_checkpoint(path)
    elif path.suffix == ".safetensors":
        from safetensors.torch import load_file

        load_file(path)
    elif path.suffix == ".parquet":
        pq.read_table(path)
    elif path.suffix == ".onnx":
        onnx.checker.check_model(onnx.load(path))
    elif path.suffix == ".html":
        if not path.read_text().rstrip().endswith("</html>"):
            raise ValueError("the page is cut")
    elif not path.read_text().endswith("\n"):
        raise ValueError("the last line is cut")


def fit_fingerprint(folder: Path) -> str:
    """A digest of the model folder of a run, which must also load."""
    run = Run.open(folder / "run")
    load(run.model)
    seal = hashlib.sha256()
    for path in sorted(run.model.iterdir()):
        seal.update(path.name.encode() + path.read_bytes())
    seal.update((run.folder / "history.csv").read_bytes())
    return seal.hexdigest()


def table_fingerprint(folder: Path) -> str:
    """A digest of everything that a table's cells came to, less the time it took."""
    seal = hashlib.sha256()
    for path in sorted((folder / "runs" / "killed").rglob("[!.]*")):
        if path.name == "result.json":
            result = json.loads(path.read_text())
            kept = {k: v for k, v in result.items() if k not in VOLATILE}
            seal.update(json.dumps(kept, sort_keys=True).encode())
        elif path.is_file() and path.name != "config.json":
            seal.update(path.name.encode() + path.read_bytes())
    return seal.hexdigest()


def make_data(folder: Path) -> None:
    """400 items of four classes, a fifth of them taken for another, 40 judgements an item."""
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=400)
    items = rng.normal(size=(400, 16)) + 3 * np.eye(4, 16)[labels]
    perceived = corrupt_labels(labels, symmetric(4, 0.2), rng)
    folder.mkdir()
    np.save(folder / "items.npy", items.astype(np.float32))
    Pairs.from_labels(perceived, per_item=40, random_state=0).write(folder / "pairs.csv")
    left = rng.integers(400, size=500_000)
    right = (left + rng.integers(1, 400, size=len(left))) % 400
    answers = np.where(perceived[left] == perceived[right], "yes", "no")
    pa_csv.write_csv(
        pa.table(
            {
                "left": [f"item {k}" for k in left],
                "right": [f"item {k}" for k in right],
                "same": answers,
                "annotator": rng.integers(30, size=len(left)),
            }
        ),
        folder / "many.csv",
    )


def make_run(data: Path) -> None:
    """A finished run of that data, and a few classes to name its own by."""
    work = fit_work("mns", data, data)
    if run_command(work.first) != 0:
        raise SystemExit(SAID.read_text())
    lines = [f"{k},kind {k % 4}\n" for k in range(40)]
    (data / "labels.csv").write_text("item,label\n" + "".join(lines))


def fit_work(name: str, data: Path, folder: Path) -> Work:
    command = ["fit", str(data / "items.npy"), str(data / "pairs.csv"), "--classes", "4"]
    command += ["--out", str(folder / "run"), "--seed", "1", "--device", "cpu", "--quiet"]
    command += ["--checkpoint-seconds", "0", *FITS[name]]
    return Work(name, folder, command, [*command, "--resume"], fit_fingerprint)


def table_work(folder: Path) -> Work:
    (folder / "table.toml").write_text(TABLE)
    command = ["reproduce", str(folder / "table.toml"), "--out", str(folder / "runs")]
    command += ["--device", "cpu"]
    return Work("reproduce", folder, command, command, table_fingerprint)


def saved_fingerprint(folder: Path) -> str:
    """A digest of a saved run and of what was made of it; the run must also load."""
    load(Run.open(folder / "run").model)
    seal = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        seal.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return seal.hexdigest()


# What is made of a saved run, in {here}.
OTHERS = {
    "report": "report {here}/run --out {here}/page.html",
    "name": "name {here}/run {data}/labels.csv",
    "export --onnx": "export {here}/run --onnx {here}/model.onnx",
    "export --tables": "export {here}/run --tables {here}/tables --items {data}/items.npy",
    "predict": "predict {here}/run {data}/items.npy --out {here}/predictions.csv",
    "suspects": "suspects {here}/run {data}/items.npy {data}/pairs.csv --out {here}/suspects.csv",
    "compact": "compact {data}/many.csv --out {here}/compact --threads 1",
}


def other_work(name: str, data: Path, folder: Path) -> Work:
    shutil.copytree(data / "run", folder / "run")
    command = OTHERS[name].format(here=folder, data=data).split()
    return Work(name, folder, command, command, saved_fingerprint)


def kill_servers(kills: int) -> dict[str, int]:
    """Six people answer while the server is killed so many times; what became of the answers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_pictures(folder / "pictures", 60)
        server = Server(folder / "pictures", folder / "answers.db")
        try:
            persons = asyncio.run(crowd(server, people=6, answers=5 * (kills + 1), kills=kills))
        finally:
            server.stop()
        return {"kills": kills, **verify(persons, folder / "answers.db")}


def reference(make: Callable[[Path], Work]) -> tuple[str, float]:
    """The digest of a run that is left alone, and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        work = make(Path(folder))
        start = time.perf_counter()
        status = run_command(work.first)
        if status != 0:
            raise SystemExit(f"{work.name} ended with {status} although nobody killed it")
        return work.fingerprint(work.folder), time.perf_counter() - start


def kill_once(
    make: Callable[[Path], Work], expected: str, seconds: float, rng: random.Random
) -> dict[str, Any]:
    """Kill, look, go on, compare; a command that had done all before the kill is tried again."""
    while True:
        with tempfile.TemporaryDirectory() as folder:
            work = make(Path(folder))
            after = rng.uniform(0.02, 1.0) * seconds
            if run_command(work.first, after) is not None:
                continue
            torn = torn_files(work.folder)
            if not torn and is_done(work, expected):
                continue  # the kill fell into its last breath
            left = sum(p.suffix == ".safetensors" for p in work.folder.rglob("*checkpoints/*"))
            status = run_command(work.again)
            # A fork of a process with threads may fall over before it begins. What is broken falls
            # over again; that it happened is told.
            fell_over = status is not None and status < 0 and not SAID.read_text()
            if fell_over:
                status = run_command(work.again)
            equal = status == 0 and work.fingerprint(work.folder) == expected
            torn += torn_files(work.folder)
            row = {
                "work": work.name,
                "killed_after": round(after, 3),
                "checkpoints": left,
                "torn": torn,
                "resumed": status == 0,
                "equal": equal,
                "fell_over": fell_over,
            }
            return row if equal else row | {"said": SAID.read_text()[-500:]}


def is_done(work: Work, expected: str) -> bool:
    """Whether a killed command has left nothing to do: what it writes is there, all of it."""
    try:
        return work.fingerprint(work.folder) == expected
    except (InputError, OSError):
        return False  # there is no run to open yet


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Do it, print a line a kill, write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=28)
    parser.add_argument("--tables", type=int, default=10)
    parser.add_argument("--others", type=int, default=9, help="kills of each other command")
    parser.add_argument("--servers", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/kill_resume.json"))
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # before any fork
    for module in (
        "classifier",
        "runs.report_data",
        "items.files",
        "methods.joint",
        "pairs.formats",
    ):
        importlib.import_module(f"likewise.{module}")
    for module in ("duckdb", "scipy.stats", "sklearn.datasets", "sklearn.decomposition"):
        importlib.import_module(module)  # so that kills fall into the work, not into imports
    torch.optim.AdamW([torch.zeros(1, requires_grad=True)])  # imports much when first used
    grid.CHECKPOINT_SECONDS = 0.0
    rng = random.Random(options.seed)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        make_data(data)
        makers: dict[str, Callable[[Path], Work]] = {
            name: lambda path, name=name: fit_work(name, data, path) for name in FITS
        }
        kinds = [list(FITS)[k % len(FITS)] for k in range(options.fits)]
        if options.tables:
            makers["reproduce"] = table_work
            kinds += ["reproduce"] * options.tables
        if options.others:
            make_run(data)
            for name in OTHERS:
                makers[name] = lambda path, name=name: other_work(name, data, path)
                kinds += [name] * options.others
        references = {name: reference(makers[name]) for name in dict.fromkeys(kinds)}
        for number, name in enumerate(kinds, 1):
            row = kill_once(makers[name], *references[name], rng)
            rows.append(row)
            print(f"{number:3d} {json.dumps(row)}", flush=True)
    result = summary(rows, {name: seconds for name, (_, seconds) in references.items()})
    if options.servers:
        result["server"] = kill_servers(options.servers)
    SAID.unlink(missing_ok=True)
    write_json(options.out, result)
    print(json.dumps({k: v for k, v in result.items() if k != "kills"}, indent=2))
    return result


def summary(rows: list[dict[str, Any]], seconds: dict[str, float]) -> dict[str, Any]:
    return {
        "killed": dict(Counter(row["work"] for row in rows)),
        "resumed": sum(row["resumed"] for row in rows),
        "equal": sum(row["equal"] for row in rows),
        "fell_over": sum(row["fell_over"] for row in rows),
        "torn_files": sum(len(row["torn"]) for row in rows),
        "with_checkpoints": sum(row["checkpoints"] > 0 for row in rows),
        "seconds_uninterrupted": {name: round(s, 2) for name, s in seconds.items()},
        "versions": {"likewise": __version__, "torch": torch.__version__},
        "kills": rows,
    }


if __name__ == "__main__":
    outcome = main()
    whole = len(outcome["kills"])
    kept = outcome.get("server", {"lost": 0, "changed": 0, "stored_twice": 0})
    good = outcome["equal"] == outcome["resumed"] == whole and not outcome["torn_files"]
    sys.exit(not good or bool(kept["lost"] or kept["changed"] or kept["stored_twice"]))
