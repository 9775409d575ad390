"""Checkpoints: training that was cut short goes on, and ends where it would have ended.

A checkpoint is one safetensors file: the tensors of a `TrainingRun` (weights, averaged and best
weights, optimiser, counters, what the objective estimates), and in its header the epoch, the
history, the identity of the run, and a digest over all of these. The rate schedule and the
randomness of an epoch follow from the recipe, the seed and the epoch, so nothing else is needed.

Files are moved into place whole; the one before is kept, so that a failed or damaged write costs
the epochs since then and nothing more.
"""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from likewise.errors import InputError
from likewise.io.atomic import remove_leftovers, replacing
from likewise.training.run import TrainingRun

KIND, VERSION = "likewise-checkpoint", 2  # of the names of the tensors: those of a run's parts
KEPT = 2  # the newest, and the one before in case it is damaged
SUFFIX = ".safetensors"
# What people ask for, and how.
OPTIONS = {
    "seed": ": --seed, or random_state",
    "n_classes": ": --classes",
    "network": ": --network",
}
OPTIONS |= {name: f": --{name.replace('_', '-')}" for name in ("method", "noise", "held_out")}
OPTIONS |= {"recipe": "", "recipe.lr": ": --lr", "recipe.epochs": ": --epochs"}
OPTIONS |= {"recipe.batch_size": ": --batch-size", "transition": ": --transition"}
_SAMPLE_BYTES = 64 * 2**20  # of larger arrays only so much, evenly spread, enters a digest

Identity = dict[str, object]  # what makes a fit this fit, as JSON knows it
About = dict[str, Any]  # a checkpoint's header, from JSON


class DamagedError(Exception):
    """A checkpoint file that is cut short, altered, or not ours."""


class Checkpoints:
    """The checkpoints of one fit (or of one table of experiments) in one folder.

    Parameters
    ----------
    folder : made when the first checkpoint is written
    identity : what makes this fit this fit (data, method, options), as JSON knows it; a checkpoint
        with another one is refused
    every_seconds, every_epochs : when to write: at the end of the first epoch that is so much
        later than the last write, by either measure
    """

    def __init__(
        self,
        folder: str | Path,
        identity: Mapping[str, object] | None = None,
        *,
        every_seconds: float = 60.0,
        every_epochs: int | None = None,
    ) -> None:
        if every_seconds < 0 or (every_epochs is not None and every_epochs < 1):
            raise InputError("checkpoints cannot be closer than 0 seconds or 1 epoch.")
        self.folder = Path(folder)
        self.identity: Identity = json.loads(json.dumps(dict(identity or {})))
        self.every_seconds, self.every_epochs = every_seconds, every_epochs
        self._written: dict[str, tuple[float, int]] = {}  # name -> (time, epoch) of the last write

    def bound(self, identity: Mapping[str, object]) -> Checkpoints:
        """The same folder and policy for a fit of this identity."""
        other = copy.copy(self)
        other.identity, other._written = json.loads(json.dumps(dict(identity))), {}
        return other

    def resume(self, run: TrainingRun) -> bool:
        """Take over the newest whole checkpoint of a run of its name; False if there is none.

        A run that goes on in this process, and may have been changed since its last epoch, is
        taken back by nothing that it wrote itself.
        """
        name = run.name
        remove_leftovers(self.folder, f"{name}.")
        paths = self._paths(name)
        for path in paths:
            try:
                about, tensors = read_checkpoint(path)
            except DamagedError as error:
                warnings.warn(f"{error}; trying the one before.", stacklevel=2)
                continue
            check_identity(path, about["identity"], self._identity_of(run))
            _check_tensors(path, tensors, run)
            newer = run.epoch == 0 or about["epoch"] > run.epoch
            if newer:
                going_on = {key: about[key] for key in ("epoch", "history", "adapted", "seconds")}
                run.resume(tensors, **going_on)
            self._written[name] = (time.monotonic(), run.epoch)
            return newer
        if paths:
            raise InputError(
                f"no checkpoint in {self.folder} can be read; remove that folder to begin again."
            )
        self._written[name] = (time.monotonic(), run.epoch)
        return False

    def after_epoch(self, run: TrainingRun) -> None:
        """Write if it is time to, and always when the run has finished."""
        last_time, last_epoch = self._written.get(run.name, (-np.inf, 0))
        waited = time.monotonic() - last_time >= self.every_seconds
        enough = self.every_epochs is not None and run.epoch - last_epoch >= self.every_epochs
        if waited or enough or run.finished:
            self.save(run)

    def save(self, run: TrainingRun) -> bool:
        """Write now. A write that fails (a full disk) is a warning: training is worth more."""
        name = run.name
        run.log.flush()
        about = {
            "epoch": run.epoch,
            "history": run.history,
            "adapted": run.adapted,
            "seconds": run.log.seconds,
            "identity": self._identity_of(run),
        }
        path = self.folder / f"{name}.{run.epoch:06d}{SUFFIX}"
        self._written[name] = (time.monotonic(), run.epoch)
        try:
            write_checkpoint(path, run.snapshot(), about)
        except (OSError, SafetensorError) as error:
            warnings.warn(
                f"the checkpoint of epoch {run.epoch} could not be written ({error}); training "
                "goes on, and the checkpoint before stays.",
                stacklevel=2,
            )
            return False
        for old in self._paths(name)[KEPT:]:
            old.unlink(missing_ok=True)
        return True

    def forget(self, name: str) -> None:
        """Remove the checkpoints of a run whose result is safe elsewhere, and of its parts."""
        parts = self.folder.glob(f"{part_of(name, '*')}.*{SUFFIX}")
        for path in [*self._paths(name), *parts]:
            path.unlink(missing_ok=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def remove(self) -> None:
        """Remove all checkpoints of this folder, and the folder if it holds nothing else."""
        if not self.folder.is_dir():
            return
        if any(not _is_ours(path) for path in self.folder.iterdir()):
            raise InputError(f"{self.folder} holds files that are not checkpoints; move them away.")
        shutil.rmtree(self.folder)

    def _paths(self, name: str) -> list[Path]:
        """The checkpoints of that name, newest first."""
        found = self.folder.glob(f"{name}.*{SUFFIX}") if self.folder.is_dir() else []
        return sorted((p for p in found if _epoch_of(p, name) >= 0), reverse=True)

    def _identity_of(self, run: TrainingRun) -> Identity:
        described: Identity = json.loads(json.dumps(self.identity | describe(run)))
        return described


def part_of(name: str, number: int | str) -> str:
    """What a run is called that is only a part of what is done under a name."""
    return f"{name}-part-{number}" if name else ""


def describe(run: TrainingRun) -> Identity:
    """What a run must share with the one whose checkpoint it takes over."""
    return {
        "recipe": run.planned.to_dict(),
        "seed": run.batches.seed,
        "objective": type(run.objective).__name__,
        "rows": run.objective.n_rows,
        "items": list(
            run.batches.source.shape[1:]
        ),  # how many of them are here depends on the rank
        "held-out items": list(run.held_items.shape),
        "weights": [list(tensor.shape) for tensor in run.model.state_dict().values()],
    }


def write_checkpoint(
    path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, object]
) -> None:
    """One file, whole or not at all: named tensors and, in its header, ``about``."""
    state = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps({"kind": KIND, "version": VERSION, **about})
    with replacing(path) as temporary:
        save_file(state, temporary, {"about": text, "digest": _seal(text, state)})


