"""Several training runs at once on one device, without changing any of them.

A *program* is a generator that yields `TrainingRun`s and gets each back when it is trained; what
it returns is its result. So "train MCL, estimate T from it, train MNS" is written as it is said.
`run_program` drives one program; `interleave` interleaves several, each on a CUDA stream of its own:
small networks leave most of a GPU idle, and their kernels then overlap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch

from likewise.errors import LikewiseError, TrainingError
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
            with device_errors():
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
class _Lane:
    position: int
    program: Program[object]
    run: TrainingRun
    steps_left: int = 0
    stage: int = 0


def interleave(
    programs: Iterable[Program[Result]],
    lanes: int,
    finished: Callable[[int, Result], None] | None = None,
    checkpoints: Checkpoints | None = None,
) -> list[Result]:
    """Results of all programs, in order, at most ``lanes`` of them under way at a time.

    ``finished(position, result)`` is told of each as it ends, so that nothing is lost if a later
    one fails. ``checkpoints`` are as in `run_program`.
    """
    waiting = deque(enumerate(programs))
    results: dict[int, Result] = {}
    active: list[_Lane] = []

    def end(position: int, result: Result) -> None:
        results[position] = result
        if finished is not None:
            finished(position, result)

    def start() -> None:
        while waiting and len(active) < lanes:
            position, program = waiting.popleft()
            try:
                lane = _Lane(position, program, next(program))
            except StopIteration as stop:
                end(position, stop.value)
            else:
                _resume(lane, checkpoints)
                active.append(lane)

    start()
    while active:
        for lane in list(active):
            with device_errors():
                done = lane.run.finished or _advance(lane, checkpoints)
            if not done:
                continue
            try:
                lane.run, lane.stage = lane.program.send(lane.run), lane.stage + 1
                _resume(lane, checkpoints)
            except StopIteration as stop:
                active.remove(lane)
                end(lane.position, stop.value)
                start()
    return [results[position] for position in sorted(results)]


def _resume(lane: _Lane, checkpoints: Checkpoints | None) -> None:
    run = lane.run
    run.name = run.name or f"program-{lane.position}-stage-{lane.stage}"
    if checkpoints is not None:
        checkpoints.resume(run)


def _advance(lane: _Lane, checkpoints: Checkpoints | None) -> bool:
    """One step of a lane's run; True when the run is finished."""
    run = lane.run
    with run.on_stream():
        if lane.steps_left == 0:
            run.begin_epoch()
            lane.steps_left = run.steps_per_epoch
        run.step()
        lane.steps_left -= 1
        if lane.steps_left == 0:
            run.end_epoch()
            if checkpoints is not None:
                checkpoints.after_epoch(run)
    if not run.finished:
        return False
    if run.stream is not None:
        torch.cuda.current_stream(run.device).wait_stream(run.stream)
    return True
