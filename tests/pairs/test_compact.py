"""`compact`: the judgements that the reader finds, exact counts, no byte changed by a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("duckdb")

from likewise.errors import InputError
from likewise.pairs import Pairs
from likewise.pairs.compact import packing, sources, survey
from likewise.pairs.compact.build import Job, compact
from likewise.pairs.compact.folder import CompactFolder
from likewise.pairs.formats.long import ColumnNames
from likewise.pairs.formats.paths import is_compact

WORDS = np.array(["same", "different", "unsure", "", "Yes", "0"])


def table(rows: int, seed: int = 0, names: str = "photo {}.jpg") -> dict[str, list[str]]:
    """Rows with repeats in either order, people and blanks."""
    rng = np.random.default_rng(seed)
    left = rng.integers(12, size=rows)
    right = (left + 1 + rng.integers(11, size=rows)) % 12
    return {
        "left": [names.format(k) for k in left],
        "right": [names.format(k) for k in right],
        "same": WORDS[rng.integers(len(WORDS), size=rows)].tolist(),
        "annotator": np.array(["ann", "bob", ""])[rng.integers(3, size=rows)].tolist(),
    }


def write_csv(path: Path, columns: dict[str, list[str]]) -> Path:
    rows = [",".join(columns), *(",".join(row) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(rows) + "\n")
    return path


def write_parquet(path: Path, columns: dict[str, list[str]]) -> Path:
    pq.write_table(pa.table(columns), path, row_group_size=64)
    return path


def counted(pairs: Pairs) -> Counter[tuple[str, str, bool, str]]:
    """Judgements by unordered pair, answer and person, as often as they count."""
    assert pairs.item_ids is not None
    found: Counter[tuple[str, str, bool, str]] = Counter()
    for m in range(len(pairs)):
        one, other = sorted(str(pairs.item_ids[k]) for k in (pairs.left[m], pairs.right[m]))
        who = "" if pairs.annotator is None else str(pairs.annotator_names[pairs.annotator[m]])
        found[one, other, bool(pairs.same[m]), who] += (
            1 if pairs.weight is None else int(pairs.weight[m])
        )
    return found


def test_the_judgements_are_those_that_the_reader_finds(tmp_path: Path) -> None:
    raw = Pairs.read(write_csv(tmp_path / "rows.csv", table(400)))
    made = compact(Job((tmp_path / "rows.csv",), tmp_path / "small"))
    read = Pairs.read(tmp_path / "small")
    assert counted(read) == counted(raw)
    assert len(read) == len(counted(raw)) == made.counts.kept < len(raw)
    assert (made.counts.rows, made.counts.dropped) == (400, raw.dropped)
    assert (read.dropped, read.n_items) == (raw.dropped, raw.n_items)
    assert read.item_ids.tolist() == raw.item_ids.tolist()
    assert read.annotator_names.tolist() == raw.annotator_names.tolist()


def test_many_files_of_several_formats_are_one_table(tmp_path: Path) -> None:
    first, second, third = table(150, 1), table(130, 2), table(90, 3)
    whole = {name: first[name] + second[name] + third[name] for name in first}
    expected = counted(Pairs.read(write_csv(tmp_path / "whole.csv", whole)))
    records = [dict(zip(third, row, strict=True)) for row in zip(*third.values(), strict=True)]
    (tmp_path / "c.json").write_text(json.dumps(records))
    inputs = (
        write_csv(tmp_path / "a.csv", first),
        write_parquet(tmp_path / "b.parquet", second),
        tmp_path / "c.json",
    )
    compact(Job(inputs, tmp_path / "small"))
    assert counted(Pairs.read(tmp_path / "small")) == expected


def test_a_query_stands_for_files(tmp_path: Path) -> None:
    file = write_parquet(tmp_path / "rows.parquet", table(100))
    query = f"SELECT \"left\" AS a, \"right\" AS b, same, annotator FROM '{file}' WHERE same <> '0'"
    job = Job((), tmp_path / "small", query=query, names=ColumnNames(left="a", right="b"))
    compact(job)
    kept = {
        k: [v for v, s in zip(c, table(100)["same"]) if s != "0"] for k, c in table(100).items()
    }
    raw = Pairs.read(write_csv(tmp_path / "kept.csv", kept))
    assert counted(Pairs.read(tmp_path / "small")) == counted(raw)


@pytest.mark.parametrize("numbers", [True, False])
def test_whole_numbers_stay_positions(tmp_path: Path, numbers: bool) -> None:
    columns = table(200, names="{}")
    file = write_csv(tmp_path / "rows.csv", columns)
    if numbers:
        file = tmp_path / "rows.parquet"
        ends = {end: [int(v) for v in columns[end]] for end in ("left", "right")}
        pq.write_table(pa.table(columns | ends), file)
    raw = Pairs.read(file)
    compact(Job((file,), tmp_path / "small"))
    read = Pairs.read(tmp_path / "small")
    assert read.item_ids is None
    assert read.n_items == raw.n_items
    names = np.arange(12).astype(str)
    assert counted(read.with_item_ids(names)) == counted(raw.with_item_ids(names))


def test_weights_are_summed(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text(
        "left,right,same,weight\na,b,1,0.5\nb,a,1,0.25\na,b,0,2\nb,c,1,0\n"
    )
    compact(Job((tmp_path / "w.csv",), tmp_path / "small"))
    read = Pairs.read(tmp_path / "small")
    assert read.weight.tolist() == [2.0, 0.75, 0.0]
    assert read.same.tolist() == [False, True, True]


def test_parts_and_slices_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_parquet(tmp_path / "rows.parquet", table(600))
    compact(Job((file,), tmp_path / "one"))
    monkeypatch.setattr(packing, "BUCKET_ROWS", 100)
    monkeypatch.setattr(sources, "SLICE_ROWS", 64)
    compact(Job((file,), tmp_path / "many"))
    assert len(list((tmp_path / "many" / "judgements").glob("*.parquet"))) == 4
    one, many = Pairs.read(tmp_path / "one"), Pairs.read(tmp_path / "many")
    for name, column in one.columns().items():
        assert np.array_equal(column, many.columns()[name]), name


def test_names_whose_hashes_are_equal_are_looked_up_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_csv(tmp_path / "rows.csv", table(300))
    compact(Job((file,), tmp_path / "hashed"))
    monkeypatch.setattr(survey, "hashes_differ", lambda connection, file: False)
    compact(Job((file,), tmp_path / "plain"))
    assert files_of(tmp_path / "hashed") == files_of(tmp_path / "plain")


def test_more_people_than_bits_take_more_parts() -> None:
    fits = packing.Packing.for_table(1 << 20, 1 << 20, rows=100)
    assert fits.bucket_bits == 0
    tight = packing.Packing.for_table(1 << 24, 1 << 20, rows=100)
    assert 2 * tight.item_bits + tight.person_bits + 1 - tight.bucket_bits == 64
    key = np.array([(1 << 64) - 1, 1 << 45], np.uint64)
    columns = tight.unpack(key, bucket=31)
    assert columns["left"].tolist() == [(1 << 24) - 1, (31 << 19) + 1]
    assert columns["annotator"].tolist() == [(1 << 20) - 1, 0]
    with pytest.raises(InputError, match="leave the people out"):
        packing.Packing.for_table(1 << 30, 1 << 30, rows=100)


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


KILLED = """
import os, signal, sys
from pathlib import Path
from likewise.pairs.compact import build, packing, sources
packing.BUCKET_ROWS, sources.SLICE_ROWS = 100, 64
def tell(message):
    if message.startswith(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
build.compact(build.Job((Path(sys.argv[1]),), Path(sys.argv[2])), tell)
"""


@pytest.mark.parametrize("moment", ["found 600 rows", "numbered 4", "merged 3"])
def test_killed_in_the_middle_and_run_again_is_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    file = write_parquet(tmp_path / "rows.parquet", table(600))
    out = tmp_path / "killed"
    command = [sys.executable, "-c", KILLED, str(file), str(out), moment]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert not is_compact(out)
    monkeypatch.setattr(packing, "BUCKET_ROWS", 100)
    monkeypatch.setattr(sources, "SLICE_ROWS", 64)
    told: list[str] = []
    compact(Job((file,), out), told.append)
    compact(Job((file,), tmp_path / "whole"))
    assert files_of(out) == files_of(tmp_path / "whole")
    if moment == "numbered 4":
        assert "numbered 4 of 10 pieces" not in told
        assert "numbered 5 of 10 pieces" in told


@pytest.mark.parametrize("left", [[], [".job.json.abcd1234.999999999.tmp"]])
def test_killed_before_it_had_written_what_it_is_about(tmp_path: Path, left: list[str]) -> None:
    file = write_csv(tmp_path / "rows.csv", table(50))
    work = tmp_path / "killed" / ".unfinished"
    work.mkdir(parents=True)
    for name in left:
        (work / name).write_text("{")
    compact(Job((file,), tmp_path / "killed"))
    compact(Job((file,), tmp_path / "whole"))
    assert files_of(tmp_path / "killed") == files_of(tmp_path / "whole")


def test_a_finished_folder_is_not_made_again(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "rows.csv", table(50))
    first = compact(Job((file,), tmp_path / "small"))
    before = time.time_ns()
    assert compact(Job((file,), tmp_path / "small")) == first
    assert all(path.stat().st_mtime_ns <= before for path in (tmp_path / "small").rglob("*"))
    write_csv(file, table(51))
    with pytest.raises(InputError, match="another compacted table"):
        compact(Job((file,), tmp_path / "small"))


def test_a_killed_run_of_another_input_is_refused(tmp_path: Path) -> None:
    file = write_parquet(tmp_path / "rows.parquet", table(600))
    out = tmp_path / "killed"
    subprocess.run([sys.executable, "-c", KILLED, str(file), str(out), "found 600"], check=False)
    write_parquet(file, table(601))
    with pytest.raises(InputError, match="killed run of another job"):
        compact(Job((file,), out))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("left,right,same\na,b,maybe\n", "same is 'maybe'"),
        ("left,right,same\na,,1\n", "blank"),
        ("left,right,same\na,a,1\n", "compared with itself"),
        ("left,right,same\n1,2,1\n3,4,1\n5,x,1\n", "'x', not a whole number"),
        ("left,right,same\n-1,2,1\n", "start at 0"),
        ("left,right,same\na,b,?\n", "all 1 answers are blank"),
        ("left,right,same,weight\na,b,1,-2\n", "must be 0 or more"),
        ("a,right,same\na,b,1\n", "lacks the column"),
    ],
)
def test_mistakes_end_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(InputError, match=said):
        compact(Job((tmp_path / "rows.csv",), tmp_path / "small"))


def test_a_wrong_query_ends_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="DuckDB cannot read"):
        compact(Job((), tmp_path / "small", query="SELECT nothing FROM nowhere"))
    with pytest.raises(InputError, match="not both"):
        compact(Job((), tmp_path / "small"))


def test_items_own_ids_are_matched(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "rows.csv", table(100))
    compact(Job((file,), tmp_path / "small"))
    ids = [f"photo {k}.jpg" for k in range(19, -1, -1)]
    raw, read = Pairs.read(file, item_ids=ids), Pairs.read(tmp_path / "small", item_ids=ids)
    assert read.n_items == 20
    assert counted(read) == counted(raw)
    with pytest.raises(InputError, match="have no names"):
        Pairs.read(tmp_path / "small", n_items=20)


def test_a_damaged_folder_ends_in_a_sentence(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "rows.csv", table(100))
    out = tmp_path / "small"
    compact(Job((file,), out))
    part = next((out / "judgements").glob("*.parquet"))
    rows = pq.read_table(part)
    pq.write_table(rows.slice(1), part)
    with pytest.raises(InputError, match="does not hold"):
        CompactFolder.open(out).read()
    wrong = pa.array(np.full(len(rows), 99, np.int32))
    pq.write_table(rows.set_column(1, "right", wrong), part)
    with pytest.raises(InputError, match="refers to a name"):
        CompactFolder.open(out).read()
