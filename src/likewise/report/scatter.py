"""The map of items packed for the browser: typed arrays in base64, some six bytes an item."""

from __future__ import annotations

import base64
import json

import numpy as np
from numpy.typing import NDArray

from likewise.io.json import Record
from likewise.io.npy import Array
from likewise.report.contents import Contents, shorten

GRID = 65_535
MAX_NAMES = 1_300_000  # bytes of item names; a longer list is left out


def pack_map(contents: Contents) -> Record:
    """Places, classes and confidence of the shown items, as little-endian typed arrays.

    ``x``, ``y`` uint16 over the map's range (outliers beyond it are put on its edge), ``cls`` and
    ``truth`` uint16, ``sure`` uint8 of 0 to 255, ``kept`` uint32; ``names`` only where they say
    more than the positions.
    """
    places = _on_grid(contents.points)
    truth_names: list[str] = []
    packed: Record = {
        "n": len(contents.kept),
        "x": _base64(places[:, 0], "<u2"),
        "y": _base64(places[:, 1], "<u2"),
        "cls": _base64(contents.predicted, "<u2"),
        "sure": _base64(np.rint(contents.confidence.clip(0, 1) * 255), "<u1"),
        "names": _names(contents),
        "kept": None,
    }
    if not np.array_equal(contents.kept, np.arange(len(contents.kept))):
        packed["kept"] = _base64(contents.kept, "<u4")
    if contents.truth is not None:
        names, codes = np.unique(contents.truth, return_inverse=True)
        truth_names = [str(name) for name in names]
        packed["truth"] = _base64(codes, "<u2")
    return packed | {"truthNames": truth_names}


def _on_grid(points: NDArray[np.float32]) -> NDArray[np.float64]:
    """Both axes by one scale, so that distances keep their proportions."""
    values = np.nan_to_num(np.asarray(points, np.float64))
    low, high = np.quantile(values, [0.001, 0.999], axis=0)
    centre, span = (low + high) / 2, float(max((high - low).max(), 1e-12)) * 1.04
    return np.asarray(np.rint((((values - centre) / span) + 0.5).clip(0, 1) * GRID))


def _names(contents: Contents) -> list[str] | None:
    names = [shorten(str(name)) for name in contents.ids]
    if names == [str(position) for position in contents.kept]:
        return None
    return names if size_in_page(names) <= MAX_NAMES else None


def size_in_page(names: list[str]) -> int:
    """Bytes that names take as JSON in HTML, where some characters are written by their number."""
    text = json.dumps(names, ensure_ascii=False)
    return len(text.encode("utf-8", "replace")) + 5 * sum(
        text.count(character) for character in "<>&'"
    )


def _base64(values: Array, dtype: str) -> str:
    return base64.b64encode(np.asarray(values).astype(dtype).tobytes()).decode()
