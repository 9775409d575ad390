"""Several sets of judgements as one."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.errors import InputError
from likewise.pairs import Pairs
from likewise.pairs.concatenation import join


def people(pairs: Pairs) -> list[str]:
    assert pairs.annotator is not None
    assert pairs.annotator_names is not None
    assert pairs.annotator.dtype == np.int32
    return pairs.annotator_names[pairs.annotator].tolist()


def test_what_one_of_them_lacks_is_filled_in() -> None:
    one = Pairs([0, 1], [1, 2], [1, 0], ["zoe", "bob"])
    two = Pairs([3], [1], [1], weight=[0.5], n_items=9)
    three = Pairs([2, 0], [0, 1], [0, 1], ["ann", "bob"], [2, 3])
    joined = join([one, two, three])
    assert joined.left.tolist() == [0, 1, 3, 2, 0]
    assert joined.right.tolist() == [1, 2, 1, 0, 1]
    assert joined.same.tolist() == [True, False, True, False, True]
    assert people(joined) == ["zoe", "bob", "", "ann", "bob"]
    assert joined.annotator_names.tolist() == ["", "ann", "bob", "zoe"]
    assert joined.weight.tolist() == [1, 1, 0.5, 2, 3]
    assert joined.weight.dtype == np.float32
    assert joined.n_items == 9


def test_what_none_of_them_has_stays_away() -> None:
    one = Pairs([0], [1], [1])
    joined = join([one, one])
    assert (joined.annotator, joined.annotator_names) == (None, None)
    assert (joined.weight, joined.item_ids) == (None, None)
    assert join([one]) is one


def test_what_was_left_out_is_added_up() -> None:
    about = {"dropped": 1, "shortened": 2, "unknown": 3}
    one = Pairs([0], [1], [1])._like({}, **about)
    two = Pairs([0], [1], [1])._like({}, dropped=10, shortened=20, unknown=30)
    joined = join([one, two])
    assert (joined.dropped, joined.shortened, joined.unknown) == (11, 22, 33)


def test_names_of_items_must_agree() -> None:
    named = Pairs([0], [1], [1], item_ids=["a", "b", "c"])
    plain = Pairs([0], [2], [0])
    for parts in ([named, plain], [plain, named], [named, named]):
        assert join(parts).item_ids.tolist() == ["a", "b", "c"]
    other = Pairs([0], [1], [1], item_ids=["a", "c", "b"])
    more = Pairs([0], [3], [1])
    for parts in ([named, other], [named, named, other], [named, more]):
        with pytest.raises(InputError, match=r"name different items, .* the same item_ids="):
            join(parts)


def test_nothing_at_all() -> None:
    with pytest.raises(InputError, match=r"^there is nothing to concatenate: give at least one"):
        join([])
