"""How large the report of a large run is, and how fast it opens (issue: under 5 MB, under 2 s).

    python benchmarks/report_size.py            # 50,000 pictures, 1,000,000 judgements
    python benchmarks/report_size.py --items 5000 --judgements 100000

A real run is written (random colour pictures in ten kinds, a short fit, 200 people), its
report is rendered and opened in Chromium several times; results/report.json gets the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import likewise as lw
from likewise.pairs.sampling import random_pairs
from likewise.report import render_report
from likewise.runs import write_run

RESULTS = Path(__file__).parent.parent / "results" / "report.json"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
LOADED = """() => {
  const entry = performance.getEntriesByType("navigation")[0];
  return { interactive: entry.domInteractive, loaded: entry.loadEventEnd };
}"""


def make_run(folder: Path, n_items: int, n_judgements: int, rng: np.random.Generator) -> None:
    """A run of pictures (16 x 16 x 3) with a truth, names and people."""
    truth = rng.integers(10, size=n_items)
    kinds = rng.integers(256, size=(10, 16, 16, 3))
    noise = rng.normal(0, 60, size=(n_items, 16, 16, 3))
    items = (kinds[truth] + noise).clip(0, 255).astype(np.uint8)
    left, right = random_pairs(n_items, n_judgements, rng)
    people = np.array([f"person {k:03d}" for k in range(200)])[rng.integers(200, size=n_judgements)]
    same = (truth[left] == truth[right]) ^ (rng.random(n_judgements) < 0.1)
    pairs = lw.Pairs(left, right, same, people, n_items=n_items)
    recipe = {"epochs": 5, "batch_size": 1024}
    classifier = lw.SimilarityClassifier(
        10, method="mcl", network="mlp", recipe=recipe, random_state=0, verbose=False
    )
    few = np.arange(min(n_items, 5000))  # what is learned does not matter here, only its size
    classifier.fit(items[few], pairs.subset(few))
    names = np.unique(people)
    annotators = {
        "annotator": names.tolist(),
        "judgements": np.bincount(np.searchsorted(names, people)).tolist(),
        "same_given_same": rng.uniform(0.8, 1, 200).tolist(),
        "same_given_different": rng.uniform(0, 0.2, 200).tolist(),
        "reliability": rng.uniform(0.6, 1, 200).tolist(),
    }
    classifier.result_ = classifier.result_.with_(
        transition=lw.noise.symmetric(10, 0.1), annotators=annotators
    )
    ids = [f"photo-{k:06d}.jpg" for k in range(n_items)]
    write_run(folder, classifier, items, pairs, config={"command": "bench"}, ids=ids, truth=truth)


def open_times(path: Path, times: int) -> dict[str, Any]:
    """Seconds until the page is interactive, and until it has loaded and drawn its map."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("LIKEWISE_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        raise SystemExit("this benchmark needs Chromium (apt-get install chromium)")
    interactive, loaded, painted, errors = [], [], [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        for _ in range(times):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
            page.on("pageerror", lambda error: errors.append(str(error)))
            started = time.perf_counter()
            page.goto(path.as_uri(), wait_until="load")
            page.evaluate("() => new Promise((done) => requestAnimationFrame(() => done()))")
            painted.append(time.perf_counter() - started)
            entry = page.evaluate(LOADED)
            interactive.append(entry["interactive"] / 1000)
            loaded.append(entry["loaded"] / 1000)
            page.close()
        version = browser.version
        browser.close()
    return {
        "chromium": version,
        "interactive_s": round(statistics.median(interactive), 3),
        "loaded_s": round(statistics.median(loaded), 3),
        "painted_s": {
            "median": round(statistics.median(painted), 3),
            "worst": round(max(painted), 3),
            "times": times,
        },
        "console_errors": errors,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--judgements", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(min(2, os.cpu_count() or 1))
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        make_run(run, options.items, options.judgements, np.random.default_rng(0))
        started = time.perf_counter()
        page = render_report(run, Path(folder) / "report.html")
        rendered = time.perf_counter() - started
        result = {
            "items": options.items,
            "judgements": options.judgements,
            "bytes": page.stat().st_size,
            "render_s": round(rendered, 2),
            "cores": os.cpu_count(),
            **open_times(page, options.times),
        }
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
