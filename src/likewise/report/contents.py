"""What a report is made from: a run's saved results, in one place and of one shape."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.errors import InputError
from likewise.io.json import Record
from likewise.metrics import best_matching, confusion
from likewise.pairs.privacy import number_people
from likewise.runs import Run
from likewise.runs.files import read_json
from likewise.runs.privacy import numbered_items, shuffled, without_paths

Columns = dict[str, list[Any]]
LONGEST_NAME = 120


@dataclass(frozen=True)
class Confusion:
    """Learned against true classes under the best matching.

    ``counts`` (Q, P) has a row a true class and a column a learned one, columns in the order of
    the classes they are matched to, those without a match last (``learned`` (P,) says which).
    """

    true_names: list[str]  # (Q,) names of the true classes
    learned: list[int]  # (P,) the learned class of each column
    counts: NDArray[np.int64]  # (Q, P) items by true and learned class
    matched: list[int]  # the column of each row, -1 for none
    accuracy: float  # under the best matching


@dataclass(frozen=True)
class Contents:
    """A run as a report sees it: n of N items are shown, C classes were learned."""

    name: str  # the run folder's name
    folder: Path  # the run folder, as it was named
    config: Record  # what was asked
    metrics: Record  # final figures
    history: list[Record]  # a row an epoch
    judgements: Record  # what `describe` said
    calibration: Record  # P(same), predicted and observed
    suspects: Columns  # judgements most probably wrong, by columns
    annotators: Columns | None  # people by columns, most reliable first
    channel: Record | None  # the learned channel, as a dict
    transition: NDArray[np.float64] | None  # (C, C) T
    class_names: list[str]  # (C,) as the model has them now
    kept: NDArray[np.int64]  # (n,) positions of the shown items among all N
    ids: NDArray[np.str_]  # (n,) their names
    posterior: NDArray[np.float32]  # (n, C) g of the shown items
    points: NDArray[np.float32]  # (n, 2) their places on the map
    sizes: NDArray[np.int64]  # (C,) predicted items of each class, of all N
    truth: NDArray[np.str_] | None  # (n,) names of true classes
    thumbnails: NDArray[np.uint8] | None  # (k, h, w[, 3]) small pictures
    thumbnail_of: NDArray[np.int64]  # (k,) the items they show, among all N
    can_be_shown: bool = False  # whether people can be shown the items: pictures or texts

    @property
    def n_classes(self) -> int:
        return len(self.class_names)

    @property
    def n_items(self) -> int:
        return int(self.sizes.sum())

    @property
    def predicted(self) -> NDArray[np.int64]:
        """(n,) learned class of each shown item."""
        return np.asarray(self.posterior.argmax(axis=1), np.int64)

    @property
    def confidence(self) -> NDArray[np.float32]:
        """(n,) probability of that class."""
        return np.asarray(self.posterior.max(axis=1), np.float32)

    def label_of(self, item: int) -> str:
        """An item's own name, by its position among all N."""
        where = int(np.searchsorted(self.kept, item))
        if where < len(self.kept) and self.kept[where] == item:
            return str(self.ids[where])
        return str(item)

    def confusion(self) -> Confusion | None:
        """The confusion matrix, where the truth is known."""
        if self.truth is None:
            return None
        names, true = np.unique(self.truth, return_inverse=True)
        counts = confusion(self.predicted, true)
        counts = np.pad(counts, ((0, self.n_classes - len(counts)), (0, 0)))  # (P, Q)
        return _arranged(counts[:, : len(names)], names)


def shorten(name: str) -> str:
    """A name as a page can show it: files may hold names of any length."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def without_persons(contents: Contents) -> Contents:
    """The same as can be handed on; see `likewise.runs.privacy`."""
    order = shuffled(len(contents.kept))
    people = contents.annotators
    if people is not None and "annotator" in people:
        people = people | {"annotator": number_people(people["annotator"])}
    return replace(
        contents,
        config=without_paths(contents.config),
        suspects={name: [] for name in contents.suspects},
        annotators=people,
        kept=np.arange(len(order)),
        ids=numbered_items(len(order)),
        posterior=contents.posterior[order],
        points=contents.points[order],
        truth=None if contents.truth is None else contents.truth[order],
        thumbnails=None,
        thumbnail_of=contents.thumbnail_of[:0],
    )


def read_contents(run: Run, truth: ArrayLike | str | Path | None = None) -> Contents:
    """Everything a report shows, checked to fit together.

    ``truth`` is a file of labels (`likewise.items.labels`), or one true class for each of the
    run's items (or for each of the shown ones); None takes the truth that was saved with the run.
    """
    posterior = np.asarray(run.posterior, np.float32)
    n_classes = _number_of_classes(run, posterior)
    metrics = run.metrics
    transition = metrics.get("transition")
    sizes = np.array(metrics.get("sizes") or np.bincount(posterior.argmax(1), minlength=n_classes))
    contents = Contents(
        name=run.folder.resolve().name,
        folder=run.folder,
        config=run.config,
        metrics=metrics,
        history=run.history,
        judgements=run.judgements,
        calibration=run.calibration,
        suspects=run.suspects,
        annotators=run.annotators,
        channel=run.channel,
        transition=None if transition is None else np.array(transition, np.float64),
        class_names=_class_names(run, n_classes),
        kept=run.kept,
        ids=run.ids,
        posterior=posterior,
        points=run.map,
        sizes=sizes.astype(np.int64),
        truth=_truth(run, truth, int(sizes.sum())),
        thumbnails=run.thumbnails,
        thumbnail_of=run.thumbnail_of,
        can_be_shown=_can_be_shown(run),
    )
    _check_arrays(contents, run.folder / "items.npz")
    return contents


def read_truth(path: Path, run: Run, n_items: int) -> NDArray[np.str_]:
    """(n,) the true classes of the run's shown items, from a file of labels."""
    from likewise.items.labels import read_label_file

    ids, labels = read_label_file(path)
    if ids is None:
        return _of_shown(labels, run, n_items)
    known = dict(zip(ids.tolist(), labels.tolist()))
    if unknown := [str(name) for name in run.ids if str(name) not in known]:
        raise InputError(
            f"{path} says no class for {len(unknown)} of {len(run.ids)} items, such as "
            f"{unknown[0]!r}."
        )
    return np.array([known[str(name)] for name in run.ids], np.str_)


