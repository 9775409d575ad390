"""Several training runs at once on one device, without changing any of them.

A *program* is a generator that yields `TrainingRun`s and gets each back when it is trained; what
it returns is its result. So "train MCL, estimate T from it, train MNS" is written as it is said.
`run_program` drives one program; `interleave` several, each on a CUDA stream of its own: small
networks leave most of a GPU idle, and their kernels then overlap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch

from likewise.errors import LikewiseError, TrainingError
from likewise.io.progress import announced
from likewise.training.checkpoints import Checkpoints, part_of
from likewise.training.run import TrainingRun

Result = TypeVar("Result")
Program = Generator[TrainingRun, TrainingRun, Result]


def run_program(
    program: Program[Result],
    progress: Callable[[dict[str, float]], None] | None = None,
    checkpoints: Checkpoints | None = None,
) -> Result:
    """Drive one program to its end.

    With ``checkpoints``, a program that was cut short goes on where it was: it is run again from
    its beginning, and the training runs it yields come back as they were left.
    """
    stage = 0
    try:
        run = next(program)
        while True:
            run.name = run.name or f"stage-{stage}"
            with device_errors(), announced("training"):
                if checkpoints is None:
                    run.train(progress)
                else:
                    checkpoints.resume(run)
                    run.train(progress, checkpoints.after_epoch)
            run, stage = program.send(run), stage + 1
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


@contextmanager
def device_errors() -> Iterator[None]:
    """A device that fails or is too small, in a sentence that says what to do."""
    try:
        yield
    except LikewiseError:
        raise
    except RuntimeError as error:  # PyTorch's errors of memory and of devices are of this kind
        text = str(error)
        if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in text:
            raise TrainingError(
                "there is too little memory on the device for this training; a smaller "
                "batch_size or network needs less."
            ) from error
        if "CUDA error" in text or "cuDNN error" in text:
            raise TrainingError(
                f"the GPU failed ({text.splitlines()[0]}); resuming goes on from the last "
                "checkpoint."
            ) from error
        raise


def named(program: Program[Result], names: Iterable[str]) -> Program[Result]:
    """The same program, with its training runs called by these names in its checkpoints.

    Runs that are only begun (`TrainingRun.until`) are numbered parts of the next name; those for
    which no name is left, of the last one.
    """
    given = iter(names)
    name, parts, used = next(given, ""), 0, False
    try:
        run = next(program)
        while True:
            whole = run.until is None
            if whole and not used:
                run.name = name
            else:
                run.name, parts = part_of(name, parts), parts + 1
            sent = yield run
            if whole:
                following = next(given, "")
                used = not following
                name, parts = (following, 0) if following else (name, parts)
            run = program.send(sent)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


@dataclass
class _Underway:
    """A program whose run is being trained."""

    # Its place among the programs.
    position: int
    program: Program[object]
    # What it wants trained now.
    run: TrainingRun
    # Until the end of the epoch.
    steps_left: int = 0
    # How many runs it has had trained before.
    stage: int = 0


def interleave(
    programs: Iterable[Program[Result]],
    concurrency: int,
    finished: Callable[[int, Result], None] | None = None,
    checkpoints: Checkpoints | None = None,
) -> list[Result]:
    """Results of all programs, in order, at most ``concurrency`` of them under way at a time.

    ``finished(position, result)`` is told of each as it ends, so that nothing is lost if a later
    one fails. ``checkpoints`` are as in `run_program`.
    """
    waiting = deque(enumerate(programs))
    results: dict[int, Result] = {}
    active: list[_Underway] = []

    def end(position: int, result: Result) -> None:
        results[position] = result
        if finished is not None:
            finished(position, result)

    def start() -> None:
        while waiting and len(active) < concurrency:
            position, program = waiting.popleft()
            try:
                entry = _Underway(position, program, next(program))
            except StopIteration as stop:
                end(position, stop.value)
            else:
                _resume(entry, checkpoints)
                active.append(entry)

    start()
    while active:
        for entry in list(active):
            with device_errors():
                done = entry.run.finished or _advance(entry, checkpoints)
            if not done:
                continue
            try:
                entry.run, entry.stage = entry.program.send(entry.run), entry.stage + 1
                _resume(entry, checkpoints)
            except StopIteration as stop:
                active.remove(entry)
                end(entry.position, stop.value)
                start()
    return [results[position] for position in sorted(results)]


def _resume(entry: _Underway, checkpoints: Checkpoints | None) -> None:
    run = entry.run
    run.name = run.name or f"program-{entry.position}-stage-{entry.stage}"
    if checkpoints is not None:
        checkpoints.resume(run)


def _advance(entry: _Underway, checkpoints: Checkpoints | None) -> bool:
    """One step of a program's run; True when the run is finished."""
    run = entry.run
    with run.on_stream():
        if entry.steps_left == 0:
            run.begin_epoch()
            entry.steps_left = run.steps_per_epoch
        run.step()
        entry.steps_left -= 1
        if entry.steps_left == 0:
            run.end_epoch()
            if checkpoints is not None:
                checkpoints.after_epoch(run)
    if not run.finished:
        return False
    if run.stream is not None:
        torch.cuda.current_stream(run.device).wait_stream(run.stream)
    return True
