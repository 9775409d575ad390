"""Small files that would take much: sizes are known before memory is taken, limits are named."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.datasets.simulation import Simulation, simulate
from likewise.errors import InputError
from likewise.io.dictionary import Coded
from likewise.io.limits import check_memory, memory_limit, text_array
from likewise.io.regular import hole_bytes
from likewise.items.files import ItemFile, open_item_table, read_items
from likewise.items.labels import read_labels
from likewise.pairs import Pairs


def test_an_inflating_npz_is_refused_by_what_it_would_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez_compressed(tmp_path / "x.npz", items=np.zeros((1000, 25_000), np.float32))
    assert (tmp_path / "x.npz").stat().st_size < 200_000
    monkeypatch.setenv("LIKEWISE_MAX_GB", "0.05")
    with pytest.raises(InputError, match=r"x.npz: items, unpacked, would take 0.1 GB .*MAX_GB=1 "):
        read_items(tmp_path / "x.npz")
    np.savez(tmp_path / "plain.npz", items=np.zeros((1000, 25_000), np.float32))
    assert read_items(tmp_path / "plain.npz").items.shape == (1000, 25_000)  # its own size is fine


def test_many_small_arrays_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "x.npz", items=np.zeros(5_000_000), ids=np.zeros(5_000_000))
    monkeypatch.setenv("LIKEWISE_MAX_GB", "0.05")
    with pytest.raises(InputError, match="unpacked"):
        read_items(tmp_path / "x.npz")


def test_a_sparse_npy_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (10_000_000, 1000)}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 4 * 10_000_000 * 1000)
    if path.stat().st_blocks * 512 > 10**6:
        pytest.skip("this file system keeps no holes")
    assert hole_bytes(path) > 39e9
    with pytest.raises(InputError, match=r"mostly holes .*40\.0 GB .*LIKEWISE_MAX_GB=40"):
        read_items(path)


def test_a_whole_npy_has_no_holes(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(100, 1000)))
    assert hole_bytes(tmp_path / "x.npy") < 10_000


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.csv", "x.parquet", "x"])
def test_a_pipe_holds_nobody_up(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    for reader in (read_items, Pairs.read):
        with pytest.raises(InputError, match="is a pipe, not a file; write its content to a file"):
            reader(tmp_path / name)


def test_one_long_text_among_many(tmp_path: Path) -> None:
    """NumPy gives each text the room of the longest: 5,000 of a megabyte are 20 GB."""
    texts = [*(str(k) for k in range(5000)), "x" * 10**6]
    with pytest.raises(InputError, match=r"5,001 texts of up to 1,000,000 char.*20\.0 GB"):
        text_array(texts, "ids")
    with pytest.raises(InputError, match="1,000,000 characters"):
        Coded.from_list(texts)
    rows = "\n".join(f"{text},0" for text in texts)
    (tmp_path / "x.csv").write_text(f"id,a\n{rows}\n")
    with pytest.raises(InputError, match=r"ids of x.csv.*shorten the longest"):
        read_items(tmp_path / "x.csv")
    (tmp_path / "p.csv").write_text("left,right,same\n" + "".join(f"{t},b,1\n" for t in texts))
    with pytest.raises(InputError, match="shorten the longest"):
        Pairs.read(tmp_path / "p.csv")
    labels = "\n".join(f"{k},{'y' * 10**5 if k == 7 else 'a'}" for k in range(6000))
    (tmp_path / "y.csv").write_text(f"item,label\n{labels}\n")
    with pytest.raises(InputError, match="6,000 rows of text as long as the longest"):
        read_labels(tmp_path / "y.csv", ItemFile(np.zeros((6000, 1))))
    assert text_array(["x" * 10**6], "one").shape == (1,)


def test_more_annotators_than_judgements_are_refused() -> None:
    with pytest.raises(InputError, match="too few for 999,999,999 annotators"):
        simulate([0, 0, 1, 1], Simulation(annotators=999_999_999), np.random.default_rng(0))


def test_a_zip_that_lies_about_an_array(tmp_path: Path) -> None:
    with (
        zipfile.ZipFile(tmp_path / "x.npz", "w") as archive,
        archive.open("items.npy", "w") as file,
    ):
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(InputError, match="damaged or cut short"):
        read_items(tmp_path / "x.npz")


class TestParquetOfEqualRows:
    """Sizes are known before memory is taken: by the file's own account of rows and bytes."""

    @pytest.fixture(autouse=True)
    def small_limit(self, monkeypatch) -> None:
        monkeypatch.setenv("LIKEWISE_MAX_GB", "0.02")

    def repeated(self, text: str, rows: int) -> pa.Array:
        return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([text]))

    def numbered(self, rows: int) -> pa.Array:
        return pa.array([str(k) for k in range(1, rows + 1)])

    def test_many_judgements(self, tmp_path: Path) -> None:
        path, zeros = tmp_path / "p.parquet", np.zeros(3_000_000, np.int8)
        pq.write_table(pa.table({"left": zeros, "right": zeros + 1, "same": zeros}), path)
        assert path.stat().st_size < 50_000
        with pytest.raises(InputError, match=r"3,000,000 rows of 3 columns would take 0\.0 GB"):
            Pairs.read(path)

    def test_text_that_is_long_only_when_unpacked(self, tmp_path: Path) -> None:
        path = tmp_path / "p.parquet"
        ids = pa.array([f"{k}{'x' * 100_000}" for k in range(300)])
        table = pa.table({"left": ids, "right": self.numbered(300), "same": np.ones(300)})
        pq.write_table(table, path, use_dictionary=False, compression="zstd")
        assert path.stat().st_size < 100_000
        with pytest.raises(InputError, match="300 rows of 3 columns would take"):
            Pairs.read(path)

    def test_one_long_id_in_every_judgement(self, tmp_path: Path) -> None:
        path, rows = tmp_path / "p.parquet", 50_000
        table = {"left": self.repeated("x" * 5000, rows), "right": self.numbered(rows)}
        pq.write_table(pa.table(table | {"same": np.ones(rows, np.int8)}), path)
        with pytest.raises(InputError, match="comparing 50,001 ids of up to 5,000 characters"):
            Pairs.read(path)

    def test_one_long_text_in_every_item(self, tmp_path: Path) -> None:
        path, rows = tmp_path / "items.parquet", 10_000
        text = self.repeated("x" * 20_000, rows)
        pq.write_table(pa.table({"id": self.numbered(rows), "t": text}), path)
        with pytest.raises(InputError, match=r"row 0: t is 'xxx[^']{50,70}', not a number"):
            read_items(path)
        with pytest.raises(InputError, match=r"items\.parquet: the text of its cells, written out"):
            open_item_table(path).text()
        assert open_item_table(path).text(0).ids == [str(k) for k in range(1, rows + 1)]

    def test_what_fits_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "p.parquet"
        numbers = self.repeated("7", 3)
        table = {"left": numbers, "right": self.numbered(3), "same": np.ones(3, np.int8)}
        pq.write_table(pa.table(table), path)
        pairs = Pairs.read(path)
        assert (pairs.left.tolist(), pairs.right.tolist()) == ([7, 7, 7], [1, 2, 3])
        pq.write_table(pa.table({"id": self.numbered(3), "a": self.repeated("2.5", 3)}), path)
        assert read_items(path).items.tolist() == [[2.5]] * 3


