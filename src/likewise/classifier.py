"""SimilarityClassifier: items and same-or-different judgements in, a classifier out."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import nn

from likewise.errors import InputError
from likewise.items import check_items
from likewise.methods import dispatch
from likewise.methods.problem import Problem, check_judgements
from likewise.methods.warnings import fit_warnings
from likewise.metrics import matched_accuracy, names_by_majority
from likewise.nn.model import logits_of
from likewise.nn.networks import embed
from likewise.noise import check_transition
from likewise.pairs import as_pairs
from likewise.training.checkpoints import Checkpoints
from likewise.training.devices import choose_device
from likewise.training.progress import epoch_bar
from likewise.training.recipe import Recipe
from likewise.training.threads import is_small, one_thread


class SimilarityClassifier(ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A multi-class classifier learned from noisy answers to "are these two of the same kind?".

    Parameters
    ----------
    n_classes : int or "auto"
        The number of classes; "auto" reads it off the judgements.
    method : "auto", "joint", "mns", "mcl" or "kcl"
        "auto" takes the joint objective where it can and says which and why in ``choice_``.
    transition : "estimate", (C, C) array or None
        T: estimated from the noisy judgements, given, or none (perceived is true).
    noise : "auto", "class", "judgement", "both", "annotator" or "confusion"
        The noise model of the joint objective; see docs, "Choosing a noise model".
    network : name, nn.Module or None
        See `likewise.nn.networks`; None chooses by the items.
    recipe : Recipe, dict of changes, or None
        How to train; None takes the default of the network and objective, a dict changes it.
    anchors : "counts", "argmax" or a quantile
        How MNS estimates T; "argmax" is the paper's own.
    held_out : float
        The share of items set aside, with the judgements among them, to choose the epoch.
    device : "auto", "cpu", "cuda", "mps" ...
    random_state : int or None
    verbose : bool
        A progress bar on stderr, if that is a terminal.

    Attributes
    ----------
    classes_, transition_, channel_, annotators_, history_, choice_, method_, best_epoch_, model_
    """

    def __init__(
        self,
        n_classes: int | str = "auto",
        method: str = "auto",
        transition: ArrayLike | str | None = "estimate",
        noise: str = "auto",
        network: str | nn.Module | None = None,
        recipe: Recipe | dict[str, Any] | None = None,
        anchors: str | float = "counts",
        held_out: float = 0.1,
        device: str = "auto",
        random_state: int | None = None,
        verbose: bool = True,
    ) -> None:
        self.n_classes = n_classes
        self.method = method
        self.transition = transition
        self.noise = noise
        self.network = network
        self.recipe = recipe
        self.anchors = anchors
        self.held_out = held_out
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        pairs: Any,
        same: ArrayLike | None = None,
        *,
        checkpoints: Checkpoints | str | Path | None = None,
    ) -> Self:
        """Learn from items X and judgements about them.

        ``pairs`` is a `Pairs`, a data frame with columns left, right, same, or an (M, 2) array of
        indices with the (M,) answers in ``same``. ``checkpoints`` is a folder: a fit of the same
        data and parameters that was cut short goes on from there, to the very same result.
        """
        if isinstance(checkpoints, str | Path):
            checkpoints = Checkpoints(checkpoints)
        items = check_items(X)
        judgements = as_pairs(pairs, same, n_items=len(items))
        judgements = judgements.about(len(items))
        check_judgements(judgements, "given")
        device = choose_device(self.device)
        own = isinstance(self.network, nn.Module)  # of which we know nothing
        small = device.type == "cpu" and not own and is_small(items, judgements)
        with one_thread(when=small):
            n_classes, self.class_evidence_ = dispatch.number_of_classes(
                self.n_classes, judgements, len(items), items
            )
        seed = 0 if self.random_state is None else self.random_state
        if not isinstance(seed, int | np.integer) or seed < 0:
            raise InputError(f"random_state must be a whole number from 0, not {seed!r}.")
        problem = Problem(
            items,
            judgements,
            n_classes,
            self.network,
            self.recipe,
            self.held_out,
            int(seed),
            device,
        )
        transition = self.transition
        if transition is not None and not isinstance(transition, str):
            transition = check_transition(transition, n_classes)
        with epoch_bar(self.verbose) as progress, one_thread(when=small):
            fitted = dispatch.fit(
                *(problem, self.method, transition, self.noise, self.anchors),
                progress=progress,
                checkpoints=checkpoints,
            )
        self.model_ = fitted.model.cpu()
        self.network_ = problem.network_name
        self.classes_: NDArray[Any] = np.arange(n_classes)
        self.item_shape_ = tuple(items.shape[1:])
        self.n_features_in_ = int(np.prod(self.item_shape_))
        self.transition_ = fitted.transition
        self.channel_ = fitted.channel
        self.annotators_ = fitted.annotators
        self.history_ = fitted.history
        self.method_ = fitted.method
        self.choice_ = fitted.choice
        self.best_epoch_ = fitted.best_epoch
        self.score_ = fitted.score
        held = problem.parts[1]
        self.warnings_ = fit_warnings(fitted, self.predict_proba(items), held, judgements)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """(N,) class of each item: a number, or its name after `name_classes`."""
        predicted = self._logits(X).argmax(axis=1)
        return np.asarray(self.classes_[predicted])

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float32]:
        """(N, C) class posterior g(x), columns in the order of ``classes_``."""
        return torch.from_numpy(self._logits(X)).softmax(dim=1).numpy()

    def predict_same(self, X_left: ArrayLike, X_right: ArrayLike) -> NDArray[np.float32]:
        """(N,) probability that the items of each row are of the same (true) class."""
        left, right = self.predict_proba(X_left), self.predict_proba(X_right)
        if len(left) != len(right):
            raise InputError(f"there are {len(left)} items on the left, {len(right)} on the right.")
        return np.asarray((left * right).sum(axis=1))

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """(N, e) the embedding before the last layer."""
        check_is_fitted(self)
        items, model = check_items(X, self.item_shape_), self.model_.eval()
        parts = []
        with torch.no_grad():
            for start in range(0, len(items), 4096):
                batch = torch.from_numpy(np.array(items[start : start + 4096]))
                parts.append(embed(model, batch).float())
        return torch.cat(parts).numpy()

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: None = None) -> float:
        """Accuracy on items of known class, under the best matching of learned to true classes."""
        return matched_accuracy(self._logits(X).argmax(axis=1), y)

    def name_classes(self, X: ArrayLike, names: ArrayLike) -> Self:
        """Name the classes after a few items of known class; `predict` then returns names."""
        predicted = self._logits(X).argmax(axis=1)
        if len(predicted) != len(np.asarray(names)):
            raise InputError(
                f"there are {len(predicted)} items but {len(np.asarray(names))} names."
            )
        self.classes_, self.naming_ = names_by_majority(predicted, names, len(self.classes_))
        return self

    def save(self, folder: str | Path) -> None:
        """Write the model as safetensors and JSON into a new folder; see `likewise.serialization`."""
        from likewise.serialization import save_classifier

        check_is_fitted(self)
        save_classifier(self, Path(folder))

    def _logits(self, X: ArrayLike) -> NDArray[np.float32]:
        check_is_fitted(self)
        items = check_items(X, self.item_shape_)
        return logits_of(self.model_, items, torch.device("cpu")).numpy()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        tags.no_validation = False
        return tags
