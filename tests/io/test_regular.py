"""Opening what a stranger named: regular files only."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from likewise.errors import InputError
from likewise.io.regular import hole_bytes, open_regular, refuse_irregular


def test_a_file_is_opened_for_reading(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    (tmp_path / "link").symlink_to(tmp_path / "x")
    for name in ("x", "link"):
        with open_regular(tmp_path / name) as file:
            assert file.read() == b"abc"
            assert not os.get_inheritable(file.fileno())
    with open_regular(tmp_path / "x", follow_links=False) as file:
        assert file.read() == b"abc"
    with pytest.raises(InputError, match="link cannot be opened: Too many levels of symbolic"):
        open_regular(tmp_path / "link", follow_links=False)


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        words = {
            tmp_path / "pipe": "pipe is a pipe, not a file; write its content to a file",
            Path("/dev/null"): "/dev/null is a device or socket, not a file",
        }
        for path, expected in words.items():
            for refusing in (open_regular, refuse_irregular):
                with pytest.raises(InputError, match=expected):
                    refusing(path)
        with pytest.raises(InputError, match="socket is a device or socket"):
            refuse_irregular(tmp_path / "socket")
    with pytest.raises(InputError, match="is a pipe"):
        open_regular(tmp_path / "pipe", follow_links=False)
    with pytest.raises(InputError, match=r"is not a file\.$"):
        open_regular(tmp_path)
    with pytest.raises(InputError, match="none is missing; is it still there"):
        open_regular(tmp_path / "none")
    with pytest.raises(InputError, match="cannot be opened: embedded null byte"):
        open_regular("a\x00b")


def test_files_folders_and_nothing_are_left_to_whoever_opens_them(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", "a\x00b"):
        refuse_irregular(path)


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(InputError):
        open_regular(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_holes_are_what_takes_no_disk(tmp_path: Path) -> None:
    path, block = tmp_path / "x", 1 << 20
    with path.open("wb") as file:
        for start in (1, 3):
            file.seek(start * block)
            file.write(b"x" * block)
        file.truncate(6 * block)
    if path.stat().st_blocks * 512 > 3 * block:
        pytest.skip("this file system keeps no holes")
    assert hole_bytes(path) == 4 * block
    path.write_bytes(b"x" * block)
    assert hole_bytes(path) == 0
    path.write_bytes(b"")
    assert hole_bytes(path) == 0


def test_a_file_in_very_many_pieces_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, block = tmp_path / "x", 1 << 20
    with path.open("wb") as file:
        for start in (1, 3):
            file.seek(start * block)
            file.write(b"x")
    monkeypatch.setattr("likewise.io.regular._MANY_EXTENTS", 1)
    assert hole_bytes(path) == 0
