"""A model card for every run: what the model is, what it learned from, how far to trust it.

Mitchell et al., "Model Cards for Model Reporting", 2019. Markdown with the header that model hubs
read. No item and no person is named.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from likewise.io.atomic import write_text
from likewise.io.json import Record
from likewise.runs.verdict import in_words, source_of_transition

MAX_SHOWN = 30


def write_card(
    folder: Path, name: str, figures: Record, judgements: Record, config: Record
) -> None:
    """Write the card into a run's folder, which is still called otherwise: it will be ``name``."""
    write_text(
        folder / "model_card.md", model_card(folder.with_name(name), figures, judgements, config)
    )


def model_card(run: str | Path, figures: Record, judgements: Record, config: Record) -> str:
    """The card of the run in a folder, as the person names it, from what its files hold.

    Of a private run the name alone is told: a path may hold a person's.
    """
    name = Path(run).name
    place = shlex.quote(name if config.get("private") else str(run))
    parts = [
        "---",
        "library_name: likewise",
        "pipeline_tag: other",
        "tags: [weak-supervision, noisy-similarity-labels]",
        "---",
        "",
        f"# {name}",
        "",
        f"A classifier of {figures['classes']} classes, learned from noisy answers to “are these "
        "two of the same kind?”. No class label was used but those that stand under “Asked for”.",
        "",
        "## What it learned from",
        "",
        f"- {figures['items']:,} items",
        f"- {figures['judgements']:,} judgements, {_share_same(judgements)}{_people(judgements)}",
        "",
        "## How it was learned",
        "",
        f"- Method: {figures['choice']}",
        f"- Network: {figures.get('network') or 'of the user'}",
        *_kept(figures, config),
        "",
        "## How far to trust it",
        "",
        *(f"- {text}" for text in _trust(figures)),
        "",
        "Probabilities are those of the classes found, not of true ones: judgements say which "
        "items are alike, never what they are.",
        "",
        "## Classes",
        "",
        *_classes(figures),
        "",
        "## Use",
        "",
        "```bash",
        f"likewise predict {place} new_items --out classes.csv",
        f"likewise report {place}",
        "```",
        "",
        "## Asked for",
        "",
        *(f"- {key}: `{value}`" for key, value in _asked(config)),
        "",
    ]
    return "\n".join(parts)


def _share_same(judgements: Record) -> str:
    total = max(int(judgements.get("judgements") or 0), 1)
    return f"{int(judgements.get('same') or 0) / total:.0%} of them “same”"


def _people(judgements: Record) -> str:
    people = judgements.get("annotators")
    return f", by {people:,} people" if people else ""


def _kept(figures: Record, config: Record) -> list[str]:
    transition = figures.get("transition")
    if not transition:
        return []
    kept = sum(row[k] for k, row in enumerate(transition)) / len(transition)
    source = source_of_transition(config)
    return [f"- Noise: an item is taken for what it is {kept:.0%} of the time, {source}"]


def _trust(figures: Record) -> list[str]:
    told = [*in_words(figures.get("comparison")), *figures.get("warnings", [])]
    if "accuracy" in figures:
        told.insert(0, f"Accuracy on the true classes that were given: {figures['accuracy']:.1%}.")
    return told or ["Nothing in the run calls for a warning."]


def _classes(figures: Record) -> list[str]:
    names, sizes = figures["class_names"], figures.get("sizes") or []
    rows = [
        f"- {name}: {size:,} items" for name, size in zip(names[:MAX_SHOWN], sizes, strict=False)
    ]
    more = len(names) - MAX_SHOWN
    return [*rows, f"- and {more} more"] if more > 0 else rows


def _asked(config: Record) -> list[tuple[str, object]]:
    parameters = config.get("parameters")
    asked = dict(parameters) if isinstance(parameters, dict) else {}
    for name in ("items", "pairs", "known", "gold"):
        record = config.get(name)
        if isinstance(record, dict):
            digest = record.get("sha256") or record.get("listing_sha256")
            asked[f"SHA-256 of {name}"] = digest
    shown = {key: value for key, value in asked.items() if value is not None}
    return [(key, str(value)[:200].replace("`", "'")) for key, value in shown.items()]
