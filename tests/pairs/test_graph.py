"""The judgement graph, against loops; what a weight means in it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence

from likewise.classifier import SimilarityClassifier
from likewise.errors import InputError
from likewise.inference.propagation.graph import Graph, contract
from likewise.methods.problem import Problem, is_exact
from likewise.pairs import Pairs, spectrum
from likewise.pairs.graph import JudgementGraph
from likewise.pairs.rates import moment_rates
from likewise.pairs.spectrum import leading_vectors

N_ITEMS = 8


@st.composite
def judgements(draw: st.DrawFn) -> Pairs:
    """Some judgements about eight items, of weight 0, less than 1 or more, or without weights."""
    item = st.integers(0, N_ITEMS - 1)
    row = st.tuples(item, item, st.booleans(), st.sampled_from([0, 0.25, 1, 3]))
    rows = draw(st.lists(row.filter(lambda r: r[0] != r[1]), max_size=30))
    left, right, same, weight = (np.array([r[k] for r in rows]) for k in range(4))
    weighed = draw(st.booleans()) and bool(weight.any())
    return Pairs(left, right, same.astype(bool), None, weight if weighed else None, n_items=N_ITEMS)


def counting(pairs: Pairs) -> list[tuple[int, int, bool]]:
    weight = np.ones(len(pairs)) if pairs.weight is None else pairs.weight
    rows = zip(pairs.left.tolist(), pairs.right.tolist(), pairs.same.tolist(), weight, strict=True)
    return [(i, j, same) for i, j, same, w in rows if w > 0]


@given(judgements())
def test_the_graph_is_what_chains_of_same_reach(pairs: Pairs) -> None:
    rows = counting(pairs)
    reach = np.eye(N_ITEMS, dtype=bool)
    for i, j, same in rows:
        reach[i, j] |= same
        reach[j, i] |= same
    for k in range(N_ITEMS):  # Warshall
        reach |= np.outer(reach[:, k], reach[k])
    ids = pairs.components()
    np.testing.assert_array_equal(ids[:, None] == ids, reach)
    contradictions = sum(bool(reach[i, j]) and not same for i, j, same in rows)
    assert pairs.is_consistent() == (contradictions == 0)
    graph = JudgementGraph.of(pairs)
    assert (len(graph), graph.weightless) == (len(rows), len(pairs) - len(rows))
    assert graph.contradictions == contradictions
    ends = [item for i, j, _ in rows for item in (i, j)]
    np.testing.assert_array_equal(graph.degree, np.bincount(ends, minlength=N_ITEMS))


@given(judgements(), st.integers(1, 40))
def test_contraction_merges_and_keeps_what_differs_once(pairs: Pairs, chunk: int) -> None:
    rows = counting(pairs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("likewise.pairs.edges.CHUNK", chunk)
        merged = JudgementGraph.of(pairs).contract()
    ids = merged.component.tolist()
    apart = {tuple(sorted((ids[i], ids[j]))) for i, j, same in rows if not same}
    expected = sorted(pair for pair in apart if pair[0] != pair[1])
    assert list(zip(merged.left.tolist(), merged.right.tolist(), strict=True)) == expected
    assert merged.contradictions == sum(ids[i] == ids[j] for i, j, same in rows if not same)
    joined = sum(same for _, _, same in rows)
    assert merged.redundant == joined - (N_ITEMS - len(merged.sizes))
    judged = {ids[item] for i, j, _ in rows for item in (i, j)}
    assert set(np.flatnonzero(merged.judged).tolist()) == judged
    # The tensors that inference runs on are the same graph.
    on_device = contract(Graph.from_pairs(pairs))
    torch.testing.assert_close(on_device.component, torch.tensor(ids))
    assert on_device.graph.left.tolist() == merged.left.tolist()
    assert on_device.sizes.tolist() == merged.sizes.tolist()
    assert (on_device.contradictions, on_device.redundant) == (
        merged.contradictions,
        merged.redundant,
    )


def two_classes(weight_of_the_slip: float) -> Pairs:
    """All pairs of two classes of ten, and one slip that would join them."""
    listed = Pairs.from_labels(np.arange(20) % 2).explicit()
    both = Pairs.concatenate([listed, Pairs([0], [1], [1], n_items=20)])
    weight = np.append(np.full(len(listed), 1.0), weight_of_the_slip)
    return Pairs(both.left, both.right, both.same, None, weight, n_items=20)


def test_a_judgement_of_weight_0_is_none() -> None:
    pairs = two_classes(0)
    np.testing.assert_array_equal(pairs.components(), np.arange(20) % 2)
    assert pairs.is_consistent()
    assert is_exact(Problem(np.zeros((20, 2)), pairs, 2))[0]
    found, clean = pairs.describe(), Pairs.from_labels(np.arange(20) % 2).explicit().describe()
    assert found.to_dict() | {"weightless": 0} == clean.to_dict()
    assert found.weightless == 1
    assert "190, 1 of weight 0 left out" in repr(found)
    assert not two_classes(0.01).is_consistent()


def test_an_exact_fit_takes_weights_only_for_which_judgements_count() -> None:
    """P(answer | classes) is 0 or 1 there, and so is any positive power of it."""
    base = Pairs.from_labels(np.arange(20) % 2).explicit()
    weight = np.random.default_rng(0).random(len(base)) + 0.1
    unequal = Pairs(base.left, base.right, base.same, None, weight, n_items=20)
    exact, why = is_exact(Problem(np.zeros((20, 2)), unequal, 2))
    assert exact
    assert why.endswith("; their weights say only which of them count")
    equal = Pairs(base.left, base.right, base.same, None, np.full(len(base), 0.5), n_items=20)
    assert "weights" not in is_exact(Problem(np.zeros((20, 2)), equal, 2))[1]


def test_one_estimate_of_the_rates_for_the_description_and_for_the_fit() -> None:
    """Each pair judged four times, answers drawn anew: "same if anybody says so" would not do."""
    rng = np.random.default_rng(0)
    base = Pairs.from_labels(np.arange(300) % 4, 60, 0)
    left, right, same = (np.tile(c, 4) for c in (base.left, base.right, base.same))
    same = rng.random(len(same)) < np.where(same, 0.7, 0.1)
    pairs = Pairs(left, right, same, n_items=300)
    fitted, described = moment_rates(pairs, 4, rng), pairs.describe(4)
    assert (fitted.a, fitted.b) == pytest.approx((0.7, 0.1), abs=0.03)
    assert described.noise.miss == pytest.approx(1 - fitted.a)
    assert described.noise.false_alarm == pytest.approx(fitted.b)
    assert described.triangles == fitted.triangles


def test_the_rates_leave_out_what_does_not_count() -> None:
    rng = np.random.default_rng(0)
    base = Pairs.from_labels(np.arange(200) % 3, 60, 0)
    slips = rng.random(len(base)) < np.where(base.same, 0.8, 0.1)
    clean = Pairs(base.left, base.right, slips, n_items=200)
    junk = Pairs(base.left, base.right, np.ones(len(base), bool), n_items=200)
    both = Pairs.concatenate([clean, junk])
    weight = np.repeat([1.0, 0.0], len(base))
    weighed = Pairs(both.left, both.right, both.same, None, weight, n_items=200)
    expected, found = moment_rates(clean, 3, rng), moment_rates(weighed, 3, rng)
    assert (found.a, found.b) == (expected.a, expected.b)


def test_triangles_of_a_large_sparse_graph_are_those_among_some_items(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sampled paths hardly ever close there: one in a thousand."""
    rng = np.random.default_rng(0)
    base = Pairs.from_labels(rng.integers(0, 3, 20_000), 30, 0)
    same = rng.random(len(base)) < np.where(base.same, 0.8, 0.1)
    pairs = Pairs(base.left, base.right, same, n_items=20_000)
    exact = moment_rates(pairs, 3, rng)
    assert not exact.triangles.sampled
    monkeypatch.setattr("likewise.pairs.rates.MAX_PATHS", 6_000_000)
    monkeypatch.setattr("likewise.pairs.triangles.SAMPLE_WEDGES", 1 << 14)
    part = moment_rates(pairs, 3, rng)
    assert part.triangles.sampled
    assert part.triangles.closed > 500
    assert (part.a, part.b) == pytest.approx((0.8, 0.1), abs=0.06)


