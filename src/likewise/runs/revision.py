"""A person looks at a run and knows better: two classes are one, or one is two.

The classes as the person wants them become certain for the items that the run is sure of, and the
fit is done again with that (`inference.propagation.known`): network, noise and people follow.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.classifier import SimilarityClassifier, load
from likewise.errors import InputError
from likewise.io.json import Record
from likewise.items.encoders.stored import FOLDER as ENCODER
from likewise.items.files import ItemFile
from likewise.pairs import Pairs
from likewise.runs.lookahead import check_output
from likewise.runs.run import Run, write_run

SURE = 0.8  # probability of a class at which an item is taken to be of it
FEWEST = 10  # judgements among the items of a class, of either kind, to split it by


def merge_classes(
    run: Run, data: ItemFile, pairs: Pairs, classes: tuple[str, str], out: Path, name: str | None
) -> Run:
    """A new run in which two classes are one, called ``name`` (by default "a+b")."""
    check_output(out)
    classifier, posterior, names = _opened(run, data)
    a, b = (_class_number(names, one) for one in classes)
    if a == b:
        raise InputError(f"{classes[0]} and {classes[1]} are the same class; name two.")
    joined = posterior.copy()
    joined[:, a] += joined[:, b]
    joined[:, b] = 0
    wanted = [*names]
    wanted[a] = name or f"{names[a]}+{names[b]}"
    known = _certain(joined, wanted)
    change: Record = {"command": "merge", "merged": [names[a], names[b]], "from": str(run.folder)}
    return _refitted(run, classifier, data, pairs, known, len(names) - 1, out, change)


def split_class(run: Run, data: ItemFile, pairs: Pairs, one: str, out: Path) -> Run:
    """A new run in which a class is two, "a.1" and "a.2": by the judgements among its items."""
    check_output(out)
    classifier, posterior, names = _opened(run, data)
    k = _class_number(names, one)
    members = np.flatnonzero(posterior.argmax(axis=1) == k)
    among = pairs.explicit().subset(members)
    different = len(among) - among.n_same
    if min(among.n_same, different) < FEWEST:
        raise InputError(
            f"among the {len(members)} items of class {one} there are {among.n_same} judgements "
            f"that say same and {different} that say different; {FEWEST} of each are needed to "
            "split it: ask about more of its pairs."
        )
    half = _like(run, classifier, 2).fit(np.asarray(data.items)[members], among)
    share = half.predict_proba(np.asarray(data.items)[members])
    parts = np.zeros((len(posterior), 2))
    parts[members] = share * posterior[members, k][:, None]
    wider = np.column_stack([np.delete(posterior, k, axis=1), parts])
    wanted = [*(name for j, name in enumerate(names) if j != k), f"{one}.1", f"{one}.2"]
    known = _certain(wider, wanted)
    change: Record = {"command": "split", "split": names[k], "from": str(run.folder)}
    return _refitted(run, classifier, data, pairs, known, len(names) + 1, out, change)


def _opened(
    run: Run, data: ItemFile
) -> tuple[SimilarityClassifier, NDArray[np.float64], list[str]]:
    """The run's classifier, what it says of the items (N, C), and its classes' names."""
    classifier = load(run.model)
    items = classifier.check_items(data.items, data.columns)
    posterior = classifier.posterior_
    if posterior is None or len(posterior) != len(items):
        posterior = classifier.predict_proba(items)
    return classifier, np.asarray(posterior, np.float64), [str(c) for c in classifier.classes_]


def _class_number(names: list[str], wanted: str) -> int:
    if wanted not in names:
        raise InputError(f"there is no class {wanted!r}; the classes are {', '.join(names[:30])}.")
    return names.index(wanted)


def _certain(posterior: NDArray[np.float64], names: list[str]) -> dict[int, str]:
    """Position of the items whose class is sure, to its name."""
    best = posterior.argmax(axis=1)
    sure = np.flatnonzero(posterior.max(axis=1) >= SURE)
    return {int(i): names[best[i]] for i in sure}


def _like(run: Run, classifier: SimilarityClassifier, n_classes: int) -> SimilarityClassifier:
    """An unfitted classifier of that many classes, otherwise with the parameters of the run."""
    asked = run.config.get("parameters")
    # A loaded classifier names the network that was taken; which was asked for decides the method.
    network = asked.get("network") if isinstance(asked, dict) else None
    changes = {"n_classes": n_classes, "network": network, "verbose": False}
    return SimilarityClassifier(**classifier.get_params(deep=False) | changes)


def _refitted(
    run: Run,
    classifier: SimilarityClassifier,
    data: ItemFile,
    pairs: Pairs,
    known: dict[int, str],
    n_classes: int,
    out: Path,
    change: Record,
) -> Run:
    again = _like(run, classifier, n_classes)
    again.fit(data.items, pairs, known=known, columns=data.columns)
    own = ("kind", "version", "versions")
    config = {name: value for name, value in run.config.items() if name not in own}
    ids = None if data.ids is None else data.ids.tolist()
    if classifier.item_schema_ is not None and again.item_schema_ is not None:
        again.item_schema_ = replace(again.item_schema_, encoder=classifier.item_schema_.encoder)
    made = write_run(out, again, data.items, pairs, ids=ids, config={**config, **change})
    if (run.model / ENCODER).is_dir():  # new photographs or texts go through the same one
        shutil.copytree(run.model / ENCODER, made.model / ENCODER)
    return made
