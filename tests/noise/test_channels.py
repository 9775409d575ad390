"""Channels: each is a proper distribution, its M-step recovers rates, and it survives JSON."""

from __future__ import annotations

import json

import pytest
import torch

from likewise.errors import InputError
from likewise.noise.annotators import AnnotatorChannel
from likewise.noise.channels import ConfusionChannel, ExactChannel, RateChannel
from likewise.noise.registry import channel_from_dict

P = torch.tensor([[0.9, 0.4, 0.1], [0.4, 0.8, 0.2], [0.1, 0.2, 0.7]], dtype=torch.float64)


def every_channel():
    people = AnnotatorChannel.from_rates(0.8, 0.2, 4)
    return [
        ExactChannel(),
        RateChannel(0.8, 0.1),
        ConfusionChannel(P),
        people,
        people.with_classes(3),
    ]


@pytest.mark.parametrize("channel", every_channel(), ids=lambda c: type(c).__name__)
def test_round_trip_through_json(channel):
    back = channel_from_dict(json.loads(json.dumps(channel.to_dict())))
    torch.testing.assert_close(back.log_table(), channel.log_table())


@pytest.mark.parametrize("channel", [ExactChannel(), RateChannel(0.8, 0.1), ConfusionChannel(P)])
def test_the_two_answers_exhaust_the_possibilities(channel):
    table = channel.log_table().exp()
    torch.testing.assert_close(table[0] + table[1], torch.ones_like(table[0]))


def test_rates_are_recovered_from_counts():
    channel = RateChannel().update(torch.tensor([[300.0, 9500.0], [700.0, 500.0]]))
    assert channel.a == pytest.approx(0.7, abs=0.01)
    assert channel.b == pytest.approx(0.05, abs=0.01)


def test_no_judgements_leave_the_prior():
    channel = RateChannel().update(torch.zeros(2, 2))
    assert (channel.a, channel.b) == pytest.approx((0.9, 0.1))


def test_confusions_are_recovered_and_rare_cells_fall_back():
    counts = torch.stack([1000 * (1 - P), 1000 * P])
    counts[:, 0, 2] = counts[:, 2, 0] = 0
    found = ConfusionChannel.from_rates(0.9, 0.1, 3).update(counts).p_same
    off_diagonal_rate = (0.4 + 0.2) / 2
    expected = P.clone()
    expected[0, 2] = expected[2, 0] = off_diagonal_rate
    torch.testing.assert_close(found, expected, atol=0.02, rtol=0)


@pytest.mark.parametrize("full", [False, True])
def test_annotators_are_told_apart_by_thirty_answers(full):
    """A careful person, a coin, and one who always says "different"."""
    rates = torch.tensor([[0.9, 0.1]] * 6 + [[0.5, 0.5]] * 3 + [[0.0, 0.0]] * 3)
    equal, different = 10, 20
    said = torch.stack([equal * rates[:, 0], different * rates[:, 1]], dim=1)  # (R, 2)
    counts = torch.stack([torch.tensor([equal, different]) - said, said], dim=1)  # (R, 2, 2)
    channel = AnnotatorChannel.from_rates(0.8, 0.2, len(rates))
    if full:
        channel = channel.with_classes(2)
        cells = torch.eye(2) / 2, (1 - torch.eye(2)) / 2
        counts = counts[..., :1, None] * cells[0] + counts[..., 1:, None] * cells[1]
    for _ in range(20):
        channel = channel.update(counts.reshape(-1, *counts.shape[2:]))
    found = channel.rates()
    assert torch.all((found - rates).abs().mean(1) < 0.12)
    table = channel.log_table().reshape(len(rates), 2, -1)
    information = (table[:, 0, 0] - table[:, 0, 1]).abs()  # of the answer "different"
    assert information[:6].min() > 4 * information[6:].max()


def test_an_annotator_without_judgements_is_of_unknown_type():
    channel = AnnotatorChannel.from_rates(0.8, 0.2, 2)
    counts = torch.tensor([[[3.0, 27.0], [27.0, 3.0]], [[0.0, 0.0], [0.0, 0.0]]]).reshape(4, 2)
    updated = channel.update(counts)
    torch.testing.assert_close(updated.type_posterior[1].sum(), torch.tensor(1.0).double())
    assert updated.type_posterior[1].max() < updated.type_posterior[0].max()


def test_predict_same_agrees_between_channels_of_two_rates():
    f = torch.softmax(torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), dim=1)
    two = RateChannel(0.8, 0.1).predict_same(f, f.flip(0))
    full = ConfusionChannel.from_rates(0.8, 0.1, 3).predict_same(f, f.flip(0))
    torch.testing.assert_close(two, full)
    sure = torch.eye(3)
    torch.testing.assert_close(ExactChannel().predict_same(sure, sure), torch.ones(3))


def test_impossible_channels_are_refused():
    with pytest.raises(InputError, match="between 0 and 1"):
        RateChannel(1.0, 0.1)
    with pytest.raises(InputError, match="symmetric"):
        ConfusionChannel(torch.tensor([[0.9, 0.1], [0.2, 0.9]]))
    with pytest.raises(InputError, match="unknown channel"):
        channel_from_dict({"kind": "psychic"})
