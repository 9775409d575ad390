"""Every mistake a person makes: one clear sentence, status 2, and nothing half-written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from cli_cases import FIT, N_ITEMS, Files, complaint, make_files, run

HEAD = "left,right,same\n"
SOME = "0,1,0\n1,2,0\n0,3,1\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    made = make_files(tmp_path_factory.mktemp("bad"))
    assert run("fit", made.items_npy, made.pairs_csv, "--out", made.run, *FIT) == 0
    return made


@pytest.fixture
def folder(files: Files, tmp_path: Path) -> Iterator[Path]:
    """A place for bad files, checked afterwards: a refused command leaves nothing behind."""
    yield tmp_path
    left = {path.name for path in tmp_path.rglob("*")} - {"bad", "full", "here.txt"}
    stray = {name for name in left if name.startswith((".", "out")) or name.endswith(".tmp")}
    assert not stray


def bad(folder: Path, name: str, content: str | bytes) -> str:
    path = folder / "bad" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def array(folder: Path, name: str, values: object) -> str:
    path = folder / "bad" / name
    path.parent.mkdir(exist_ok=True)
    np.save(path, np.asarray(values))
    return str(path)


# Judgements: (the file's content, words that the sentence must hold).
PAIRS = {
    "index out of range": (HEAD + SOME + f"0,{N_ITEMS},1\n", (f"{N_ITEMS}", f"{N_ITEMS} items")),
    "negative index": (HEAD + SOME + "-1,2,1\n", ("-1", "line 5")),
    "item with itself": (HEAD + SOME + "4,4,1\n", ("line 5", "itself")),
    "unknown label": (HEAD + SOME + "4,5,perhaps\n", ("line 5", "perhaps", "same/different")),
    "label 2": (HEAD + SOME + "4,5,2\n", ("line 5", "2")),
    "missing column": ("left,right,answer\n0,1,1\n", ("same", "left, right, answer")),
    "only same": (HEAD + "0,3,1\n3,6,1\n1,4,1\n", ("same", "both kinds")),
    "only different": (HEAD + "0,1,0\n3,7,0\n1,5,0\n", ("different", "both kinds")),
    "no judgement": (HEAD, ("no judgement",)),
    "all unsure": (HEAD + "0,1,\n1,2,unsure\n", ("no judgement", "unsure")),
    "empty file": ("", ("empty",)),
    "ragged rows": (HEAD + "0,1,1\n0,1\n", ("columns",)),
    "an image": (b"\x89PNG\r\n\x1a\n" + bytes(64), ("PNG",)),
    "a pickle": (b"\x80\x04\x95\x00\x00.", ("pickle",)),
    "not UTF-8": (HEAD.encode() + b"\xff\xfe,1,1\n", ("UTF",)),
}  # fmt: skip


@pytest.mark.parametrize("case", PAIRS)
def test_bad_judgements(
    case: str, files: Files, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, words = PAIRS[case]
    pairs = bad(folder, "pairs.csv", content)
    said = complaint(
        capsys, "fit", files.items_npy, pairs, "--out", str(folder / "out"), "--classes", "3"
    )
    assert all(word in said for word in words), said


def test_parquet_in_a_csv_name(
    files: Files, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from likewise.pairs import Pairs

    (folder / "bad").mkdir()
    Pairs([0, 1], [1, 2], [1, 0]).write(folder / "bad" / "p.parquet")
    shutil.copy(folder / "bad" / "p.parquet", folder / "bad" / "p.csv")
    assert "Parquet" in complaint(capsys, "describe", str(folder / "bad" / "p.csv"))


# Items: (how to make the file, words that the sentence must hold).
ITEMS: dict[str, tuple[Callable[[Path], str], tuple[str, ...]]] = {
    "NaN": (lambda f: array(f, "x.npy", _with(np.nan)), ("item 7", "NaN", "(2,)")),
    "infinite": (lambda f: array(f, "x.npy", _with(np.inf)), ("item 7", "inf")),
    "text in a table": (
        lambda f: bad(f, "x.csv", "a,b\n1,2\n3,many\n"),
        ("line 3", "b is 'many'", "number"),
    ),
    "blank in a table": (lambda f: bad(f, "x.csv", "a,b\n1,2\n3,\n"), ("line 3", "b is blank")),
    "no rows": (lambda f: bad(f, "x.csv", "a,b\n"), ("no rows",)),
    "text array": (lambda f: array(f, "x.npy", ["a", "b"]), ("numbers",)),
    "one axis": (lambda f: array(f, "x.npy", np.zeros(60)), ("shape (60,)",)),
    "no items": (lambda f: array(f, "x.npy", np.zeros((0, 3))), ("no items",)),
    "cut short": (
        lambda f: bad(f, "x.npy", _cut(f)),
        ("damaged",),
    ),
    "not NumPy": (lambda f: bad(f, "x.npy", "a,b\n1,2\n"), ("not a NumPy file",)),
    "objects": (lambda f: bad(f, "x.npy", _object_array()), ("Python objects",)),
    "zip without arrays": (lambda f: bad(f, "x.npz", _npz(f, a=1, b=2)), ("a, b", "items")),
    "no file": (lambda f: str(f / "none.npy"), ("no file",)),
    "folder without images": (lambda f: str(_empty(f)), ("no images",)),
    "broken image": (lambda f: _images(f, b"\xff\xd8\xff\xe0broken"), ("a.jpg",)),
}


def _with(value: float) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    x = np.zeros((N_ITEMS, 3))
    x[7, 2] = value
    return x


def _cut(folder: Path) -> bytes:
    whole = Path(array(folder, "whole.npy", np.zeros((60, 3)))).read_bytes()
    return whole[:-100]


def _object_array() -> bytes:
    from io import BytesIO

    file = BytesIO()
    np.save(file, np.array([{}, {}], object), allow_pickle=True)
    return file.getvalue()


def _npz(folder: Path, **arrays: object) -> bytes:
    (folder / "bad").mkdir(exist_ok=True)
    np.savez(folder / "bad" / "made.npz", **{k: np.asarray(v) for k, v in arrays.items()})
    return (folder / "bad" / "made.npz").read_bytes()


def _empty(folder: Path) -> Path:
    (folder / "bad").mkdir(exist_ok=True)
    return folder / "bad"


def _images(folder: Path, content: bytes) -> str:
    return str(Path(bad(folder, "a.jpg", content)).parent)


@pytest.mark.parametrize("case", ITEMS)
def test_bad_items(
    case: str, files: Files, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, words = ITEMS[case]
    said = complaint(
        capsys, "fit", make(folder), files.pairs_csv, "--out", str(folder / "out"), "--classes", "3"
    )
    assert all(word in said for word in words), said


OPTIONS = {
    "one class": (("--classes", "1"), ("at least two classes",)),
    "more classes than items": (("--classes", "61"), ("61", "60")),
    "classes in words": (("--classes", "three"), ("three",)),
    "unknown method": (("--method", "magic"), ("magic", "joint")),
    "unknown noise": (("--noise", "magic", "--method", "joint"), ("magic", "judgement")),
    "unknown network": (("--network", "magic"), ("magic", "mlp")),
    "network for images": (("--network", "lenet"), ("lenet",)),
    "no epochs": (("--epochs", "0"), ("--epochs",)),
    "rate of nothing": (("--lr", "0"), ("lr must be positive",)),
    "everything held out": (("--held-out", "1"), ("held-out", "1")),
    "unknown device": (("--device", "abacus"), ("abacus",)),
    "unknown tracker": (("--track", "notebook"), ("notebook",)),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_bad_options(
    case: str, files: Files, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options, words = OPTIONS[case]
    usual = () if "--classes" in options else ("--classes", "3")
    said = complaint(
        capsys, "fit", files.items_npy, files.pairs_csv, "--out", str(folder / "out"), "--quiet",
        *usual, *options,
    )  # fmt: skip
    assert all(word in said for word in words), said


MATRICES = {
    "rows do not sum to 1": ("0.8,0.1,0.2\n0.1,0.8,0.1\n0.1,0.1,0.8\n", ("row 0", "1.1")),
    "wrong size": ("0.8,0.2\n0.2,0.8\n", ("2 classes", "3")),
    "not square": ("0.8,0.2\n", ("square",)),
    "negative": ("1.1,-0.1,0\n0,1,0\n0,0,1\n", ("negative",)),
    "not numbers": ("a,b\nc,d\n", ("no matrix",)),
}


@pytest.mark.parametrize("case", MATRICES)
def test_bad_transition(
    case: str, files: Files, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, words = MATRICES[case]
    said = complaint(
        capsys, "fit", files.items_npy, files.pairs_csv, "--out", str(folder / "out"), *FIT,
        "--method", "mns", "--transition", bad(folder, "t.csv", content),
    )  # fmt: skip
    assert all(word in said for word in words), said


def test_an_output_folder_that_holds_something(
    files: Files, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = folder / "full"
    full.mkdir()
    (full / "here.txt").write_text("mine")
    fit = ("fit", files.items_npy, files.pairs_csv, *FIT, "--out")
    assert "already holds" in complaint(capsys, *fit, str(full))
    assert "is a file" in complaint(capsys, *fit, str(full / "here.txt"))
    assert "already holds" in complaint(capsys, "simulate", "--out", str(full))
    assert "already holds" in complaint(capsys, "demo", "--out", str(full))
    assert (full / "here.txt").read_text() == "mine"
    assert len(list(full.iterdir())) == 1


def test_resuming_another_run(
    files: Files, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = ("fit", files.items_npy, files.pairs_csv, *FIT, "--out", files.run, "--resume")
    assert "other seed" in complaint(capsys, *fit, "--seed", "5")


def broken_model(files: Files, folder: Path, **changes: object) -> str:
    copy = folder / "bad" / "model"
    shutil.copytree(Path(files.run) / "model", copy)
    about = json.loads((copy / "model.json").read_text())
    (copy / "model.json").write_text(json.dumps({**about, **changes}))
    return str(copy)


MODELS: dict[str, tuple[Callable[[Files, Path], str], tuple[str, ...]]] = {
    "nothing there": (lambda files, f: str(f / "none"), ("no model folder",)),
    "another folder": (lambda files, f: str(_empty(f)), ("no model.json",)),
    "another kind": (lambda files, f: broken_model(files, f, kind="cake"), ("no Likewise",)),
    "a newer version": (lambda files, f: broken_model(files, f, version=99), ("newer", "upgrade")),
    "a missing field": (lambda files, f: broken_model(files, f, classes=None), ("classes",)),
    "weights of another": (lambda files, f: _other_weights(files, f), ("does not fit",)),
    "no weights": (lambda files, f: _without_weights(files, f), ("weights.safetensors",)),
}


def _other_weights(files: Files, folder: Path) -> str:
    return broken_model(files, folder, network={"name": "mlp", "hidden": [5]})


def _without_weights(files: Files, folder: Path) -> str:
    model = broken_model(files, folder)
    (Path(model) / "weights.safetensors").unlink()
    return model


@pytest.mark.parametrize("case", MODELS)
def test_bad_models(
    case: str, files: Files, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, words = MODELS[case]
    out = folder / "out.csv"
    said = complaint(capsys, "predict", make(files, folder), files.items_npy, "--out", str(out))
    assert all(word in said for word in words), said


def test_items_unlike_those_of_the_model(
    files: Files, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = array(folder, "wide.npy", np.zeros((4, 9)))
    said = complaint(capsys, "predict", files.run, wide)
    assert "9 features" in said
    assert "3 features" in said


TRUTHS = {
    "too few": ("label\na\nb\n", ("60 items", "2 classes")),
    "unknown item": ("item,label\nnobody,a\n", ("line 2", "nobody")),
    "item beyond": ("item,label\n99,a\n", ("99", "60")),
    "twice": ("item,label\n1,a\n1,b\n", ("two classes",)),
    "which column": ("item,p,q\n1,2,3\n", ("p, q", "label")),
    "none": ("item,label\n1,\n", ("no item",)),
}


@pytest.mark.parametrize("case", TRUTHS)
def test_bad_truth(
    case: str, files: Files, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, words = TRUTHS[case]
    truth = bad(folder, "truth.csv", content)
    said = complaint(capsys, "evaluate", files.run, files.items_npy, truth)
    assert all(word in said for word in words), said


def test_bad_names_leave_the_model_alone(
    files: Files, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (Path(files.run) / "model" / "model.json").read_bytes()
    labels = bad(folder, "few.csv", "item,label\n77,ant\n")
    assert "77" in complaint(capsys, "name", files.run, labels)
    assert (Path(files.run) / "model" / "model.json").read_bytes() == before


RUNS: dict[str, tuple[Callable[[Files, Path], str], tuple[str, ...]]] = {
    "nothing there": (lambda files, f: str(f / "none"), ("no run folder",)),
    "a model": (lambda files, f: str(Path(files.run) / "model"), ("model folder", "config.json")),
    "a newer version": (lambda files, f: _run_with(files, f, version=99), ("newer", "upgrade")),
    "another kind": (lambda files, f: _run_with(files, f, kind="cake"), ("no Likewise run",)),
    "no metrics": (lambda files, f: _run_without(files, f, "metrics.json"), ("metrics.json",)),
    "no arrays": (lambda files, f: _run_without(files, f, "items.npz"), ("items.npz",)),
}


def _run_with(files: Files, folder: Path, **changes: object) -> str:
    copy = Path(_run_without(files, folder, "none"))
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, **changes}))
    return str(copy)


def _run_without(files: Files, folder: Path, name: str) -> str:
    copy = folder / "bad" / "run"
    shutil.copytree(files.run, copy)
    (copy / name).unlink(missing_ok=True)
    return str(copy)


@pytest.mark.parametrize("case", RUNS)
def test_bad_runs(
    case: str, files: Files, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, words = RUNS[case]
    out = folder / "out.html"
    said = complaint(capsys, "report", make(files, folder), "--out", str(out))
    assert all(word in said for word in words), said


def test_simulated_noise_must_be_a_rate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulate = ("simulate", "--out", str(folder / "out"))
    assert "class noise" in complaint(capsys, *simulate, "--class-noise", "1.5")
    assert "kind" in complaint(capsys, *simulate, "--kind", "odd")
    assert "annotators" in complaint(capsys, *simulate, "--careless", "0.5")
    assert "per_item" in complaint(capsys, *simulate, "--per-item", "100000")


def test_a_file_in_a_folder_that_is_not_there(
    files: Files, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(folder / "none" / "classes.csv")
    assert "no folder" in complaint(capsys, "predict", files.run, files.items_npy, "--out", out)


# Commands and what they write, of which nothing may be read or worked on before.
WRITERS = [
    ("group PAIRS", "--out --judged --ask --report"),
    ("predict RUN ITEMS", "--out"),
    ("suspects RUN", "--out"),
    ("suggest RUN ITEMS PAIRS", "--out"),
    ("report RUN", "--out"),
    ("embed ITEMS --model none", "--out"),
    ("label ITEMS", "--out --export --approvals"),
    ("export RUN", "--onnx --torch"),
]
FOLDERS = [("simulate", "--out"), ("demo", "--out"), ("merge RUN 0 1", "--out")]
FOLDERS += [("export RUN", "--tables")]


@pytest.mark.parametrize(
    ("command", "option", "is_folder"),
    [(words, option, False) for words, options in WRITERS for option in options.split()]
    + [(words, option, True) for words, option in FOLDERS],
)
def test_a_place_that_cannot_be_written_to_is_refused_before_the_work(
    command: str,
    option: str,
    is_folder: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing that the command would read is there: whoever reads first complains of that."""
    words = [str(tmp_path / word) if word.isupper() else word for word in command.split()]
    (tmp_path / "RUN").mkdir()
    (tmp_path / "file").write_text("mine")
    within = str(tmp_path / "file" / "x.csv")
    said = complaint(capsys, *words, option, within)
    assert ("is a file" if is_folder else "there is no folder") in said
    if not is_folder:
        assert "there is no folder" in complaint(
            capsys, *words, option, str(tmp_path / "no" / "x.csv")
        )
        assert "is a folder; give the name" in complaint(capsys, *words, option, str(tmp_path))
    monkeypatch.setattr("tempfile.mkdtemp", _refuse)
    said = complaint(capsys, *words, option, str(tmp_path / "x.csv"))
    assert f"x.csv cannot be made, because {tmp_path} cannot be written to (read-only" in said
    assert f"choose another place for {option}." in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["RUN", "file"]


