"""The model that chooses the questions: in a process of its own, and never in anybody's way."""

from __future__ import annotations

import io
import json
import sys
import threading

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from likewise.errors import InputError
from likewise.label import refit, serve
from likewise.label.refit import ModelSuggester
from short_fits import cut_short


def child(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", f"import json, sys; task = json.load(sys.stdin); {code}")


def test_the_child_gets_the_answers_and_its_last_line_counts():
    code = "print('noise'); print(json.dumps([task['judgements']['left'], [task['items'], 'b']]))"
    suggester = ModelSuggester("items.csv", command=child(code))
    assert suggester({"left": ["x", "y"]}) == [("x", "y"), ("items.csv", "b")]


def test_a_child_that_fails_says_why():
    suggester = ModelSuggester("items.csv", command=child("sys.exit('too few answers')"))
    with pytest.raises(InputError, match="could not be fitted: too few answers"):
        suggester({})


def test_a_fit_under_way_is_ended():
    suggester, outcome = ModelSuggester("x", command=child("import time; time.sleep(600)")), []

    def run():
        try:
            suggester({})
        except InputError as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while suggester._child is None:
        threading.Event().wait(0.01)
    suggester.close()
    thread.join(60)
    assert outcome


def test_items_that_cannot_be_fitted_are_refused_at_the_start(tmp_path):
    table = tmp_path / "texts.csv"
    table.write_text("text\nlamp\ntable\n")
    with pytest.raises(InputError, match="not a number"):
        serve(table, tmp_path / "judgements.db", port=0, open_browser=False, classes="auto")
    assert not (tmp_path / "judgements.db").exists()


def task_about_blobs(tmp_path):
    points, kinds = make_blobs(60, n_features=4, centers=3, cluster_std=0.5, random_state=0)
    np.save(tmp_path / "points.npy", points.astype(np.float32))
    rng = np.random.default_rng(0)
    left, right = rng.integers(60, size=(2, 400))
    left, right = left[left != right], right[left != right]
    judgements = {
        "left": [str(k) for k in left],
        "right": [str(k) for k in right],
        "same": [int(same) for same in kinds[left] == kinds[right]],
        "annotator": ["Ada"] * len(left),
    }
    judgements["same"][0] = None  # not sure
    return {"items": tmp_path / "points.npy", "judgements": judgements}


def check(pairs):
    assert pairs
    names = {str(k) for k in range(60)}
    assert all(left in names and right in names and left != right for left, right in pairs)


def test_a_model_chooses_pairs_of_items(tmp_path, monkeypatch, capsys):
    """What the child does, in this process."""
    cut_short(monkeypatch)
    monkeypatch.setattr("os.nice", lambda more: None)
    asked = task_about_blobs(tmp_path)
    task = {"items": str(asked["items"]), "classes": 3, "id_column": None, "image_size": 32}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(asked | task)))
    assert refit.main() == 0
    check(json.loads(capsys.readouterr().out.splitlines()[-1]))


@pytest.mark.slow
def test_a_model_in_a_process_of_its_own_chooses_pairs_of_items(tmp_path):
    task = task_about_blobs(tmp_path)
    check(ModelSuggester(task["items"], classes=3)(task["judgements"]))
