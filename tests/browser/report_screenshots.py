"""Takes the pictures of the report that the documentation shows.

python tests/browser/report_screenshots.py docs/images
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from devices import ARGUMENTS, DESKTOP, PHONE, find_chromium
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_digits

import likewise as lw
from likewise.report import render_report
from likewise.runs import write_run

SHOTS = {
    "report-glance": "#glance",
    "report-noise": "#noise",
    "report-classes": "#classes",
    "report-map": "#map",
    "report-suspects": "#suspects",
}


def digits_run(folder: Path) -> None:
    """Handwritten digits, 30% of them taken for another, judged sparsely by forty people."""
    digits = load_digits()
    items, truth = (255 - digits.images * 15).astype(np.uint8), digits.target
    perceived = lw.noise.corrupt_labels(truth, lw.noise.symmetric(10, 0.3), random_state=0)
    plain = lw.Pairs.from_labels(perceived, per_item=60, random_state=0)
    people = np.array([f"person {k + 1}" for k in range(40)])[np.arange(len(plain)) % 40]
    pairs = lw.Pairs(plain.left, plain.right, plain.same, people, n_items=len(items))
    classifier = lw.SimilarityClassifier(10, random_state=0, verbose=False).fit(items, pairs)
    config = {"command": "fit", "note": "digits, 30% taken for another"}
    write_run(folder, classifier, items, pairs, config=config, truth=truth)


def main(out: Path) -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        digits_run(folder / "digits")
        url = render_report(folder / "digits", folder / "report.html").as_uri()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
            page = browser.new_page(**DESKTOP)
            page.goto(url)
            for shot, selector in SHOTS.items():
                page.locator(selector).screenshot(path=out / f"{shot}.png")
            page.emulate_media(color_scheme="dark")
            page.evaluate("scrollTo(0, 0)")
            page.screenshot(path=out / "report-dark.png")
            phone = browser.new_page(**PHONE)
            phone.goto(url)
            phone.screenshot(path=out / "report-phone.png")
            browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
