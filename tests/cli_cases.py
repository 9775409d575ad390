"""Small files for the command line's tests: three clear groups of points, judgements, truth."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from likewise import cli

N_ITEMS, N_CLASSES = 60, 3


@dataclass(frozen=True)
class Files:
    """A folder with items.npy, items.csv, pairs.csv, truth.csv and, once fitted, run/."""

    folder: Path

    def __getattr__(self, name: str) -> str:
        """``files.items_npy`` is the path of ``items.npy``."""
        return str(self.folder / name.replace("_", ".", 1))


def make_files(folder: Path) -> Files:
    rng = np.random.default_rng(0)
    y = np.arange(N_ITEMS) % N_CLASSES
    x = (np.eye(N_CLASSES)[y] * 6 + rng.normal(size=(N_ITEMS, N_CLASSES))).astype(np.float32)
    np.save(folder / "items.npy", x)
    names = [f"thing{k:02d}" for k in range(N_ITEMS)]
    rows = [f"{name},{a:.4f},{b:.4f},{c:.4f}" for name, (a, b, c) in zip(names, x)]
    (folder / "items.csv").write_text("\n".join(["id,a,b,c", *rows]) + "\n")
    pairs = [(i, j) for i in range(N_ITEMS) for j in range(i + 1, N_ITEMS)]
    judged = [f"{i},{j},{int(y[i] == y[j])},{'ann' if i % 2 else 'bob'}" for i, j in pairs]
    (folder / "pairs.csv").write_text("\n".join(["left,right,same,annotator", *judged]) + "\n")
    named = [f"{i},{j},{'same' if y[i] == y[j] else 'different'}" for i, j in pairs]
    text = "\n".join(["left,right,same", *named]) + "\n"
    for k in reversed(range(N_ITEMS)):  # the same judgements by the items' names
        text = text.replace(f"\n{k},", f"\n{names[k]},").replace(f",{k},", f",{names[k]},")
    (folder / "named.csv").write_text(text)
    labels = [f"{k},{'abc'[label]}" for k, label in enumerate(y)]
    (folder / "truth.csv").write_text("\n".join(["item,label", *labels]) + "\n")
    return Files(folder)


FIT = ("--classes", "3", "--epochs", "30", "--quiet")


def run(*arguments: str) -> int:
    return cli.run(list(arguments))


def outcome(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """What a command prints with --json, which must be one JSON object and nothing else."""
    capsys.readouterr()
    status = run(*arguments, "--json")
    printed = capsys.readouterr()
    assert status == 0, printed.err
    found = json.loads(printed.out)
    assert isinstance(found, dict)
    assert printed.out.count("\n") == 1
    return found


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on stderr of a command that must end with status 2 and print no result."""
    capsys.readouterr()
    status = run(*arguments)
    printed = capsys.readouterr()
    assert status == 2, (status, printed.err)
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("likewise: ")
    return lines[0]