def read_checkpoint(path: Path) -> tuple[About, dict[str, Tensor]]:
    """``(about, tensors)`` of a checkpoint, its digest verified."""
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise DamagedError(f"{path} is not a whole checkpoint ({error})") from error
    text = header.get("about", "")
    if header.get("digest") != _seal(text, state):
        raise DamagedError(f"{path} has been altered or damaged")
    about = json.loads(text)
    version = about.get("version", VERSION + 1)
    if about.get("kind") != KIND or version > VERSION:
        raise DamagedError(f"{path} was not written by this version of Likewise")
    if version < VERSION:
        raise InputError(
            f"{path} was written by an earlier version of Likewise, whose training cannot be gone "
            f"on with here; remove {path.parent} and begin again."
        )
    return about, state


def digest_of(*arrays: NDArray[np.generic] | None) -> str:
    """A digest of arrays: their types, shapes and content (of very large ones, a spread sample)."""
    seal = hashlib.blake2b(digest_size=16)
    for array in arrays:
        if array is None:
            seal.update(b"none")
            continue
        seal.update(f"{array.dtype.str}{array.shape}".encode())
        step = -(-array.nbytes // _SAMPLE_BYTES) if array.nbytes else 1
        seal.update(np.ascontiguousarray(array[::step]).reshape(-1).view(np.uint8).data)
    return seal.hexdigest()


def _seal(text: str, state: Mapping[str, Tensor]) -> str:
    seal = hashlib.blake2b(text.encode(), digest_size=16)
    for name in sorted(state):
        tensor = state[name].contiguous()
        seal.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
        seal.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return seal.hexdigest()


def _epoch_of(path: Path, name: str) -> int:
    """The epoch in a checkpoint's file name; -1 where it is not one of that name."""
    middle = path.name.removeprefix(f"{name}.").removesuffix(SUFFIX)
    return int(middle) if len(middle) == 6 and middle.isdecimal() else -1


def _is_ours(path: Path) -> bool:
    torn = path.name.startswith(".") and path.suffix == ".tmp" and f"{SUFFIX}." in path.name
    return path.is_file() and (path.suffix == SUFFIX or torn)


def check_identity(path: Path, made: Identity, now: Identity) -> None:
    """Refuse a checkpoint of another fit, in a sentence that says what differs."""
    if not (differing := [key for key in made | now if made.get(key) != now.get(key)]):
        return
    # Other files come first, and options before what follows from them, such as a number of rows.
    first = min(differing, key=lambda key: (not key.startswith("SHA-256"), key not in OPTIONS, key))
    key, old, new = first, made.get(first), now.get(first)
    if isinstance(old, dict) and isinstance(new, dict):
        inner = next(k for k in sorted(old | new) if old.get(k) != new.get(k))
        key, old, new = f"{key}.{inner}", old.get(inner), new.get(inner)
    raise InputError(
        f"{path} belongs to another fit ({key} was {old}, is now {new}{OPTIONS.get(key, '')}); "
        f"give the same data and options as before, or remove {path.parent} to begin again."
    )


def _check_tensors(path: Path, tensors: Mapping[str, Tensor], run: TrainingRun) -> None:
    expected = run.snapshot()
    fixed = {name for name in expected if not name.startswith("updater.optimizer.")}
    wrong = [
        name
        for name in fixed
        if name not in tensors
        or (tensors[name].shape, tensors[name].dtype)
        != (expected[name].shape, expected[name].dtype)
    ]
    strange = [
        name
        for name, tensor in tensors.items()
        if name not in fixed and not run.updater.may_hold(name.removeprefix("updater."), tensor)
    ]
    if wrong or strange:
        name = sorted([*wrong, *strange])[0]
        told = f"{path} does not fit this run ({name}); remove {path.parent} to begin again."
        raise InputError(told)
