"""Options are honoured or refused in a sentence, never ignored."""

from __future__ import annotations

import numpy as np
import pytest

from likewise import InputError, SimilarityClassifier
from likewise.methods.options import FitOptions, check_asked
from likewise.methods.pairwise import JUDGEMENTS_PER_STEP, pairwise_program
from likewise.methods.registry import METHODS
from likewise.noise import symmetric
from likewise.noise.registry import CHANNELS, channel_for, channel_from_dict, noise_names
from tiny import QUICK, tiny_problem

MATRIX = symmetric(3, 0.2)


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        ("joint", {"anchors": "argmax"}, "anchors='argmax'"),
        ("auto", {"anchors": 0.97}, "anchors=0.97"),
        ("mcl", {"noise": "class"}, "noise='class'"),
        ("mns", {"noise": "annotator"}, "noise='annotator'"),
        ("kcl", {"transition": MATRIX}, "a given transition matrix"),
        ("mcl", {"recipe": {"teachers": 1}}, "the recipe's teachers"),
        ("mns", {"recipe": {"high_noise": {"lr": 0.1}}}, "the recipe's high_noise"),
        ("joint", {"recipe": {"balance": 0.1}}, "the recipe's balance"),
        ("auto", {"recipe": {"split_merged_at": [0.5]}}, "the recipe's split_merged_at"),
        ("joint", {"recipe": QUICK.with_(starts=3)}, "the recipe's starts"),
    ],
    ids=str,
)
def test_what_a_method_does_not_use_is_refused_before_any_data(method, options, words):
    clf = SimilarityClassifier(3, method=method, **options)
    with pytest.raises(InputError) as caught:
        clf.fit("no items at all", None)
    message = str(caught.value)
    assert message.startswith(f"method={method!r} does not use {words}; leave it out, or take ")
    assert "method='" in message.partition("take ")[2]


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("joint", {"noise": "both", "transition": MATRIX}),
        ("mns", {"anchors": "argmax"}),
        ("mcl", {"transition": None}),
        ("joint", {"recipe": QUICK.to_dict()}),
        ("kcl", {"recipe": {"teachers": 0, "epochs": 3}}),
    ],
    ids=str,
)
def test_what_a_method_uses_is_taken(method, options):
    SimilarityClassifier(3, method=method, **options).check_parameters()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "loud"}, "noise must be one of auto, class, judgement, both, annotator, conf"),
        ({"anchors": "heavy"}, "anchors must be 'counts', 'argmax' or a quantile, not 'heavy'"),
        ({"anchors": 2.0}, "anchors must be 'counts', 'argmax' or a quantile, not 2.0"),
        ({"transition": "guess"}, "transition must be 'estimate', a matrix or None"),
        ({"method": "em"}, "method must be one of auto, joint, mns, mcl, kcl, not 'em'"),
    ],
    ids=str,
)
def test_what_no_method_knows(options, message):
    with pytest.raises(InputError, match=message):
        SimilarityClassifier(3, **options).check_parameters()


def listed(recipe):
    return tiny_problem(recipe, per_item=30)[0]


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [({"batch_size": 64}, 64), ({"epochs": 2}, JUDGEMENTS_PER_STEP), (QUICK, QUICK.batch_size)],
)
def test_a_batch_size_for_listed_judgements_is_honoured(recipe, expected):
    run = next(pairwise_program(listed(recipe), "mcl"))
    assert run.recipe.batch_size == expected


def test_mixup_of_listed_judgements_is_refused():
    with pytest.raises(InputError, match="mixup mixes items whose perceived classes are known"):
        next(pairwise_program(listed({"mixup": 0.5}), "mcl"))


def test_every_method_and_channel_is_complete():
    for method in METHODS.values():
        assert method.title
        assert method.words
        check_asked(method, FitOptions(), None)
    for entry in CHANNELS.values():
        made = entry.load().at_rates(0.8, 0.1, n_classes=3, n_annotators=2)
        data = made.to_dict()
        assert data["kind"] == entry.kind
        assert channel_from_dict(data).to_dict() == data
        assert entry.describe(data).endswith(".")
    assert noise_names() == ("auto", "class", "judgement", "both", "annotator", "confusion")
    assert channel_for("both") is CHANNELS["rate"]
    with pytest.raises(InputError, match="noise must be one of auto"):
        channel_for("loud")


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "rate", "a": "x", "b": 0.1},
        {"kind": "rate", "a": 0.9, "telepathy": 1.0},
        {"kind": "confusion", "p_same": [["a"]], "prior": 1.0},
        {"kind": "confusion"},
        {"kind": "annotator", "eta": None},
        {"kind": ["rate"]},
    ],
    ids=str,
)
def test_channels_that_were_spoilt_are_refused_in_a_sentence(data):
    with pytest.raises(InputError, match="channel"):
        channel_from_dict(data)


def test_help_names_what_there_is(capsys):
    from likewise.cli import run

    assert run(["fit", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "auto, joint, mns, mcl or kcl." in text
    assert "auto, class, judgement, both, annotator or confusion." in text


def test_the_matrix_of_an_option_is_checked_early():
    with pytest.raises(InputError, match="must sum to 1"):
        SimilarityClassifier(2, transition=np.ones((2, 2))).fit(None, None)
