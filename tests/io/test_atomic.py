"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from likewise.errors import InputError
from likewise.io.atomic import (
    _begin,
    check_vacant,
    new_folder,
    remove_leftovers,
    replacing,
    write_json,
    write_jsons,
    write_text,
)

DEAD = 2**22 + 1  # beyond the numbers that Linux gives to processes


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "x.txt"
    with replacing(path) as temporary:
        temporary.write_text("one")
        assert not path.exists()
    with replacing(path) as temporary:
        temporary.write_text("two")
        assert path.read_text() == "one"
        assert temporary.parent == path.parent
        assert temporary.name.startswith(".x.txt.")
        assert temporary.name.endswith(f".{os.getpid()}.tmp")
    assert path.read_text() == "two"
    assert names(path.parent) == ["x.txt"]


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with replacing(tmp_path / "x.txt") as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    def fail_in_a_folder() -> None:
        with new_folder(tmp_path / "run") as temporary:
            (temporary / "x.txt").write_text("half")
            raise KeyboardInterrupt

    for failing in (fail, fail_in_a_folder):
        with pytest.raises(KeyboardInterrupt):
            failing()
        assert names(tmp_path) == []


def test_a_folder_appears_with_all_that_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    monkeypatch.setattr(
        "likewise.io.atomic.os.fsync",
        lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}")),
    )
    path = tmp_path / "runs" / "one"
    path.mkdir(parents=True)  # empty: it may be taken
    with new_folder(path) as temporary:
        (temporary / "inner").mkdir()
        (temporary / "inner" / "x.txt").write_text("one")
        assert names(path) == []
    assert (path / "inner" / "x.txt").read_text() == "one"
    assert names(path.parent) == ["one"]
    assert [Path(place).name for place in synced] == ["x.txt", "runs"]


def test_all_files_of_a_folder_have_its_rights(tmp_path: Path) -> None:
    """Safetensors keeps what it writes to its owner, beside a model.json that all may read."""
    for mask, rights in ((0o022, 0o644), (0o077, 0o600)):
        before = os.umask(mask)
        try:
            with new_folder(tmp_path / f"{mask}") as temporary:
                (temporary / "x").write_text("one")
                (temporary / "x").chmod(0o600)
                (temporary / "y").write_text("two")
        finally:
            os.umask(before)
        found = {file.stat().st_mode & 0o777 for file in (tmp_path / f"{mask}").iterdir()}
        assert found == {rights}


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("full", "full already holds something"),
        ("full/x.txt", "x.txt is a file; choose another name"),
        ("full/x.txt/a/b", r"a/b cannot be made, because .*x\.txt is a file"),
    ],
)
def test_a_place_that_is_taken_is_refused(tmp_path: Path, place: str, words: str) -> None:
    write_text(tmp_path / "full" / "x.txt", "one")
    with pytest.raises(InputError, match=words):
        check_vacant(tmp_path / place)
    with pytest.raises(InputError, match=words), new_folder(tmp_path / place):
        pytest.fail("begun")
    check_vacant(tmp_path / "full" / "new")


def test_files_that_belong_together_are_written_together(tmp_path: Path) -> None:
    one, two = tmp_path / "a" / "one.json", tmp_path / "b" / "two.json"
    write_jsons({one: {"x": "ä"}, two: [1]})
    assert one.read_text(encoding="utf-8") == '{\n  "x": "\\u00e4"\n}\n'
    assert two.read_text() == "[\n  1\n]\n"
    with pytest.raises(ValueError, match="JSON compliant"):
        write_jsons({one: 2, two: float("nan")})
    assert one.read_text() == '{\n  "x": "\\u00e4"\n}\n'
    assert (names(one.parent), names(two.parent)) == (["one.json"], ["two.json"])


def test_json_that_every_reader_can_read(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"p": Path("a")}, default=str)
    assert path.read_text() == '{\n  "p": "a"\n}\n'
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(path, float("inf"))
    with pytest.raises(TypeError, match="not JSON serializable"):
        write_json(path, Path("a"))
    assert names(tmp_path) == ["x.json"]


def test_text_is_utf8_wherever_one_is(tmp_path: Path) -> None:
    write_text(tmp_path / "x.txt", "ä漢\n")
    assert (tmp_path / "x.txt").read_bytes() == "ä漢\n".encode()


def test_only_what_a_dead_process_left_of_the_same_file_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "x[1].json"
    own = _begin(path).name
    of_dead = own.replace(f".{os.getpid()}.", f".{DEAD}.")
    stays = [
        own,
        own.replace(f".{os.getpid()}.", f".{10**30}."),
        own.replace(f".{os.getpid()}.", ".1."),  # somebody else's process
        of_dead.replace("x[1]", "x1"),
        of_dead.replace("x[1].json.", "x[1].json.zzzz"),
        f"{of_dead}x",
    ]
    for name in [*stays, of_dead]:
        (tmp_path / name).write_text("half")
    (tmp_path / of_dead.replace(f"{DEAD}", f"{DEAD + 1}")).mkdir()
    write_text(path, "[]")
    assert names(tmp_path) == sorted([*stays, "x[1].json"])


def test_leftovers_of_a_name_are_removed(tmp_path: Path) -> None:
    for name in (".a[1].x.tmp", ".a1.x.tmp", ".a[1].x", "a[1].x.tmp"):
        (tmp_path / name).write_text("half")
    (tmp_path / ".a[1]-folder.tmp").mkdir()
    (tmp_path / ".a[1]-folder.tmp" / "x").write_text("half")
    remove_leftovers(tmp_path, "a[1]")
    assert names(tmp_path) == sorted([".a1.x.tmp", ".a[1].x", "a[1].x.tmp"])
    remove_leftovers(tmp_path / "none", "a")


def test_a_living_process_is_only_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any signal but 0 would end the process whose file is looked at."""
    sent = []
    monkeypatch.setattr("likewise.io.atomic.os.kill", lambda *call: sent.append(call))
    path = tmp_path / "x"
    own = _begin(path)
    own.write_text("half")
    write_text(path, "whole")
    assert sent == [(os.getpid(), 0)]
    assert own.exists()


def test_a_leftover_that_cannot_be_removed_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError

    (tmp_path / ".x.tmp").mkdir()
    (tmp_path / ".x.tmp" / "file").write_text("half")
    monkeypatch.setattr("os.unlink", refused)
    remove_leftovers(tmp_path, "x")
    assert names(tmp_path) == [".x.tmp"]


@pytest.mark.parametrize("together", [True, False])
def test_what_is_synced_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    """After a power cut the name leads to the whole file: first its bytes, then its name."""
    steps: list[str] = []

    def sync(descriptor: int) -> None:
        place = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        steps.append("folder" if place == tmp_path else "file")

    replace = os.replace
    monkeypatch.setattr("likewise.io.atomic.os.fsync", sync)
    monkeypatch.setattr(
        "likewise.io.atomic.os.replace", lambda *paths: steps.append("name") or replace(*paths)
    )
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    if together:
        write_jsons({one: 1, two: 2})
        assert steps == ["file", "file", "name", "name", "folder"]
    else:
        write_json(one, 1)
        assert steps == ["file", "name", "folder"]
