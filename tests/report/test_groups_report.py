"""The page about groups, and the commands that the report prints beside its findings."""

import itertools
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command

import likewise as lw
from likewise.cli.app import app
from likewise.methods.groups import group
from likewise.report.actions import actions
from likewise.report.contents import read_contents
from likewise.report.groups import _sizes, render_groups
from likewise.runs import Run
from report_runs import HOSTILE, small_run


def judged(names: list[str] | None = None) -> lw.Pairs:
    y = np.arange(40) // 4
    pairs = lw.Pairs.from_labels(y, 39, 0)
    ids = names or [f"record {k}" for k in range(40)]
    people = np.where(np.arange(len(pairs)) % 2, "ann", HOSTILE)
    return lw.Pairs(pairs.left, pairs.right, pairs.same, people, n_items=40, item_ids=np.array(ids))


def test_the_page_tells_of_groups_people_and_pairs(tmp_path):
    found = group(judged())
    page = render_groups(found, tmp_path / "groups.html", "pairs.csv").read_text()
    assert "10 groups found in 40 items, from 780 judgements" in page
    assert "record 7" in page
    assert "ann" in page
    assert 'id="ask"' in page


def test_the_page_says_of_what_its_probabilities_are(tmp_path):
    page = render_groups(group(judged()), tmp_path / "groups.html", "pairs.csv").read_text()
    assert "placed with confidence" not in page
    assert "of items sure of their place" in page
    assert "if all others are placed rightly" in page
    assert "given where all the others are" in page
    assert "Whether a whole group is right is another question" in page
    assert "<code>--judged</code>" in page


def test_names_cannot_break_out_of_the_page(tmp_path):
    names = [f"{HOSTILE}{k}" for k in range(40)]
    page = render_groups(group(judged(names)), tmp_path / "g.html", HOSTILE).read_text()
    assert "<img" not in page
    assert "onerror=alert(1)&gt;" in page


def test_every_group_is_in_one_bar():
    sizes = np.array([40, 17, 16, 9, 8, 5, 4, 3, 2, 1, 1])
    bars = _sizes(sizes)
    assert sum(bar["count"] for bar in bars) == len(sizes)
    assert [bar["label"] for bar in bars][:4] == ["1", "2", "3 to 4", "5 to 8"]


# -- from the report back to people -----------------------------------------------------------


INPUTS = {"items": {"path": "data/items.npy"}, "pairs": {"path": "data/pairs.csv"}}


def commands(contents) -> list[list[str]]:
    steps = [step for part in actions(contents).values() for step in part]
    return [shlex.split(line) for step in steps for line in step.command.splitlines()]


def test_every_command_beside_a_finding_exists(tmp_path):
    run = small_run(tmp_path / "run", class_names=["a cat", "dog", HOSTILE], config=INPUTS)
    found = commands(read_contents(run))
    assert {words[1] for words in found} >= {"merge", "split", "suspects", "label"}
    known = {command.name or command.callback.__name__ for command in app.registered_commands}
    for words in found:
        assert words[0] == "likewise"
        assert words[1] in known
    merge = next(words for words in found if words[1] == "merge")
    assert set(merge[3:5]) <= {"a cat", "dog", HOSTILE}


CARELESS = {
    "annotator": ["ann", "o'neil"],
    "same_given_same": [0.9, 0.5],
    "same_given_different": [0.1, 0.5],
}


def test_people_who_hardly_look_can_be_left_out(tmp_path):
    contents = read_contents(small_run(tmp_path / "run", config=INPUTS))
    steps = actions(replace(contents, annotators=CARELESS))["people"]
    words = shlex.split(steps[0].command)
    assert words[words.index("--without-person") + 1] == "o'neil"
    assert "ann" not in words


def test_a_run_that_does_not_know_its_items_offers_no_command(tmp_path):
    contents = read_contents(small_run(tmp_path / "run"))
    assert not any(actions(replace(contents, annotators=CARELESS)).values())


