"""Command lines that cannot be meant: each is refused before anything is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from malformed.case import Bench, Case, Make

# {run}, {items}, {pairs} are good inputs, {here} is the case's own folder.
FIT = "fit {items} {pairs} --out {here}/run --classes 4 --method mcl"
LINES: dict[str, str] = {
    "unknown command": "fitt {items} {pairs} --out {here}/run",
    "unknown option": "fit {items} {pairs} --out {here}/run --turbo",
    "command in capitals": "FIT {items} {pairs} --out {here}/run",
    "option before the command": "--json describe {pairs}",
    "no argument to describe": "describe",
    "two arguments to describe": "describe {pairs} {pairs}",
    "describe nothing": "describe {here}/none.csv",
    "describe a folder": "describe {here}",
    "describe the items": "describe {items}",
    "describe with classes none": "describe {pairs} --classes none",
    "describe with one class": "describe {pairs} --classes 1",
    "describe with another column": "describe {pairs} --left first",
    "describe with an empty column": "describe {pairs} --same=",
    "no out to fit": "fit {items} {pairs}",
    "no judgements to fit": "fit {items} --out {here}/run",
    "nothing to fit": "fit --out {here}/run",
    "fit items that are not there": "fit {here}/none.npy {pairs} --out {here}/run",
    "fit judgements that are not there": "fit {items} {here}/none.csv --out {here}/run",
    "fit in the wrong order": "fit {pairs} {items} --out {here}/run",
    "fit into a finished run": "fit {items} {pairs} --out {run}",
    "fit into a file": "fit {items} {pairs} --out {items}",
    "fit below a file": "fit {items} {pairs} --out {items}/run --classes 4 --method mcl",
    "classes a word": "fit {items} {pairs} --out {here}/run --classes ten",
    "classes a fraction": "fit {items} {pairs} --out {here}/run --classes 2.5",
    "no classes": "fit {items} {pairs} --out {here}/run --classes 0",
    "one class": "fit {items} {pairs} --out {here}/run --classes 1",
    "classes negative": "fit {items} {pairs} --out {here}/run --classes=-3",
    "more classes than items": "fit {items} {pairs} --out {here}/run --classes 100000",
    "classes past 64 bits": "fit {items} {pairs} --out {here}/run --classes 99999999999999999999",
    "method unknown": "fit {items} {pairs} --out {here}/run --classes 4 --method best",
    "method empty": "fit {items} {pairs} --out {here}/run --classes 4 --method=",
    "noise unknown": "fit {items} {pairs} --out {here}/run --classes 4 --noise loud --method joint",
    "network unknown": "{fit} --network gpt",
    "network for images": (
        "fit {items} {pairs} --out {here}/run --classes 4 --network lenet --method mcl"
    ),
    "network a path": "{fit} --network ./net.pt",
    "no epochs": "fit {items} {pairs} --out {here}/run --classes 4 --epochs 0",
    "epochs negative": "fit {items} {pairs} --out {here}/run --classes 4 --epochs=-1",
    "epochs a fraction": "fit {items} {pairs} --out {here}/run --classes 4 --epochs 1.5",
    "batch of one": "fit {items} {pairs} --out {here}/run --classes 4 --batch-size 1",
    "rate zero": "{fit} --lr 0",
    "rate negative": "{fit} --lr=-0.1",
    "rate nan": "{fit} --lr nan",
    "rate infinite": "{fit} --lr inf",
    "rate a word": "fit {items} {pairs} --out {here}/run --classes 4 --lr fast",
    "nothing held out": "{fit} --held-out 0",
    "everything held out": "{fit} --held-out 1",
    "held out nan": "{fit} --held-out nan",
    "held out twice over": "{fit} --held-out 2",
    "device unknown": "{fit} --device abacus",
    "device empty": "{fit} --device=",
    "device that has no tensors": "{fit} --device meta",
    "device not here": "{fit} --device cuda:99",
    "seed negative": "{fit} --seed=-1",
    "seed a word": "fit {items} {pairs} --out {here}/run --classes 4 --seed lucky",
    "transition not there": "fit {items} {pairs} --out {here}/run --classes 4 --transition t.npy",
    "transition of items": "fit {items} {pairs} --out {here}/run --classes 4 --transition {items}",
    "transition of judgements": (
        "fit {items} {pairs} --out {here}/run --classes 4 --transition {pairs}"
    ),
    "checkpoints before they are due": (
        "fit {items} {pairs} --out {here}/run --classes 4 --checkpoint-seconds=-1"
    ),
    "id column not there": "fit {items_csv} {pairs} --out {here}/run --classes 4 --id name",
    "image size zero": "fit {items} {pairs} --out {here}/run --classes 4 --image-size 0",
    "predict without items": "predict {run}",
    "predict without a model": "predict {here} {items}",
    "predict with a model that is not there": "predict {here}/none {items}",
    "predict with items as the model": "predict {items} {items}",
    "predict judgements": "predict {run} {pairs}",
    "evaluate without truth": "evaluate {run} {items}",
    "evaluate with truth not there": "evaluate {run} {items} {here}/none.csv",
    "evaluate with judgements as truth": "evaluate {run} {items} {pairs}",
    "evaluate with items as truth": "evaluate {run} {items} {items}",
    "evaluate with another column": "evaluate {run} {items} {pairs} --column label",
    "suspects without judgements": "suspects {run} {items}",
    "suspects with limit 0": "suspects {run} {items} {pairs} --limit 0",
    "suspects with judgements not there": "suspects {run} {items} {here}/none.csv",
    "name without labels": "name {run}",
    "name with labels not there": "name {run} {here}/none.csv",
    "simulate without out": "simulate",
    "simulate into a finished run": "simulate --out {run}",
    "simulate noise past one": "simulate --out {here}/data --class-noise 1.5",
    "simulate noise negative": "simulate --out {here}/data --class-noise=-0.1",
    "simulate noise nan": "simulate --out {here}/data --class-noise nan",
    "simulate kind unknown": "simulate --out {here}/data --kind pink",
    "simulate misses past one": "simulate --out {here}/data --miss 2",
    "simulate misses nan": "simulate --out {here}/data --miss nan",
    "simulate too many judgements": "simulate --out {here}/data --per-item 1000000",
    "simulate judgements negative": "simulate --out {here}/data --per-item=-1",
    "simulate careless past one": "simulate --out {here}/data --careless 3 --annotators 5",
    "simulate labels not there": "simulate --out {here}/data --labels {here}/none.csv",
    "reproduce nothing": "reproduce",
    "reproduce an unknown table": "reproduce table9 --out {here}/runs",
    "reproduce a path": "reproduce ../../etc/passwd --out {here}/runs",
    "reproduce no trials": "reproduce table1 --trials 0 --out {here}/runs",
    "reproduce an unknown method": "reproduce table1 --method magic --out {here}/runs",
    "reproduce noise past one": "reproduce table1 --noise 1.5 --out {here}/runs",
    "reproduce noise a word": "reproduce table1 --noise much --out {here}/runs",
    "reproduce without data": "reproduce table1 --data {here} --out {here}/runs",
    "reproduce figures of nothing": "reproduce figures --out {here}/runs",
    "report without a run": "report",
    "report of nothing": "report {here}",
    "report of a run not there": "report {here}/none",
    "report of a model": "report {run}/model",
    "report with truth not there": "report {run} --truth {here}/none.csv",
    "label nothing": "label {here} --no-browser --out {here}/j.db",
    "label a folder not there": "label {here}/none --no-browser --out {here}/j.db",
    "label at port 99999": "label {here} --port 99999 --no-browser --out {here}/j.db",
    "export nothing": "export {run}",
    "export without a model": "export {here} --onnx {here}/m.onnx",
    "suggest without judgements": "suggest {run} {items}",
    "suggest none": "suggest {run} {items} {pairs} --count 0",
    "bench for no time": "bench --seconds=-1",
}
TABLES: dict[str, str] = {
    "empty": "",
    "not toml": "table = ",
    "unknown setting": 'table = "t"\ntitle = "t"\nspeed = 3\n',
    "nothing but a name": 'table = "t"\n',
    "no noise": 'table = "t"\ntitle = "t"\ndataset = "mnist"\nnetwork = "lenet"\n'
    'noise_kind = ["symmetric"]\n',
    "recipe unknown": 'table = "t"\n[training]\nwarp = 9\n',
    "recipe impossible": 'table = "t"\n[training]\nepochs = 0\n',
    "table a number": "table = 3\ntitle = 4\ndataset = 5\nnetwork = 6\nnoise_kind = 7\n",
    "dataset unknown": 'table = "t"\ntitle = "t"\ndataset = "imagenet21k"\nnetwork = "lenet"\n'
    'noise_kind = ["symmetric"]\nnoise = [0.2]\n',
    "table leads elsewhere": 'table = "../../t"\ntitle = "t"\ndataset = "digits"\n'
    'network = "mlp"\nnoise_kind = ["symmetric"]\nnoise = [0.2]\n',
}
MATRICES: dict[str, str] = {
    "empty": "",
    "text": "a b\nc d\n",
    "ragged": "1 0\n1\n",
    "of another size": "1 0\n0 1\n",
    "negative": "2 -1\n0 1\n",
    "not a distribution": "1 1\n1 1\n",
    "nan": "nan 0\n0 1\n",
    "binary": "\0\1\2",
}


def cases() -> Iterator[Case]:
    """All of them."""
    for name, text in LINES.items():
        yield Case(f"command/{name}", line(text))
    for name, table in TABLES.items():
        asked = "reproduce {here}/table.toml --data {here} --out {here}/runs"
        yield Case(f"command/table/{name}", line(asked, {"table.toml": table}))
    for name, matrix in MATRICES.items():
        asked = "fit {items} {pairs} --out {here}/run --classes 4 --transition {here}/t.csv"
        yield Case(f"command/transition/{name}", line(asked, {"t.csv": matrix}))


def line(text: str, files: dict[str, str] | None = None, last: str | None = None) -> Make:
    """A command line split at its blanks; ``last`` is put to its last word with "=", whole."""

    def make(bench: Bench) -> list[Any]:
        for name, content in (files or {}).items():
            bench.write(name, content)
        given = {
            "here": bench.folder,
            "run": bench.run,
            "items": bench.items,
            "pairs": bench.pairs,
        }
        if "{items_csv}" in text:
            given["items_csv"] = bench.write("items.csv", "id,a\nx,1\ny,2\n")
        whole = text.replace("{fit}", FIT)
        words = [part.format(**given) for part in whole.split(" ")]
        return words if last is None else [*words[:-1], f"{words[-1]}={last}"]

    return make
