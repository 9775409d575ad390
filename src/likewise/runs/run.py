"""Run folders: what was asked, what came out, the model, and what a report needs of both.

    RUN/
      config.json    what was asked: parameters, seed, the inputs and their digests, versions
      metrics.json   final figures: method and why, accuracy where truth was given, T, timings
      history.csv    a row an epoch
      model/         the classifier (`likewise.serialization`), and the encoder of its items
      report.json    judgements described, calibration, suspects, annotators
      model_card.md  the same in words, for whoever is handed the model
      items.npz      kept items: posterior, map, ids, thumbnails, truth (`report_data`)

A run is written under a temporary name and moved into place: it is there whole, or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.errors import InputError
from likewise.io.atomic import new_folder, write_json, write_text
from likewise.io.json import Record, plain
from likewise.io.npy import Array
from likewise.io.provenance import versions
from likewise.runs.files import history_text, read_arrays, read_history, read_json

if TYPE_CHECKING:
    from likewise.classifier import SimilarityClassifier
    from likewise.items.encoders.reading import Reading
    from likewise.pairs import Pairs
    from likewise.runs.report_data import ReportData

KIND = "likewise-run"
VERSION = 1
# Of what was learned, in files of their own: history.csv and report.json.
KEPT_ELSEWHERE = {"history", "channel", "annotators"}
NEEDED = {"kept", "posterior", "map", "ids", "thumbnail_of"}


@dataclass(frozen=True)
class Run:
    """A run folder, read back; files are read when first asked for. n of N items are kept."""

    folder: Path  # where it is

    @staticmethod
    def open(folder: str | Path) -> Run:
        """The run in a folder, or an `InputError` that says why there is none."""
        path = Path(folder)
        if not path.is_dir():
            raise InputError(f"there is no run folder {path}.")
        if not (path / "config.json").is_file():
            hint = " (it is a model folder)" if (path / "model.json").is_file() else ""
            raise InputError(f"{path} is not a Likewise run{hint}: it has no config.json.")
        run = Run(path)
        if run.config.get("kind") != KIND:
            raise InputError(f"{path / 'config.json'} describes no Likewise run.")
        version = run.config.get("version")
        if not isinstance(version, int) or version > VERSION:
            raise InputError(
                f"{path} was written by a newer Likewise (format {version}, this one reads up to "
                f"{VERSION}); upgrade likewise."
            )
        return run

    @cached_property
    def config(self) -> Record:
        """What was asked, the inputs and their digests, versions."""
        return read_json(self.folder / "config.json")

    @property
    def is_private(self) -> bool:
        """Whether names, ids, pictures and single judgements were left out."""
        return bool(self.config.get("private"))

    @cached_property
    def metrics(self) -> Record:
        """Final figures."""
        found = read_json(self.folder / "metrics.json")
        if missing := [name for name in ("method", "choice", "warnings") if name not in found]:
            raise InputError(f"{self.folder / 'metrics.json'} lacks {missing[0]!r}.")
        return found

    @cached_property
    def history(self) -> list[Record]:
        """A row an epoch."""
        return read_history(self.folder / "history.csv")

    @property
    def model(self) -> Path:
        """The folder of the classifier, for `likewise.load`."""
        return self.folder / "model"

    @property
    def judgements(self) -> Record:
        """What `Pairs.describe` said."""
        return self._table("judgements")

    @property
    def calibration(self) -> Record:
        """P(same), predicted and observed; see `likewise.runs.report_data.calibration`."""
        return self._table("calibration")

    @property
    def suspects(self) -> dict[str, list[Any]]:
        """The judgements most probably wrong, by columns."""
        return self._table("suspects")

    @property
    def annotators(self) -> dict[str, list[Any]] | None:
        """People by columns, the most reliable first; None where nobody is named."""
        return self._report.get("annotators")

    @property
    def channel(self) -> Record | None:
        """The learned channel as a dict, or None."""
        return self._report.get("channel")

    @property
    def kept(self) -> NDArray[np.int64]:
        """(n,) positions of the kept items among all N."""
        return self._arrays["kept"]

    @property
    def posterior(self) -> NDArray[np.float16]:
        """(n, C) g of the kept items."""
        return self._arrays["posterior"]

    @property
    def map(self) -> NDArray[np.float32]:
        """(n, 2) their places on a map."""
        return self._arrays["map"]

    @property
    def ids(self) -> NDArray[np.str_]:
        """(n,) their own names."""
        return self._arrays["ids"]

    @property
    def truth(self) -> NDArray[np.str_] | None:
        """(n,) names of their true classes, where they were given."""
        return self._arrays.get("truth")

    @property
    def thumbnails(self) -> NDArray[np.uint8] | None:
        """(k, h, w[, 3]) small pictures, or None."""
        return self._arrays.get("thumbnails")

    @property
    def thumbnail_of(self) -> NDArray[np.int64]:
        """(k,) the items that they show, among all N."""
        return self._arrays["thumbnail_of"]

    @cached_property
    def _report(self) -> Record:
        return read_json(self.folder / "report.json")

    def _table(self, name: str) -> Record:
        found = self._report.get(name)
        if not isinstance(found, dict):
            raise InputError(f"{self.folder / 'report.json'} has no {name}: the run is not whole.")
        return found

    @cached_property
    def _arrays(self) -> dict[str, Array]:
        return read_arrays(self.folder / "items.npz", NEEDED)


def write_run(
    folder: str | Path,
    classifier: SimilarityClassifier,
    items: Array,
    pairs: Pairs,
    *,
    config: Record,
    ids: Sequence[str] | None = None,
    truth: ArrayLike | None = None,
    metrics: Record | None = None,
    private: bool = False,
    encoded: Reading | None = None,
    text: str | None = None,
) -> Run:
    """Write a fitted classifier, and all that is known about how it came to be, into a new folder.

    ``truth`` (N,), true classes of the items, is only ever compared with what was learned.
    ``private`` leaves out what is about single items and judgements (`likewise.runs.privacy`);
    people's names are left out where the classifier was fitted to judgements without them
    (`likewise.pairs.privacy.without_names`).
    ``encoded`` says what the items were made of: the encoder is kept beside the model, with the
    column ``text`` that it read.
    """
    from likewise.runs import privacy
    from likewise.runs.card import write_card
    from likewise.runs.report_data import collect

    path = Path(folder)
    true = None if truth is None else _one_each(truth, len(items), "true classes")
    given = np.arange(len(items)) if ids is None else list(ids)
    names = np.array(_one_each(given, len(items), "ids"), np.str_)
    pictures = None if encoded is None else encoded.pictures
    data = collect(classifier, items, pairs, np.random.default_rng(0), pictures)
    figures = _figures(classifier, items, pairs, true) | {"sizes": data.sizes.tolist()}
    figures |= metrics or {}
    if private:
        classifier, data = privacy.without_beliefs(classifier), privacy.without_items(data)
        names, true = privacy.numbered_items(len(items)), None
        config = privacy.without_paths(config)
    report: Record = {
        "judgements": pairs.describe(len(classifier.classes_)).to_dict(),
        "calibration": data.calibration,
        "suspects": _with_ids(data.suspects, names),
        "annotators": classifier.annotators_,
        "channel": None if classifier.channel_ is None else classifier.channel_.to_dict(),
    }
    about = {"kind": KIND, "version": VERSION, **config, "versions": versions()}
    with new_folder(path) as temporary:
        write_json(temporary / "config.json", plain(about))
        write_json(temporary / "metrics.json", plain(figures))
        write_text(temporary / "history.csv", history_text(classifier.history_))
        write_json(temporary / "report.json", plain(report))
        _write_arrays(temporary / "items.npz", data, names, true)
        write_card(temporary, path.name, figures, report["judgements"], config)
        classifier.save(temporary / "model")
        if encoded is not None and encoded.encoder is not None:
            from likewise.items.encoders.stored import FOLDER, save_encoder

            save_encoder(encoded.encoder, temporary / "model" / FOLDER, text)
    return Run.open(path)


def model_folder(path: str | Path) -> Path:
    """The model folder that a person means by a run folder or a model folder."""
    folder = Path(path)
    inner = folder / "model"
    return inner if not (folder / "model.json").exists() and inner.is_dir() else folder


def _figures(
    classifier: SimilarityClassifier,
    items: Array,
    pairs: Pairs,
    truth: Array | None,
) -> Record:
    from likewise.methods.result import last_stage  # PyTorch comes with it

    learned = classifier.result_.to_dict()
    figures: Record = {
        "items": len(items),
        "judgements": len(pairs),
        "classes": len(classifier.classes_),
        "class_names": [str(name) for name in classifier.classes_],
        "network": classifier.network_,
        "epochs": len(last_stage(classifier.history_)),
        **{name: value for name, value in learned.items() if name not in KEPT_ELSEWHERE},
    }
    if truth is not None:
        figures["accuracy"] = classifier.score(items, truth)
    return figures


def _one_each(values: ArrayLike, n_items: int, what: str) -> Array:
    array = np.asarray(values)
    if array.shape != (n_items,):
        raise InputError(f"there are {n_items} items but {array.size} {what}.")
    return array


def _with_ids(columns: dict[str, list[Any]], names: NDArray[np.str_]) -> dict[str, list[Any]]:
    return {
        **columns,
        "left_id": [str(names[k]) for k in columns["left"]],
        "right_id": [str(names[k]) for k in columns["right"]],
    }


def _write_arrays(
    path: Path, data: ReportData, names: NDArray[np.str_], truth: Array | None
) -> None:
    arrays: dict[str, Array] = {
        "kept": data.kept,
        "posterior": data.posterior,
        "map": data.map,
        "ids": names[data.kept],
        "thumbnail_of": data.thumbnail_of,
    }
    if data.thumbnails is not None:
        arrays["thumbnails"] = data.thumbnails
    if truth is not None:
        arrays["truth"] = truth[data.kept].astype(np.str_)
    np.savez_compressed(path, allow_pickle=False, **arrays)
