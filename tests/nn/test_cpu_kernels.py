"""Short rows come out as torch has them, gradients included."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from likewise.nn import cpu_kernels


def rows(n: int, classes: int, seed: int = 0) -> torch.Tensor:
    source = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(n, classes, generator=source, dtype=torch.float64)


@pytest.mark.parametrize("classes", [1, 2, 10, 15, 16, 40])
@pytest.mark.parametrize("n", [0, 1, 33])
def test_softmax_is_torchs(n: int, classes: int) -> None:
    logits = rows(n, classes).requires_grad_()
    weight = rows(n, classes, seed=1)
    found, expected = cpu_kernels.softmax(logits), logits.softmax(dim=1)
    torch.testing.assert_close(found, expected)
    assert found.is_contiguous()
    (there,) = torch.autograd.grad((found * weight).sum(), logits)
    (here,) = torch.autograd.grad((expected * weight).sum(), logits)
    torch.testing.assert_close(there, here)


def test_softmax_of_large_logits_stays_finite() -> None:
    extreme = torch.tensor([[1e4, -1e4, 0.0], [-1e30, 0.0, 1e30]])
    torch.testing.assert_close(cpu_kernels.softmax(extreme), torch.tensor([[1.0, 0, 0], [0, 0, 1]]))


@given(n=st.integers(1, 12), m=st.integers(0, 40), classes=st.integers(1, 20))
def test_similarities_are_a_loop_over_pairs(n: int, m: int, classes: int) -> None:
    """Repeated pairs, an item with itself and items nobody judged included."""
    f = rows(n, classes, seed=m).requires_grad_()
    source = torch.Generator().manual_seed(n)
    left, right = torch.randint(n, (2, m), generator=source, dtype=torch.int32)
    weight = torch.randn(m, generator=source, dtype=torch.float64)
    found = cpu_kernels.similarities(f, left, right)
    products = [(f[i] * f[j]).sum() for i, j in zip(left.tolist(), right.tolist(), strict=True)]
    expected = torch.stack(products) if products else f.new_zeros(0)
    torch.testing.assert_close(found, expected)
    if m:
        (there,) = torch.autograd.grad((found * weight).sum(), f)
        (here,) = torch.autograd.grad((expected * weight).sum(), f)
        torch.testing.assert_close(there, here)


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_gradient_of_similarities_by_differences(index: torch.dtype) -> None:
    f = rows(6, 4).requires_grad_()
    left, right = (
        torch.tensor([0, 0, 3, 5, 1], dtype=index),
        torch.tensor([1, 1, 3, 0, 2], dtype=index),
    )
    assert torch.autograd.gradcheck(lambda f: cpu_kernels.similarities(f, left, right), (f,))


def test_what_it_is_given_stays_as_it_is() -> None:
    f = rows(5, 3)
    before = f.clone()
    f.requires_grad_()
    index = torch.tensor([0, 1, 2])
    cpu_kernels.similarities(cpu_kernels.softmax(f), index, index + 1).sum().backward()
    torch.testing.assert_close(f.detach(), before, atol=0, rtol=0)
