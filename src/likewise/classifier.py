"""SimilarityClassifier: items and same-or-different judgements in, a classifier out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import nn

from likewise.errors import InputError
from likewise.io.json import Record
from likewise.io.npy import Array
from likewise.items import check_items
from likewise.items.schema import ItemSchema, column_names
from likewise.methods import dispatch
from likewise.methods.known import Known, KnownClasses
from likewise.methods.learned import Learned
from likewise.methods.options import FitOptions, check_asked
from likewise.methods.problem import Problem, check_judgements
from likewise.methods.registry import method_called
from likewise.methods.warnings import fit_warnings
from likewise.metrics import matched_accuracy, names_by_majority
from likewise.nn.model import logits_of
from likewise.nn.networks import embed
from likewise.noise import check_transition
from likewise.pairs import Pairs, as_pairs
from likewise.serialization import SavedModel, read_model, write_model
from likewise.training.checkpoints import Checkpoints
from likewise.training.devices import choose_device
from likewise.training.progress import progress_shown
from likewise.training.recipe import Recipe
from likewise.training.threads import is_small, one_thread

# Generators take 64 bits; several starts count on from a seed (`Problem.seed_of`).
LARGEST_SEED = 2**63


class SimilarityClassifier(Learned, ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
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
    classes_ : (C,) the classes' numbers; their names after `name_classes`
    result_ : `likewise.methods.result.FitResult`, all that was learned
    labels_, posterior_ : (N,) and (N, C), the fitted items' classes given their judgements; None
        where the method says none
    model_, transition_, channel_, annotators_, history_, choice_, method_, best_epoch_,
    warnings_ ... : the fields of ``result_``
    """

    def __init__(
        self,
        n_classes: int | str = "auto",
        method: str = "auto",
        transition: ArrayLike | str | None = "estimate",
        noise: str = "auto",
        network: str | nn.Module | None = None,
        recipe: Recipe | Record | None = None,
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
        known: Known | None = None,
        checkpoints: Checkpoints | str | Path | None = None,
        columns: Sequence[str] | None = None,
    ) -> Self:
        """Learn from items X and judgements about them.

        ``pairs`` is a `Pairs`, a data frame with columns left, right, same, or an (M, 2) array of
        indices with the (M,) answers in ``same``. ``known`` are classes of some items that are
        certain, {position: class} or (N,) with None elsewhere: they help, and classes get their
        names. ``checkpoints`` is a folder: a fit of the same
        data and parameters that was cut short goes on from there, to the very same result.
        ``columns`` (d,) name the features, as the columns of a data frame do: `predict` then puts
        those of others in the same order.
        """
        self.check_parameters()
        if isinstance(checkpoints, str | Path):
            checkpoints = Checkpoints(checkpoints)
        items = check_items(X)
        schema = ItemSchema.of(items, column_names(X) if columns is None else columns)
        judgements = as_pairs(pairs, same, n_items=len(items)).about(len(items))
        check_judgements(judgements, "given")
        certain = KnownClasses.of(known, len(items))
        device = choose_device(self.device)
        own = isinstance(self.network, nn.Module)  # of which we know nothing
        small = device.type == "cpu" and not own and is_small(items, judgements)
        with progress_shown(self.verbose), one_thread(when=small):
            n_classes, evidence = dispatch.number_of_classes(
                self.n_classes, judgements, len(items), items, at_least=certain.count
            )
            problem = self._problem(items, judgements, n_classes, device)
            fitted = dispatch.fit(
                problem,
                self.method,
                replace(self._options(n_classes), known=certain.numbers),
                checkpoints=checkpoints,
            )
        model = fitted.model.cpu()
        fitted = replace(fitted, model=model, last_model=model, class_evidence=evidence)
        network, shape = problem.network_name, tuple(items.shape[1:])
        self._take(SavedModel(fitted, network, shape, certain.names(n_classes), schema))
        warnings = fit_warnings(fitted, self.predict_proba(items), problem.parts[1], judgements)
        self.result_ = replace(fitted, warnings=warnings)
        return self

    def _problem(self, items: Array, pairs: Pairs, n_classes: int, device: torch.device) -> Problem:
        return Problem(
            items,
            pairs,
            n_classes,
            network=self.network,
            recipe=self.recipe,
            held_out=self.held_out,
            seed=self._seed(),
            device=device,
        )

    def _seed(self) -> int:
        seed = 0 if self.random_state is None else self.random_state
        if not isinstance(seed, int | np.integer) or not 0 <= seed < LARGEST_SEED:
            raise InputError(
                f"random_state must be a whole number from 0 to 2**63 - 1, not {seed!r}."
            )
        return int(seed)

    def _options(self, n_classes: int | None) -> FitOptions:
        transition = self.transition
        if transition is not None and not isinstance(transition, str):
            transition = check_transition(transition, n_classes)
        return FitOptions(transition, self.noise, self.anchors)

    def check_parameters(self) -> None:
        """Refuse parameters that cannot work, or that the method would not use, before any data."""
        check_asked(method_called(self.method), self._options(None), self.recipe)
        self._seed()

    def _take(self, saved: SavedModel) -> None:
        """Become the classifier of a result, fitted or read from a file."""
        self.result_ = saved.result
        self.network_ = saved.network
        self.classes_ = saved.classes
        self.item_shape_ = saved.item_shape
        self.n_features_in_ = int(np.prod(saved.item_shape))
        self.item_schema_ = saved.items
        if saved.items is not None and saved.items.columns is not None:
            self.feature_names_in_ = np.array(saved.items.columns, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # of a fit before

    def predict(self, X: ArrayLike) -> Array:
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
        items, model = self.check_items(X), self.model_.eval()
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
        """Write the model as safetensors and JSON into a new folder, for `likewise.load`."""
        check_is_fitted(self)
        parameters = self.get_params(deep=False)
        if isinstance(parameters["network"], nn.Module):
            parameters["network"] = None
        if isinstance(parameters["recipe"], Recipe):
            parameters["recipe"] = parameters["recipe"].to_dict()
        saved = SavedModel(
            self.result_,
            self.network_,
            self.item_shape_,
            self.classes_,
            self.item_schema_,
            parameters,
        )
        write_model(Path(folder), saved)

    def _logits(self, X: ArrayLike) -> NDArray[np.float32]:
        check_is_fitted(self)
        return logits_of(self.model_, self.check_items(X), torch.device("cpu")).numpy()

    def check_items(self, X: ArrayLike, columns: Sequence[str] | None = None) -> Array:
        """Items as those of the fit were: columns put in their order by name, where they have
        names (``columns``, or those of a data frame); others, and other scales, are refused."""
        schema: ItemSchema | None = self.item_schema_
        if schema is None:
            return check_items(X, self.item_shape_)
        names = column_names(X) if columns is None else columns
        if names is not None and schema.columns is not None:
            X = schema.arranged(np.asarray(X), names)
        items = check_items(X, self.item_shape_)
        schema.check_scale(items)
        return items

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        tags.no_validation = False
        return tags


def load(folder: str | Path, network: nn.Module | None = None) -> SimilarityClassifier:
    """Read a saved classifier. One with a network of the user's needs that module again."""
    saved = read_model(Path(folder), network)
    known = SimilarityClassifier().get_params(deep=False)
    if unknown := sorted(set(saved.parameters) - set(known)):
        raise InputError(
            f"{Path(folder) / 'model.json'} gives a parameter {unknown[0]!r} that no classifier "
            "has."
        )
    parameters: Record = {**saved.parameters, "network": network or saved.network}
    classifier = SimilarityClassifier(**parameters)
    classifier._take(saved)
    return classifier
