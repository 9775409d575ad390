"""What is shipped: the wheel and the source archive install and work alone; versions are pinned."""

from __future__ import annotations

import os
import py_compile
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "likewise"
OTHERS = ("3.12", "3.13")
LOCKS = ("requirements.lock", "requirements-dev.lock")

pytestmark = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").is_file(), reason="the tests run away from the repository"
)


def pins(path: Path) -> dict[str, str]:
    """Name -> version of every ``name==version`` line."""
    found = re.findall(r"^([\w.-]+)==([\w.!+]+)", path.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


def wanted(*extras: str) -> set[str]:
    """Names of what the package asks for, with some of its extras, less PyTorch."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"]]
    asked += [one for extra in extras for one in project["optional-dependencies"][extra]]
    names = {re.match(r"[\w.-]+", text).group().lower() for text in asked}  # type: ignore[union-attr]
    return {re.sub(r"[-_.]+", "-", name) for name in names} - {"likewise"}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_the_versions_of_the_constraints(name: str) -> None:
    locked, pinned = pins(ROOT / name), pins(ROOT / "constraints.txt")
    other = {n: (v, locked[n]) for n, v in pinned.items() if n in locked and locked[n] != v}
    assert other == {}


def test_users_lock_all_and_developers_more() -> None:
    users, developers = (pins(ROOT / name) for name in LOCKS)
    everything = ("label", "report", "plots", "export", "tensorboard")
    assert wanted(*everything) <= users.keys()
    assert wanted(*everything, "mlflow", "docs", "dev") - {"torch"} <= developers.keys()
    assert "mlflow-skinny" not in users  # the heavy tracker is an extra of its own
    assert "torch" not in developers  # whose builds have hashes of their own: constraints.txt


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_version_has_hashes_and_names_no_place(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "://" not in text
    assert " @ " not in text
    for entry in re.split(r"\n(?=[a-z])", text)[1:]:
        assert "--hash=sha256:" in entry, entry.splitlines()[0]


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


@pytest.mark.parametrize("version", OTHERS)
def test_other_pythons_can_read_every_file(version: str, tmp_path: Path) -> None:
    python = _from_pyenv(version) or shutil.which(f"python{version}")
    # A name on the path may lead nowhere, such as pyenv's where another person has installed it.
    if python is None or subprocess.run([python, "-c", ""], check=False).returncode != 0:
        pytest.skip(f"there is no Python {version} here")
    files = [str(path) for path in sorted(PACKAGE.rglob("*.py"))]
    code = (
        "import pathlib, sys\n"
        "for f in sys.argv[1:]: compile(pathlib.Path(f).read_text('utf-8'), f, 'exec')"
    )
    subprocess.run([python, "-W", "error", "-c", code, *files], check=True, cwd=tmp_path)


def _from_pyenv(version: str) -> str | None:
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = sorted(root.glob(f"{version}.*/bin/python"))
    return str(found[-1]) if found else None


def test_every_file_compiles_without_warnings(tmp_path: Path) -> None:
    for path in PACKAGE.rglob("*.py"):
        py_compile.compile(str(path), cfile=str(tmp_path / "out.pyc"), doraise=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive, built from a copy of the tracked files."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    if not (ROOT / ".git").exists():
        pytest.skip("there is no repository to build from")
    for name in subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0"):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return out


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"likewise"}
    there = {name for name in names if not name.split("/")[0].endswith(".dist-info")}
    expected = {
        f"likewise/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert there == expected


@pytest.mark.slow
def test_the_source_archive_has_what_a_build_needs(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {"pyproject.toml", "LICENSE", "README.md", "src/likewise/py.typed"} <= names
    assert {"tests/conftest.py", "tests/malformed/manifest.txt", "docs/trust.md"} <= names
    assert {"requirements-dev.lock", "constraints.txt", "results/kill_resume.json"} <= names


@pytest.mark.slow
def test_the_tests_of_the_source_archive_run(built: Path, tmp_path: Path) -> None:
    """Unpacked, against its own package: those that need files beside them, too."""
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    some = ["tests/pairs/test_ids.py", "tests/test_compatibility.py", "tests/test_packaging.py"]
    some += ["tests/test_architecture.py", "tests/io/test_json.py", "tests/docs/test_measured.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *some],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(folder / "src")}, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert " passed" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_it_installs_and_works_in_a_clean_environment(
    built: Path, tmp_path: Path, kind: str
) -> None:
    """In a new environment that sees the dependencies of this one, but not this checkout."""
    (archive,) = built.glob(kind)
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    python, home = venv / "bin" / "python", tmp_path / "home"
    home.mkdir()
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    environment = {**os.environ, "HOME": str(home)}
    environment.pop("PYTHONPATH", None)
    if kind == "*.tar.gz":  # which is built once more: with the setuptools of this environment
        environment["PYTHONPATH"] = _site_packages()
    subprocess.run([*install, str(archive)], check=True, env=environment)
    environment["PYTHONPATH"] = _site_packages()
    where = subprocess.run(
        [str(python), "-c", "import likewise; print(likewise.__file__)"],
        check=True, env=environment, capture_output=True, text=True, cwd=tmp_path,
    ).stdout  # fmt: skip
    assert str(venv) in where
    out = tmp_path / "data"
    for line in ("--version", f"simulate --out {out} --per-item 5", f"describe {out}/pairs.csv"):
        command = [str(venv / "bin" / "likewise"), *line.split()]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert done.returncode == 0, done.stderr


def _site_packages() -> str:
    import numpy

    return str(Path(numpy.__file__).parents[1])
