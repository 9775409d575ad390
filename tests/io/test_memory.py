"""Memory that was freed is handed back, where the C library can."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from likewise.io.memory import release_freed


def held() -> int:
    """Bytes that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux tells")
def test_freed_memory_is_handed_back() -> None:
    many = [np.ones(4000) for _ in range(4000)]  # 128 MB in pieces that the heap keeps
    last = np.ones(4000)
    del many
    kept = held()
    release_freed()
    assert held() < kept - 60e6 or kept < 128e6
    assert last.sum() == 4000


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: None) -> None:
        raise OSError("no such library")

    monkeypatch.setattr(ctypes, "CDLL", none)
    release_freed()
