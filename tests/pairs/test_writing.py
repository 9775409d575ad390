"""Judgements written, and names that the system refuses."""

from __future__ import annotations

import errno
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.errors import InputError
from likewise.pairs import Pairs
from likewise.pairs.formats import writing
from likewise.pairs.formats.paths import path_errors
from pair_files import rows


class TestWriting:
    PAIRS = Pairs(
        [0, 1, 2], [1, 2, 0], [1, 0, 1], ["=x", "y", "=x"], [1, 0.5, 2], item_ids=["@a", "b", "c"]
    )

    def test_every_column_in_batches(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(writing, "_BATCH_ROWS", 2)
        self.PAIRS.write(tmp_path / "x.PARQUET")
        found = pq.read_table(tmp_path / "x.PARQUET")
        assert found.column_names == ["left", "right", "same", "annotator", "weight"]
        assert found.column("left").to_pylist() == ["@a", "b", "c"]
        assert found.column("annotator").to_pylist() == ["=x", "y", "=x"]
        assert found.schema.field("same").type == pa.int8()
        assert pq.read_metadata(tmp_path / "x.PARQUET").num_row_groups == 2
        assert rows(Pairs.read(tmp_path / "x.PARQUET")) == rows(self.PAIRS)

    def test_text_for_people(self, tmp_path: Path) -> None:
        self.PAIRS.write(str(tmp_path / "x.csv"))
        lines = (tmp_path / "x.csv").read_text().replace('"', "").splitlines()
        assert lines[0] == "left,right,same,annotator,weight"
        assert lines[1:] == ["'@a,b,1,'=x,1", "b,c,0,y,0.5", "c,'@a,1,'=x,2"]
        Pairs.from_labels([0, 0, 1]).write(tmp_path / "y.csv")
        plain = (tmp_path / "y.csv").read_text().replace('"', "")
        assert plain == "left,right,same\n0,1,1\n0,2,0\n1,2,0\n"

    def test_names_that_say_nothing(self, tmp_path: Path) -> None:
        for name in ("x.txt", "x"):
            with pytest.raises(
                InputError, match=rf"^{name} must end in \.csv or \.parquet, to say"
            ):
                self.PAIRS.write(tmp_path / name)
        half = self.PAIRS.with_item_ids(["\ud800", "b", "c"])
        with pytest.raises(InputError, match=r"^x\.csv cannot hold half a character"):
            half.write(tmp_path / "x.csv")
        assert list(tmp_path.iterdir()) == []


def test_names_that_the_system_refuses() -> None:
    for number, words in (
        (errno.ENAMETOOLONG, "its name is longer than the system allows"),
        (errno.ELOOP, "it is a link that leads back to itself"),
        (errno.ENOTDIR, "a part of its path is a file and no folder"),
        (errno.EACCES, "permission is denied"),
    ):
        for name, shown in (("x" * 60, "x" * 60), ("x" * 61, "x" * 40 + "...")):
            with pytest.raises(InputError) as caught, path_errors(Path("in") / name):
                raise OSError(number, "no")
            assert str(caught.value) == f"the file {shown} cannot be used: {words}."
    with pytest.raises(OSError, match="full"), path_errors(Path("x")):
        raise OSError(errno.ENOSPC, "full")