class TestLeadingVectors:
    """Eigenvectors where Lanczos cannot find any, and where it can."""

    def matrix(self, n: int, seed: int = 0) -> sparse.csr_array:
        half = sparse.random_array((n, n), density=0.2, rng=np.random.default_rng(seed))
        return sparse.csr_array(half + half.T)

    @pytest.mark.parametrize(("n", "k"), [(5, 2), (5, 9), (64, 3), (65, 3), (65, 64), (200, 4)])
    def test_they_are_those_of_dense_algebra(self, n: int, k: int) -> None:
        matrix = self.matrix(n)
        values, vectors = leading_vectors(matrix, k, np.random.default_rng(1).normal(size=n))
        assert (values.shape, vectors.shape) == ((k,), (n, k))
        there = min(n, k)
        assert np.allclose(values[k - there :], np.linalg.eigvalsh(matrix.toarray())[n - there :])
        assert np.allclose(matrix @ vectors, vectors * values, atol=1e-8)
        assert not values[: k - there].any()

    def test_zeros_have_no_direction(self) -> None:
        cancelled = self.matrix(100) - self.matrix(100)
        for matrix in (sparse.csr_array((100, 100)), cancelled, cancelled + 0 * self.matrix(100)):
            values, vectors = leading_vectors(matrix, 3, np.ones(100))
            assert not values.any()
            assert not vectors.any()

    def test_what_did_not_converge_is_left_out(self, monkeypatch) -> None:
        def give_up(*_: object, **__: object) -> None:
            raise ArpackNoConvergence("no", np.array([2.0]), np.ones((100, 1)))

        monkeypatch.setattr(spectrum, "eigsh", give_up)
        values, vectors = leading_vectors(self.matrix(100), 3, np.ones(100))
        assert values.tolist() == [0, 0, 2]
        assert vectors.sum(axis=0).tolist() == [0, 0, 100]


def test_one_pair_judged_both_ways_and_nothing_else_is_fitted() -> None:
    items = np.random.default_rng(0).normal(size=(120, 4)).astype(np.float32)
    model = SimilarityClassifier(2, method="joint", noise="class", verbose=False, random_state=0)
    assert model.fit(items, Pairs([0, 0], [1, 1], [1, 0], n_items=120)).predict(items).shape == (
        120,
    )


def test_an_item_numbered_beyond_what_memory_holds_is_refused() -> None:
    with pytest.raises(InputError, match=r"2,000,000,000, which makes .* number the items from 0"):
        Pairs([0, 1], [2_000_000_000, 2], [1, 0])
    assert Pairs([0, 1], [2_000_000, 2], [1, 0]).n_items == 2_000_001
