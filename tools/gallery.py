"""The pictures of docs/gallery.md, made anew: each from a fit, or from a file in results/.

python tools/gallery.py [--out docs/images] [--only first known people]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import likewise as lw
from likewise.methods.groups import group

ROOT = Path(__file__).parents[1]
TEAL, SAND, INK = "#1f6f66", "#d9a15b", "#1d2523"
SHOWN = 14  # items of a class, evenly from the surest ones
SUREST = 150


def first(out: Path) -> None:
    """Digits that nobody named: 40% taken for another, yet the rows are pure."""
    digits = load_digits()
    rng = np.random.default_rng(0)
    perceived = lw.noise.corrupt_labels(digits.target, lw.noise.symmetric(10, 0.4), rng)
    pairs = lw.Pairs.from_labels(perceived, 50, rng)
    items = digits.data / 16
    clf = lw.SimilarityClassifier(10, random_state=0, verbose=False).fit(items, pairs)
    proba = clf.predict_proba(items)
    figure, axes = plt.subplots(10, SHOWN, figsize=(SHOWN * 0.62, 6.6))
    for k, row in enumerate(axes):
        order = np.argsort(-proba[:, k])[:SUREST]
        for axis, item in zip(row, order[:: SUREST // SHOWN]):
            axis.imshow(digits.images[item], cmap="gray_r", interpolation="bilinear")
            axis.set_axis_off()
    accuracy = clf.score(items, digits.target)
    figures = {"picture": "first.png", "judgements": len(pairs), "accuracy": round(accuracy, 4)}
    (ROOT / "results" / "gallery.json").write_text(json.dumps(figures) + "\n", encoding="utf-8")
    figure.suptitle(
        f"Ten classes found from {len(pairs):,} answers to “same digit?”; 40% of the digits were "
        f"mistaken for another\n(a row a class, its {SUREST} surest; {accuracy:.1%} right once the "
        "rows are named)",
        fontsize=10.5,
        color=INK,
    )
    figure.subplots_adjust(0.01, 0.01, 0.99, 0.91, 0.05, 0.05)
    _save(figure, out / "first.png")


def known(out: Path) -> None:
    """What twenty known items are worth where judgements are few."""
    rows = json.loads((ROOT / "results" / "known_items.json").read_text())
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.0), sharey=True)
    for axis, noise in zip(axes, (0.2, 0.4)):
        for count, colour in ((0, SAND), (20, TEAL)):
            found = [
                100 * row["accuracy"]
                for row in rows
                if row["noise"] == noise and row["known_items"] == count
            ]
            label = "no class known" if count == 0 else "20 items known"
            axis.plot(range(len(found)), found, "o-", color=colour, label=label, lw=1.2)
        axis.set_title(f"{noise:.0%} of digits mistaken for another", fontsize=10)
        axis.set_xlabel("seed")
        axis.set_ylim(0, 100)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("test accuracy, %")
    axes[0].legend(fontsize=8, loc="lower left")
    figure.tight_layout()
    _save(figure, out / "gallery-known.png")


def people(out: Path) -> None:
    """How reliable each person is, told from answers alone."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 40, 240)
    skill = np.concatenate([rng.uniform(0.75, 0.98, 26), np.full(4, 0.5), np.full(2, 0.08)])
    i, j = rng.integers(0, 240, (2, 6000))
    near = rng.random(6000) < 0.5
    by_kind = [np.flatnonzero(kind == kind[a]) for a in i]
    j = np.array([rng.choice(m) if n else b for m, n, b in zip(by_kind, near, j)])
    keep = i != j
    i, j = i[keep], j[keep]
    who = rng.integers(0, len(skill), len(i))
    right = rng.random(len(i)) < skill[who]
    same = (kind[i] == kind[j]) == right
    found = group(lw.Pairs(i, j, same, [f"p{k:02}" for k in who], n_items=240))
    told = dict(zip(found.annotators["annotator"], found.annotators["reliability"]))
    figure, axis = plt.subplots(figsize=(4.6, 3.4))
    guessed = [told[f"p{k:02}"] for k in range(len(skill))]
    axis.plot([-1, 1], [-1, 1], "--", color="#999999", lw=1)
    axis.scatter(2 * skill - 1, guessed, s=26, color=TEAL, edgecolor="white", lw=0.5)
    axis.set_xlabel("true reliability (1 right, 0 a coin, -1 swapped)")
    axis.set_ylabel("told from the answers")
    axis.grid(alpha=0.3)
    figure.tight_layout()
    _save(figure, out / "gallery-people.png")


def _save(figure: plt.Figure, path: Path) -> None:
    figure.savefig(path, dpi=130, facecolor="white")
    plt.close(figure)
    print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    makers = {"first": first, "known": known, "people": people}
    parser.add_argument("--only", nargs="+", choices=makers, default=list(makers))
    options = parser.parse_args()
    for name in options.only:
        makers[name](options.out)


if __name__ == "__main__":
    main()
