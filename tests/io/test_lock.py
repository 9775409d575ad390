"""One process at a time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from likewise.errors import InputError
from likewise.io.lock import exclusive


def held(path: Path) -> bool:
    try:
        with exclusive(path, "is in use."):
            return False
    except InputError as error:
        return str(error) == f"{path} is in use."


def test_a_lock_is_held_inside_and_free_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    before = len(os.listdir("/proc/self/fd"))
    with exclusive(path, "is in use."):
        assert [file.name for file in tmp_path.iterdir()] == [".x.db.lock"]
        assert (tmp_path / ".x.db.lock").stat().st_mode & 0o777 == 0o600
        assert held(path)
        assert not held(tmp_path / "y.db")
    assert not held(path)
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_error_frees_it(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), exclusive(tmp_path / "x", "is in use."):
        1 / 0  # noqa: B018
    assert not held(tmp_path / "x")


def test_two_names_of_one_file_are_one_lock(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "x")
    with exclusive(tmp_path / "link", "is in use."):
        assert held(tmp_path / "x")


def test_a_file_that_is_left_over_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / ".x.lock").write_text("")
    assert not held(tmp_path / "x")


def test_a_lock_removed_between_opening_and_locking_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    lock, flock, times = tmp_path / ".x.lock", fcntl.flock, []

    def removed_meanwhile(descriptor: int, how: int) -> None:
        flock(descriptor, how)
        times.append(how)
        if len(times) == 1:
            lock.unlink()
        if len(times) == 2:
            lock.unlink()
            lock.write_text("another's")

    monkeypatch.setattr(fcntl, "flock", removed_meanwhile)
    with exclusive(tmp_path / "x", "is in use."):
        assert len(times) == 3
        assert lock.exists()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    words = r"the folder .*none does not exist; make it first"
    with pytest.raises(InputError, match=words), exclusive(tmp_path / "none" / "x", "is in use."):
        pytest.fail("held")