def test_the_limit_and_what_it_takes_to_lift_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIKEWISE_MAX_GB", raising=False)
    assert memory_limit() == 2 * 10**9
    monkeypatch.setenv("LIKEWISE_MAX_GB", "0.5")
    assert memory_limit() == 5 * 10**8
    check_memory("x", 6 * 10**8, 10**8)
    with pytest.raises(InputError) as caught:
        check_memory("x", 3 * 10**9 + 1, 10**9, instead="cut it")
    assert str(caught.value) == (
        "x would take 3.0 GB of memory, more than the 0.5 GB allowed beyond the size of a file; "
        "cut it, or set LIKEWISE_MAX_GB=3 to allow it."
    )
    with pytest.raises(InputError, match="of a file; set LIKEWISE_MAX_GB=1 to allow it"):
        check_memory("x", 5 * 10**8 + 1)


@pytest.mark.parametrize("text", ["much", "0", "-1", "nan", "1e9", "inf"])
def test_a_limit_that_is_none(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_MAX_GB", text)
    with pytest.raises(InputError, match=f"LIKEWISE_MAX_GB must be .* such as 8, but is '{text}'"):
        memory_limit()


def test_texts_as_an_array() -> None:
    found = text_array(["a", "", "längst"], "ids")
    assert found.tolist() == ["a", "", "längst"]
    empty = text_array([], "ids")
    assert (empty.shape, empty.dtype.kind) == ((0,), "U")
