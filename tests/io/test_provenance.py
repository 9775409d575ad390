"""What a result was made from and with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from likewise.errors import InputError
from likewise.io.provenance import commit, input_record, provenance, versions


def test_nothing_heavy_is_imported_to_say_versions() -> None:
    code = (
        "import sys; from likewise.io.provenance import versions; versions(); "
        "print(sorted({'torch', 'numpy', 'scipy', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_where_and_with_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_COMMIT", "abc")
    found = provenance(torch.device("cpu"))
    assert (found["device"], found["commit"]) == ("cpu", "abc")
    assert found["torch"] == torch.__version__
    assert versions()["numpy"] == np.__version__
    monkeypatch.delenv("LIKEWISE_COMMIT")
    monkeypatch.setenv("PATH", "")
    assert commit() == "unknown"


def test_a_pipe_is_not_digested_for_ever(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(InputError, match="not a file"):
            input_record(path)


def test_names_that_are_no_text_are_digested_too(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.png")).write_bytes(b"")
    assert input_record(tmp_path)["files"] == 1
