"""Small fits take one thread, and leave torch as they found it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

import likewise as lw
from likewise.methods import dispatch
from likewise.nn.networks import MLP
from likewise.training.threads import is_small, one_thread


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_one_thread_for_a_while() -> None:
    with one_thread(when=True):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    with one_thread(when=False):
        assert torch.get_num_threads() == 2


def test_an_error_leaves_the_threads_as_they_were() -> None:
    with pytest.raises(KeyError), one_thread(when=True):
        raise KeyError
    assert torch.get_num_threads() == 2


def test_what_is_small() -> None:
    complete = lw.Pairs.from_labels(np.arange(2000) % 3)
    assert is_small(np.zeros((2000, 64), np.float32), complete)
    assert not is_small(np.zeros((2000, 1000), np.float32), complete)
    assert not is_small(np.zeros((2000, 8, 8), np.float32), complete)  # images
    many = lw.Pairs(*np.tile([[0], [1]], 100_001), np.ones(100_001, bool), n_items=2000)
    assert not is_small(np.zeros((2000, 64), np.float32), many)


@pytest.mark.parametrize(("network", "expected"), [(None, 1), ("mlp", 1), (MLP(2, 2), 2)])
def test_fit_takes_what_it_is_worth(
    network: object, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    fit = dispatch.fit

    def watched(*args: object, **options: object) -> object:
        seen.append(torch.get_num_threads())
        return fit(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(dispatch, "fit", watched)
    items = np.eye(2)[np.arange(40) % 2] + 0.01 * np.arange(40)[:, None]
    pairs = lw.Pairs.from_labels(np.arange(40) % 2)
    clf = lw.SimilarityClassifier(2, network=network, recipe={"epochs": 1}, verbose=False)
    clf.fit(items, pairs)
    assert seen == [expected]
    assert torch.get_num_threads() == 2
