"""Many people at once who undo, skip, reload and have two tabs, while the server is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
@pytest.mark.parametrize("sort_screens", [False, True], ids=["pairs", "sorts"])
def test_nothing_is_lost_or_asked_twice_and_copies_are_whole(tmp_path, monkeypatch, sort_screens):
    """The benchmark in small; results/label_round.json is of thirty people."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    import label_round
    from label_load import make_pictures

    make_pictures(tmp_path / "items", 80)
    found = label_round.measure(
        tmp_path / "round",
        people=4,
        each=2 if sort_screens else 15,
        kills=2,
        sort_screens=sort_screens,
    )
    assert found["acknowledged"] == 4 * found["each"]
    wrong = ("lost", "changed", "never_acknowledged", "asked_twice", "damaged", "lacking")
    assert {name: found[name] for name in wrong} == dict.fromkeys(wrong, 0)
    assert found["copies"] > 0
    assert found["undone"] + found["reloads"] + found["refused_second_tabs"] > 3
