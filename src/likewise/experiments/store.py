"""Results on disk: a folder a cell, and the collected ``tables.csv`` and JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from likewise.errors import InputError
from likewise.experiments.cells import Cell
from likewise.io.atomic import write_json, write_text
from likewise.io.json import Record, parse_json_object, read_json_object
from likewise.methods.result import last_stage

COLUMNS = (
    *("table", "dataset", "network", "noise_kind", "noise", "method", "trial"),
    *("accuracy", "last_accuracy", "transition_error", "gram_error", "classes_used"),
    *("epochs", "seconds", "device", "where", "commit"),
)
Result = Record


def read_result_json(path: Path) -> Record:
    """What a finished cell wrote there."""
    return read_json_object(path, hint="remove it to redo its run")


def save_result(
    out: Path, cell: Cell, result: Result, settings: Mapping[str, Any], history: Sequence[Result]
) -> None:
    """Write a finished cell's folder; ``result.json`` last, since it marks the cell as finished."""
    folder = cell.folder(out)
    write_json(folder / "config.json", {"cell": cell.to_dict(), "settings": dict(settings)})
    write_text(folder / "history.csv", to_csv(history, _columns_of(history)))
    write_json(folder / "result.json", cell.to_dict() | result | {"curve": curve(history)})


def load_result(out: Path, cell: Cell, settings: Mapping[str, Any] | None = None) -> Result | None:
    """A finished cell's result, or None; refuses one that was made with other settings."""
    folder = cell.folder(out)
    if not (folder / "result.json").is_file():
        return None
    if settings is not None:
        made = read_result_json(folder / "config.json").get("settings", {})
        now = json.loads(json.dumps(dict(settings)))
        changed = [key for key in now if made.get(key) != now[key]]
        if changed:
            raise InputError(
                f"{folder} was made with other settings ({_changes(made, now, changed)}): give "
                "another output folder, or remove this one."
            )
    result: Result = read_result_json(folder / "result.json")
    return result


def _changes(made: Mapping[str, Any], now: Mapping[str, Any], keys: list[str]) -> str:
    key = keys[0]
    old, new = made.get(key), now[key]
    if isinstance(old, dict) and isinstance(new, dict):
        inner = next(k for k in new if old.get(k) != new[k])
        key, old, new = f"{key}.{inner}", old.get(inner), new[inner]
    return f"{key} was {old}, is now {new}"


def load_results(out: Path) -> list[Result]:
    """All finished cells under a folder of runs, in a stable order."""
    found = [read_result_json(path) for path in sorted(out.glob("*/*/result.json"))]
    return sorted(found, key=_order)


def _order(result: Result) -> tuple[Any, ...]:
    noise = result["noise"]
    return (
        *(result["table"], result["noise_kind"], -1.0 if noise is None else noise),
        *(result["method"], result["trial"]),
    )


def write_collected(results: Iterable[Result], folder: Path) -> None:
    """``tables.csv`` (a row a run) and ``runs/TABLE.jsonl`` (the whole result of each run)."""
    ordered = sorted(results, key=_order)
    write_text(folder / "tables.csv", to_csv(ordered, COLUMNS))
    for table in sorted({result["table"] for result in ordered}):
        lines = [json.dumps(_short(r)) for r in ordered if r["table"] == table]
        write_text(folder / "runs" / f"{table}.jsonl", "\n".join(lines) + "\n")


def read_collected(folder: Path) -> list[Result]:
    """What `write_collected` wrote."""
    paths = sorted((folder / "runs").glob("*.jsonl"))
    if not paths:
        raise InputError(f"there are no collected results (runs/*.jsonl) in {folder}.")
    found = [
        parse_json_object(line, str(path))
        for path in paths
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return sorted(found, key=_order)


def curve(history: Sequence[Result]) -> dict[str, list[float]]:
    """Training loss and held-out cost by epoch, compactly: what a learning curve needs."""
    rows = last_stage(history)
    return {
        name: [float(f"{row[name]:.5g}") for row in rows if row.get(name) is not None]
        for name in ("loss", "held_out")
    }


def _short(result: Result) -> Result:
    """A result with at most the first ten rows and columns of T, as the paper's figures show."""
    corner = {
        key: [[round(p, 5) for p in row[:10]] for row in result[key][:10]]
        for key in ("transition", "true_transition")
        if result.get(key) is not None
    }
    return result | corner


def to_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """CSV text; None is an empty field."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({c: "" if row.get(c) is None else row[c] for c in columns})
    return buffer.getvalue()


def _columns_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))
