"""`FitResult`: one shape of what was learned, to JSON and back."""

from __future__ import annotations

import json
import math
from dataclasses import fields

import numpy as np
import pytest
from torch import nn

from likewise import InputError
from likewise.methods.result import FitResult, names_kept
from likewise.noise import symmetric
from likewise.noise.channels import RateChannel


def result(**changes) -> FitResult:
    made = FitResult("mcl", nn.Identity(), nn.Identity(), None, [], best_epoch=0, score=1.0)
    return made.with_(**changes)


def through_json(made: FitResult) -> FitResult:
    text = json.dumps(made.to_dict(), allow_nan=False)
    return FitResult.from_dict(json.loads(text), made.model, made.arrays())


def test_there_and_back():
    made = result(
        transition=symmetric(3, 0.3),
        history=[{"epoch": 0, "loss": 0.5, "method": "mcl"}],
        channel=RateChannel(0.8, 0.1),
        annotators={"annotator": ["ann"], "reliability": [0.9]},
        labels=np.arange(4),
        class_evidence={"rule": "spectrum", "sizes": [3, 4]},
        judgements_held_out=True,
    )
    again = through_json(made)
    assert again.to_dict() == made.to_dict()
    np.testing.assert_array_equal(again.transition, made.transition)
    np.testing.assert_array_equal(again.labels, made.labels)
    assert again.channel == made.channel
    assert again.judgements_held_out


def test_every_field_is_kept_somewhere_or_says_that_it_is_not():
    every = {field.name for field in fields(FitResult)}
    assert every == {*names_kept("json"), *names_kept("array"), *names_kept("not")}
    assert set(names_kept("not")) == {"model", "last_model", "seconds_before"}


def test_a_score_that_is_no_number_stays_none():
    assert math.isnan(through_json(result(score=math.nan)).score)


def test_older_files_lack_what_came_later():
    kept = ("method", "transition", "history", "best_epoch", "score")
    old = {name: value for name, value in result().to_dict().items() if name in kept}
    assert FitResult.from_dict(old, nn.Identity()).to_dict() == result().to_dict()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"best_epoch": 1.5}, "'best_epoch' is of the wrong type"),
        ({"best_epoch": True}, "'best_epoch' is of the wrong type"),
        ({"history": [3]}, "'history' is of the wrong type"),
        ({"warnings": "none"}, "'warnings' is of the wrong type"),
        ({"annotators": {"annotator": "ann"}}, "'annotators' is of the wrong type"),
        ({"channel": []}, "'channel' is of the wrong type"),
        ({"transition": [[2.0]]}, "must sum to 1"),
        ({"telepathy": 1}, "'telepathy' that no fit has"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_named(changes, message):
    with pytest.raises(InputError, match=message):
        FitResult.from_dict(result().to_dict() | changes, nn.Identity())


def test_what_is_needed_is_missed():
    data = result().to_dict()
    del data["history"]
    with pytest.raises(InputError, match="'history' is missing"):
        FitResult.from_dict(data, nn.Identity())
