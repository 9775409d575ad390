"""Small runs for the tests of the report: real ones, and with whatever a person may type."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import likewise as lw
from likewise.noise.channels import RateChannel
from likewise.runs import Run, write_run

HOSTILE = "</script><img src=x onerror=alert(1)>&\"'`{{7*7}}"


@cache
def _fitted(features: bool) -> tuple[Any, Any, lw.Pairs, lw.SimilarityClassifier]:
    digits = load_digits()
    chosen = np.flatnonzero(digits.target < 3)[:150]
    images, truth = (digits.images[chosen] * 15).astype(np.uint8), digits.target[chosen]
    items = images.reshape(len(images), -1) / 255.0 if features else images
    pairs = lw.Pairs.from_labels(truth, per_item=20, random_state=0)
    classifier = lw.SimilarityClassifier(
        3, method="mcl", recipe={"epochs": 2}, random_state=0, verbose=False
    )
    return items, truth, pairs, classifier.fit(items, pairs)


def small_run(
    folder: Path,
    *,
    name: str = "person",
    class_names: list[str] | None = None,
    ids: list[str] | None = None,
    features: bool = False,
    with_truth: bool = True,
    config: dict[str, Any] | None = None,
) -> Run:
    """Three kinds of digits, 150 items, 1,500 judgements by five people, two epochs."""
    items, truth, plain, fitted = _fitted(features)
    classifier = copy.deepcopy(fitted)
    people = np.array([f"{name} {k}" for k in range(5)])[np.arange(len(plain)) % 5]
    pairs = lw.Pairs(plain.left, plain.right, plain.same, people, n_items=len(items))
    classifier.result_ = classifier.result_.with_(
        transition=lw.noise.symmetric(3, 0.25),
        channel=RateChannel(0.9, 0.2),
        annotators={
            "annotator": [f"{name} {k}" for k in range(5)],
            "judgements": [300] * 5,
            "same_given_same": [0.95, 0.9, 0.8, 0.7, 0.5],
            "same_given_different": [0.05, 0.1, 0.15, 0.2, 0.48],
            "reliability": [0.95, 0.9, 0.83, 0.77, 0.51],
        },
    )
    if class_names is not None:
        classifier.classes_ = np.array(class_names)
    return write_run(
        folder,
        classifier,
        items,
        pairs,
        config={"command": "fit", "note": name, **(config or {})},
        ids=ids,
        truth=truth if with_truth else None,
        metrics={"seconds": {"fit": 1.0}, "device": "cpu"},
    )
