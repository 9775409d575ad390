"""Where and with what a result was made."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

COMMIT_VARIABLE = "LIKEWISE_COMMIT"  # for machines that have the code but not its history


def provenance(device: torch.device) -> dict[str, Any]:
    """Hardware, versions, date and commit, for a result's JSON."""
    return {
        "device": device_name(device),
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
    }


def device_name(device: torch.device) -> str:
    """The GPU's own name, or the kind of device."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def commit() -> str:
    """The commit of the code, with "+" where files were changed since; "unknown" outside Git."""
    if named := os.environ.get(COMMIT_VARIABLE):
        return named
    here = Path(__file__).resolve().parent
    try:
        head = _git(here, "rev-parse", "--short=12", "HEAD")
        changed = _git(here, "status", "--porcelain", "--untracked-files=no", "--", ".")
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return head + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    return done.stdout.strip()
