"""Items, classes and matrices from files; evaluation, naming and simulation on top of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.datasets.simulation import Simulation, simulate
from likewise.errors import InputError
from likewise.io.spreadsheets import write_csv
from likewise.io.tables import CsvTable
from likewise.items.files import ItemFile, read_array, read_items
from likewise.items.labels import read_label_file, read_labels, read_matrix
from likewise.label.items import open_items
from likewise.metrics import evaluate_predictions

X = np.arange(12, dtype=np.float32).reshape(4, 3) / 4


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def table(rows: np.ndarray[tuple[int, ...], np.dtype[np.float32]], names: list[str]) -> list[str]:
    return [",".join([name, *(f"{v:g}" for v in row)]) for name, row in zip(names, rows)]


def test_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    found = read_items(tmp_path / "x.npy")
    np.testing.assert_array_equal(found.items, X)
    assert found.ids is None
    assert found.names.tolist() == ["0", "1", "2", "3"]
    np.savez(tmp_path / "x.npz", X=X, ids=list("abcd"), y=np.zeros(4))
    found = read_items(tmp_path / "x.npz")
    np.testing.assert_array_equal(found.items, X)
    assert found.names.tolist() == list("abcd")
    np.savez(tmp_path / "one.npz", whatever=X)
    np.testing.assert_array_equal(read_items(tmp_path / "one.npz").items, X)
    np.savez(tmp_path / "ids.npz", X=X, ids=["a"])
    with pytest.raises(InputError, match="1 ids"):
        read_items(tmp_path / "ids.npz")


@pytest.mark.parametrize("header", ["id,p,q,r", "p;q;r", ",0,1,2", "0,1,2"])
def test_tables_with_and_without_ids(tmp_path: Path, header: str) -> None:
    separator = ";" if ";" in header else ","
    has_ids = header.startswith(("id", ","))
    rows = table(X, list("abcd"))
    rows = rows if has_ids else [row.split(",", 1)[1] for row in rows]
    text = "\n".join([header, *(row.replace(",", separator) for row in rows)])
    found = read_items(write(tmp_path, "x.csv", text))
    np.testing.assert_array_equal(found.items, X)
    assert (found.ids is not None) == has_ids
    if has_ids:
        assert found.names.tolist() == list("abcd")


@pytest.fixture(params=[1, 4])
def arrow_cores(request: pytest.FixtureRequest) -> Iterator[int]:
    """So many threads of Arrow, of which only one alone counts rows."""
    before = pa.cpu_count()
    pa.set_cpu_count(request.param)
    yield request.param
    pa.set_cpu_count(before)


@pytest.mark.usefixtures("arrow_cores")
def test_a_table_without_a_header(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "x.csv", X, delimiter=",")
    np.testing.assert_allclose(read_items(tmp_path / "x.csv").items, X)
    with pytest.raises(InputError, match="Row #2: Expected 2 columns, got 1"):
        read_items(write(tmp_path, "y.csv", "1.5,2\n3\n"))
    with pytest.raises(InputError, match="line 2: column 2 is 'x', not a number"):
        read_items(write(tmp_path, "z.csv", "1.5,2\n3,x\n"))


def test_whole_numbers_at_the_beginning_do_not_forbid_fractions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("likewise.io.tables._BLOCK_BYTES", 64)
    rows = "".join(f"k{k},{k}\n" for k in range(50))
    path = write(tmp_path, "x.csv", f"id,a\n{rows}last,1.5\n")
    assert read_items(path).items[-1] == 1.5


@pytest.mark.parametrize("reader", [read_items, open_items])
def test_blank_and_repeated_ids_are_refused_by_all(tmp_path: Path, reader: Any) -> None:
    with pytest.raises(InputError, match="line 3: the column id is blank"):
        reader(write(tmp_path, "b.csv", "id,a\nx,1\n,2\n"))
    with pytest.raises(InputError, match="line 3: the column id has 'x' twice"):
        reader(write(tmp_path, "t.csv", "id,a\nx,1\nx,2\n"))
    pq.write_table(pa.table({"id": ["x", None], "a": [1, 2]}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="row 1: the column id is blank"):
        reader(tmp_path / "x.parquet")
    np.savez(tmp_path / "x.npz", items=np.zeros((2, 4, 4), np.uint8), ids=["p", "p"])
    with pytest.raises(InputError, match="has the id 'p' twice"):
        reader(tmp_path / "x.npz")
    doubled = pa.Table.from_arrays([pa.array([1, 2])] * 2, names=["a", "a"])
    pq.write_table(doubled, tmp_path / "d.parquet")
    with pytest.raises(InputError, match="several columns named a"):
        reader(tmp_path / "d.parquet")


def test_sizes_are_known_before_memory_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIKEWISE_MAX_GB", "0.01")
    pq.write_table(pa.table({"a": np.zeros(10_000_000, np.float32)}), tmp_path / "x.parquet")
    for reader in (read_items, open_items):
        with pytest.raises(InputError, match=r"10,000,000 rows of 1 columns would .*LIKEWISE_MAX_"):
            reader(tmp_path / "x.parquet")
    rows = "".join(f"{k},1\n" for k in range(3000))
    path = write(tmp_path, "x.csv", f"id,a\n{rows}{'x' * 1000},1\n")
    with pytest.raises(InputError, match=r"3,001 texts of up to 1,000 characters .*shorten"):
        read_items(path)


def test_a_hundred_thousand_columns_take_seconds(tmp_path: Path) -> None:
    names = [f"c{k}" for k in range(100_000)]
    started = time.process_time()
    with pytest.raises(InputError, match="several columns named c0"):
        CsvTable(write(tmp_path, "twice.csv", ",".join([*names, "c0"]) + "\n"))
    assert CsvTable(write(tmp_path, "wide.csv", ",".join(names) + "\n")).columns == names
    assert time.process_time() - started < 5  # by comparing each with each it took minutes


def test_another_id_column(tmp_path: Path) -> None:
    path = write(tmp_path, "x.csv", "\n".join(["who,p,q,r", *table(X, list("abcd"))]))
    assert read_items(path, id_column="who").names.tolist() == list("abcd")
    with pytest.raises(InputError, match="who, p, q, r"):
        read_items(path, id_column="name")
    with pytest.raises(InputError, match="line 2: who is 'a', not a number"):
        read_items(path)


def test_parquet(tmp_path: Path) -> None:
    columns = {"id": list("abcd"), **{f"f{k}": X[:, k] for k in range(3)}}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    found = read_items(tmp_path / "x.parquet")
    np.testing.assert_array_equal(found.items, X)
    assert found.names.tolist() == list("abcd")


def test_a_folder_of_images(tmp_path: Path) -> None:
    from PIL import Image

    for k, size in enumerate([(6, 6), (8, 6)]):
        Image.new("RGB", size, (10 * k, 0, 0)).save(tmp_path / f"{k}.png")
    with pytest.raises(InputError, match="give a size"):
        read_items(tmp_path)
    found = read_items(tmp_path, size=4)
    assert found.items.shape == (2, 4, 4, 3)
    assert found.names.tolist() == ["0.png", "1.png"]


def test_labels_by_name_by_position_and_in_order(tmp_path: Path) -> None:
    items = ItemFile(X, np.array(["a.png", "b.png", "c.png", "d.png"]))
    where, labels = read_labels(write(tmp_path, "n.csv", "item,label\nc,dog\na.png,cat\n"), items)
    assert (where.tolist(), labels.tolist()) == ([2, 0], ["dog", "cat"])
    where, labels = read_labels(write(tmp_path, "p.csv", "item,class\n3,1\n1,\n"), ItemFile(X))
    assert (where.tolist(), labels.tolist()) == ([3], ["1"])
    where, labels = read_labels(write(tmp_path, "o.csv", "y\nw\nx\ny\nz\n"), items)
    assert (where.tolist(), labels.tolist()) == ([0, 1, 2, 3], ["w", "x", "y", "z"])
    np.save(tmp_path / "y.npy", np.array([3, 1, 2, 0]))
    assert read_labels(tmp_path / "y.npy", items)[1].tolist() == ["3", "1", "2", "0"]
    two = write(tmp_path, "t.csv", "item,age,breed\na,3,dog\n")
    assert read_labels(two, items, column="breed")[1].tolist() == ["dog"]


def test_labels_that_are_all_there_is(tmp_path: Path) -> None:
    ids, labels = read_label_file(write(tmp_path, "a.csv", "item,label\nb,1\na,2\n"))
    assert ids is not None
    assert (ids.tolist(), labels.tolist()) == (["b", "a"], ["1", "2"])
    assert read_label_file(write(tmp_path, "n.csv", "item,label\n0,1\n1,2\n"))[0] is None
    with pytest.raises(InputError, match="no class in row 1"):
        read_label_file(write(tmp_path, "b.csv", "item,label\nb,1\na,\n"))


@pytest.mark.parametrize("text", ["0.9,0.1\n0.2,0.8\n", "0.9 0.1\n0.2 0.8", "0.9;0.1\n0.2;0.8\n"])
def test_matrices(tmp_path: Path, text: str) -> None:
    expected = [[0.9, 0.1], [0.2, 0.8]]
    assert read_matrix(write(tmp_path, "t.csv", text)).tolist() == expected
    np.save(tmp_path / "t.npy", np.array(expected))
    assert read_matrix(tmp_path / "t.npy").tolist() == expected


def test_evaluation_under_the_best_matching() -> None:
    truth = np.array(["10", "2", "2", "1", "1", "1"])
    predicted = np.array([1, 0, 0, 2, 2, 1])
    found = evaluate_predictions(np.eye(3)[predicted], np.arange(3), truth)
    assert found.classes == ["1", "2", "10"]  # as numbers, not as text
    assert found.matched == ["2", "0", "1"]  # no involution: the direction matters
    assert found.accuracy == pytest.approx(5 / 6)
    assert found.recall == pytest.approx([2 / 3, 1, 1])
    assert found.confusion == [[2, 0, 1], [0, 2, 0], [0, 0, 1]]
    assert found.named_accuracy is None


def test_evaluation_with_fewer_learned_classes_and_with_names() -> None:
    truth = np.array(["a", "b", "c", "c"])
    names = np.array(["a", "c"])
    found = evaluate_predictions(np.eye(2)[[0, 0, 1, 0]], names, truth)
    assert found.matched == ["a", "–", "c"]
    assert found.accuracy == pytest.approx(0.5)
    assert found.named_accuracy == pytest.approx(0.5)
    with pytest.raises(InputError, match="no item of known class"):
        evaluate_predictions(np.zeros((0, 2)), names, np.array([], np.str_))


def test_simulated_judgements_have_the_noise_asked_for() -> None:
    y = np.arange(600) % 3
    exact = simulate(y, Simulation(), np.random.default_rng(0))
    assert exact.is_complete
    np.testing.assert_array_equal(exact.components() == exact.components()[0], y == 0)
    how = Simulation(miss=0.3, false_alarm=0.1, per_item=100, annotators=4)
    pairs = simulate(y, how, np.random.default_rng(0))
    truly = y[pairs.left] == y[pairs.right]
    assert pairs.same[truly].mean() == pytest.approx(0.7, abs=0.02)
    assert pairs.same[~truly].mean() == pytest.approx(0.1, abs=0.02)
    assert pairs.annotator_names is not None
    assert pairs.annotator_names.tolist() == ["person1", "person2", "person3", "person4"]
    coin = Simulation(per_item=100, annotators=3, careless=1.0)
    tossed = simulate(y, coin, np.random.default_rng(0))
    assert tossed.same.mean() == pytest.approx(0.5, abs=0.02)


def test_pair_noise_goes_one_way() -> None:
    t = Simulation(class_noise=0.3, kind="pair").transition(3)
    np.testing.assert_allclose(t, [[0.7, 0.3, 0], [0, 0.7, 0.3], [0.3, 0, 0.7]])


def test_csv_for_people_runs_no_formula(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    write_csv(path, {"item": ["=1+1", "@x", "plain", "-3"], "p": [-0.5, 1.0, 2.0, 3.0]})
    assert path.read_text().splitlines() == [
        "item,p",
        "'=1+1,-0.5",
        "'@x,1.0",
        "plain,2.0",
        "'-3,3.0",
    ]
    with pytest.raises(InputError, match="is a folder"):
        write_csv(tmp_path, {"a": [1]})


class TestSentences:
    """Each says what was wrong, and where."""

    def test_of_tables(self, tmp_path: Path) -> None:
        path = tmp_path / "items.csv"
        path.write_text("id,a\nx,1\ny,\n")
        with pytest.raises(InputError, match=r"line 3: a is blank; items must be finite"):
            read_items(path)
        path.write_text("id,a\nx,1\ny,1e39\n")
        with pytest.raises(InputError, match=r"line 3: a is '1e\+39', not a number"):
            read_items(path)
        path.write_text("id,a\n")
        with pytest.raises(InputError, match=r"items\.csv has no rows\."):
            read_items(path)

    def test_of_archives(self, tmp_path: Path) -> None:
        path = tmp_path / "items.npz"
        np.savez(path, items=np.zeros((2, 3)), ids=np.array(["a", "a"]))
        with pytest.raises(InputError, match=r"items\.npz has the id 'a' twice"):
            read_items(path)

    def test_ids_of_many_batches_are_kept_in_order(self, tmp_path: Path, monkeypatch) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        monkeypatch.setattr("likewise.io.tables._BATCH_ROWS", 2)
        path = tmp_path / "items.parquet"
        pq.write_table(pa.table({"id": ["a", "b", "c", "d", "e"], "x": np.arange(5.0)}), path)
        found = read_items(path)
        assert found.ids.tolist() == ["a", "b", "c", "d", "e"]
        assert found.items.ravel().tolist() == [0, 1, 2, 3, 4]

    def test_sizes_of_images(self) -> None:
        from likewise.items.folder import _height_width

        assert _height_width(4096) == (4096, 4096)
        assert _height_width((1, 4096)) == (1, 4096)
        for size in (0, 4097, (4096, 4097), (0, 5), (5, 0)):
            with pytest.raises(InputError, match="between 1 and 4096"):
                _height_width(size)

    def test_labels_by_any_spelling_and_from_parquet(self, tmp_path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from likewise.items.labels import read_label_file

        (tmp_path / "l.csv").write_text("extra,Item, LABEL \nq,0,a\nq,1,b\n")
        ids, labels = read_label_file(tmp_path / "l.csv")
        assert labels.tolist() == ["a", "b"]
        pq.write_table(pa.table({"item": ["x", "y"], "label": ["a", "b"]}), tmp_path / "l.parquet")
        ids, labels = read_label_file(tmp_path / "l.parquet")
        assert (list(ids), labels.tolist()) == (["x", "y"], ["a", "b"])
        (tmp_path / "two.csv").write_text("item,kind,colour\n0,a,red\n1,b,blue\n")
        assert read_label_file(tmp_path / "two.csv", column="colour")[1].tolist() == ["red", "blue"]


class TestFiles:
    def test_archives(self, tmp_path: Path) -> None:
        path, x = tmp_path / "x.NPZ", np.zeros((2, 3))
        with path.open("wb") as file:
            np.savez(file, data=x, other=x + 1, features=x + 2, ids=[5, 6])
        found = read_items(path)
        assert (found.items[0, 0], found.ids.tolist()) == (2, ["5", "6"])
        with path.open("wb") as file:
            np.savez(file, a=x, b=x)
        with pytest.raises(InputError, match=r"has the arrays a, b; call the one of items 'items'"):
            read_items(path)
        with path.open("wb") as file:
            np.savez(file, ids=[1])
        with pytest.raises(InputError, match="has the arrays none; call"):
            read_items(path)
        with path.open("wb") as file:
            np.savez(file, items=x, ids=["a", "b", "c"])
        with pytest.raises(InputError, match=r"has items of shape \(2, 3\) but 3 ids"):
            read_items(path)

    def test_only_what_is_needed_is_unpacked(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        np.savez_compressed(tmp_path / "x.npz", items=np.zeros((2, 3)), big=np.zeros(10**5))
        monkeypatch.setenv("LIKEWISE_MAX_GB", "0.0001")
        assert read_items(tmp_path / "x.npz").items.shape == (2, 3)

    def test_names_that_lie(self, tmp_path: Path) -> None:
        for name in ("x.npy", "x.NPZ"):
            (tmp_path / name).write_text("a,b\n1,2\n")
            with pytest.raises(InputError, match=rf"{name} is not a NumPy file, whatever its name"):
                read_items(tmp_path / name)
        np.save(tmp_path / "y.npy", np.zeros((2, 3)))
        (tmp_path / "y.npy").rename(tmp_path / "y.csv")
        assert read_items(tmp_path / "y.csv").items.shape == (2, 3)
        assert read_array(write(tmp_path, "x.csv", "a\n1\n")) is None

    def test_what_holds_no_items(self, tmp_path: Path) -> None:
        known = r"items are a \.npy or \.npz array, a CSV or Parquet table"
        with pytest.raises(InputError, match=rf"there is no file or folder .*none; {known}"):
            read_items(tmp_path / "none")
        (tmp_path / "x.json").write_text("[1]")
        with pytest.raises(InputError, match=rf"^x\.json holds no items that can be read; {known}"):
            read_items(tmp_path / "x.json")
        np.save(tmp_path / "x.npy", np.array(["a"]))
        with pytest.raises(InputError, match=r"^x\.npy holds <U1; items must be numbers"):
            read_items(tmp_path / "x.npy")

    def test_names_of_columns(self, tmp_path: Path) -> None:
        found = read_items(write(tmp_path, "x.csv", "id,a,b\nx,1,2\n"))
        assert (found.columns, found.names.tolist(), len(found)) == (("a", "b"), ["x"], 1)
        plain = read_items(write(tmp_path, "x.csv", "1,2.5\n3,4\n"))
        assert (plain.columns, plain.names.tolist()) == (None, ["0", "1"])
        known = read_items(write(tmp_path, "x.csv", "1,2.5\n3,4\n"), known=["2.5", "1"])
        assert (known.columns, len(known)) == (("1", "2.5"), 1)
        pq.write_table(pa.table({"a": [1], "key": ["x"]}), tmp_path / "p.parquet")
        (tmp_path / "x.csv").unlink()
        assert read_items(tmp_path, id_column="key").names.tolist() == ["x"]
