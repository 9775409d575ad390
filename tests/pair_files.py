"""Files of judgements, and their rows by name, for tests."""

from __future__ import annotations

from pathlib import Path

from likewise.pairs import Pairs

Row = tuple[str | bool | float, ...]


def write(folder: Path, text: str, name: str = "x.csv") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def rows(pairs: Pairs) -> list[Row]:
    """(left, right, same) by name, with the person and the weight where there are any."""
    ids = range(pairs.n_items) if pairs.item_ids is None else pairs.item_ids
    name = [str(one) for one in ids]
    columns: list[list] = [[name[k] for k in side] for side in (pairs.left, pairs.right)]
    columns.append(pairs.same.tolist())
    if pairs.annotator is not None:
        columns.append(pairs.annotator_names[pairs.annotator].tolist())
    if pairs.weight is not None:
        columns.append([round(float(weight), 4) for weight in pairs.weight])
    return list(zip(*columns, strict=True))
