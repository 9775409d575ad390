"""The paper's tables: settings, cells, stored results, summaries, rendered text."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from likewise.errors import InputError
from likewise.experiments import (
    METHODS,
    TABLES,
    load_settings,
    plan,
    read_collected,
    render,
    summarise,
    write_collected,
)
from likewise.experiments.cells import Cell
from likewise.experiments.collect import collect, update_page
from likewise.experiments.overview import overview_grid
from likewise.experiments.paper import ACCURACY, reported
from likewise.experiments.readme import fill
from likewise.experiments.store import (
    COLUMNS,
    curve,
    load_result,
    load_results,
    save_result,
)
from likewise.training.recipe import PAPER

REPOSITORY = Path(__file__).resolve().parents[2]

# -- settings ---------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
def test_every_shipped_config_loads_and_can_be_cut(table: str) -> None:
    settings = load_settings(table)
    assert settings.table == table
    quick = settings.cut(quick=True)
    assert quick.trials == 1
    assert quick.training.epochs <= 2
    assert len(plan(quick)) < len(plan(settings)) or settings.trials == 1


@pytest.mark.parametrize("table", ["table1", "table2", "table3", "table4"])
def test_configs_are_the_recipes_of_the_paper(table: str) -> None:
    """But for the split_merged_at, which are said to be ours."""
    settings = load_settings(table)
    assert settings.training.with_(split_merged_at=()) == PAPER[settings.network]


def test_settings_of_the_paper_by_its_own_text() -> None:
    """Section 5: epochs, batches, and the epochs at which the rate drops."""
    stated = {
        "table1": (30, 128, [10, 20]),
        "table2": (120, 128, [40, 80]),
        "table3": (200, 1000, [80, 160]),
        "table4": (10, 256, [5]),
        "table5": (200, 1000, [80, 160]),
    }
    for table, (epochs, batch, drops) in stated.items():
        recipe = load_settings(table).training
        assert (recipe.epochs, recipe.batch_size) == (epochs, batch)
        assert [round(m * epochs) for m in recipe.milestones] == drops
        assert (recipe.optimizer, recipe.lr, recipe.gamma) == ("adam", 1e-3, 0.1)


def test_cutting_a_table() -> None:
    table = load_settings("table1").cut(trials=2, noise=("0.6",), methods=("kcl",), epochs=3)
    assert [c.name for chain in plan(table) for c in chain] == [
        "symmetric-0.6-kcl-0",
        "symmetric-0.6-kcl-1",
    ]
    assert table.recipe("joint").epochs == table.recipe("kcl").epochs == 3
    human = load_settings("cifar10n").cut(noise=("worse",))
    assert human.noise_kind == ("worse",)


def test_a_methods_own_changes() -> None:
    table = replace(load_settings("table1"), own={"kcl": {"epochs": 7, "lr": 0.01}})
    assert (table.recipe("kcl").epochs, table.recipe("mcl").epochs) == (7, 30)
    short = table.cut(epochs=3)
    assert (short.recipe("kcl").epochs, short.recipe("kcl").lr) == (3, 0.01)
    with pytest.raises(InputError, match="no method 'svm'"):
        replace(table, own={"svm": {}})


HALF_HOUR = sorted((Path(__file__).parents[2] / "benchmarks" / "half_hour").glob("*.toml"))


@pytest.mark.parametrize("path", HALF_HOUR, ids=lambda path: path.stem)
def test_settings_of_the_benchmarks_load(path: Path) -> None:
    assert plan(load_settings(path))


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        ({"methods": ("svm",)}, "no method 'svm'"),
        ({"noise": ("high",)}, "takes noise rates"),
        ({"noise": (1.5,)}, "noise must be between 0 and 1"),
        ({"trials": 0}, "trials must be at least 1"),
        ({"epochs": 0}, "epochs must lie between 1 and 1,000,000"),
    ],
)
def test_mistakes_in_cutting(cut: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_settings("table1").cut(**cut)


def test_mistakes_in_a_settings_file(tmp_path: Path) -> None:
    good = (Path(load_settings.__code__.co_filename).parent / "configs/table1.toml").read_text()
    path = tmp_path / "mine.toml"
    for change, message in {
        "epochs = 30": ("epoks = 30", "has no epoks"),
        "trials = 5": ("trails = 5", "unknown setting 'trails'"),
        "held_out = 0.1": ("held_out = 1.1", "held_out must be between 0 and 1"),
        'table = "table1"': ("", "missing 1 required positional argument: 'table'"),
        "noise = [0.2, 0.3, 0.4, 0.5, 0.6]": ("noise = []", "synthetic noise needs rates"),
        "[quick]": ("[quick", "not valid TOML"),
    }.items():
        assert change in good
        path.write_text(good.replace(change, message[0]))
        with pytest.raises(InputError, match=message[1]):
            load_settings(path)
    path.write_text(good.replace("epochs = 30", "epochs = 7"))
    assert load_settings(path).training.epochs == 7
    with pytest.raises(InputError, match="there is no table 'table9'"):
        load_settings("table9")
    with pytest.raises(InputError, match="does not exist"):
        load_settings(tmp_path / "none.toml")


# -- cells ------------------------------------------------------------------------------------


def test_table1_is_complete() -> None:
    cells = [cell for chain in plan(load_settings("table1")) for cell in chain]
    assert len(cells) == len(set(cells)) == 5 * 5 * 5
    assert len({cell.name for cell in cells}) == len(cells)


def test_mcl_is_planned_once_and_before_the_mns_that_needs_it() -> None:
    only = load_settings("table1").cut(methods=("mns_estimated",), trials=1, noise=(0.2,))
    assert [[c.method for c in chain] for chain in plan(only)] == [["mcl", "mns_estimated"]]
    every = load_settings("table1").cut(trials=1, noise=(0.2,))
    assert [[c.method for c in chain] for chain in plan(every)] == [
        ["mcl", "mns_estimated", "mns_true"],
        ["kcl"],
        ["joint"],
    ]


# -- stored results -----------------------------------------------------------------------------

CELL = Cell("table1", "mnist", "lenet", "symmetric", 0.6, "mns_estimated", 0)


def result(cell: Cell = CELL, **changes: Any) -> dict[str, Any]:
    figures = {
        "accuracy": 0.97,
        "last_accuracy": 0.96,
        "transition_error": 0.05,
        "gram_error": 0.04,
        "classes_used": 10,
        "n_classes": 10,
        "epochs": 30,
        "seconds": 1.5,
        "device": "cpu",
        "commit": "abc",
    }
    return cell.to_dict() | figures | changes


def trial(number: int, accuracy: float, method: str = "mns_estimated", **changes: Any) -> Any:
    cell = Cell("table1", "mnist", "lenet", "symmetric", 0.6, method, number)
    return result(cell, accuracy=accuracy, **changes)


def test_results_survive_storing(tmp_path: Path) -> None:
    history = [
        {"method": "mns", "epoch": 0, "loss": 0.5},
        {"method": "mns", "epoch": 1, "loss": 0.25},
    ]
    assert load_result(tmp_path, CELL) is None
    save_result(tmp_path, CELL, result(), {"recipe": {"epochs": 30}}, history)
    stored = result() | {"curve": {"loss": [0.5, 0.25], "held_out": []}}
    assert load_result(tmp_path, CELL, {"recipe": {"epochs": 30}}) == stored
    assert load_results(tmp_path) == [stored]
    assert (CELL.folder(tmp_path) / "history.csv").read_text().splitlines()[2] == "mns,1,0.25"


def test_results_of_other_settings_are_not_taken_for_finished(tmp_path: Path) -> None:
    save_result(tmp_path, CELL, result(), {"recipe": {"epochs": 1}}, [])
    with pytest.raises(InputError, match=r"recipe.epochs was 1, is now 30"):
        load_result(tmp_path, CELL, {"recipe": {"epochs": 30}})


def test_a_curve_is_of_the_network_that_was_kept() -> None:
    history = [
        {"method": "teacher 1", "epoch": 0, "loss": 0.9},
        {"method": "joint", "epoch": 0, "loss": 0.5},
        {"method": "joint", "epoch": 1, "loss": 0.25},
    ]
    assert curve(history)["loss"] == [0.5, 0.25]
    assert curve([]) == {"loss": [], "held_out": []}


def test_a_damaged_result_is_named(tmp_path: Path) -> None:
    save_result(tmp_path, CELL, result(), {}, [])
    (CELL.folder(tmp_path) / "result.json").write_text("{")
    with pytest.raises(InputError, match=r"result.json is not valid JSON"):
        load_result(tmp_path, CELL)


def test_collected_results(tmp_path: Path) -> None:
    big = [[0.123456789] * 100 for _ in range(100)]
    rows = [
        trial(1, 0.5),
        trial(0, 0.25, transition=big),
        trial(0, 0.75, "kcl", transition_error=None),
    ]
    write_collected(rows, tmp_path)
    back = read_collected(tmp_path)
    assert [(r["method"], r["trial"]) for r in back] == [
        ("kcl", 0),
        ("mns_estimated", 0),
        ("mns_estimated", 1),
    ]
    assert len(back[1]["transition"]) == len(back[1]["transition"][0]) == 10
    table = list(csv.DictReader(io.StringIO((tmp_path / "tables.csv").read_text())))
    assert tuple(table[0]) == COLUMNS
    assert table[0]["transition_error"] == ""
    assert float(table[2]["accuracy"]) == 0.5
    with pytest.raises(InputError, match="no collected results"):
        read_collected(tmp_path / "elsewhere")


def test_collecting_from_several_machines(tmp_path: Path) -> None:
    first, second, results = tmp_path / "a", tmp_path / "b", tmp_path / "results"
    save_result(first, CELL, result(accuracy=0.5), {}, [])
    other = Cell("table1", "mnist", "lenet", "symmetric", 0.6, "kcl", 0)
    write_collected([result(accuracy=0.75), result(other)], second)
    assert [s.mean for s in collect([first], results)] == [0.5]
    summaries = collect([second], results)
    assert {(s.method, s.mean) for s in summaries} == {("mns_estimated", 0.75), ("kcl", 0.97)}
    assert "| MNS(T̂) | 75.00" in (results / "summary.md").read_text()
    readme = tmp_path / "README.md"
    readme.write_text("<!-- results:table1 -->\n<!-- /results -->\n")
    assert update_page(readme, results)
    assert "75.00" in readme.read_text()
    assert not update_page(readme, results)
    with pytest.raises(InputError, match="no finished runs"):
        collect([tmp_path / "none"], results)
    with pytest.raises(InputError, match="nothing to collect"):
        collect([], tmp_path / "empty")


# -- summaries ----------------------------------------------------------------------------------


def test_mean_deviation_and_collapsed_runs() -> None:
    rows = [trial(0, 0.96), trial(1, 0.98, classes_used=9), trial(2, 0.97)]
    (summary,) = summarise(rows)
    assert summary.mean == pytest.approx(0.97)
    assert summary.deviation == pytest.approx(0.01)
    assert (summary.trials, summary.collapsed) == (3, 1)
    assert summary.paper_transition_error == 0.0668
    (single,) = summarise(rows[:1])
    assert single.deviation is None


@pytest.mark.parametrize(
    ("accuracy", "verdict"),
    [
        (0.9726, "within"),
        (0.9704, "within"),
        (0.9748, "within"),
        (0.9702, "below"),
        (0.9751, "above"),
    ],
)
def test_verdict_against_the_papers_spread(accuracy: float, verdict: str) -> None:
    (summary,) = summarise([trial(0, accuracy)])  # the paper: 97.26 ± 0.23
    assert summary.verdict == verdict
    assert summary.reaches_paper is (verdict != "below")


def test_cells_that_the_paper_has_not() -> None:
    (summary,) = summarise([trial(0, 0.99, "joint")])
    assert summary.paper is None
    assert summary.verdict == ""
    assert summary.difference is None


def test_the_papers_numbers_are_all_there() -> None:
    rates = (0.2, 0.3, 0.4, 0.5, 0.6)
    for table in ("table1", "table2", "table3"):
        for method in METHODS[:4]:
            assert tuple(ACCURACY[table, method]) == rates
    spot = reported("table2", "mns_true", 0.6)
    assert spot is not None
    assert (spot.mean, spot.deviation) == (pytest.approx(0.4024), pytest.approx(0.0061))
    assert reported("table5", "mns_estimated", None).mean == pytest.approx(0.7118)


# -- rendered tables ------------------------------------------------------------------------------


def summaries() -> Any:
    rows = [trial(t, a, m) for m in METHODS for t, a in enumerate((0.97, 0.975))]
    rows += [
        result(Cell("cifar10n", "cifar10n", "resnet32", "worse", None, "mcl", 0), classes_used=9)
    ]
    return summarise(rows)


def test_markdown_shows_ours_and_the_papers() -> None:
    text = render(summaries(), "markdown")
    assert "**Table 1: MNIST, 2 trials**" in text
    assert "| MNS(T̂) | 97.25 ± 0.35 (97.26 ± 0.23) ● |" in text
    assert "| MNS(T) | 97.25 ± 0.35 (94.48 ± 4.49) ● |" in text
    assert "| joint | 97.25 ± 0.35 |" in text
    assert "| MNS(T̂) | 0.050 / 0.040 (0.0668) |" in text
    assert "**CIFAR-10N, 1 trial**" in text
    assert "| MCL | 97.00 †1 |" in text


def test_other_styles() -> None:
    lines = render(summaries(), "text").splitlines()
    at = [line.replace("\u0302", "").index("97.25") for line in lines if "97.25" in line]
    assert at == [8] * 5  # aligned, the hat of T taking no room
    latex = render(summaries(), "latex")
    assert r"MNS($\hat{T}$) & 97.25 $\pm$ 0.35 (97.26 $\pm$ 0.23) $\cdot$ \\" in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 2
    rows = list(csv.DictReader(io.StringIO(render(summaries(), "csv"))))
    ours = next(r for r in rows if r["method"] == "mns_estimated")
    assert float(ours["paper_mean"]) == pytest.approx(0.9726)
    assert ours["verdict"] == "within"
    with pytest.raises(InputError, match="no table style 'html'"):
        render(summaries(), "html")


def test_a_cell_that_was_not_run_is_a_dash() -> None:
    rows = [trial(0, 0.9), trial(0, 0.9, "kcl", noise=0.2)]
    assert "| KCL | 90.00 (99.20 ± 0.02) ▼ | – |" in render(summarise(rows), "markdown")


# -- the README --------------------------------------------------------------------------------


def test_filling_markers() -> None:
    before = "a\n<!-- results:table1 -->\nold\n<!-- /results -->\nb\n"
    after = fill(before, summaries())
    assert "old" not in after
    assert after.startswith("a\n<!-- results:table1 -->\n**Table 1")
    assert after.endswith("<!-- /results -->\nb\n")
    assert fill(after, summaries()) == after
    with pytest.raises(InputError, match="names no collected table"):
        fill(before.replace("table1", "table7"), summaries())
    errors = fill(before.replace("table1", "table1_errors"), summaries())
    assert "| error of T̂ | 0.6 |" in errors


def test_blocks_of_a_table_tell_which_code_made_them() -> None:
    made = [
        trial(0, 0.8, "mcl", commit="aaaaaaaaaaaa"),
        trial(1, 0.9, "mcl", commit="bbbbbbbbbbbb+"),
        trial(0, 0.95, "joint", commit="cccccccccccc"),
    ]

    def filled(block: str) -> str:
        page = f"<!-- results:table1{block} -->\n<!-- /results -->\n"
        return fill(page, summarise(made))

    pairwise, joint, both = filled(".pairwise"), filled(".joint"), filled("")
    assert "**Table 1: MNIST, 2 trials, commits aaaaaaa, bbbbbbb**" in pairwise
    assert "MCL" in pairwise
    assert "joint" not in pairwise.partition("\n")[2]
    assert "**Table 1: MNIST, 1 trial, commit ccccccc**" in joint
    assert "MCL" not in joint
    assert "MCL" in both
    assert "| joint |" in both
    assert both.count("**Table 1") == 2  # a table for each code: rows that are to be compared
    assert "joint" not in both.partition("**Table 1: MNIST, 1 trial, commit ccccccc**")[0][30:]
    with pytest.raises(InputError, match=r"\.joint and \.pairwise"):
        filled(".others")


def test_the_tables_in_a_minute() -> None:
    rows = [trial(0, 0.8, "joint", noise=0.4), trial(0, 0.9, "joint", noise=0.2)]
    larger = trial(0, 0.95, "joint", noise=0.2) | {"table": "larger"}
    grid = overview_grid(summarise([*rows, larger]))
    assert grid[1][1:3] == ["KCL", "99.2 / 96.0 / 85.2"]  # the paper's own
    assert grid[5:] == [
        ["ours, joint", "joint", "90.0 / 80.0 / –", "–", "–"],
        ["ours, joint, ResNet-18", "joint", "–", "95.0 / – / –", "–"],
    ]


@pytest.mark.parametrize("name", ["README.md", "docs/tables.md"])
def test_pages_show_the_committed_results(name: str) -> None:
    page = (REPOSITORY / name).read_text(encoding="utf-8")
    if not (REPOSITORY / "results/runs").is_dir():
        assert "<!-- results:" not in page, f"{name} shows results that are not in results/"
        pytest.skip("no results were collected yet")
    assert fill(page, summarise(read_collected(REPOSITORY / "results"))) == page, (
        f"the tables of {name} are not those of results/: run python benchmarks/collect_results.py"
    )
