"""Classes and matrices from files, and what is said of others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.errors import InputError
from likewise.items.files import ItemFile
from likewise.items.labels import read_label_file, read_labels, read_matrix

ITEMS = ItemFile(np.zeros((4, 1)), np.array(["a", "b", "c", "d"]))


def csv(folder: Path, text: str) -> Path:
    (folder / "x.csv").write_text(text)
    return folder / "x.csv"


def labels(path: Path, items: ItemFile = ITEMS, column: str | None = None) -> dict[int, str]:
    where, found = read_labels(path, items, column=column)
    assert where.dtype == np.int64
    return dict(zip(where.tolist(), found.tolist(), strict=True))


@pytest.mark.parametrize("item", ["item", "ID", "item_id", "Image", "file", ""])
@pytest.mark.parametrize("label", ["label", "class", "truth", "TRUE", "y", "name", "target", "odd"])
def test_columns_by_their_usual_names(tmp_path: Path, item: str, label: str) -> None:
    path = csv(tmp_path, f"{item},{label}\nc,dog\na,cat\nb,\n")
    assert labels(path) == {2: "dog", 0: "cat"}


def test_a_column_that_a_person_names(tmp_path: Path) -> None:
    path = csv(tmp_path, "item,label,breed\nc,dog,poodle\n")
    assert labels(path) == {2: "dog"}
    assert labels(path, column="breed") == {2: "poodle"}
    with pytest.raises(InputError, match=r"^x\.csv has no column kind; .* item, label, breed\.$"):
        labels(path, column="kind")
    # A column of labels that is called as ids are is no column of ids.
    assert labels(csv(tmp_path, "id\n3\n1\n2\n1\n"), column="id") == {
        0: "3",
        1: "1",
        2: "2",
        3: "1",
    }


def test_one_label_an_item_in_their_order(tmp_path: Path) -> None:
    assert labels(csv(tmp_path, "label\nx\ny\n\nx\ny\n")) == {0: "x", 1: "y", 2: "x", 3: "y"}
    with pytest.raises(InputError, match=r"there are 4 items, but x\.csv has 3 classes"):
        labels(csv(tmp_path, "label\nx\ny\nx\n"))
    np.save(tmp_path / "y.npy", np.zeros((4, 1)))
    with pytest.raises(InputError, match=r"^y\.npy must be one class an item, shape \(N,\)"):
        labels(tmp_path / "y.npy")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("item,p,q\na,1,2\n", r"^x\.csv does not say which column is the class; .* item, p, q; ca"),
        ("item\na\n", "does not say which column is the class"),
        ("item,label\na,1\nz,2\n", r"^x\.csv, line 3: item is 'z'"),
        ("id,label\na,1\nz,2\n", r"^x\.csv, line 3: id is 'z'"),
        ("item,label\na,1\na,2\n", r"^x\.csv gives some item two classes"),
        ("[1]", r"named like CSV but holds JSON"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        labels(csv(tmp_path, text))


def test_places_that_hold_no_classes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^there is no file .*none of classes"):
        labels(tmp_path / "none")
    (tmp_path / "x.json").write_text("[1]")
    with pytest.raises(InputError, match=r"^x\.json holds no classes; give CSV, Parquet or \.npy"):
        labels(tmp_path / "x.json")
    numbered = ItemFile(np.zeros((2, 1)))
    with pytest.raises(InputError, match=r"item .*2"):
        labels(csv(tmp_path, "item,label\n0,a\n2,b\n"), numbered)


def test_a_folder_of_parquet(tmp_path: Path) -> None:
    for k, item in enumerate("cb"):
        table = pa.table({"item": [item], "label": [k]})
        pq.write_table(table, tmp_path / f"{k}.parquet")
    assert labels(tmp_path) == {2: "0", 1: "1"}


def test_labels_that_are_all_there_is(tmp_path: Path) -> None:
    ids, found = read_label_file(csv(tmp_path, "item,label\n1,x\n0,y\n"))
    assert (ids.tolist(), found.tolist()) == (["1", "0"], ["x", "y"])
    assert read_label_file(csv(tmp_path, "item,label\n0,x\n1,y\n"))[0] is None
    assert read_label_file(csv(tmp_path, "label\nx\ny\n"))[1].tolist() == ["x", "y"]
    assert read_label_file(csv(tmp_path, "item,a,b\n0,x,p\n"), column="b")[1].tolist() == ["p"]
    with pytest.raises(InputError, match=r"^x\.csv gives no class in row 1\.$"):
        read_label_file(csv(tmp_path, "item,label\n0,x\n1,\n2,\n"))


def test_matrices(tmp_path: Path) -> None:
    path = csv(tmp_path, "\ufeff1,0\n0.5;0.5\n")
    found = read_matrix(path)
    assert (found.tolist(), found.dtype) == ([[1, 0], [0.5, 0.5]], np.float64)
    assert read_matrix(csv(tmp_path, "1 2\n")).tolist() == [[1, 2]]
    np.save(tmp_path / "t.npy", np.eye(2, dtype=np.int8))
    assert read_matrix(tmp_path / "t.npy").dtype == np.float64
    np.save(tmp_path / "t.npy", np.array(["a"]))
    with pytest.raises(InputError, match=r"^t\.npy holds <U1, not a matrix of numbers"):
        read_matrix(tmp_path / "t.npy")
    for wrong in ("1,2\n3\n", "a,b\n"):
        with pytest.raises(InputError, match=r"^x\.csv is no matrix: rows of numbers, equally"):
            read_matrix(csv(tmp_path, wrong))
    for nowhere in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match=r"there is no file .* with a matrix"):
            read_matrix(nowhere)
