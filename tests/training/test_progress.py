"""Progress: a share and a time to go where somebody looks, a line a stage where nobody does."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from likewise.io.progress import advance, stage
from likewise.training.progress import Pace, in_words, progress_shown


def test_nothing_is_shown_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_shown(True), stage("one"):
        advance(0.5)
    assert capsys.readouterr() == ("", "")


def test_one_line_a_stage_where_a_command_asks_for_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress_shown(True, lines=True), stage("a moment"):
        advance(0.5)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("likewise.training.progress.MOMENT", 0.0)
    with progress_shown(True, lines=True):
        with progress_shown(True), stage("one", 0.3):  # inside: it is shown already
            advance(0.5)
        with stage("two\x1b[31m"):
            pass
    assert capsys.readouterr() == ("", "[  0%] one\n[ 30%] two\\x1b[31m\n")
    with progress_shown(False, lines=True), stage("one"):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_terminal_sees_stage_share_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("likewise.training.progress.SETTLING", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with progress_shown(True), stage("learning"):
        advance(0.4)
        time.sleep(0.2)
    assert "learning" in terminal.getvalue()
    assert "40%" in terminal.getvalue()
    assert "to go" in terminal.getvalue()


def test_times_are_said_as_people_say_them() -> None:
    assert [in_words(s) for s in (4.2, 99, 150, 7200)] == ["4 s", "99 s", "2 min", "2.0 h"]
    assert Pace().time_to_go(10, 0.25) == "about 30 s to go"
    assert Pace().time_to_go(10, 0.0) == Pace().time_to_go(0.1, 0.5) == ""


def test_the_time_to_go_follows_the_pace_of_late() -> None:
    pace = Pace()
    for second in range(1, 11):  # slow at first: a hundredth a second
        pace.time_to_go(second, second / 100)
    for second in range(11, 30):  # then ten times as fast
        said = pace.time_to_go(second, 0.1 + (second - 10) / 25)
    assert said == "about 4 s to go"  # 5 by the mean pace
    assert pace.time_to_go(1000, 0.86) != said  # it grows while nothing moves


def screen_of(command: list[str], folder: Path, until: str, seconds: float) -> str:
    """What a command shows on a pseudo-terminal until a text matches or the seconds have passed."""
    leader, follower = pty.openpty()
    # COLUMNS: a bar of 80 columns would cut the time to go.
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "OMP_NUM_THREADS": "1"}
    child = subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower, cwd=folder, env=environment
    )
    os.close(follower)
    seen, end = "", time.monotonic() + seconds
    try:
        while time.monotonic() < end and not re.search(until, plain(seen)):
            if select.select([leader], [], [], 0.2)[0]:
                try:
                    seen += os.read(leader, 65536).decode("utf-8", "replace")
                except OSError:  # the other end was closed
                    break
    finally:
        child.kill()
        child.wait()
        os.close(leader)
    return plain(seen)


def plain(screen: str) -> str:
    """Without the codes that colour it and move the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen)


@pytest.mark.parametrize("method", ["auto", "mns"])
def test_a_fit_on_a_terminal_shows_how_far_it_is(tmp_path: Path, method: str) -> None:
    rng = np.random.default_rng(0)
    classes = rng.integers(3, size=600)
    np.save(tmp_path / "items.npy", rng.normal(classes[:, None], 1.0, (600, 12)))
    left, right = rng.integers(300, size=6000), rng.integers(300, 600, size=6000)
    same = (classes[left] == classes[right]) ^ (rng.random(6000) < 0.2)
    rows = [f"{a},{b},{int(s)}" for a, b, s in zip(left, right, same)]
    (tmp_path / "pairs.csv").write_text("\n".join(["left,right,same", *rows]))
    command = [sys.executable, "-m", "likewise", "fit", "items.npy", "pairs.csv", "--out", "run"]
    shown = r"[1-9]\d*% about \d+ (s|min) to go"
    seen = screen_of([*command, "--method", method, "--classes", "3"], tmp_path, shown, 120)
    assert re.search(shown, seen), seen[-500:]