def test_commands_name_the_run_by_the_path_that_was_given(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "items.npy").touch()
    monkeypatch.chdir(tmp_path)
    run = small_run(Path("runs/first"), config=INPUTS)
    steps = actions(read_contents(run))
    merge, split = (shlex.split(step.command) for step in steps["classes"])
    assert merge[2] == split[2] == "runs/first"
    assert merge[-1] == "runs/first-merged"
    assert split[-1] == "runs/first-split"
    assert "likewise suspects runs/first --out ask.csv" in steps["suspects"][0].command
    card = Path("runs/first/model_card.md").read_text()
    assert "likewise predict runs/first new_items" in card
    assert "likewise report runs/first\n" in card
    assert "# first\n" in card
    # From elsewhere the items are not seen: the commands are for where they are.
    monkeypatch.chdir(tmp_path / "runs")
    for named in ("first", "../runs/first"):
        merge = shlex.split(actions(read_contents(Run.open(named)))["classes"][0].command)
        assert merge[2] == str(tmp_path / "runs" / "first")
    monkeypatch.chdir(run_folder := tmp_path / "runs" / "first")
    absolute = {"items": {"path": str(tmp_path / "data" / "items.npy")}, "pairs": {"path": "p"}}
    here = replace(read_contents(Run.open(".")), config=absolute)
    merge = shlex.split(actions(here)["classes"][0].command)
    assert merge[2] == "."
    assert Path(merge[-1]).resolve() == run_folder.with_name("first-merged")


def test_people_are_asked_again_only_about_what_can_be_shown(tmp_path):
    pictures = read_contents(small_run(tmp_path / "pictures", config=INPUTS))
    features = read_contents(small_run(tmp_path / "features", config=INPUTS, features=True))
    texts = read_contents(
        small_run(
            tmp_path / "texts",
            config={
                "items": {"path": "texts.csv", "id": "key", "text": "words"},
                "pairs": {"path": "pairs.csv"},
                "encoder": {"name": "tfidf"},
            },
            features=True,
        )
    )
    asked = [actions(found)["suspects"][0].command for found in (pictures, features, texts)]
    assert ["likewise label" in command for command in asked] == [True, False, True]
    assert "likewise label texts.csv --pairs ask.csv --id key --out again.db" in asked[2]


ASKED = [
    ("n_classes", "--classes", "3"),
    ("noise", "--noise", "class"),
    ("held_out", "--held-out", "0.2"),
    ("random_state", "--seed", "7"),
    ("network", "--network", "lenet"),
]


def test_a_fit_without_somebody_is_otherwise_as_it_was(tmp_path):
    config = INPUTS | {
        "parameters": {key: value for key, _, value in ASKED}
        | {"recipe": {"epochs": 20, "lr": 0.1}, "transition": [[1.0, 0.0], [0.0, 1.0]]},
        "columns": {"left": "a", "right": "right", "threshold": 2.5},
        "known": {"path": "few words.csv"},
        "without_people": ["-eve"],
        "like": "before",
    }
    contents = read_contents(small_run(tmp_path / "run", config=config))
    step = actions(replace(contents, annotators=CARELESS))["people"][0]
    words = shlex.split(step.command)
    assert words[:4] == ["likewise", "fit", "data/items.npy", "data/pairs.csv"]
    options = dict(itertools.pairwise(words))
    for _, name, value in ASKED:
        assert options[name] == value
    assert (options["--epochs"], options["--lr"], options["--left"]) == ("20", "0.1", "a")
    assert options["--threshold"] == "2.5"
    assert options["--known"] == "few words.csv"
    assert "--without-person=-eve" in words
    assert options["--like"] == str(tmp_path / "run")
    assert "--right" not in words
    assert options["--transition"] == "T.csv"
    assert "T.csv is the T that was given" in step.words


@pytest.mark.parametrize("asked", ["auto", 10])
def test_the_classes_that_were_found_are_asked_for(tmp_path, asked):
    """Also where they were read off the judgements, or merged since: --like keeps them all."""
    config = INPUTS | {"command": "merge", "parameters": {"n_classes": asked, "transition": None}}
    contents = read_contents(small_run(tmp_path / "run", config=config))
    command = actions(replace(contents, annotators=CARELESS))["people"][0].command
    assert "--classes 3 " in command
    assert "--transition none" in command
    assert "--noise" not in command


def test_every_option_of_a_fit_that_is_printed_exists():
    from likewise.report.commands import _OPTIONS

    fit = next(c for c in get_command(app).commands.values() if c.name == "fit")
    known = {name for parameter in fit.params for name in parameter.opts}
    assert {name for _, _, name, _ in _OPTIONS} <= known
