"""Places to write to, looked at before the work: is there a folder, and can it be written to?"""

from __future__ import annotations

import tempfile
from pathlib import Path

from likewise.errors import InputError

CHECKPOINTS = ".checkpoints"


def checkpoints_of(out: Path) -> Path:
    """Where a fit that writes to ``out`` keeps its checkpoints."""
    return out.with_name(f"{out.name}{CHECKPOINTS}")


def check_file(target: Path, option: str = "--out") -> None:
    """Refuse a place where no file can be written; its folder must be there."""
    if target.is_dir():
        raise InputError(f"{target} is a folder; give the name of a file to {option}.")
    if not target.parent.is_dir():
        raise InputError(
            f"there is no folder {target.parent} to write {target.name} to; make it, or choose "
            f"another place for {option}."
        )
    check_writable(target, target.parent, option)


def check_folder(target: Path, option: str = "--out") -> None:
    """Refuse a place where no folder can be made, with those above it that are not there yet."""
    above = next(path for path in (target, *target.absolute().parents) if path.exists())
    if not above.is_dir():
        raise InputError(
            f"{target} cannot be made, because {above} is a file; choose another place for "
            f"{option}."
        )
    check_writable(target, above, option)


def check_writable(target: Path, folder: Path, option: str = "--out") -> None:
    """Refuse a ``target`` in a folder that cannot be written to."""
    if why := why_not(folder):
        raise InputError(
            f"{target} cannot be made, because {folder} cannot be written to ({why}); choose "
            f"another place for {option}."
        )


def why_not(folder: Path) -> str:
    """Why nothing can be written to a folder, which is tried; blank where it can."""
    try:
        Path(tempfile.mkdtemp(prefix=".likewise-", dir=folder)).rmdir()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""
