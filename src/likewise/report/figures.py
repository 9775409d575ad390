"""Where things lie in a drawing. Plain numbers: the templates draw them and escape every string."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from likewise.io.json import Record
from likewise.report.contents import Columns

MAX_POINTS = 400
_NOT_CURVES = ("epoch", "round", "lr", "stage", "seconds", "step", "skipped")
_NAMES = {
    "loss": "training loss",
    "held_out": "held-out loss",
    "evidence": "log evidence of all judgements",
    "score": "log probability of an item’s judgements, from its features",
    "kept": "share of items taken for what they are",
}


@dataclass(frozen=True)
class Frame:
    """A drawing's size and the part of it that the data fills, in SVG units."""

    width: int = 560  # of the whole drawing
    height: int = 220  # of the whole drawing
    left: int = 58  # margin
    right: int = 22  # margin
    top: int = 12  # margin
    bottom: int = 30  # margin

    @property
    def inner(self) -> tuple[float, float]:
        return self.width - self.left - self.right, self.height - self.top - self.bottom

    def x(self, share: float) -> float:
        return round(self.left + share * self.inner[0], 2)

    def y(self, share: float) -> float:
        return round(self.top + (1 - share) * self.inner[1], 2)


@dataclass(frozen=True)
class Tick:
    at: float  # its place
    text: str  # its label


@dataclass(frozen=True)
class Hit:
    """An upright strip that shows ``tip`` when pointed at."""

    x: float  # left edge of what can be pointed at
    width: float  # and how wide it is
    tip: str  # what is told there


@dataclass(frozen=True)
class LineChart:
    """One quantity over the epochs of one stage; ``chosen`` is the x of the epoch that was kept."""

    title: str  # above it
    unit: str  # "epoch" or "round"
    frame: Frame  # its margins
    path: str  # the curve, as SVG
    x_ticks: list[Tick]  # below
    y_ticks: list[Tick]  # beside
    hits: list[Hit]  # what can be pointed at
    chosen: float | None  # x of the epoch that was kept
    chosen_text: str  # what is told there


def learning_curves(history: list[Record], best_epoch: int | None) -> list[LineChart]:
    """A chart for each quantity of each stage; the last stage is the one whose epoch was chosen."""
    stages = [list(rows) for _, rows in groupby(history, key=lambda row: row.get("method"))]
    charts = []
    for number, rows in enumerate(stages):
        counter = "round" if "round" in rows[0] else "epoch"
        unit = "round" if rows[0].get("method") == "em" else counter
        first = 0 if counter == "round" else 1  # epochs are kept from 0, and told from 1
        chosen = None
        if best_epoch is not None and number == len(stages) - 1:
            chosen = best_epoch + 1
        stage = str(rows[0].get("method") or "")
        prefix = f"{stage}: " if len(stages) > 1 and stage else ""
        for name in _curves(rows):
            kept = [
                (row.get(counter, k) + first, row[name])
                for k, row in enumerate(rows)
                if _finite(row.get(name))
            ]
            if len(kept) > 1:
                title = prefix + _NAMES.get(name, name.replace("_", " "))
                charts.append(line_chart(title, kept, chosen, unit))
    return charts


def line_chart(
    title: str,
    points: Sequence[tuple[float, float]],
    chosen: float | None = None,
    unit: str = "epoch",
) -> LineChart:
    """A curve through (epoch, value) points; ``unit`` is what the first are called."""
    frame = Frame()
    points = thin(points, chosen)
    epochs, values = [float(p[0]) for p in points], [float(p[1]) for p in points]
    y_ticks = nice_ticks(min(values), max(values))
    low, high = min(y_ticks[0], min(values)), max(y_ticks[-1], max(values))
    first, span = epochs[0], max(epochs[-1] - epochs[0], 1e-12)

    def place(epoch: float, value: float) -> tuple[float, float]:
        return frame.x((epoch - first) / span), frame.y((value - low) / max(high - low, 1e-12))

    at = [place(e, v) for e, v in zip(epochs, values)]
    step = frame.inner[0] / max(len(at) - 1, 1)
    hits = [
        Hit(round(x - step / 2, 2), round(step, 2), f"{unit} {e:g}: {title} {v:.4g}")
        for (x, _), e, v in zip(at, epochs, values)
    ]
    inside = chosen is not None and epochs[0] <= chosen <= epochs[-1]
    return LineChart(
        title=title,
        unit=unit,
        frame=frame,
        path="M" + "L".join(f"{x:g} {y:g}" for x, y in at),
        x_ticks=[
            Tick(place(t, low)[0], f"{t:g}")
            for t in nice_ticks(epochs[0], epochs[-1])
            if epochs[0] <= t <= epochs[-1] and t == int(t)
        ],
        y_ticks=[Tick(place(first, t)[1], f"{t:.4g}") for t in y_ticks],
        hits=hits,
        chosen=place(chosen, low)[0] if inside and chosen is not None else None,
        chosen_text=f"{unit} {chosen:g} kept" if inside else "",
    )


