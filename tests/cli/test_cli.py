"""The command line as people use it: each command, its JSON, its help, its exit status."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from rich.text import Text

from cli_cases import FIT, N_ITEMS, Files, complaint, make_files, outcome, run
from likewise import cli

COMMANDS = sorted(typer.main.get_group(cli.app).commands)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Files with a fitted run beside them."""
    made = make_files(tmp_path_factory.mktemp("cli"))
    assert run("fit", made.items_npy, made.pairs_csv, "--out", made.run, *FIT) == 0
    return made


def rows_of(path: str | Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command, "--help") == 0
    text = capsys.readouterr().out
    assert "Example:" in text
    assert f"likewise {command}" in " ".join(text.split())


def test_no_word_of_the_help_is_taken_for_markup() -> None:
    for name in COMMANDS:
        command = typer.main.get_group(cli.app).commands[name]
        texts = [command.help, *(getattr(option, "help", None) for option in command.params)]
        for text in filter(None, texts):
            assert Text.from_markup(text).plain == text.replace("\\[", "[")


def test_help_waits_for_nothing_heavy() -> None:
    code = (
        "import sys; from likewise.cli import run; run(['--help']); run(['fit', '--help']); "
        "print(sorted({'torch', 'numpy', 'scipy', 'sklearn', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_without_a_command_it_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    assert "describe" in capsys.readouterr().out


def test_the_installed_command_ends_with_its_status(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "likewise", "describe", str(tmp_path / "none.csv")],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


@pytest.mark.parametrize(
    "arguments",
    [("fitt",), ("fit",), ("describe", "--nope"), ("fit", "a", "b", "--out", "c", "--seed", "x")],
)
def test_a_mistyped_command_is_one_line(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--help" in complaint(capsys, *arguments)


def test_anything_unexpected_ends_with_one_line_and_status_1(
    files: Files, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("a\nb")

    monkeypatch.setattr("likewise.pairs.Pairs.read", broken)
    monkeypatch.delenv("LIKEWISE_DEBUG", raising=False)
    assert run("describe", files.pairs_csv) == 1
    assert capsys.readouterr().err.splitlines() == [
        "likewise: unexpected ZeroDivisionError: a b (set LIKEWISE_DEBUG=1 to see where)"
    ]


def test_describe(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    found = outcome(capsys, "describe", files.pairs_csv, "--classes", "3")
    assert found["items"] == N_ITEMS
    assert found["judgements"] == N_ITEMS * (N_ITEMS - 1) // 2
    assert found["annotators"] == 2
    assert run("describe", files.pairs_csv) == 0
    assert "judgements" in capsys.readouterr().out


def test_columns_may_have_other_names(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.csv"
    text = Path(files.pairs_csv).read_text().replace("left,right,same,annotator", "p,q,alike,who")
    other.write_text(text)
    names = ("--left", "p", "--right", "q", "--same", "alike", "--annotator", "who")
    assert outcome(capsys, "describe", str(other), *names)["annotators"] == 2


def test_fit_says_what_its_seconds_are_of(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    fit = ("fit", files.items_npy, files.pairs_csv, "--out", files.run, *FIT, "--resume")
    assert run(*fit) == 0
    assert re.search(r"seconds +[0-9.]+ of fitting alone, on cpu", capsys.readouterr().out)


def test_fit_leaves_a_whole_run(files: Files) -> None:
    names = {path.name for path in Path(files.run).iterdir()}
    assert names == {
        "config.json", "metrics.json", "history.csv", "model", "report.json", "items.npz",
        "model_card.md",
    }  # fmt: skip
    config = json.loads((Path(files.run) / "config.json").read_text())
    assert config["seed"] == 0
    assert len(config["items"]["sha256"]) == 64
    assert config["parameters"]["recipe"] == {"epochs": 30}
    assert not list(files.folder.glob("*.checkpoints"))


def test_the_same_seed_gives_the_same_model(files: Files, tmp_path: Path) -> None:
    again = tmp_path / "again"
    assert run("fit", files.items_npy, files.pairs_csv, "--out", str(again), *FIT) == 0
    first, second = (Path(p) / "model" / "weights.safetensors" for p in (files.run, again))
    assert first.read_bytes() == second.read_bytes()


def test_resuming_a_finished_run_tells_it_and_changes_nothing(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in Path(files.run).rglob("*") if path.is_file()}
    arguments = ("fit", files.items_npy, files.pairs_csv, "--out", files.run, *FIT, "--resume")
    assert outcome(capsys, *arguments)["run"] == files.run
    assert before == {p: p.read_bytes() for p in Path(files.run).rglob("*") if p.is_file()}


def test_a_number_of_classes_that_was_counted_is_said_to_be(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "counted")
    assert run("fit", files.items_npy, files.pairs_csv, "--out", out, "--epochs", "2") == 0
    assert "3, of" in (said := capsys.readouterr().out)
    assert "read off the answers" in said


def test_fit_by_names_of_items(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "named")
    named = str(files.folder / "named.csv")
    found = outcome(capsys, "fit", files.items_csv, named, "--out", out, *FIT, "--method", "mcl")
    assert found["method"] == "mcl"
    predictions = outcome(capsys, "predict", out, files.items_csv)["predictions"]
    assert predictions[0]["item"] == "thing00"


def test_a_known_transition_matrix_is_used(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = tmp_path / "t.csv"
    matrix.write_text("0.8,0.1,0.1\n0.1,0.8,0.1\n0.1,0.1,0.8\n")
    options = ("--out", str(tmp_path / "run"), "--method", "mns", "--transition", str(matrix))
    found = outcome(capsys, "fit", files.items_npy, files.pairs_csv, *options, *FIT)
    assert found["transition"][0] == pytest.approx([0.8, 0.1, 0.1])


@pytest.mark.parametrize("model", ["run", "run/model"])
def test_predict_takes_a_run_or_a_model(files: Files, model: str, tmp_path: Path) -> None:
    out = tmp_path / "classes.csv"
    folder = str(files.folder / model)
    assert run("predict", folder, files.items_npy, "--out", str(out), "--probabilities") == 0
    rows = rows_of(out)
    assert len(rows) == N_ITEMS
    assert sum(float(rows[0][f"p({k})"]) for k in range(3)) == pytest.approx(1, abs=1e-4)
    assert len({row["class"] for row in rows}) == 3


def test_evaluate(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    found = outcome(capsys, "evaluate", files.run, files.items_npy, files.truth_csv)
    assert found["accuracy"] == 1.0
    assert found["classes"] == ["a", "b", "c"]
    assert np.trace(np.array(found["confusion"])) == N_ITEMS
    assert run("evaluate", files.run, files.items_npy, files.truth_csv) == 0
    assert "100.00%" in capsys.readouterr().out


def test_suspects_finds_the_flipped_judgement(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flipped = tmp_path / "flipped.csv"
    text = Path(files.pairs_csv).read_text()
    assert "\n4,7,1,bob\n" in text
    flipped.write_text(text.replace("\n4,7,1,bob\n", "\n4,7,0,bob\n"))
    found = outcome(capsys, "suspects", files.run, files.items_npy, str(flipped), "--limit", "3")[
        "suspects"
    ]
    assert len(found) == 3
    assert (found[0]["left"], found[0]["right"], found[0]["same"]) == ("4", "7", "different")
    assert found[0]["annotator"] == "bob"
    assert found[0]["probability_wrong"] > 0.5


def test_names_are_used_from_then_on(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(shutil.copytree(files.run, tmp_path / "run"))
    few = tmp_path / "few.csv"
    few.write_text("item,label\n0,ant\n1,bee\n2,cat\n3,ant\n")
    named = outcome(capsys, "name", out, str(few))
    assert sorted(named["classes"]) == ["ant", "bee", "cat"]
    assert named["agreement"] == 1.0
    predicted = outcome(capsys, "predict", out, files.items_npy)["predictions"]
    assert [row["class"] for row in predicted[:4]] == ["ant", "bee", "cat", "ant"]
    metrics = json.loads((Path(out) / "metrics.json").read_text())
    assert metrics["class_names"] == named["classes"]
    model = str(Path(out) / "model")
    assert "--items" in complaint(capsys, "name", model, str(few))
    again = outcome(capsys, "name", model, str(few), "--items", files.items_npy)
    assert again["classes"] == named["classes"]


def test_suggest_asks_what_was_not_asked(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = tmp_path / "few.csv"
    few.write_text("".join(Path(files.pairs_csv).read_text().splitlines(keepends=True)[:300]))
    known = {(row["left"], row["right"]) for row in rows_of(few)}
    out = tmp_path / "ask.csv"
    ask = ("suggest", files.run, files.items_npy, str(few), "--count", "7", "--out", str(out))
    assert outcome(capsys, *ask)["pairs"] == 7
    asked = [(row["left"], row["right"]) for row in rows_of(out)]
    assert len(asked) == 7
    assert not {pair for a, b in asked for pair in ((a, b), (b, a))} & known


def test_suggest_reads_judgements_as_fit_does(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = tmp_path / "few.csv"
    text = Path(files.pairs_csv).read_text().replace("left,right,same", "a,b,grade")
    few.write_text("".join(text.splitlines(keepends=True)[:300]))
    options = ("--left", "a", "--right", "b", "--same", "grade", "--threshold", "0.5")
    ask = ("suggest", files.run, files.items_npy, str(few), "--count", "7")
    assert len(outcome(capsys, *ask, *options)["pairs"]) == 7
    assert "--left" in complaint(capsys, *ask)


def test_simulate_digits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "data"
    noise = ("--class-noise", "0.1", "--miss", "0.05", "--annotators", "5", "--careless", "0.4")
    found = outcome(capsys, "simulate", "--out", str(out), "--per-item", "10", *noise)
    assert set(found["files"]) == {
        "items.npy", "pairs.csv", "truth.csv", "test_items.npy", "test_truth.csv",
    }  # fmt: skip
    described = outcome(capsys, "describe", str(out / "pairs.csv"))
    assert described["annotators"] == 5
    assert described["judgements"] == found["judgements"] == 1437 * 10 // 2
    assert len(rows_of(out / "test_truth.csv")) == len(np.load(out / "test_items.npy")) == 360


def test_simulate_judgements_about_items_of_ones_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = tmp_path / "labels.csv"
    rows = [f"pic{k}.jpg,{'cat' if k % 2 else 'dog'}" for k in range(12)]
    labels.write_text("\n".join(["item,label", *rows]))
    out = tmp_path / "data"
    options = ("--labels", str(labels), "--class-noise", "0", "--per-item", "0")
    found = outcome(capsys, "simulate", "--out", str(out), *options)
    assert found["judgements"] == 66
    for row in rows_of(out / "pairs.csv"):
        parity = (int(row["left"][3:-4]) - int(row["right"][3:-4])) % 2
        assert row["same"] == str(int(parity == 0))


def test_report_of_a_run(files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    found = outcome(capsys, "report", files.run, "--out", str(page))
    assert found["report"] == str(page)
    assert page.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")


def test_demo_compares_every_method_and_leaves_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from likewise.experiments.demo import run_demo
    from likewise.runs import Run

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("likewise.runs.maps.LANDMARKS", 100)
    said: list[str] = []
    outcome = run_demo(noise=0.1, report=said.append, recipe={"epochs": 2})
    assert [row["method"] for row in outcome["methods"]] == [
        "mcl", "kcl", "mns_estimated", "mns_true", "joint",
    ]  # fmt: skip
    assert len(said) == 5
    assert outcome["methods"][-1]["transition_error"] is not None
    assert Run.open(outcome["run"]).metrics["methods"][0]["accuracy"] > 0
    assert outcome["run"] == "runs/demo"


def interrupt(*arguments: object, **options: object) -> None:
    raise KeyboardInterrupt


def test_ctrl_c_says_that_it_stopped(
    files: Files, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("likewise.pairs.Pairs.read", interrupt)
    assert run("describe", files.pairs_csv) == 1
    assert capsys.readouterr().err == "likewise: stopped.\n"


def test_ctrl_c_in_a_fit_tells_how_to_go_on(
    files: Files,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fit = ("fit", files.items_npy, files.pairs_csv, "--out", str(tmp_path / "out"), *FIT)
    monkeypatch.setattr("likewise.runs.fit_job.read_to_fit", interrupt)
    assert run(*fit) == 1
    assert capsys.readouterr().err == "likewise: stopped.\n"
    monkeypatch.undo()
    monkeypatch.setattr("likewise.runs.fit_job.write_run", interrupt)
    assert run(*fit, "--checkpoint-seconds", "0", "--method", "mcl") == 1
    told = capsys.readouterr().err.splitlines()[-1]
    assert told == "likewise: stopped; the same command with --resume goes on where it was."
    monkeypatch.undo()
    again = (*fit, "--checkpoint-seconds", "0", "--method", "mcl", "--resume", "--seed", "2")
    assert "(seed was 0, is now 2: --seed, or random_state)" in complaint(capsys, *again)
    assert run(*fit, "--checkpoint-seconds", "0", "--method", "mcl", "--resume") == 0


def test_main_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["likewise", "--version"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
