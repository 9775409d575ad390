"""A fit from files to a run folder, checkpointed on the way: what ``likewise fit`` does."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from likewise.classifier import SimilarityClassifier
from likewise.errors import InputError, NonFiniteError
from likewise.io.atomic import check_vacant, remove_leftovers
from likewise.io.json import plain_object
from likewise.io.provenance import input_record
from likewise.items.files import read_items
from likewise.pairs import Pairs
from likewise.runs import tracking
from likewise.runs.run import Run, write_run
from likewise.training.checkpoints import Checkpoints
from likewise.training.devices import choose_device
from likewise.training.distributed import process_group_of_torchrun


@dataclass(frozen=True)
class FitJob:
    """Which files to fit to, and where the run goes.

    ``columns`` are options of `likewise.pairs.formats.read_pairs`; ``track`` is a tracker
    (`likewise.runs.tracking`). A fit that is killed leaves its checkpoints beside ``out``; another job
    that is the same goes on from there if ``resume``.
    """

    items: Path
    pairs: Path
    out: Path
    columns: dict[str, str] = field(default_factory=dict)
    id_column: str | None = None
    image_size: int | None = None
    resume: bool = False
    checkpoint_seconds: float = 60.0
    track: str | None = None

    def run(self, classifier: SimilarityClassifier) -> Run | None:
        """Fit and write the run; None in all but the first of several processes that share it."""
        classifier.check_parameters()
        if self.track is not None:
            tracking.parse_spec(self.track)  # before anything is trained
        config = self._config(classifier)
        if (finished := self._finished(config)) is not None:
            self._checkpoints.remove()
            return finished
        self._refuse_checkpoints()
        remove_leftovers(self.out.parent, f"{self.out.name}.")
        run = self._fit(classifier, config)
        if run is not None:
            self._checkpoints.remove()
            if self.track is not None:
                tracking.log_run(self.track, run.folder)
        return run

    def _fit(self, classifier: SimilarityClassifier, config: dict[str, Any]) -> Run | None:
        started = time.perf_counter()
        data = read_items(self.items, id_column=self.id_column, size=self.image_size)
        pairs = Pairs.read(self.pairs, item_ids=data.ids, n_items=len(data), **self.columns)
        read = time.perf_counter()
        try:
            with (
                process_group_of_torchrun() as process_group
            ):  # those that torchrun started, if it did
                classifier.fit(
                    data.items, pairs, checkpoints=self._checkpoints, columns=data.columns
                )
        except NonFiniteError:
            self._checkpoints.remove()  # going on from them would end here again
            raise
        if process_group is not None and not process_group.is_first:
            return None
        seconds = {"read": read - started, "fit": time.perf_counter() - read}
        return write_run(
            self.out,
            classifier,
            data.items,
            pairs,
            ids=None if data.ids is None else data.ids.tolist(),
            config=config,
            metrics={"device": str(choose_device(classifier.device)), "seconds": seconds},
        )

    @cached_property
    def _checkpoints(self) -> Checkpoints:
        folder = self.out.with_name(f"{self.out.name}.checkpoints")
        return Checkpoints(folder, every_seconds=self.checkpoint_seconds)

    def _config(self, classifier: SimilarityClassifier) -> dict[str, Any]:
        """Everything that is needed to repeat the run."""
        inputs = {"id": self.id_column, "image_size": self.image_size}
        return {
            "command": "fit",
            "seed": classifier.random_state,
            "parameters": classifier.get_params(deep=False),
            "columns": self.columns,
            "items": {**input_record(self.items), **inputs},
            "pairs": input_record(self.pairs),
        }

    def _finished(self, config: dict[str, Any]) -> Run | None:
        """The run in ``out`` if it is whole and this very one is to be resumed; else None."""
        if not self.resume or not (self.out / "config.json").exists():
            check_vacant(self.out)
            return None
        run, asked = Run.open(self.out), plain_object(config)
        if differing := [name for name in asked if run.config.get(name) != asked[name]]:
            raise InputError(
                f"{self.out} holds a finished run with other {', '.join(differing)}; choose "
                "another name."
            )
        return run

    def _refuse_checkpoints(self) -> None:
        """Hours of training are not thrown away because somebody forgot an option."""
        folder = self._checkpoints.folder
        if not self.resume and folder.is_dir():
            raise InputError(
                f"{folder} holds a fit that was cut short: add --resume to go on with it, or "
                "remove that folder to begin again."
            )
