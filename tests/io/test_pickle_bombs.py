"""A pickle bomb in place of each file that any command reads is refused without running."""

from __future__ import annotations

import io
import pickle
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from likewise import SimilarityClassifier, cli
from likewise.datasets import load
from likewise.datasets.safe_pickle import load_arrays
from likewise.errors import InputError
from likewise.label import read_judgements
from likewise.pairs import Pairs
from likewise.runs import write_run
from likewise.training.checkpoints import Checkpoints
from malformed.case import Bomb
from malformed.items import npy

Maker = Callable[[Path], bytes]


def plain(mark: Path) -> bytes:
    return pickle.dumps(Bomb(mark))


def old(mark: Path) -> bytes:
    return pickle.dumps(Bomb(mark), 0)


def in_array(mark: Path) -> bytes:
    return npy(np.array([Bomb(mark)], object), pickled=True)


def in_npz(mark: Path) -> bytes:
    return _zipped({"items.npy": in_array(mark), "ids.npy": in_array(mark)})


def in_torch_zip(mark: Path) -> bytes:
    """As torch.save lays out a file."""
    return _zipped({"archive/data.pkl": plain(mark), "archive/version": b"3\n"})


def in_dict(mark: Path) -> bytes:
    """As CIFAR's Python version: a dictionary with bytes as keys."""
    return pickle.dumps({b"data": Bomb(mark), b"labels": [0], b"fine_labels": [0]})


