"""The gallery's pictures are there, and the table of known items is what results/ says."""

import json
import re

import pytest

from docs_pages import DOCS, ROOT

PICTURE = re.compile(r"!\[[^\]]+\]\((images/[^)]+)\)")


@pytest.mark.parametrize("page", ["gallery.md", "known.md"])
def test_every_picture_is_there(page):
    shown = PICTURE.findall((DOCS / page).read_text())
    assert shown
    for picture in shown:
        assert (DOCS / picture).read_bytes().startswith(b"\x89PNG")


def test_the_table_of_known_items_is_measured():
    rows = json.loads((ROOT / "results" / "known_items.json").read_text())
    told = (DOCS / "known.md").read_text()
    for noise in (0.2, 0.4):
        means = []
        for count in (0, 20):
            found = [
                r["accuracy"] for r in rows if r["noise"] == noise and r["known_items"] == count
            ]
            means.append(f"{100 * sum(found) / len(found):.1f}")
        assert f"| {noise:.0%} | {means[0]} | {means[1]} |" in told
