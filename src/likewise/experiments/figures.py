"""The paper's figures, drawn from saved runs: T and its estimate, similarity, curves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.experiments.settings import METHOD_TITLES, METHODS, TABLES, load_settings
from likewise.experiments.store import Result
from likewise.io.json import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 10  # rows and columns of T, as the paper shows of CIFAR-100
FORMATS = ("svg", "png")
BLUE, ORANGE = "#2b6cb0", "#c05621"


def write_figures(results: Sequence[Result], folder: Path) -> list[Path]:
    """Every figure that these results allow, as SVG and PNG; returns the files."""
    written: list[Path] = []
    for result in _one_trial(results):
        if result.get("true_transition") is not None and result["method"] != "mns_true":
            written += _save(transition_figure(result), folder, f"transition-{_stem(result)}")
        if result.get("similarity") and result["method"] == "mns_estimated":
            written += _save(similarity_figure(result), folder, f"similarity-{_stem(result)}")
    for table in dict.fromkeys(r["table"] for r in results):
        chosen = [r for r in results if r["table"] == table]
        # The costs of pairs and of perceived classes are of another size: a figure each.
        for joint, stem in ((False, f"curves-{table}"), (True, f"curves-{table}-joint")):
            kind = [r for r in chosen if (r["method"] == "joint") is joint]
            if kind and (figure := curves_figure(kind)) is not None:
                written += _save(figure, folder, stem)
    return written


def transition_figure(result: Result) -> Figure:
    """The true T and the estimated one side by side, the errors under them (Figures 4 and 5)."""
    figure, axes = _subplots(1, 2, (7.2, 3.9))
    corner = slice(0, SHOWN)
    true = np.array(result["true_transition"])[corner, corner]
    estimated = np.array(result["transition"])[corner, corner]
    top = max(true.max(), estimated.max())
    for axis, matrix, name in zip(axes, (true, estimated), ("true T", "estimated T̂"), strict=True):
        _heat_map(axis, matrix, top)
        axis.set_title(name, fontsize=10)
    size = result["n_classes"]
    shown = f"first {SHOWN} of {size} classes; " if size > SHOWN else ""
    figure.suptitle(f"{_where(result)}, {METHOD_TITLES[result['method']]}", fontsize=11)
    figure.text(
        *(0.5, 0.02),
        f"{shown}error of T̂ {result['transition_error']:.4f}, of T̂T̂ᵀ {result['gram_error']:.4f}",
        ha="center",
        fontsize=9,
    )
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    return figure


def similarity_figure(result: Result) -> Figure:
    """Predicted noisy similarity of a similar and a dissimilar pair as area charts (Figure 3)."""
    examples: Record = result["similarity"]
    figure, axes = _subplots(1, len(examples), (3.8 * len(examples), 2.9))
    for axis, (name, example) in zip(axes, examples.items(), strict=True):
        classes = np.arange(1, len(example["left"]) + 1)
        for side, colour in (("left", BLUE), ("right", ORANGE)):
            label = "f(x)" if side == "left" else "f(x′)"
            axis.fill_between(classes, example[side], alpha=0.35, color=colour, label=label)
            axis.plot(classes, example[side], color=colour, linewidth=1)
        axis.set_title(f"{name} pair: Ŝ = {example['similarity']:.3f}", fontsize=10)
        axis.set_xlabel("class", fontsize=9)
        axis.set_ylim(bottom=0)
        axis.legend(fontsize=8, frameon=False)
    axes[0].set_ylabel("probability", fontsize=9)
    figure.suptitle(_where(result), fontsize=11)
    figure.tight_layout()
    return figure


def curves_figure(results: Sequence[Result]) -> Figure | None:
    """Training loss and held-out cost by epoch, a column a noise level, a line a method."""
    first = _one_trial(results)
    levels = list(dict.fromkeys((r["noise_kind"], r["noise"]) for r in first))
    if not any(r.get("curve", {}).get("loss") for r in first):
        return None
    figure, grid = _subplots(2, len(levels), (2.6 * len(levels) + 0.8, 4.6))
    for j, level in enumerate(levels):
        for r in (r for r in first if (r["noise_kind"], r["noise"]) == level):
            colour = f"C{METHODS.index(r['method'])}"
            for i, column in enumerate(("loss", "held_out")):
                points = r.get("curve", {}).get(column, [])
                epochs = range(1, len(points) + 1)
                title = METHOD_TITLES[r["method"]]
                grid[i, j].plot(epochs, points, label=title, color=colour, lw=1)
        grid[0, j].set_title(level[0] if level[1] is None else f"noise {level[1]:g}", fontsize=9)
        grid[1, j].set_xlabel("epoch", fontsize=9)
    grid[0, 0].set_ylabel("training loss", fontsize=9)
    grid[1, 0].set_ylabel("held-out cost (noisy)", fontsize=9)
    grid[0, 0].legend(fontsize=7, frameon=False)
    figure.suptitle(f"{load_title(results[0])}: learning curves, trial 0", fontsize=11)
    figure.tight_layout()
    return figure


def load_title(result: Result) -> str:
    table = result["table"]
    return load_settings(table).title if table in TABLES else str(table)


def _heat_map(axis: Axes, matrix: np.ndarray[Any, Any], top: float) -> None:
    axis.imshow(matrix, cmap="Blues", vmin=0, vmax=top)
    axis.set_xlabel("perceived class", fontsize=8)
    axis.set_ylabel("class", fontsize=8)
    axis.set_xticks(range(len(matrix)))
    axis.set_yticks(range(len(matrix)))
    axis.tick_params(labelsize=7, length=0)
    for (i, j), value in np.ndenumerate(matrix):
        colour = "white" if value > 0.6 * top else "black"
        text = f"{value:.2f}".lstrip("0") if value < 1 else "1"
        axis.text(j, i, text, ha="center", va="center", fontsize=5.5, color=colour)


def _subplots(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, Any]:
    """Axes without pyplot, which keeps figures and a display in global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=150)
    axes = figure.subplots(rows, columns, squeeze=False)
    return figure, axes if rows > 1 else axes[0]


def _save(figure: Figure, folder: Path, stem: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{stem}.{suffix}" for suffix in FORMATS]
    for path in paths:
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths


def _one_trial(results: Sequence[Result]) -> list[Result]:
    """The first trial of each cell."""
    first: dict[tuple[Any, ...], Result] = {}
    for r in sorted(results, key=lambda r: r["trial"]):
        first.setdefault((r["table"], r["noise_kind"], r["noise"], r["method"]), r)
    return list(first.values())


def _where(result: Result) -> str:
    noise = result["noise_kind"] if result["noise"] is None else f"noise {result['noise']:g}"
    return f"{load_title(result)}, {noise}"


def _stem(result: Result) -> str:
    noise = result["noise_kind"] if result["noise"] is None else f"{result['noise']:g}"
    return f"{result['table']}-{noise}-{result['method']}"
