"""The progress bar: on stderr where somebody looks, and nowhere else."""

from __future__ import annotations

import io
import sys

import pytest

from likewise.training.progress import epoch_bar

ROW = {"epoch": 4.0, "loss": 0.5, "held_out": 0.25}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_shown_where_nobody_looks(capsys):
    with epoch_bar(True) as report:
        assert report is None
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("show", [True, False])
def test_a_terminal_sees_the_epoch_on_stderr(show, monkeypatch, capsys):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with epoch_bar(show, "learning") as report:
        assert (report is not None) is show
        if report is not None:
            report(ROW)
    assert ("learning: epoch 5, loss 0.5000, held-out 0.2500" in terminal.getvalue()) is show
    assert capsys.readouterr().out == ""
