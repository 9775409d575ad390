"""One thread a process: results do not depend on the machine, and workers share the cores."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, settings

from short_fits import draw_less

torch.set_num_threads(1)
# No deadlines: a shared machine is slow at times, and that is no failure.
settings.register_profile(
    "likewise",
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("likewise")


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions are searched for with fewer repetitions: clear groups are found all the same."""
    draw_less(monkeypatch)


@pytest.fixture
def generator() -> torch.Generator:
    """A seeded source of random tensors."""
    return torch.Generator().manual_seed(0)
