"""The items and judgements that a run was fitted to, opened again for whoever goes on from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from likewise.errors import InputError
from likewise.io.provenance import input_record
from likewise.items.files import ItemFile
from likewise.pairs import Pairs
from likewise.runs.model_items import open_with_items
from likewise.runs.run import Run
from likewise.runs.told import without_people


def reopen(
    run: Run, items: Path | None = None, pairs: Path | None = None
) -> tuple[ItemFile, Pairs]:
    """What the run was fitted to: from where it lay, unless other places are given.

    Files that have changed since are refused; people whom the fit left out are left out.
    """
    told = run.config.get("items")
    about: dict[str, Any] = told if isinstance(told, dict) else {}
    _, data = open_with_items(
        run.folder,
        items or _place(run, "items"),
        id_column=about.get("id"),
        image_size=about.get("image_size"),
        text=about.get("text"),
    )
    columns = run.config.get("columns")
    given = Pairs.read(
        pairs or _place(run, "pairs"),
        item_ids=data.ids,
        n_items=len(data),
        may_lack=True,
        **(columns if isinstance(columns, dict) else {}),
    )
    dropped = run.config.get("without_people")
    return data, without_people(given, tuple(dropped) if isinstance(dropped, list) else ())


def _place(run: Run, name: str) -> Path:
    """Where an input lies, if it is still what it was."""
    record = run.config.get(name)
    if not isinstance(record, dict) or "path" not in record:
        raise InputError(f"{run.folder} does not say where its {name} lie; give --{name}.")
    path = Path(str(record["path"]))
    if not path.exists():
        raise InputError(f"the {name} of {run.folder} no longer lie at {path}; give --{name}.")
    now = input_record(path)
    if any(now[key] != record.get(key) for key in now if key.endswith("sha256")):
        raise InputError(
            f"{path} has changed since {run.folder} was fitted to it; fit anew, or give --{name}."
        )
    return path
