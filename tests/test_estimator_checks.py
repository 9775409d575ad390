"""scikit-learn's own estimator checks, as far as they make sense where y is judgements.

The checks hand over class labels as y. An adapter turns them into what people would say who see
these classes, all pairs of items judged, and calls the learned classes by the labels they match.
Some checks are about y as class labels all the same: those are excused, each with its reason, and
no other is; a test of its own keeps the list honest.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from likewise import Pairs, SimilarityClassifier
from likewise.metrics import best_matching, confusion

EXCUSED = {
    "check_dtype_object": "an item that is no number is refused by InputError, not TypeError",
    "check_classifiers_one_label": "with one class there is nothing to judge; refused with words",
    "check_classifiers_regression_target": "y is judgements; labels only reach the adapter",
    "check_supervised_y_2d": "y is judgements; labels only reach the adapter",
    "check_requires_y_none": "y is judgements: the message names the forms they may have",
    "check_fit2d_1sample": "one item cannot be judged against another; refused with words",
}


class FromLabels(SimilarityClassifier):
    """Learns from what somebody would say who sees the classes y."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # type: ignore[override]
        labels, codes = np.unique(np.asarray(y), return_inverse=True)
        asked, count = self.n_classes, max(2, len(labels))
        try:
            self.n_classes, self.order_ = count, np.arange(count)
            super().fit(X, Pairs.from_labels(y))
        finally:
            self.n_classes = asked
        counts = confusion(codes, self.predict(X), count)  # rows: labels, columns: learned classes
        self.order_ = best_matching(counts)[: len(labels)]
        self.classes_ = labels
        return self

    def _logits(self, X: ArrayLike) -> NDArray[np.float32]:
        """Columns in the order of the labels, once they are matched."""
        return super()._logits(X)[:, self.order_]


def estimator() -> FromLabels:
    recipe = {"epochs": 8, "batch_size": 64, "lr": 0.03, "ema_decay": 0.8, "teachers": 0}
    return FromLabels(2, recipe=recipe, device="cpu", random_state=0, verbose=False)


@parametrize_with_checks([estimator()], expected_failed_checks=lambda _: EXCUSED)
def test_scikit_learn_compatible(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
def test_every_excuse_is_needed() -> None:
    results = check_estimator(estimator(), on_fail=None, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    assert failed == set(EXCUSED)
