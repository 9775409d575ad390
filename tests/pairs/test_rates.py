"""The two rates from pairs and triangles, beside a plain search."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.pairs import Pairs
from likewise.pairs import rates as module
from likewise.pairs.rates import moment_rates, rates_from_triangles, three_same_probability
from likewise.pairs.triangles import Triangles


def three_same_by_counting(a: float, b: float, classes: int) -> float:
    """Over all classes that three items may have."""
    total = 0.0
    for x in range(classes):
        for y in range(classes):
            for z in range(classes):
                sides = [(x, y), (y, z), (x, z)]
                total += math.prod(a if one == other else b for one, other in sides)
    return total / classes**3


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 5))
def test_three_same(a: float, b: float, classes: int) -> None:
    found = three_same_probability(np.array([a]), np.array([b]), classes)
    assert found == pytest.approx([three_same_by_counting(a, b, classes)])


def reference(p_same: float, triangles: Triangles, classes: int) -> tuple[float, float]:
    p = min(max(p_same, 1e-4), 1 - 1e-4)
    best, found = -math.inf, (min(p + 0.3, 0.9), max(p - 0.1, 0.02))
    for b in np.linspace(1e-3, min(p, 0.999), 2000):
        a = classes * p - (classes - 1) * b
        if b < a < 0.995:
            triple = three_same_by_counting(a, b, classes)
            fit = triangles.three_same * math.log(triple)
            fit += (triangles.closed - triangles.three_same) * math.log(1 - triple)
            fit -= 0.5 * ((a - 0.75) / 0.25) ** 2
            if fit > best:
                best, found = fit, (float(a), float(b))
    return found


@pytest.mark.parametrize(
    ("p_same", "closed", "three", "classes"),
    [
        (0.5, 0, 0, 2),
        (0.5, 1000, 250, 2),
        (0.35, 500, 60, 3),
        (0.35, 10, 9, 3),
        (0.9, 100, 90, 2),
        (0.999, 100, 99, 2),
        (1.0, 100, 100, 3),
        (0.0, 100, 0, 2),
        (0.05, 0, 0, 4),
    ],
)
def test_the_likeliest_rates(p_same: float, closed: int, three: int, classes: int) -> None:
    triangles = Triangles(closed, 0.0, three, False)
    found = rates_from_triangles(p_same, triangles, classes)
    assert (found.a, found.b) == pytest.approx(reference(p_same, triangles, classes))
    assert found.triangles is triangles


def test_all_triangles_of_the_judgements_count(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=40)
    pairs = Pairs.from_labels(labels, per_item=30, random_state=1)
    given: dict[str, object] = {}
    counting = module.count_triangles

    def noted(*arguments: object, **options: object) -> Triangles:
        given.update(options)
        return counting(*arguments, **options)

    monkeypatch.setattr(module, "count_triangles", noted)
    found = moment_rates(pairs, 3, rng)
    assert given == {"max_paths": 300_000_000, "thorough": True}
    p_same = pairs.n_same / len(pairs)
    assert found == rates_from_triangles(p_same, found.triangles, 3)
    assert found.a > 0.9
    assert found.b < 0.1
    none = Pairs([], [], [], n_items=3)
    assert moment_rates(none, 2, rng).triangles.closed == 0
