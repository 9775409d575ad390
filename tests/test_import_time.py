"""Importing stays light: what is imported, rather than how long it takes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# What readers, pages, plots and export need, imported when they are called.
LATER = {
    "pyarrow", "PIL", "matplotlib", "jinja2", "starlette", "uvicorn", "onnx", "onnxruntime",
    "onnxscript", "pandas", "polars", "torchvision", "tensorboard", "mlflow", "plotly", "fastapi",
}  # fmt: skip
CORE = [
    "errors", "pairs", "functional", "metrics", "theory", "noise.channels", "noise.annotators",
    "losses", "nn.networks", "nn.model", "training.run", "training.scheduler", "inference",
    "methods.dispatch", "methods.joint", "serialization", "classifier", "active.suspects",
    "active.suggestion",
]  # fmt: skip


def imported_by(statement: str) -> set[str]:
    """Top-level packages that a fresh interpreter has after a statement."""
    script = (
        f"{statement}\nimport sys, json; print(json.dumps([m.split('.')[0] for m in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_package_itself_waits_for_nothing():
    loaded = imported_by("import likewise; dir(likewise); likewise.__version__")
    assert not loaded & ({"torch", "numpy", "scipy", "sklearn"} | LATER)


def without_them(statement: str) -> None:
    """Run a statement where none of the later packages can be imported (None bars a module)."""
    script = f"import sys; sys.modules.update(dict.fromkeys({sorted(LATER)!r}))\n{statement}"
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)


def test_the_bar_holds():
    with pytest.raises(subprocess.CalledProcessError):
        without_them("import pyarrow")


def test_the_numeric_core_fits_and_predicts_by_what_it_computes_with_and_nothing_else(tmp_path):
    core = "; ".join(f"import likewise.{name}" for name in CORE)
    without_them(
        f"{core}\nimport numpy as np, likewise as lw\n"
        "X = np.eye(2)[np.arange(40) % 2] + 0.1 * np.arange(40)[:, None] / 40\n"
        "pairs = lw.Pairs.from_labels(np.arange(40) % 2)\n"
        "clf = lw.SimilarityClassifier(2, recipe={'epochs': 1}, verbose=False).fit(X, pairs)\n"
        "clf.predict(X), clf.transform(X), lw.suspects(clf, X, pairs)\n"
        f"clf.save({str(tmp_path / 'model')!r}); lw.load({str(tmp_path / 'model')!r})\n"
        "assert 'torch._dynamo' not in sys.modules"  # the compiler, which takes seconds to load
    )


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"]])
def test_help_does_not_wait_for_torch(arguments):
    call = (
        "import sys\nfrom likewise.cli import main\n"
        f"sys.argv = ['likewise', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code"
    )
    assert not {"torch", "scipy"} & imported_by(call)
