"""Run tables on a GPU machine that has the code and the packed data, one table after the other.

    python benchmarks/gpu_session.py DATA OUT TABLE[:option=value,...][+TABLE...] ...

Each TABLE is a name or TOML file of `likewise.experiments` with cuts (noise, methods, trials,
epochs, concurrency, and the first trial to run) behind a colon, as in
``table2:noise=0.2/0.4,trials=3,epochs=40,concurrency=8``. ``name=NAME,joint.FIELD=VALUE`` tries
another recipe of the joint objective under a name of its own, ``training.FIELD=VALUE`` one of the
other methods, ``contrast.FIELD=VALUE`` another self-supervised start. Tables joined by ``+`` share
the GPU. A table waits until its data is there, so that a session can begin before all of it has
arrived. Finished cells are skipped, so that a session can be resumed.
"""

from __future__ import annotations

import json
import os
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")

import torch

from likewise.datasets.packed import load_packed
from likewise.errors import InputError
from likewise.experiments.grid import chain_programs, unfinished
from likewise.experiments.settings import TableSettings, load_settings
from likewise.experiments.store import load_results, write_collected
from likewise.training.scheduler import interleave


def main(data: Path, out: Path, groups: list[str]) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    for group in groups:
        started, programs, concurrency = time.time(), [], 4
        for spec in group.split("+"):
            name, _, options = spec.partition(":")
            cuts = dict(option.split("=") for option in options.split(",") if option)
            settings = cut(name, cuts)
            concurrency = int(cuts.get("concurrency", concurrency))
            dataset = wait_for(data, settings.dataset)
            first = int(cuts.get("first", 0))
            chains = [c for c in unfinished(settings, out) if c[0].trial >= first]
            programs += chain_programs(chains, settings, dataset, out, device, concurrency, report)
        interleave(programs, concurrency)
        print(f"== {group}: {time.time() - started:.0f} s", flush=True)
        write_collected(load_results(out), out / "collected")


def cut(name: str, cuts: dict[str, str]) -> TableSettings:
    settings = load_settings(name)
    settings = replace(
        settings,
        table=cuts.get("name", settings.table),
        training=settings.training.with_(**fields(cuts, "training")),
        joint=settings.joint.with_(**fields(cuts, "joint")),
        contrast=settings.contrast | fields(cuts, "contrast"),
    )
    return settings.cut(
        trials=int(cuts["trials"]) if "trials" in cuts else None,
        noise=tuple(cuts["noise"].split("/")) if "noise" in cuts else None,
        methods=tuple(cuts["methods"].split("/")) if "methods" in cuts else None,
        epochs=int(cuts["epochs"]) if "epochs" in cuts else None,
    )


def fields(cuts: dict[str, str], section: str) -> dict:
    """The options of a section, as ``joint.lr=0.1`` is of "joint"."""
    prefix = f"{section}."
    return {k.removeprefix(prefix): value(v) for k, v in cuts.items() if k.startswith(prefix)}


def value(text: str):
    """A number, null, or several numbers as 1.0/0.5."""
    parts = [json.loads(part) for part in text.split("/")]
    return parts if len(parts) > 1 else parts[0]


def report(result: dict) -> None:
    print(
        f"{result['table']} {result['noise_kind']} {result['noise']} {result['method']} "
        f"#{result['trial']}: {100 * result['accuracy']:.2f} (last "
        f"{100 * result['last_accuracy']:.2f}) used {result['classes_used']} "
        f"T {result['transition_error'] or 0:.3f} epoch {result['best_epoch']} "
        f"{result['seconds']:.0f} s",
        flush=True,
    )


def wait_for(data: Path, name: str):
    while True:
        try:
            return load_packed(data, name)
        except (InputError, OSError, EOFError, zipfile.BadZipFile):
            time.sleep(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
