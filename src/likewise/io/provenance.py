"""What a run was made from and with, to be able to make it again."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path
from typing import Any

import numpy as np

from likewise._version import __version__
from likewise.errors import InputError


def input_record(path: str | Path) -> dict[str, Any]:
    """What an input was: its path and a SHA-256, of a folder that of its names and sizes."""
    file = Path(path)
    if not file.exists():
        raise InputError(f"there is no file or folder {file}.")
    record: dict[str, Any] = {"path": str(file)}
    if file.is_dir():
        inside = sorted(entry for entry in file.rglob("*") if entry.is_file())
        listing = [
            f"{entry.relative_to(file).as_posix()} {entry.stat().st_size}" for entry in inside
        ]
        digest = hashlib.sha256("\n".join(listing).encode()).hexdigest()
        return record | {"files": len(inside), "listing_sha256": digest}
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    return record | {"bytes": file.stat().st_size, "sha256": digest}


def versions() -> dict[str, str]:
    """What the run was made with, to be able to make it again."""
    import scipy
    import sklearn
    import torch

    return {
        "likewise": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "platform": platform.platform(),
    }
