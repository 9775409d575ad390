"""What the demo names as the next command can be typed where it ran."""

import os

import pytest

from likewise.cli.studies import program_name


@pytest.mark.parametrize(
    ("called", "is_on_path", "told"),
    [
        (".venv/bin/likewise", False, ".venv/bin/likewise"),
        (".venv/bin/likewise", True, "likewise"),
        ("src/likewise/__main__.py", False, "likewise"),
        ("my env/bin/likewise", False, "'my env/bin/likewise'"),
    ],
)
def test_the_program_is_named_as_it_is_reached(tmp_path, monkeypatch, called, is_on_path, told):
    monkeypatch.setattr("sys.argv", [called, "demo"])
    if is_on_path:
        (tmp_path / "likewise").touch(mode=0o755)
    monkeypatch.setattr(os, "environ", {**os.environ, "PATH": str(tmp_path)})
    assert program_name() == told