def _number_of_classes(run: Run, posterior: NDArray[np.float32]) -> int:
    if posterior.ndim != 2 or posterior.shape[1] < 2 or not len(posterior):
        raise InputError(
            f"the posterior in {run.folder / 'items.npz'} has shape {posterior.shape}, where a "
            "row an item and a column a class are expected."
        )
    return int(posterior.shape[1])


def _check_arrays(contents: Contents, path: Path) -> None:
    n, n_classes = contents.posterior.shape
    pictures = contents.thumbnails
    wrong = {
        "items in order": contents.kept.shape != (n,) or (np.diff(contents.kept) <= 0).any(),
        "one id an item": contents.ids.shape != (n,),
        "one place on the map an item": contents.points.shape != (n, 2),
        "one true class an item": contents.truth is not None and contents.truth.shape != (n,),
        "a probability for each class": not np.isfinite(contents.posterior).all(),
        "one size a class": contents.sizes.shape != (n_classes,) or (contents.sizes < 0).any(),
        "a square transition matrix": contents.transition is not None
        and contents.transition.shape != (n_classes, n_classes),
        "pictures": pictures is not None
        and (pictures.dtype != np.uint8 or len(pictures) != len(contents.thumbnail_of)),
    }
    if found := [what for what, is_wrong in wrong.items() if is_wrong]:
        raise InputError(f"{path} and the files beside it do not hold {', '.join(found)}.")


def _class_names(run: Run, n_classes: int) -> list[str]:
    """Names as the model has them now: classes may be named after the run was written."""
    path = run.model / "model.json"
    names = read_json(path).get("classes") if path.is_file() else run.metrics.get("class_names")
    if not isinstance(names, list) or len(names) != n_classes:
        raise InputError(f"{run.folder} does not name the {n_classes} classes of its posterior.")
    return [f"class {name}" if isinstance(name, int) else shorten(str(name)) for name in names]


def _can_be_shown(run: Run) -> bool:
    """Whether `likewise label` takes the items: photographs and texts that were encoded, or pixels
    as they are in files."""
    if "encoder" in run.config:
        return True
    path = run.model / "model.json"
    about = read_json(path).get("items") if path.is_file() else None
    whole = isinstance(about, dict) and about.get("dtype") == "uint8"
    return whole and run.thumbnails is not None


def _truth(run: Run, given: ArrayLike | str | Path | None, n_items: int) -> NDArray[np.str_] | None:
    if given is None:
        return run.truth
    if run.is_private:
        raise InputError(
            f"{run.folder} was fitted with --private and does not know which item is which; "
            "compare with the truth by likewise evaluate, which takes the items."
        )
    if isinstance(given, str | Path):
        return read_truth(Path(given), run, n_items)
    return _of_shown(np.asarray(given).astype(np.str_), run, n_items)


def _of_shown(classes: NDArray[np.str_], run: Run, n_items: int) -> NDArray[np.str_]:
    if classes.shape == (n_items,):
        return classes[run.kept]
    if classes.shape == run.kept.shape:
        return classes
    raise InputError(f"there are {n_items} items but {classes.size} true classes.")


def _arranged(counts: NDArray[np.int64], names: NDArray[np.str_]) -> Confusion:
    """From (P, Q) counts by learned and true class to a matrix with matches on its diagonal."""
    match = best_matching(counts)  # (P,) true class of each learned one
    order = [int(k) for k in np.argsort(np.where(match < 0, len(names), match), kind="stable")]
    column = {int(match[k]): place for place, k in enumerate(order) if match[k] >= 0}
    agreed = sum(int(counts[k, match[k]]) for k in order if match[k] >= 0)
    return Confusion(
        true_names=[str(name) for name in names],
        learned=order,
        counts=counts[order].T,
        matched=[column.get(row, -1) for row in range(len(names))],
        accuracy=agreed / max(int(counts.sum()), 1),
    )
