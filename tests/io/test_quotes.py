"""A quote that is never closed would make all rows after it one cell."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.errors import InputError
from likewise.items.files import read_items
from likewise.items.labels import read_label_file
from likewise.pairs import Pairs

ROWS = "".join(f"{k},{k + 1},1,bob\n" for k in range(5))


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_judgements_behind_it_are_not_lost_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    write(path, "left,right,same,annotator\n" + ROWS + '7,8,1,"ann\n' + ROWS)
    with pytest.raises(InputError, match=r"p\.csv, line 7: a quote is opened and never closed"):
        Pairs.read(path)


def test_nor_labels_and_items(tmp_path: Path) -> None:
    labels = write(tmp_path / "l.csv", 'item,label\n0,a\n1,"b\n2,c\n')
    with pytest.raises(InputError, match=r"l\.csv, line 3: a quote"):
        read_label_file(labels)
    items = write(tmp_path / "i.csv", 'a,id\n1,x\n2,"y\n3,z\n')
    with pytest.raises(InputError, match=r"i\.csv, line 3: a quote"):
        read_items(items)


@pytest.mark.parametrize("cell", ['5" pipe', '"5"" pipe"', '"two\nlines"', '"a,b"', '""'])
def test_other_quotes_are_what_they_are(tmp_path: Path, cell: str) -> None:
    text = f'left,right,same,annotator\n0,1,1,{cell}\n1,2,0,6" pipe\n' + ROWS
    pairs = Pairs.read(write(tmp_path / "p.csv", text))
    assert len(pairs) == 7
