"""What a result was made from, with and where: to be able to make it again."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from likewise._version import __version__
from likewise.errors import InputError
from likewise.io.regular import open_regular

if TYPE_CHECKING:
    import torch

COMMIT_VARIABLE = "LIKEWISE_COMMIT"  # for machines that have the code but not its history
_LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn")


def input_record(path: str | Path) -> dict[str, str | int]:
    """What an input was: its path and a SHA-256, of a folder that of its names and sizes."""
    from likewise.io.npy import check_holes

    file = Path(path)
    if not file.exists():
        raise InputError(f"there is no file or folder {file}.")
    if file.is_dir():
        inside = sorted(entry for entry in file.rglob("*") if entry.is_file())
        listing = [
            f"{entry.relative_to(file).as_posix()} {entry.stat().st_size}" for entry in inside
        ]
        digest = hashlib.sha256("\n".join(listing).encode(errors="surrogateescape")).hexdigest()
        return {"path": str(file), "files": len(inside), "listing_sha256": digest}
    with open_regular(file) as opened:
        check_holes(file)
        size = os.fstat(opened.fileno()).st_size
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    return {"path": str(file), "bytes": size, "sha256": digest}


def versions() -> dict[str, str]:
    """Likewise, Python, the libraries that numbers come from, and the system."""
    return {
        "likewise": __version__,
        "python": platform.python_version(),
        **{name: _version_of(name) for name in _LIBRARIES},
        "platform": platform.platform(),
    }


def provenance(device: torch.device) -> dict[str, str]:
    """Hardware, versions, date and commit, for a result's JSON."""
    return {
        "device": device_name(device),
        "where": where(),
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **versions(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


def where() -> str:
    """By what this process was started: by hand, by submitit here, or as which SLURM job."""
    if job := os.environ.get("SLURM_JOB_ID"):
        return f"SLURM {os.environ.get('SLURM_CLUSTER_NAME', 'cluster')}, job {job}"
    if os.environ.get("SUBMITIT_EXECUTOR") == "local":
        return "local executor"
    return "one machine"


def device_name(device: torch.device) -> str:
    """The GPU's own name, or the kind of device."""
    if device.type != "cuda":
        return device.type
    import torch

    return torch.cuda.get_device_name(device)


def commit() -> str:
    """The commit of the code, with "+" where files were changed since; "unknown" outside Git."""
    if named := os.environ.get(COMMIT_VARIABLE):
        return named
    here = Path(__file__).resolve().parents[1]  # the whole package
    try:
        head = _git(here, "rev-parse", "--short=12", "HEAD")
        changed = _git(here, "status", "--porcelain", "--untracked-files=no", ".")
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return head + ("+" if changed else "")


def _version_of(library: str) -> str:
    """By the installed metadata: nothing is imported to be asked."""
    try:
        return version(library)
    except PackageNotFoundError:
        return "unknown"


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    return done.stdout.strip()
