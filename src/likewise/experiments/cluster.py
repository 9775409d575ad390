"""The grid on a cluster: one command for each chain of cells, run by submitit or by anything else.

A job is the command that ``--list`` prints, no pickled state: its result is the cells' files in
the shared folder of runs, which says what is finished and what died. submitit
(github.com/facebookincubator/submitit) talks to SLURM, or starts processes of this machine.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.errors import InputError, LikewiseError
from likewise.experiments.cells import Cell
from likewise.experiments.grid import Chain, Report, cell_settings, unfinished
from likewise.experiments.settings import TableSettings
from likewise.experiments.store import load_result

if TYPE_CHECKING:
    import submitit

CLUSTERS = ("slurm", "local")
TRIES = 3
"""How often a chain is submitted before its failure is taken for its own."""
POLL_SECONDS = 1.0
DAY = 24 * 60

MISSING = "--cluster needs submitit; install it with pip install 'likewise[cluster]'."


@dataclass(frozen=True)
class CellCommand:
    """How to run one chain of a table by itself."""

    target: str
    """The table's name or settings file."""
    data: Path | None
    """The folder of the data sets; None: LIKEWISE_DATA."""
    out: Path
    """The folder of runs, the same for all."""
    epochs: int | None = None
    """In place of those of the settings."""
    quick: bool = False
    """Whether it is a smoke run."""
    device: str = "auto"
    """Where to train."""

    def of(self, chain: Chain) -> list[str]:
        """The arguments of ``likewise``: cells that are finished are skipped by it."""
        first = chain[0]
        level = first.noise_kind if first.noise is None else f"{first.noise:g}"
        words = ["reproduce", self.target, "--noise", level, "--trial", str(first.trial)]
        words += ["--methods", ",".join(cell.method for cell in chain), "--out", str(self.out)]
        words += [] if self.data is None else ["--data", str(self.data)]
        words += [] if self.epochs is None else ["--epochs", str(self.epochs)]
        words += ["--quick"] if self.quick else []
        return [*words, *([] if self.device == "auto" else ["--device", self.device])]


def parse_options(texts: Sequence[str]) -> dict[str, str | int]:
    """``name=value`` as submitit takes it: whole numbers as such."""
    found: dict[str, str | int] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise InputError(f"--cluster-option is name=value, not {text!r}.")
        found[name] = int(value) if value.isdecimal() else value
    return found


@dataclass
class _Submitted:
    """A chain at work, or waiting for its turn in the cluster's queue."""

    chain: Chain
    job: submitit.Job[str]
    tries: int


@dataclass(frozen=True)
class Cluster:
    """Where jobs are sent, and how many may be there at a time."""

    kind: str
    """One of `CLUSTERS`."""
    jobs: int = 1
    """Chains at a time."""
    options: Mapping[str, str | int] | None = None
    """What submitit's executor is told: timeout_min, gpus_per_node, slurm_partition ..."""

    def run(
        self,
        settings: TableSettings,
        command: CellCommand,
        report: Report | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Run what is unfinished of a table; a job that died is submitted again."""
        chains = unfinished(settings, command.out)
        if not chains:
            return
        executor = self._executor(command.out / settings.table / "jobs")
        # Weights that every cell begins from are made by the first, alone.
        first = [chains.pop(0)] if settings.pretrained == "self" else []
        for part in (first, chains):
            _Queue(self.jobs, executor, settings, command, report, tell).run(part)

    def _executor(self, folder: Path) -> submitit.Executor:
        try:
            import submitit
        except ImportError as error:
            raise InputError(MISSING) from error
        if self.kind not in CLUSTERS:
            raise InputError(f"--cluster must be {' or '.join(CLUSTERS)}, but is {self.kind!r}.")
        try:
            executor = submitit.AutoExecutor(folder=folder, cluster=self.kind)
            executor.update_parameters(**{"timeout_min": DAY, **(self.options or {})})
        except (RuntimeError, NameError, TypeError, ValueError, AssertionError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise InputError(f"submitit cannot use the cluster {self.kind}: {reason}.") from error
        return executor


class _Queue:
    """Chains of a table on their way through a cluster."""

    def __init__(
        self,
        jobs: int,
        executor: submitit.Executor,
        settings: TableSettings,
        command: CellCommand,
        report: Report | None,
        tell: Callable[[str], None],
    ) -> None:
        self._jobs, self._executor = jobs, executor
        self._settings, self._command = settings, command
        self._report, self._tell = report, tell

    def run(self, chains: Sequence[Chain]) -> None:
        waiting, running = list(chains), list[_Submitted]()
        told: set[Cell] = set()
        try:
            while waiting or running:
                while waiting and len(running) < self._jobs:
                    running.append(self._submit(waiting.pop(0), tries=1))
                time.sleep(POLL_SECONDS)
                for entry in list(running):
                    ended = entry.job.done()  # asked first: what it wrote is there by now
                    left = self._collect(entry.chain, told)
                    if not ended:
                        continue
                    running.remove(entry)
                    if left:
                        running.append(self._again(entry))
        finally:
            for entry in running:
                entry.job.cancel(check=False)

    def _submit(self, chain: Chain, tries: int) -> _Submitted:
        from submitit.helpers import CommandFunction

        words = [sys.executable, "-m", "likewise", *self._command.of(chain)]
        # In the job's own environment: it says which GPUs are the job's, and where it runs.
        job = self._executor.submit(CommandFunction(words))
        return _Submitted(chain, job, tries)

    def _collect(self, chain: Chain, told: set[Cell]) -> bool:
        """Report the cells that are finished by now; whether any is left."""
        left = False
        for cell in chain:
            options = cell_settings(self._settings, cell)
            result = load_result(self._command.out, cell, options)
            left |= result is None
            if result is not None and cell not in told:
                told.add(cell)
                if self._report is not None:
                    self._report(result)
        return left

    def _again(self, entry: _Submitted) -> _Submitted:
        name = entry.chain[-1].name
        if entry.tries >= TRIES:
            log = entry.job.paths.stderr
            raise LikewiseError(
                f"{name} died {TRIES} times on the cluster; {log} says why, and the same command "
                "goes on with what is left."
            )
        self._tell(f"{name} died (job {entry.job.job_id}): submitted again")
        return self._submit(entry.chain, entry.tries + 1)
