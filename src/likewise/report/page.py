"""A run folder rendered as one HTML file that loads nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from likewise._version import __version__
from likewise.errors import InputError
from likewise.io.atomic import write_text
from likewise.io.json import Record
from likewise.io.progress import stage
from likewise.report import figures, findings, tables
from likewise.report.actions import actions
from likewise.report.colours import class_colours, heat_rules
from likewise.report.contents import Contents, read_contents, shorten, without_persons
from likewise.report.pictures import pictures_of
from likewise.report.scatter import pack_map
from likewise.runs import Run
from likewise.runs.verdict import source_of_transition

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent
SECTIONS = (
    ("glance", "At a glance"),
    ("judgements", "Judgements"),
    ("noise", "Noise found"),
    ("learning", "Learning"),
    ("classes", "Classes"),
    ("map", "Map"),
    ("calibration", "Probabilities"),
    ("suspects", "Probably wrong"),
    ("truth", "Against the truth"),
    ("made", "How it was made"),
)
LONGEST = 300


def render_report(
    run_folder: str | Path,
    out: str | Path,
    truth: ArrayLike | str | Path | None = None,
    pictures: str | Path | None = None,
    private: bool = False,
) -> Path:
    """Write the report of a run as one self-contained HTML file, and return its path.

    Parameters
    ----------
    run_folder : the folder that ``likewise fit --out`` wrote; only read
    out : the file to write
    truth : true classes, for a confusion matrix: a CSV or .npy file of labels, or one class an
        item; None takes those saved with the run, if any
    pictures : a folder of images named after the items, where the items themselves are features
    private : whether names, ids, pictures and single judgements are left out
    """
    run, path = Run.open(run_folder), Path(out)
    private = private or run.is_private
    if private and pictures is not None:
        raise InputError("a private report shows no pictures; leave --pictures out.")
    try:
        with stage(None, 0.3):
            contents = read_contents(run, truth)
        with stage("drawing the page", 0.5):
            page = render(without_persons(contents) if private else contents, pictures)
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as e:
        raise InputError(  # its files were changed: they may hold anything where numbers should be
            f"{run.folder} holds something that Likewise does not write there: {e}."
        ) from e
    # A file name that is no UTF-8 reaches us with characters that cannot be written: "?" instead.
    write_text(path, page.encode("utf-8", "replace").decode("utf-8"))
    return path


def render(contents: Contents, pictures: str | Path | None = None) -> str:
    """The page as text."""
    script = (FOLDER / "script.js").read_text(encoding="utf-8")
    return fill("page.html", script, context(contents, pictures))


def fill(template: str, script: str, values: Record) -> str:
    """A template filled in, with the style and a script that the page may run."""
    try:
        from jinja2 import TemplateError
        from markupsafe import Markup
    except ImportError as error:
        raise InputError(
            "a report needs jinja2: pip install 'likewise[report]', or '.[report]' in a clone."
        ) from error
    environment = _environment()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    try:
        return environment.get_template(template).render(
            **values,
            style=Markup(stylesheet()),
            script=Markup(script),
            script_hash=f"sha256-{digest}",
            version=__version__,
        )
    except TemplateError as error:
        raise ValueError(error.message) from error


@cache
def _environment() -> Environment:
    """What templates are compiled by: once, since that takes longer than to fill them in."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"count": count, "percent": percent, "two": two}
    environment.filters |= {"probability": probability, "short": shorten}
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    return environment


def context(contents: Contents, folder: str | Path | None = None) -> Record:
    """Everything the template shows."""
    cards, suspected = tables.class_cards(contents), tables.suspects(contents)
    pictures = pictures_of(contents, _wanted(cards, suspected), folder)
    found = contents.confusion()
    transition = tables.transition_matrix(contents)
    channel = tables.channel_matrix(contents)
    confusion = tables.confusion_matrix(contents, found)
    people, left_out = tables.people(contents.annotators)
    matrices = [m for m in (transition, channel, confusion) if m is not None and m.packed]
    return {
        "c": contents,
        "d": contents.judgements,
        "sections": [s for s in SECTIONS if s[0] != "truth" or found is not None],
        "headline": findings.headline(contents),
        "choice": findings.choice(contents),
        "tiles": findings.tiles(contents),
        "warnings": findings.warnings(contents),
        "compared": findings.compared(contents),
        "actions": actions(contents),
        "mistaken": findings.mistaken_share(contents),
        "gap": findings.calibration_gap(contents.calibration),
        "channel_words": findings.channel_words(contents.channel),
        "transition": transition,
        "transition_source": source_of_transition(contents.config),
        "channel": channel,
        "confusion": confusion,
        "accuracy": None if found is None else found.accuracy,
        "people": people,
        "people_left_out": left_out,
        "histogram": figures.reliability_histogram(contents.annotators),
        "curves": figures.learning_curves(contents.history, contents.metrics.get("best_epoch")),
        "stages": findings.stages(contents.history),
        "calibration": figures.calibration_chart(contents.calibration),
        "cards": cards,
        "named": not all(name.startswith("class ") for name in contents.class_names),
        "suspects": suspected,
        "pictures": pictures,
        "made": [(title, list(_rows(part))) for title, part in _made(contents)],
        "data": {
            "names": contents.class_names,
            "colours": class_colours(contents.n_classes),
            "pictures": pictures,
            "matrices": {matrix.key: matrix.packed for matrix in matrices},
            "map": pack_map(contents),
        },
    }


def stylesheet() -> str:
    """style.css, and the rules of the heat maps' shades in both schemes."""

    def rules(scheme: str) -> str:
        return "".join(
            f".h{level}{{background:{ground};color:{ink}}}"
            for level, ground, ink in heat_rules(scheme)
        )

    base = (FOLDER / "style.css").read_text(encoding="utf-8")
    dark = f"@media screen and (prefers-color-scheme: dark){{{rules('dark')}}}"
    return f"{base}{rules('light')}{dark}"


def count(value: float | None) -> str:
    """12345 as 12,345; nothing as a dash."""
    return "–" if value is None else f"{value:,.10g}"


def percent(value: float | None) -> str:
    """0.1234 as 12.3%, whole where a tenth says nothing; nothing as a dash."""
    if value is None:
        return "–"
    return f"{value:.0%}" if value in (0, 1) else f"{value:.1%}"


def two(value: float | None) -> str:
    """A number with two digits after the point; nothing as a dash."""
    return "–" if value is None else f"{value:.2f}"


def probability(value: float) -> str:
    """A percentage that never claims certainty."""
    return "> 99.9%" if value > 0.999 else "< 0.1%" if value < 0.001 else f"{value:.1%}"


def _wanted(cards: list[tables.ClassCard], suspected: list[tables.Suspect]) -> Iterator[int]:
    """Items to picture, the most worth seeing first: the page has room for so many."""
    for card in cards:
        yield from card.typical
    for suspect in suspected[:24]:
        yield from (suspect.left, suspect.right)
    for card in cards:
        yield from card.uncertain
    for suspect in suspected[24:]:
        yield from (suspect.left, suspect.right)


def _made(contents: Contents) -> Iterator[tuple[str, Record]]:
    versions = contents.config.get("versions")
    asked = {k: v for k, v in contents.config.items() if k not in ("versions", "kind", "version")}
    told = ("transition", "warnings", "class_names", "sizes", "choice")
    yield "Asked for", asked
    yield "Came out", {k: v for k, v in contents.metrics.items() if k not in told}
    if isinstance(versions, dict):
        yield "Made with", versions


def _rows(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as dotted names with short values."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _rows(inner, f"{prefix}.{key}" if prefix else str(key))
        return
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    yield prefix, text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
