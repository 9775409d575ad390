"""What Likewise 0.1 wrote is still read: fixtures made by its own code (commit 25dc9ef)."""

from __future__ import annotations

import contextlib
import csv
import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import likewise as lw
from likewise.cli import run as command
from likewise.report import render_report
from likewise.runs import Run
from likewise.runs.naming import name_saved

OLD = Path(__file__).parent / "fixtures" / "v0.1"


@pytest.mark.parametrize(("model", "items"), [("joint", "items.npy"), ("flipped", "images.npy")])
def test_models_predict_what_they_did(model, items):
    old = lw.load(OLD / model)
    np.testing.assert_allclose(
        old.predict_proba(np.load(OLD / items)), np.load(OLD / f"{model}.npy"), atol=1e-6
    )


def test_renamed_fields_are_read_under_their_new_names():
    assert lw.load(OLD / "flipped").model_.flip_tta
    recipe = lw.load(OLD / "joint").get_params()["recipe"]
    assert recipe["teachers"] == 1
    assert recipe["ema_decay"] == 0.9
    assert recipe["split_merged_at"] == [0.5]
    assert recipe["mean_teacher_from"] == 0.5
    assert recipe["mean_teacher_temperature"] == [1.0, 0.5]
    assert recipe["high_noise"] == {"mean_teacher_from": 1.0, "teachers": 2}
    lw.Recipe(**recipe)  # and they are all that a recipe has


def test_a_run_predicts_is_named_and_reported_as_before(tmp_path):
    run = tmp_path / "run"
    shutil.copytree(OLD / "run", run)
    old = lw.load(Run.open(run).model)
    assert old.channel_.to_dict()["kind"] == "rate"
    assert old.annotators_["annotator"]
    with (OLD / "run.csv").open(newline="") as file:
        expected = [[float(row[f"p({k})"]) for k in range(3)] for row in csv.DictReader(file)]
    np.testing.assert_allclose(old.predict_proba(np.load(OLD / "items.npy")), expected, atol=2e-6)
    labels = tmp_path / "labels.csv"
    labels.write_text("item,label\n" + "".join(f"{k},kind {k % 3}\n" for k in range(9)))
    names = name_saved(run, labels).names
    assert lw.load(run / "model").classes_.tolist() == names
    assert json.loads((run / "model" / "model.json").read_text())["version"] == 1  # still its own
    page = render_report(run, tmp_path / "report.html").read_text()
    assert names[0] in page


def test_a_saved_old_model_is_a_new_one(tmp_path):
    lw.load(OLD / "joint").save(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "model.json").read_text())["version"] == 2
    items = np.load(OLD / "items.npy")
    again = lw.load(tmp_path / "model")
    np.testing.assert_allclose(again.predict_proba(items), np.load(OLD / "joint.npy"), atol=1e-6)


def test_the_command_line_takes_an_old_run(tmp_path):
    assert command(["predict", str(OLD / "run"), str(OLD / "items.npy"), "--json"]) == 0


def old_database(path: Path) -> Path:
    """Answers as the labelling page of 0.1 kept them, from its own dump."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript((OLD / "answers.sql").read_text())
    return path


def test_answers_of_an_old_labelling_page_are_read(tmp_path):
    pairs = lw.Pairs.read(old_database(tmp_path / "answers.db"))
    assert [str(pairs.item_ids[k]) for k in pairs.left] == ["cat.jpg", "cat.jpg"]
    assert (pairs.same.tolist(), pairs.dropped) == ([True, False], 1)


def test_an_old_labelling_page_goes_on_where_it_was(tmp_path):
    store = pytest.importorskip("likewise.label.store")
    opened = store.Store(old_database(tmp_path / "answers.db"))
    opened.keep_items(["cat.jpg", "dog.jpg", "wolf.jpg", "lynx.jpg"])
    assert opened.record("Bo", "cat.jpg", "wolf.jpg", 0).result() == 5
    opened.close()
    assert len(lw.Pairs.read(tmp_path / "answers.db")) == 3


def test_what_a_newer_version_wrote_is_refused_in_a_sentence(tmp_path):
    path = old_database(tmp_path / "answers.db")
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(lw.InputError, match="newer"):
        lw.Pairs.read(path)
