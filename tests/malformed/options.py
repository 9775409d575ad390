"""Every option that takes a number or a name, with values that it cannot take."""

from __future__ import annotations

from collections.abc import Iterator

from malformed.case import Case
from malformed.commands import line

FIT = "fit {items} {pairs} --out {here}/run --classes 4 --method mcl"
WHOLE = ("", "word", "1.5", "nan", "inf", "-1", "0x10", "1e3", "1 2", "9" * 30, "½", "1;2")
NUMBER = ("", "word", "nan", "inf", "-inf", "-0.5", "1,5", "1e999", "0.5.1", "½")
NAME = ("", "none-such", "../../etc/passwd", "\x1b[31m", "a" * 500, "left;right")

# Where the option goes, and the values that must be refused there.
OPTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "fit --classes": ("fit {items} {pairs} --out {here}/run --method mcl --classes", WHOLE),
    "fit --epochs": (f"{FIT} --epochs", WHOLE),
    "fit --batch-size": (f"{FIT} --batch-size", WHOLE),
    "fit --seed": (f"{FIT} --seed", WHOLE),
    "fit --image-size": (f"{FIT} --image-size", WHOLE[:-3]),
    "fit --lr": (f"{FIT} --lr", NUMBER),
    "fit --held-out": (f"{FIT} --held-out", NUMBER),
    "fit --checkpoint-seconds": (f"{FIT} --checkpoint-seconds", ("", "word", "-0.5", "1,5")),
    "fit --method": ("fit {items} {pairs} --out {here}/run --method", NAME),
    "fit --noise": ("fit {items} {pairs} --out {here}/run --method joint --noise", NAME),
    "fit --network": (f"{FIT} --network", NAME),
    "fit --device": (f"{FIT} --device", (*NAME, "gpu", "cuda:x", "cuda:-1", "cpu:x")),
    "fit --transition": (f"{FIT} --transition", NAME),
    "fit --track": (f"{FIT} --track", (*NAME, "tensorboard", "tensorboard:", "mlflow:", "wandb:x")),
    "fit --left": (f"{FIT} --left", NAME),
    "fit --right": (f"{FIT} --right", NAME),
    "fit --same": (f"{FIT} --same", NAME),
    "fit --annotator": (f"{FIT} --annotator", NAME[1:]),
    "describe --classes": ("describe {pairs} --classes", (*WHOLE, "0", "1")),
    "describe --left": ("describe {pairs} --left", NAME),
    "describe --same": ("describe {pairs} --same", NAME),
    "group --groups": ("group {pairs} --groups", WHOLE),
    "group --seed": ("group {pairs} --seed", WHOLE),
    "group --left": ("group {pairs} --left", NAME),
    "predict --image-size": ("predict {run} {items} --image-size", WHOLE[:7]),
    "evaluate --column": ("evaluate {run} {items} {labels} --column", NAME[1:]),
    "suspects --limit": ("suspects {run} {items} {pairs} --limit", WHOLE[:8]),
    "suspects --same": ("suspects {run} {items} {pairs} --same", NAME),
    "suggest --count": ("suggest {run} {items} {pairs} --count", WHOLE[:8]),
    "name --column": ("name {run} {labels} --column", NAME[1:]),
    "simulate --class-noise": ("simulate --out {here}/data --class-noise", NUMBER),
    "simulate --miss": ("simulate --out {here}/data --miss", NUMBER),
    "simulate --false-alarm": ("simulate --out {here}/data --false-alarm", NUMBER),
    "simulate --careless": ("simulate --out {here}/data --annotators 5 --careless", NUMBER),
    "simulate --per-item": ("simulate --out {here}/data --per-item", WHOLE),
    "simulate --annotators": ("simulate --out {here}/data --annotators", WHOLE),
    "simulate --seed": ("simulate --out {here}/data --seed", WHOLE),
    "simulate --kind": ("simulate --out {here}/data --kind", NAME),
    "reproduce --trials": ("reproduce table1 --data {here} --out {here}/r --trials", WHOLE),
    "reproduce --noise": ("reproduce table1 --data {here} --out {here}/r --noise", NUMBER),
    "reproduce --methods": ("reproduce table1 --data {here} --out {here}/r --methods", NAME[1:]),
    "reproduce --epochs": ("reproduce table1 --data {here} --out {here}/r --epochs", WHOLE),
    "label --port": ("label {here} --no-browser --out {here}/j.db --port", (*WHOLE, "65536")),
    "label --classes": ("label {here} --no-browser --out {here}/j.db --classes", WHOLE),
    "bench --seconds": ("bench --seconds", ("", "word", "nan", "inf", "-1")),
}


def cases() -> Iterator[Case]:
    """All of them."""
    labels = {"labels.csv": "item,label\n" + "".join(f"{k},{k % 10}\n" for k in range(200))}
    for name, (template, values) in OPTIONS.items():
        for value in values:
            # One word, so that a value that begins with a dash is a value.
            shown = ascii(value if len(value) < 20 else f"{value[:5]}... ({len(value)})")
            filled = template.replace("{labels}", "{here}/labels.csv")
            yield Case(f"option/{name}/{shown}", line(filled, labels, last=value))