@dataclass(frozen=True)
class Dot:
    """A bin: predicted and observed share of "same", and the latter's 95% interval."""

    x: float  # its place
    y: float  # its place
    radius: float  # by judgements
    predicted: float  # mean P(same)
    observed: float  # share of "same"
    low: float  # end of its 95% interval
    high: float  # end of its 95% interval
    judgements: int  # behind it

    @property
    def tip(self) -> str:
        return (
            f"predicted {self.predicted:.0%}, said same {self.observed:.0%}, "
            f"{self.judgements:,} judgements"
        )


@dataclass(frozen=True)
class Calibration:
    """Predicted against observed shares of "same": a dot a bin, as large as its judgements."""

    frame: Frame  # its margins
    dots: list[Dot]  # a bin each
    path: str  # through them, as SVG
    ticks: list[Tick]  # both axes: x from the left, y from the bottom, in shares
    corner: tuple[float, float, float, float]  # the diagonal's ends


def calibration_chart(calibration: Record) -> Calibration | None:
    """The reliability diagram; None where no judgement could be looked at."""
    bins = calibration.get("bins") or {}
    if not bins.get("judgements"):
        return None
    frame = Frame(width=392, height=378, left=44, right=26, top=14, bottom=40)
    most = max(bins["judgements"])
    dots = []
    for p, o, n in zip(bins["predicted"], bins["observed"], bins["judgements"]):
        radius = round(3 + 9 * math.sqrt(n / most), 2)
        dots.append(Dot(frame.x(p), frame.y(o), radius, p, o, *wilson(o, n), n))
    return Calibration(
        frame=frame,
        dots=dots,
        path="M" + "L".join(f"{dot.x:g} {dot.y:g}" for dot in dots),
        ticks=[Tick(share, f"{share:.0%}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)],
        corner=(frame.x(0), frame.y(0), frame.x(1), frame.y(1)),
    )


def wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95% interval for a share seen among n."""
    from scipy.stats import binomtest

    interval = binomtest(round(share * n), n).proportion_ci(0.95, method="wilson")
    return float(interval.low), float(interval.high)


@dataclass(frozen=True)
class Histogram:
    """Upright bars over a range that ends at 1."""

    frame: Frame  # its margins
    bars: list[tuple[float, float, float, float, str]]  # x, y, width, height, tip
    ticks: list[Tick]  # below


def reliability_histogram(annotators: Columns | None) -> Histogram | None:
    """How many people are how reliable, in steps of 0.05; None for fewer than five people."""
    values = [float(v) for v in (annotators or {}).get("reliability", []) if _finite(v)]
    if len(values) < 5:
        return None
    frame = Frame(height=150, left=22)
    places = [min(19, math.floor(value * 20 + 1e-9)) for value in values]
    first = min(0, *places)  # somebody may be worse than chance
    bins = 20 - first
    counts = Counter(places)
    bars = []
    for place, count in sorted(counts.items()):
        left, y = frame.x((place - first) / bins) + 1, frame.y(count / max(counts.values()))
        who = "person" if count == 1 else "people"
        tip = f"{count} {who} from {place / 20:.2f} to {(place + 1) / 20:.2f}"
        width = frame.inner[0] / bins - 2
        bars.append((round(left, 2), y, round(width, 2), round(frame.y(0) - y, 2), tip))
    marks = [k / 4 for k in range(math.ceil(first / 5), 5)]
    ticks = [Tick(frame.x((mark * 20 - first) / bins), f"{mark:g}") for mark in marks]
    return Histogram(frame, bars, ticks)


def nice_ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers that span ``low`` to ``high``, some ``about`` steps apart."""
    if not high > low:
        high = low + (abs(low) or 1.0)
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def thin(
    points: Sequence[tuple[float, float]], keep: float | None = None
) -> Sequence[tuple[float, float]]:
    """At most some MAX_POINTS of many points, the ends and the one at ``keep`` among them."""
    if len(points) <= MAX_POINTS:
        return points
    step = -(-len(points) // MAX_POINTS)
    last = len(points) - 1
    return [p for k, p in enumerate(points) if k % step == 0 or k == last or p[0] == keep]


def _curves(rows: list[Record]) -> list[str]:
    names = dict.fromkeys(name for row in rows for name in row)
    return [
        name
        for name in names
        if name not in _NOT_CURVES and any(_finite(row.get(name)) for row in rows)
    ]


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
