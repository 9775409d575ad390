"""The centred judgement matrix, beside a dense one."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.pairs.spectrum import spectral_embedding

N, M = 12, 60


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_values_and_vectors_are_those_of_the_dense_matrix(weighted: bool, named: bool) -> None:
    rng = np.random.default_rng(0)
    left = rng.integers(N, size=M)
    right = (left + rng.integers(1, N, size=M)) % N
    same = rng.random(M) < 0.4
    weight = rng.random(M).astype(np.float32) if weighted else None
    people = rng.integers(3, size=M).astype(np.int32) if named else None
    strength = np.ones(M) if weight is None else weight.astype(float)
    overall = (same * strength).sum() / strength.sum()
    dense = np.zeros((N, N))
    for k in range(M):
        usual = overall
        if people is not None:
            own = people == people[k]
            usual = ((same * strength)[own].sum() + overall) / (strength[own].sum() + 1)
        dense[left[k], right[k]] += (same[k] - usual) * strength[k]
        dense[right[k], left[k]] += (same[k] - usual) * strength[k]
    values, vectors = spectral_embedding(
        left=left, right=right, same=same, weight=weight, annotator=people, n_items=N, n_vectors=4
    )
    expected = np.sort(np.linalg.eigvalsh(dense))[::-1][:4]
    np.testing.assert_allclose(values, expected, atol=1e-10)
    np.testing.assert_allclose(dense @ vectors, vectors * values, atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1)