def in_tar(mark: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        body = plain(mark)
        entry = tarfile.TarInfo("pickle")
        entry.size = len(body)
        archive.addfile(entry, io.BytesIO(body))
    return buffer.getvalue()


# The first two are tried wherever a file is read, the others there too by the slow tests.
MAKERS = (
    plain,
    in_array,
    *(
        pytest.param(m, marks=pytest.mark.slow)
        for m in (old, in_npz, in_torch_zip, in_dict, in_tar)
    ),
)


def _zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _name(maker: Maker) -> str:
    return maker.__name__


@pytest.mark.parametrize("maker", [plain, old])
def test_the_bomb_would_go_off(tmp_path: Path, maker: Maker) -> None:
    pickle.loads(maker(tmp_path / "mark"))
    assert (tmp_path / "mark").exists()


def test_the_bomb_in_an_array_would_go_off(tmp_path: Path) -> None:
    np.load(io.BytesIO(in_array(tmp_path / "mark")), allow_pickle=True)
    assert (tmp_path / "mark").exists()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run and everything that commands read."""
    folder = tmp_path_factory.mktemp("good")
    labels = np.arange(60) % 3
    items = np.eye(3, 8, dtype=np.float32)[labels] + np.random.default_rng(0).random((60, 8))
    np.save(folder / "items.npy", items.astype(np.float32))
    pairs = Pairs.from_labels(labels, per_item=20, random_state=0)
    pairs.write(folder / "pairs.csv")
    recipe = {"epochs": 1, "batch_size": 16}
    classifier = SimilarityClassifier(3, method="mcl", recipe=recipe, random_state=0, verbose=False)
    classifier.fit(items, pairs)
    write_run(folder / "run", classifier, items, pairs, config={"command": "fit"})
    return folder


# What each command reads, with the bombed file's name; {g} is the folder of good inputs.
COMMANDS = (
    *(("describe {here}/" + name, name) for name in ("p.csv", "p.parquet", "p.db", "p.json", "p")),
    *(("predict {g}/run {here}/" + name, name) for name in ("x.npy", "x.npz", "x.csv", "x.pq")),
    ("predict {g}/run {here}/images", "images/a.png"),
    ("predict {g}/run {here}/images", "images/a.jpg"),
    ("evaluate {g}/run {g}/items.npy {here}/truth.csv", "truth.csv"),
    ("evaluate {g}/run {g}/items.npy {here}/truth.npy", "truth.npy"),
    ("suspects {g}/run {g}/items.npy {here}/p.csv", "p.csv"),
    ("suggest {g}/run {g}/items.npy {here}/p.csv", "p.csv"),
    ("name {g}/run {here}/labels.csv", "labels.csv"),
    ("fit {here}/x.npy {g}/pairs.csv --classes 3 --out {here}/out", "x.npy"),
    ("fit {g}/items.npy {here}/p.csv --classes 3 --out {here}/out", "p.csv"),
    ("fit {g}/items.npy {g}/pairs.csv --out {here}/o --transition {here}/t.npy", "t.npy"),
    ("fit {g}/items.npy {g}/pairs.csv --out {here}/o --transition {here}/t.csv", "t.csv"),
    ("simulate --labels {here}/labels.npy --out {here}/out", "labels.npy"),
    ("simulate --labels {here}/labels.csv --out {here}/out", "labels.csv"),
    ("reproduce {here}/table.toml --out {here}/out", "table.toml"),
    ("reproduce table1 --data {here} --out {here}/out", "MNIST/raw/train-images-idx3-ubyte"),
    ("label {here}/images --no-browser --out {here}/answers.db", "answers.db"),
    ("label {here}/x.npy --no-browser --out {here}/j.db", "x.npy"),
)  # fmt: skip
BATCHES = ("test_batch", *(f"data_batch_{k}" for k in range(1, 6)))
RUN_FILES = (
    *("config.json", "metrics.json", "history.csv", "report.json", "items.npz"),
    *("model/model.json", "model/weights.safetensors"),
)


@pytest.mark.parametrize("maker", MAKERS, ids=_name)
@pytest.mark.parametrize(("line", "name"), COMMANDS)
def test_commands_refuse_it(
    good: Path,
    tmp_path: Path,
    maker: Maker,
    line: str,
    name: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(maker(tmp_path / "mark"))
    if name == "answers.db":
        _picture(tmp_path / "images" / "a.png")
        _picture(tmp_path / "images" / "b.png")
    status = cli.run(line.format(g=good, here=tmp_path).split())
    assert not (tmp_path / "mark").exists()
    assert status == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("maker", MAKERS, ids=_name)
@pytest.mark.parametrize("name", RUN_FILES)
def test_runs_and_models_refuse_it(good: Path, tmp_path: Path, maker: Maker, name: str) -> None:
    run = tmp_path / "run"
    shutil.copytree(good / "run", run)
    (run / name).write_bytes(maker(tmp_path / "mark"))
    lines = [f"report {run}", f"predict {run} {good}/items.npy"]
    statuses = [cli.run(line.split()) for line in lines]
    assert not (tmp_path / "mark").exists()
    assert 2 in statuses
    assert 1 not in statuses


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("maker", MAKERS, ids=_name)
def test_checkpoints_refuse_it(good: Path, tmp_path: Path, maker: Maker) -> None:
    path = tmp_path / "checkpoints" / "stage-0.000001.safetensors"
    path.parent.mkdir()
    path.write_bytes(maker(tmp_path / "mark"))
    classifier = SimilarityClassifier(3, method="mcl", verbose=False, random_state=0)
    with pytest.raises(InputError, match="begin again"):
        classifier.fit(
            np.load(good / "items.npy"),
            Pairs.read(good / "pairs.csv"),
            checkpoints=Checkpoints(path.parent),
        )
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("maker", MAKERS, ids=_name)
@pytest.mark.parametrize(
    ("dataset", "names"),
    [
        ("mnist", [f"{split}-images-idx3-ubyte" for split in ("train", "t10k")]),
        ("mnist", [f"{split}-labels-idx1-ubyte.gz" for split in ("train", "t10k")]),
        ("cifar10", [f"cifar-10-batches-py/{name}" for name in BATCHES]),
        ("cifar10", [f"cifar-10-batches-bin/{name}.bin" for name in BATCHES]),
        ("cifar100", ["cifar-100-python/train", "cifar-100-python/test", "cifar-100-python/meta"]),
        ("cifar100", ["cifar-100-binary/train.bin", "cifar-100-binary/test.bin"]),
    ],
)
def test_data_sets_refuse_it(tmp_path: Path, maker: Maker, dataset: str, names: list[str]) -> None:
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(maker(tmp_path / "mark"))
    with pytest.raises(InputError):
        load(dataset, tmp_path)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("maker", MAKERS, ids=_name)
def test_the_database_of_answers_refuses_it(tmp_path: Path, maker: Maker) -> None:
    path = tmp_path / "answers.db"
    path.write_bytes(maker(tmp_path / "mark"))
    with pytest.raises(InputError):
        read_judgements(path)
    assert not (tmp_path / "mark").exists()


def _picture(path: Path) -> None:
    from PIL import Image

    path.parent.mkdir(exist_ok=True)
    Image.new("RGB", (4, 4)).save(path)


def test_a_refusal_does_not_repeat_the_file(tmp_path: Path) -> None:
    """Found by make fuzz: a name in a pickle may be as long as the file."""
    (tmp_path / "batch").write_bytes(b"c" + b"m" * 100_000 + b"\nname\n.")
    said = r"batch was refused: .*m \.\.\. m.*Nothing in it was run"
    with pytest.raises(InputError, match=said) as told:
        load_arrays(tmp_path / "batch")
    assert len(str(told.value)) < 700
