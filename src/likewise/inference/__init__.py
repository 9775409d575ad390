"""What judgements say together: EM on the judgement graph, and partitions.

Loaded when first used, so that partitions need not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from likewise.inference.em import Options
    from likewise.inference.fit import JointResult, fit_joint

_HOMES = {"JointResult": "fit", "Options": "em", "fit_joint": "fit"}

__all__ = ["JointResult", "Options", "fit_joint"]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"likewise.inference.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'likewise.inference' has no attribute {name!r}")
