"""The page about groups, and the commands that the report prints beside its findings."""

import shlex
from dataclasses import replace

import numpy as np

import likewise as lw
from likewise.cli.app import app
from likewise.methods.groups import group
from likewise.report.actions import actions
from likewise.report.contents import read_contents
from likewise.report.groups import _sizes, render_groups
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


def commands(contents) -> list[list[str]]:
    steps = [step for part in actions(contents).values() for step in part]
    return [shlex.split(line) for step in steps for line in step.command.splitlines()]


def test_every_command_beside_a_finding_exists(tmp_path):
    run = small_run(tmp_path / "run", class_names=["a cat", "dog", HOSTILE])
    found = commands(read_contents(run))
    assert {words[1] for words in found} >= {"merge", "split", "suspects", "label"}
    known = {command.name or command.callback.__name__ for command in app.registered_commands}
    for words in found:
        assert words[0] == "likewise"
        assert words[1] in known
    merge = next(words for words in found if words[1] == "merge")
    assert set(merge[3:5]) <= {"a cat", "dog", HOSTILE}


def test_people_who_hardly_look_can_be_left_out(tmp_path):
    contents = read_contents(small_run(tmp_path / "run"))
    people = {
        "annotator": ["ann", "o'neil"],
        "same_given_same": [0.9, 0.5],
        "same_given_different": [0.1, 0.5],
    }
    steps = actions(replace(contents, annotators=people))["people"]
    words = shlex.split(steps[0].command)
    assert words[words.index("--without-person") + 1] == "o'neil"
    assert "ann" not in words
