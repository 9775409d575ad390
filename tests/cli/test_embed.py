"""Photographs and texts as they are: embed, fit, predict, on this machine and on a copy."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from encoder_cases import (
    make_texts,
    write_answers,
    write_photographs,
    write_program,
    write_table,
)
from likewise.cli import run
from likewise.items.files import read_items


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Photographs of three colours, answers about them, new ones, and an encoder in a file."""
    classes = write_photographs(tmp_path / "photos", 60)
    names = sorted(path.name for path in (tmp_path / "photos").iterdir())
    write_answers(tmp_path / "answers.csv", names, classes, 400)
    new = write_photographs(tmp_path / "new", 30, seed=1, first=100)
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    rows: list[tuple[object, ...]] = list(zip(names, new.tolist()))
    write_table(tmp_path / "truth.csv", ("item", "label"), rows)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


def probabilities(path: str) -> dict[str, str]:
    with open(path, encoding="utf-8") as file:
        return {row["item"]: row["probability"] for row in csv.DictReader(file)}


def fit(*options: str) -> int:
    return run(["fit", "photos", "answers.csv", "--classes", "3", "--quiet", *options])


def test_embed_fit_and_predict_give_the_same_numbers_here_and_on_a_copy(
    photos: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    write_program(photos / "thumb.onnx")
    assert run(["embed", "photos", "--model", "thumb.onnx", "--out", "items.npz", "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert (about["items"], about["features"], about["model"]) == (60, 12, "thumb.onnx")
    features = read_items(photos / "items.npz")
    assert features.ids is not None
    assert features.ids[0] == "p000.png"
    assert fit("--embed", "thumb.onnx", "--out", "one") == 0
    command = ["fit", "items.npz", "answers.csv", "--classes", "3", "--quiet", "--out", "two"]
    assert run(command) == 0
    config = json.loads((photos / "one" / "config.json").read_text())
    assert config["encoder"]["name"] == "thumb.onnx"
    assert config["encoder"]["pixels"] == "imagenet"
    assert config["encoder"]["digest"] == about["digest"]
    assert run(["predict", "one", "new", "--out", "first.csv"]) == 0
    assert run(["embed", "new", "--model", "thumb.onnx", "--out", "new.npz"]) == 0
    assert run(["predict", "two", "new.npz", "--out", "second.csv"]) == 0
    # Another machine: neither the encoder's file nor what was encoded before is there.
    shutil.copytree(photos / "one", photos / "elsewhere" / "run")
    (photos / "thumb.onnx").unlink()
    monkeypatch.setenv("LIKEWISE_CACHE", str(photos / "elsewhere" / "cache"))
    assert run(["predict", "elsewhere/run", "new", "--out", "third.csv"]) == 0
    first, second, third = map(probabilities, ("first.csv", "second.csv", "third.csv"))
    assert len(first) == 30
    assert first == second == third
    capsys.readouterr()
    assert run(["evaluate", "one", "new", "truth.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 0.9


@pytest.mark.parametrize(
    ("mend", "told"),
    [
        (("left,right,same", "one,two,same"), "lacks the columns left, right"),
        (("p001", "q001"), "'q001.png', which is none of the 60 items"),
    ],
)
def test_mistakes_in_answers_are_told_before_photographs_are_encoded(
    photos: Path,
    mend: tuple[str, str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def encoded(*_: object, **__: object) -> None:
        raise AssertionError("the photographs were encoded")

    answers = photos / "answers.csv"
    head, *rows = answers.read_text().splitlines(keepends=True)
    some = [row for row in rows if "p001" in row]
    answers.write_text((head + "".join(some)).replace(*mend))
    monkeypatch.setattr("likewise.items.encoders.reading._encoded", encoded)
    monkeypatch.setattr("likewise.items.encoders.reading.PatchFeatures.fit", encoded)
    assert fit("--out", "one") == 2
    assert told in said(capsys)


def test_judgements_are_read_once(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from likewise.pairs import Pairs

    read, times = Pairs.read, []
    monkeypatch.setattr(Pairs, "read", lambda *a, **k: times.append(a) or read(*a, **k))
    assert fit("--embed", str(write_program(photos / "thumb.pt2")), "--out", "one") == 0
    assert len(times) == 1


def test_a_report_shows_the_photographs_that_were_encoded(photos: Path) -> None:
    write_program(photos / "thumb.pt2")
    assert fit("--embed", "thumb.pt2", "--out", "one") == 0
    from likewise.runs import Run

    small = Run.open("one").thumbnails
    assert small is not None
    assert small.shape[1:] == (48, 48, 3)


@pytest.mark.slow  # docs/photographs.md runs the same commands
def test_photographs_without_a_model_take_seconds_and_say_what_would_help(
    photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit("--out", "one") == 0
    assert "a pretrained model (--embed NAME) knows much more" in said(capsys)
    assert run(["evaluate", "one", "new", "truth.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] >= 0.8
    config = json.loads((photos / "one" / "config.json").read_text())
    assert config["encoder"]["name"] == "patches"


@pytest.mark.slow  # docs/texts.md runs the same commands
def test_texts_without_any_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """400 short texts of 4 topics, 2,000 answers of which a tenth are wrong."""
    texts, classes = make_texts(600, np.random.default_rng(5))
    ids = [f"t{k}" for k in range(600)]
    rows: list[tuple[object, ...]] = list(zip(ids, texts, range(600)))
    write_table(tmp_path / "texts.csv", ("id", "text", "n"), rows[:400])
    write_table(tmp_path / "new.csv", ("id", "text", "n"), rows[400:])
    write_answers(tmp_path / "answers.csv", ids[:400], classes[:400], 2000, wrong=0.1)
    truth: list[tuple[object, ...]] = list(zip(ids[400:], classes[400:].tolist()))
    write_table(tmp_path / "truth.csv", ("item", "label"), truth)
    command = ["fit", "texts.csv", "answers.csv", "--text", "text", "--classes", "4"]
    assert run([*command, "--out", "one", "--quiet"]) == 0
    assert "--embed NAME" in said(capsys)
    assert run(["evaluate", "one", "new.csv", "truth.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] >= 0.85
    # A folder of .txt files is the same.
    for folder, part in (("notes", rows[:400]), ("other", rows[400:])):
        (tmp_path / folder).mkdir()
        for identity, text, _ in part:
            (tmp_path / folder / f"{identity}.txt").write_text(str(text), encoding="utf-8")
    assert run(["predict", "one", "other", "--out", "files.csv"]) == 0
    assert run(["predict", "one", "new.csv", "--out", "table.csv"]) == 0
    by_file = {k.removesuffix(".txt"): v for k, v in probabilities("files.csv").items()}
    assert by_file == probabilities("table.csv")
    assert run(["predict", "one", "new.csv", "--text", "words"]) == 2
    assert "has no column words" in said(capsys)


def test_a_text_is_never_taken_for_a_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_photographs(tmp_path / "photos", 2)
    rows: list[tuple[object, ...]] = [
        (k, text)
        for k, text in enumerate(
            ["photos/p000.png", "http://127.0.0.1:1/x.jpg", "/etc/passwd", "a word", "b word", "c"]
        )
    ]
    write_table(tmp_path / "texts.csv", ("id", "text"), rows)
    write_program(tmp_path / "thumb.pt2")
    command = ["embed", "texts.csv", "--text", "text", "--model", "thumb.pt2", "--out", "x.npz"]
    assert run(command) == 2
    assert "is for photographs, but the items are texts" in said(capsys)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("nowhere.onnx", "there is no file nowhere.onnx"),
        ("./no/such/folder", "there is no model ./no/such/folder"),
        ("a-model-nobody-has", "a-model-nobody-has is not on this machine and 127.0.0.1 cannot be"),
    ],
)
def test_a_model_that_is_not_there_is_refused_at_once(
    photos: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    model: str,
    words: str,
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr("likewise.io.hub.find_spec", lambda name: True)
    for command in (
        ["fit", "photos", "answers.csv", "--embed", model, "--out", "run"],
        ["embed", "photos", "--model", model, "--out", "items.npz"],
    ):
        began = time.monotonic()
        assert run(command) == 2
        assert time.monotonic() - began < 5  # a second, where nobody else uses the machine
        assert words in said(capsys)
    assert not (photos / "run").exists()


def test_a_name_that_leads_nowhere_imports_nothing_heavy(photos: Path) -> None:
    script = (
        "import sys\nfrom likewise.cli import run\n"
        "assert run(['fit', 'photos', 'answers.csv', '--embed', 'no.onnx', '--out', 'run']) == 2\n"
        "assert not {'torch', 'sentence_transformers', 'onnxruntime'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr == "likewise: there is no file no.onnx to embed with.\n"


def test_without_the_library_one_sentence_says_what_to_install(
    photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("likewise.io.hub.find_spec", lambda name: None)
    assert fit("--embed", "all-MiniLM-L6-v2", "--out", "run") == 2
    assert "pip install 'likewise[embed]'" in said(capsys)


def test_what_cannot_be_encoded_is_refused(
    photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_program(photos / "thumb.pt2")
    np.save(photos / "numbers.npy", np.zeros((60, 3)))
    command = ["fit", "numbers.npy", "answers.csv", "--embed", "thumb.pt2", "--out", "run"]
    assert run(command) == 2
    assert "numbers.npy holds numbers already" in said(capsys)
    assert fit("--text", "words", "--out", "run") == 2
    assert "--text names a column of a table" in said(capsys)
    assert fit("--embed", "thumb.pt2", "--pixels", "sepia", "--out", "run") == 2
    assert "pixels must be one of" in said(capsys)
    assert run(["embed", "photos", "--model", "thumb.pt2", "--out", "items.csv"]) == 2
    assert "name the output items.npz" in said(capsys)