def _refuse(*_: object, **__: object) -> str:
    raise OSError(30, "Read-only file system")


def test_a_run_that_cannot_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.setattr("tempfile.mkdtemp", _refuse)
    said = complaint(capsys, "report", str(tmp_path / "run"))
    assert "report.html cannot be made" in said
    said = complaint(capsys, "name", str(tmp_path / "run"), str(tmp_path / "few.csv"))
    assert "read-only file system), which is where names are kept; copy it" in said


def test_nothing_is_written_over_what_is_read(
    files: Files, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = Path(bad(folder, "pairs.csv", HEAD + SOME))
    before = pairs.read_bytes()
    for option in ("--out", "--report"):
        assert option in complaint(capsys, "group", str(pairs), option, str(pairs))
    around = folder / "bad" / ".." / "bad" / "pairs.csv"  # the same file by another way
    assert "--out" in complaint(capsys, "suspects", files.run, str(pairs), "--out", str(around))
    out = str(folder / "bad" / "both")
    assert "both" in complaint(capsys, "group", str(pairs), "--out", out, "--report", out)
    assert pairs.read_bytes() == before
    assert not Path(out).exists()


def test_export_of_nothing(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--onnx" in complaint(capsys, "export", files.run)
    assert "--items" in complaint(capsys, "export", files.run, "--tables", "t")


@pytest.mark.parametrize("name", ["x" * 300, "x" * 256 + "/y"])
def test_a_name_that_cannot_be_is_a_persons_mistake(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("left,right,same\n0,1,1\n1,2,0\n")
    assert run("group", str(pairs), "--out", str(tmp_path / name)) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert len(told) < 500
