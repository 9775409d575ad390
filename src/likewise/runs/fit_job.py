"""A fit from files to a run folder, checkpointed on the way: what ``likewise fit`` does."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from likewise.classifier import SimilarityClassifier
from likewise.errors import InputError, NonFiniteError
from likewise.io.json import plain_object
from likewise.io.places import checkpoints_of
from likewise.io.progress import stage
from likewise.io.provenance import input_record
from likewise.items.encoders.reading import Encoding, Reading, read_to_fit
from likewise.items.encoders.stored import describe
from likewise.items.encoders.tfidf import TfidfSvd
from likewise.items.files import ItemFile
from likewise.pairs import Pairs
from likewise.pairs.privacy import without_names
from likewise.pairs.shards import read_shard, whole
from likewise.runs import tracking
from likewise.runs.comparison import compare
from likewise.runs.like import keep_classes
from likewise.runs.lookahead import check_output, locked, remove_own_leftovers
from likewise.runs.privacy import without_paths
from likewise.runs.run import Run, write_run
from likewise.runs.told import Told
from likewise.training.checkpoints import Checkpoints
from likewise.training.devices import choose_device
from likewise.training.distributed import ProcessGroup, is_alone, process_group_of_torchrun

Config = dict[str, object]


@dataclass(frozen=True)
class FitJob:
    """Which files to fit to, and where the run goes.

    A fit that is killed leaves its checkpoints beside ``out``; another job that is the same goes on
    from there if ``resume``.
    """

    items: Path
    """An array, a table, or a folder of images."""
    pairs: Path
    """The judgements about them."""
    out: Path
    """A new folder for the run."""
    columns: dict[str, str | float] = field(default_factory=dict)
    """What the columns of the judgements are called: options of `Pairs.read`."""
    id_column: str | None = None
    """The column of a table of items that names them."""
    image_size: int | None = None
    """Pixels a side to which every image of a folder is scaled."""
    encoding: Encoding = field(default_factory=Encoding)
    """How photographs and texts become numbers."""
    tell: Callable[[str], None] | None = None
    """Told in a sentence, before the fit starts, what would help more."""
    resume: bool = False
    """Whether to go on with the same fit, where it was cut short."""
    checkpoint_seconds: float = 60.0
    """Training that a kill may cost, at most."""
    track: str | None = None
    """A tracker that is told of the run (`likewise.runs.tracking`)."""
    private: bool = False
    """Whether names, ids, pictures and single judgements are kept out of the run."""
    stability: bool = False
    """Whether to fit three times more, to see what another seed finds."""
    told: Told = field(default_factory=Told)
    """What is certain, whom not to listen to, which run to follow."""

    def run(self, classifier: SimilarityClassifier) -> Run | None:
        """Fit and write the run; None in all but the first of several processes that share it."""
        classifier.check_parameters()
        if self.track is not None:
            tracking.parse_spec(self.track)
        self.told.check()
        if not (self.resume and (self.out / "config.json").exists()):
            check_output(self.out)
        # Of the processes that torchrun starts, which share the work, the first holds the lock.
        is_first = os.environ.get("RANK", "0") == "0"
        with locked(self.out) if is_first else contextlib.nullcontext():
            return self._run(classifier)

    def _run(self, classifier: SimilarityClassifier) -> Run | None:
        config = self._config(classifier)
        checkpoints = self._checkpoints(config)
        if (finished := self._finished(config)) is not None:
            checkpoints.remove()
            return finished
        self._refuse_checkpoints(checkpoints.folder)
        remove_own_leftovers(self.out)
        run = self._fit(classifier, config, checkpoints)
        if run is not None:
            checkpoints.remove()
            if self.track is not None:
                tracking.log_run(self.track, run.folder)
        return run

    def _fit(
        self, classifier: SimilarityClassifier, config: Config, checkpoints: Checkpoints
    ) -> Run | None:
        started = time.perf_counter()
        with stage(None, 0.1):
            reading, pairs = self._read(classifier)
        data = reading.data
        known = self.told.known_classes(data)
        try:
            with process_group_of_torchrun() as process_group, stage(None, 0.8):
                if pairs is None:
                    pairs = self._read_pairs(data, process_group)
                read = time.perf_counter()
                classifier.fit(
                    data.items,
                    pairs,
                    known=known,
                    checkpoints=checkpoints,
                    columns=data.columns,
                )
        except NonFiniteError:
            checkpoints.remove()  # going on from them would end here again
            raise
        if process_group is not None and not process_group.is_first:
            return None
        seconds = {"read": read - started, "fit": time.perf_counter() - read}
        figures: dict[str, object] = {"seconds": seconds}
        again = self.stability and process_group is None
        pairs = whole(pairs)
        compared = compare(classifier, data.items, pairs, known=known, stability=again)
        figures["comparison"] = None if compared is None else asdict(compared)
        if self.told.like is not None:
            likeness = asdict(keep_classes(classifier, data, self.told.like))
            figures["like"] = likeness | ({"run": ""} if self.private else {})
        if reading.encoder is not None:
            config = {**config, "encoder": describe(reading.encoder)}
            schema = classifier.item_schema_
            assert schema is not None  # it was fitted just now
            classifier.item_schema_ = replace(schema, encoder=reading.encoder.name)
        with stage("writing the run"):
            return write_run(
                self.out,
                classifier,
                data.items,
                pairs,
                ids=None if data.ids is None else data.ids.tolist(),
                config=config,
                metrics={"device": str(choose_device(classifier.device)), **figures},
                encoded=reading,
                text=self.encoding.text,
                private=self.private,
            )

    def _read(self, classifier: SimilarityClassifier) -> tuple[Reading, Pairs | None]:
        """The items as numbers; a network, or training, that was asked for takes the pixels.

        What is said about photographs or texts is read before they are encoded: a mistake in it
        costs no minutes. The judgements are None where they are still to be read.
        """
        early: list[tuple[ItemFile, Pairs]] = []

        def look(items: ItemFile) -> None:
            self.told.known_classes(items)
            if is_alone():
                early.append((items, self._read_pairs(items, None)))

        asked = (classifier.network, classifier.recipe)
        wanted = any(one is not None for one in asked) or classifier.method not in ("auto", "joint")
        found = read_to_fit(
            self.items,
            replace(self.encoding, network=wanted),
            id_column=self.id_column,
            image_size=self.image_size,
            seed=int(classifier.random_state or 0),
            named=look,
        )
        if self.private and isinstance(found.encoder, TfidfSvd):
            raise InputError(
                "--private cannot keep the words of the texts out of a run that is to encode "
                "others by them; take a model (--embed NAME)."
            )
        if found.note is not None and self.tell is not None:
            self.tell(found.note)
        same = [pairs for items, pairs in early if np.array_equal(items.names, found.data.names)]
        return found, same[0] if same else None

    def _read_pairs(self, data: ItemFile, ranks: ProcessGroup | None) -> Pairs:
        """The judgements; of several processes, each reads those of its own items."""
        plain = not self.private and not self.told.changes_judgements
        names = {n: c for n, c in self.columns.items() if isinstance(c, str) and n != "format"}
        if ranks is not None and plain and len(names) == len(self.columns):
            return read_shard(self.pairs, ranks, n_items=len(data), item_ids=data.ids, **names)
        pairs = Pairs.read(
            self.pairs, item_ids=data.ids, n_items=len(data), may_lack=True, **self.columns
        )
        pairs = self.told.judgements(pairs, data, self.columns)
        return without_names(pairs) if self.private else pairs

    def _checkpoints(self, config: Config) -> Checkpoints:
        """Beside ``out``, of these very files: their digests are known, and are of every byte."""
        identity: Config = {}
        for name in ("items", "pairs"):
            record = config[name]
            assert isinstance(record, dict)
            identity[f"SHA-256 of {name}"] = record.get("sha256") or record.get("listing_sha256")
        return Checkpoints(
            checkpoints_of(self.out), identity, every_seconds=self.checkpoint_seconds
        )

    def _config(self, classifier: SimilarityClassifier) -> Config:
        """Everything that is needed to repeat the run."""
        inputs = {"id": self.id_column, "image_size": self.image_size}
        inputs |= {"embed": self.encoding.model, "text": self.encoding.text}
        config: Config = {
            "command": "fit",
            "seed": classifier.random_state,
            "parameters": classifier.get_params(deep=False),
            "columns": self.columns,
            "items": {**input_record(self.items), **inputs},
            "pairs": input_record(self.pairs),
            **self.told.config(self.private),
        }
        return without_paths(config) if self.private else config

    def _finished(self, config: Config) -> Run | None:
        """The run in ``out`` if it is whole and this very one is to be resumed; else None."""
        if not self.resume or not (self.out / "config.json").exists():
            return None
        run, asked = Run.open(self.out), plain_object(config)
        if differing := [name for name in asked if run.config.get(name) != asked[name]]:
            raise InputError(
                f"{self.out} holds a finished run with other {', '.join(differing)}; choose "
                "another name."
            )
        return run

    def _refuse_checkpoints(self, folder: Path) -> None:
        """Hours of training are not thrown away because somebody forgot an option."""
        if not self.resume and folder.is_dir():
            raise InputError(
                f"{folder} holds a fit that was cut short: add --resume to go on with it, or "
                "remove that folder to begin again."
            )
