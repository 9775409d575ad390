"""Noise models: transition matrices of whole items, channels of single answers, annotators.

Loaded when first used: the command line's help reads the registry beside, and waits for no SciPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from likewise.noise.matrices import (
        check_transition,
        corrupt_labels,
        flip_judgements,
        pair_flip,
        symmetric,
    )

__all__ = ["check_transition", "corrupt_labels", "flip_judgements", "pair_flip", "symmetric"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'likewise.noise' has no attribute {name!r}")
    from likewise.noise import matrices

    return getattr(matrices, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
