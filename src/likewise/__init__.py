"""Likewise: a multi-class classifier from noisy answers to "are these two of the same kind?".

The public names, loaded when first used, so that ``likewise --help`` need not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from likewise._version import __version__

if TYPE_CHECKING:
    from likewise import functional, noise
    from likewise.active.suggestion import suggest
    from likewise.active.suspects import suspects
    from likewise.classifier import SimilarityClassifier, load
    from likewise.errors import InputError, LikewiseError, TrainingError
    from likewise.losses import KCLLoss, MCLLoss, MNSLoss, NoiseTransition
    from likewise.methods.groups import Groups, group, judgements_proba
    from likewise.pairs import Pairs
    from likewise.training.recipe import Recipe


_HOMES = {
    "Groups": "methods.groups",
    "InputError": "errors",
    "KCLLoss": "losses",
    "LikewiseError": "errors",
    "MCLLoss": "losses",
    "MNSLoss": "losses",
    "NoiseTransition": "losses",
    "Pairs": "pairs",
    "Recipe": "training.recipe",
    "SimilarityClassifier": "classifier",
    "TrainingError": "errors",
    "group": "methods.groups",
    "judgements_proba": "methods.groups",
    "load": "classifier",
    "suggest": "active.suggestion",
    "suspects": "active.suspects",
}
_MODULES = ("functional", "noise")

__all__ = [
    "Groups",
    "InputError",
    "KCLLoss",
    "LikewiseError",
    "MCLLoss",
    "MNSLoss",
    "NoiseTransition",
    "Pairs",
    "Recipe",
    "SimilarityClassifier",
    "TrainingError",
    "__version__",
    "functional",
    "group",
    "judgements_proba",
    "load",
    "noise",
    "suggest",
    "suspects",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"likewise.{name}")
    if name in _HOMES:
        value = getattr(import_module(f"likewise.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'likewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *_MODULES])
