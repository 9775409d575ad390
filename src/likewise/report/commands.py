"""Commands as they can be typed: where a run and its inputs lie, and how it was fitted."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from likewise.io.json import Record
from likewise.report.contents import Contents

GIVEN_T = "T.csv"  # stands for a file of T, of which a run keeps the numbers and not the place
# Options of `likewise fit`: where a run's configuration keeps them, and what needs no saying.
_OPTIONS = (
    ("parameters", "method", "--method", "auto"),
    ("parameters", "noise", "--noise", "auto"),
    ("parameters", "network", "--network", None),
    ("parameters", "held_out", "--held-out", 0.1),
    ("parameters", "device", "--device", "auto"),
    ("parameters", "random_state", "--seed", 0),
    ("recipe", "epochs", "--epochs", None),
    ("recipe", "batch_size", "--batch-size", None),
    ("recipe", "lr", "--lr", None),
    ("known", "path", "--known", None),
    ("gold", "path", "--gold", None),
    ("columns", "left", "--left", "left"),
    ("columns", "right", "--right", "right"),
    ("columns", "same", "--same", "same"),
    ("columns", "annotator", "--annotator", "annotator"),
    ("columns", "format", "--format", None),
    ("columns", "threshold", "--threshold", None),
    ("items", "id", "--id", None),
    ("items", "image_size", "--image-size", None),
    ("items", "embed", "--embed", None),
    ("items", "text", "--text", None),
    ("encoder", "pixels", "--pixels", None),
)


def knows_its_inputs(contents: Contents) -> bool:
    """Whether the run says where its items and judgements lie: commands go on from them."""
    return all(_part(contents.config, name).get("path") for name in ("items", "pairs"))


def run_path(contents: Contents) -> Path:
    """The run as the person named it; in full where its items are not seen from here.

    Where they lie is told as it was when the run was made: commands are for that folder.
    """
    seen = Path(str(_part(contents.config, "items").get("path"))).exists()
    return contents.folder if seen else contents.folder.resolve()


def beside(contents: Contents, ending: str) -> str:
    """A folder beside the run for another one, quoted."""
    folder, name = run_path(contents), f"{contents.name}-{ending}"
    has_name = folder.name not in ("", "..")
    return shlex.quote(str(folder.with_name(name) if has_name else folder / ".." / name))


def input_path(contents: Contents, name: str) -> str:
    """Where the "items" or "pairs" lie, quoted."""
    return shlex.quote(str(_part(contents.config, name)["path"]))


def fit_without(contents: Contents, people: Sequence[str]) -> str:
    """The fit as it was asked for, less some people, with the classes that it found."""
    config = contents.config
    before = config.get("without_people")
    left_out = [*(before if isinstance(before, list) else []), *people]
    return " ".join(
        [
            f"likewise fit {input_path(contents, 'items')} {input_path(contents, 'pairs')}",
            option("--classes", contents.n_classes),
            *_asked(config),
            *(option("--without-person", name) for name in left_out),
            option("--like", run_path(contents)),
            f"--out {beside(contents, 'without')}",
        ]
    )


def option(name: str, value: object) -> str:
    """An option and its value, quoted; joined where the value would be read as another option."""
    text = str(value)
    if text.startswith("-"):
        return shlex.quote(f"{name}={text}")
    return f"{name} {shlex.quote(text)}"


def _asked(config: Record) -> Iterator[str]:
    """The options of a fit that say something."""
    parameters = _part(config, "parameters")
    parts = {"recipe": _part(parameters, "recipe")}
    for part, key, name, usual in _OPTIONS:
        value = parts.get(part, _part(config, part)).get(key)
        if value is not None and value != usual:
            yield option(name, value)
    transition = parameters.get("transition", "estimate")
    if transition is None:
        yield option("--transition", "none")
    elif isinstance(transition, list):
        yield option("--transition", GIVEN_T)


def _part(record: Record, name: str) -> Record:
    found = record.get(name)
    return found if isinstance(found, dict) else {}
