"""`likewise group`: a table of pairs in, a table of groups out."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import likewise as lw
from cli_cases import complaint, outcome, run
from group_cases import Records, pairwise_f1, records


@pytest.fixture(scope="module")
def made() -> Records:
    return records(n_items=40, n_groups=5, n_pairs=500, swapped=1)


@pytest.fixture
def file(made: Records, tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text(made.csv(), encoding="utf-8")
    return path


@pytest.fixture
def short_file(tmp_path: Path) -> Path:
    """Too few answers for a number of groups by held-out ones, and so soon grouped."""
    path = tmp_path / "pairs.csv"
    few = records(n_items=40, n_groups=5, n_pairs=195, n_people=5, swapped=1)
    path.write_text(few.csv(), encoding="utf-8")
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def test_a_round_trip(
    made: Records, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "groups.csv"
    found = outcome(capsys, "group", str(file), "--out", str(out))
    rows = rows_of(out)
    assert list(rows[0]) == ["item", "group", "probability"]
    assert [row["item"] for row in rows] == made.ids.tolist()
    labels = np.array([int(row["group"]) for row in rows])
    assert pairwise_f1(labels, made.truth) > 0.95
    assert all(0 < float(row["probability"]) <= 1 for row in rows)
    assert found["groups"] == len(set(labels)) == len(found["sizes"])
    assert found["judgements"] == 500
    assert found["annotators"]["annotator"][-1] == "person 0"
    assert set(found["ask_again"][0]) == {"left", "right", "probability"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["groups.csv", "pairs.csv"]


def test_what_it_shows(short_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("group", str(short_file), "--groups", "6") == 0
    text = capsys.readouterr().out
    assert "6 of 40 items" in text
    assert "least reliable" in text
    assert text.index("person 0") < text.index("person ", text.index("person 0") + 8)
    assert "asking again" in text


def test_it_tells_of_every_file_it_wrote(
    short_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"out": "g.csv", "judged": "j.csv", "ask": "a.csv", "report": "r.html"}
    options = [word for name, file in files.items() for word in (f"--{name}", str(tmp_path / file))]
    assert run("group", str(short_file), *options) == 0
    shown = capsys.readouterr().out.split()
    assert [str(tmp_path / file) in shown for file in files.values()] == [True] * 4
    told = outcome(capsys, "group", str(short_file), *options)
    assert {name: told[name] for name in files} == {
        name: str(tmp_path / file) for name, file in files.items()
    }


def test_without_out_the_groups_are_in_the_json(
    short_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = outcome(capsys, "group", str(short_file))
    assert set(found["assignments"][0]) == {"item", "group", "probability"}


def test_items_that_nobody_judged_have_no_group(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pairs.csv").write_text("left,right,same\na,b,1\nb,c,0\n")
    (tmp_path / "items.csv").write_text("id,x,y\na,1,0\nb,1,0.1\nc,0,1\nd,0,2\n")
    out = tmp_path / "groups.csv"
    status = run(
        *("group", str(tmp_path / "pairs.csv"), "--items", str(tmp_path / "items.csv")),
        *("--out", str(out)),
    )
    assert status == 0
    assert "never judged" in capsys.readouterr().out
    assert [row["item"] for row in rows_of(out)] == ["a", "b", "c", "d"]
    assert rows_of(out)[-1] == {"item": "d", "group": "", "probability": ""}


def test_a_formula_is_harmless_in_a_spreadsheet(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("left,right,same\n=1+1,b,1\nb,c,0\n")
    out = tmp_path / "groups.csv"
    assert run("group", str(tmp_path / "pairs.csv"), "--out", str(out)) == 0
    assert "'=1+1" in out.read_text()


def test_judged_pairs_and_pairs_to_ask_about_are_written(short_file: Path, tmp_path: Path) -> None:
    judged, ask = tmp_path / "judged.csv", tmp_path / "ask.csv"
    given = ("--judged", str(judged), "--ask", str(ask), "--count", "7")
    assert run("group", str(short_file), *given) == 0
    found = lw.group(short_file)
    names = found.item_ids[found.pairs].tolist()
    assert [[row["left"], row["right"]] for row in rows_of(judged)] == names
    told = [float(row["probability"]) for row in rows_of(judged)]
    np.testing.assert_allclose(told, found.pairs_proba, atol=1e-6)
    asked = [[row["left"], row["right"]] for row in rows_of(ask)]
    assert len(asked) == 7
    known = {frozenset(pair) for pair in names}
    assert not any(frozenset(pair) in known for pair in asked)


@pytest.mark.parametrize("option", ["--out", "--judged", "--ask", "--report"])
def test_what_is_read_is_never_written_over(
    option: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = file.read_bytes()
    assert "named twice" in complaint(capsys, "group", str(file), option, str(file))
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "left"),
        ("left,right,same\n", "no judgement"),
        ("left,right,same\na,b,perhaps so\n", "perhaps so"),
    ],
)
def test_a_wrong_file_is_one_sentence(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wrong.csv").write_text(text)
    assert words in complaint(capsys, "group", str(tmp_path / "wrong.csv"))


def test_an_item_compared_with_itself_goes_by_its_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("left,right,same\na,b,yes\nbob,bob,distinct\n")
    assert "line 3: item 'bob' is compared with itself" in complaint(capsys, "group", str(file))
    file.write_text("left,right,same\na,b,yes\na,c,certainly\n")
    assert "yes/no, true/false, same/different, match/distinct" in complaint(
        capsys, "group", str(file)
    )


def test_mistakes_are_one_sentence(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no file" in complaint(capsys, "group", str(tmp_path / "none.csv"))
    assert "between 1 and 40" in complaint(capsys, "group", str(file), "--groups", "41")
    assert "--groups" in complaint(capsys, "group", str(file), "--groups", "0")
    nowhere = str(tmp_path / "no" / "groups.csv")
    assert "there is no folder" in complaint(capsys, "group", str(file), "--out", nowhere)


def test_items_that_lack_some_leave_their_answers_out(
    made: Records, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "items.csv"
    rng = np.random.default_rng(0)
    rows = [f"{name},{rng.normal()},{rng.normal()}" for name in made.ids.tolist()[2:]]
    table.write_text("item,a,b\n" + "\n".join(rows) + "\n", encoding="utf-8")
    out = str(tmp_path / "groups.csv")
    given = ("--groups", "5", "--items", str(table), "--id", "item", "--out", out)
    assert run("group", str(file), *given) == 0
    assert "left out" in capsys.readouterr().err
    assert [row["item"] for row in rows_of(Path(out))] == made.ids.tolist()[2:]
