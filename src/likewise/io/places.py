"""Places to write to: what a fit calls its own, beside the name that a person gives."""

from __future__ import annotations

from pathlib import Path

CHECKPOINTS = ".checkpoints"


def checkpoints_of(out: Path) -> Path:
    """Where a fit that writes to ``out`` keeps its checkpoints."""
    return out.with_name(f"{out.name}{CHECKPOINTS}")
