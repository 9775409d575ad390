"""The tables of docs/measured.md, anew from what results/ keeps; nothing is run.

python benchmarks/measured.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import all_pairs_slips
import asking
import asking_mnist
import beside_simple
import ceiling
import crowd
import crowd_simulated
import digits_recipe
import few_judgements
import joint_digits
import no_cliff_images
import recipes_tried
from likewise.io.atomic import write_text

PAGE = Path(__file__).parents[1] / "docs" / "measured.md"


def tables() -> dict[str, str]:
    """Each table of the page, in Markdown."""
    digits = _read(joint_digits.RESULTS)
    return {
        "joint_digits": joint_digits.table(digits),
        "all_pairs_slips": all_pairs_slips.table(_read(all_pairs_slips.RESULTS)),
        "no_cliff_images": no_cliff_images.table(_read(no_cliff_images.RESULTS)),
        "few_judgements": few_judgements.table(_read(few_judgements.RESULTS)),
        "crowd": crowd.crowd_table(_read(crowd.RESULTS)["crowds"]),
        "crowd_simulated": crowd_simulated.table(_check(_read(crowd_simulated.RESULTS))),
        "ceiling": ceiling.table(_read(ceiling.RESULTS)["rows"]),
        "likeliest": ceiling.likeliest_table(_read(ceiling.RESULTS)["likeliest"]),
        "beside_simple": beside_simple.table(beside_simple.newest()),
        "asking": asking.table(_read(asking.RESULTS)),
        "asking_mnist": asking_mnist.table(_read(asking_mnist.RESULTS)),
        "recipes_tried": recipes_tried.table(),
        "digits_recipe": digits_recipe.table(_read(digits_recipe.RESULTS)),
    }


def filled(text: str) -> str:
    """``text`` with the tables between ``<!-- NAME -->`` and ``<!-- /NAME -->`` anew."""
    for name, rows in tables().items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = text.partition(begin)
        text = before + begin + rows + "\n" + end + rest.partition(end)[2]
    return text


def _check(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["part"] == "check"]


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    write_text(PAGE, filled(PAGE.read_text(encoding="utf-8")))
