"""`--private`: what is handed on holds nobody's name, no item's id, picture or single judgement."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from likewise.classifier import load
from likewise.cli import run as command
from likewise.pairs import Pairs
from likewise.pairs.privacy import without_names
from likewise.runs import Run
from short_fits import cut_short

Image = pytest.importorskip("PIL.Image")
PEOPLE = ("Zoe Quist", "Ada Byron", "Mo Salah")
N = 30


def photos(folder: Path) -> Path:
    """Bright and dark pictures, each with a name of its own."""
    (folder / "ann-secret").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for k in range(N):
        pixels = rng.integers(0, 90, (8, 8)) + 150 * (k % 2)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / "ann-secret" / f"patient{k}.png")
    return folder / "ann-secret"


def judged(path: Path) -> Path:
    rng, lines = np.random.default_rng(1), ["left,right,same,annotator"]
    for m in range(400):
        i, j = rng.choice(N, 2, replace=False)
        said = int(i % 2 == j % 2) if rng.random() > 0.1 else int(i % 2 != j % 2)
        lines.append(f"patient{i}.png,patient{j}.png,{said},{PEOPLE[m % 3]}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs of the same fit: private, and not."""
    folder = tmp_path_factory.mktemp("private")
    items, pairs = photos(folder), judged(folder / "pairs.csv")
    for name, words in (("private", ["--private"]), ("open", [])):
        asked = ["fit", str(items), str(pairs), "--out", str(folder / name), "--classes", "2"]
        asked += ["--network", "mlp", "--noise", "annotator", "--quiet", "--device", "cpu", *words]
        with pytest.MonkeyPatch.context() as monkeypatch:
            cut_short(monkeypatch)
            assert command(asked) == 0
    return folder / "private", folder / "open"


def secrets_in(folder: Path) -> set[str]:
    """Which of the names, ids and paths stand anywhere in a file or folder."""
    files = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else [folder]
    content = b"".join(path.read_bytes() for path in files)
    texts = [content]
    for path in files:
        if path.suffix == ".npz":
            with np.load(path) as arrays:
                texts += [" ".join(map(str, arrays["ids"])).encode()]
    known = (*PEOPLE, "patient", "ann-secret")
    return {name for name in known if any(name.encode() in text for text in texts)}


def test_a_private_run_names_nobody_and_nothing(fitted: tuple[Path, Path]) -> None:
    private, opened = fitted
    assert secrets_in(opened) == {*PEOPLE, "patient", "ann-secret"}  # what there is to hide
    assert secrets_in(private) == set()


def test_no_picture_no_judgement_and_no_belief_of_an_item_is_left(
    fitted: tuple[Path, Path],
) -> None:
    private, opened = Run.open(fitted[0]), Run.open(fitted[1])
    assert opened.thumbnails is not None
    assert private.thumbnails is None
    assert len(opened.suspects["left"]) > 0
    assert all(column == [] for column in private.suspects.values())
    assert (opened.model / "fitted.safetensors").exists()
    assert not (private.model / "fitted.safetensors").exists()


def test_items_stand_in_an_order_of_their_own(fitted: tuple[Path, Path]) -> None:
    private, opened = Run.open(fitted[0]), Run.open(fitted[1])
    assert not np.array_equal(private.posterior, opened.posterior)
    assert np.array_equal(np.sort(private.posterior, axis=0), np.sort(opened.posterior, axis=0))


def test_what_is_learned_of_all_stays_and_people_are_numbered(fitted: tuple[Path, Path]) -> None:
    private, opened = Run.open(fitted[0]), Run.open(fitted[1])
    for name in ("items", "judgements", "sizes", "transition", "class_names"):
        assert private.metrics[name] == opened.metrics[name]
    items = np.random.default_rng(0).integers(0, 256, (5, 8, 8)).astype(np.uint8)
    one, other = load(private.model), load(opened.model)
    assert np.allclose(one.predict_proba(items), other.predict_proba(items), atol=1e-4)
    assert private.annotators is not None
    assert opened.annotators is not None
    assert sorted(private.annotators["annotator"]) == ["person 1", "person 2", "person 3"]
    rates = (private.annotators["reliability"], opened.annotators["reliability"])
    assert np.allclose(*rates, atol=1e-3)


def test_people_are_numbered_by_when_they_came_and_not_by_their_names() -> None:
    pairs = Pairs([0, 1, 2, 0], [1, 2, 3, 3], [1, 0, 1, 0], ["Zoe", "Ada", "Zoe", "Mo"])
    found = without_names(pairs.with_item_ids(["a", "b", "c", "d"]))
    assert found.annotator_names is not None
    assert found.annotator_names[found.annotator].tolist() == [
        *("person 1", "person 2", "person 1", "person 3")
    ]
    assert found.item_ids is None
    assert found.same.tolist() == pairs.same.tolist()


def test_reports_of_either_run_can_be_private(
    fitted: tuple[Path, Path], tmp_path: Path, capsys
) -> None:
    for run, words in ((fitted[0], []), (fitted[1], ["--private"])):
        page = tmp_path / "page.html"
        assert command(["report", str(run), "--out", str(page), *words]) == 0
        assert secrets_in(page) == set()
        assert "data:image/png" not in page.read_text()
    assert command(["report", str(fitted[1]), "--out", str(page)]) == 0
    assert "Ada Byron" in page.read_text()
    asked = ["report", str(fitted[0]), "--pictures", str(tmp_path)]
    assert command(asked) == 2
    assert "shows no pictures" in capsys.readouterr().err


def test_nothing_is_compared_with_items_that_have_lost_their_order(
    fitted: tuple[Path, Path], tmp_path: Path, capsys
) -> None:
    np.save(tmp_path / "truth.npy", np.arange(N) % 2)
    asked = ["report", str(fitted[0]), "--truth", str(tmp_path / "truth.npy")]
    assert command([*asked, "--out", str(tmp_path / "r.html")]) == 2
    assert "does not know which item is which" in capsys.readouterr().err
    (tmp_path / "names.csv").write_text("item,label\npatient0.png,dark\npatient1.png,bright\n")
    assert command(["name", str(fitted[0]), str(tmp_path / "names.csv")]) == 2
    assert "give the items with --items" in capsys.readouterr().err


def test_exported_tables_hold_no_ids(fitted: tuple[Path, Path], tmp_path: Path, capsys) -> None:
    items = str(fitted[0].parent / "ann-secret")
    asked = ["export", str(fitted[0]), "--tables", str(tmp_path / "t"), "--items", items]
    assert command([*asked, "--private"]) == 0
    assert secrets_in(tmp_path / "t") == set()
    assert command(["export", str(fitted[0]), "--onnx", "m.onnx", "--private"]) == 2
    assert "--private is about --tables" in capsys.readouterr().err


def test_a_finished_private_run_is_known_again(fitted: tuple[Path, Path]) -> None:
    folder = fitted[0].parent
    asked = ["fit", str(folder / "ann-secret"), str(folder / "pairs.csv"), "--classes", "2"]
    asked += ["--network", "mlp", "--noise", "annotator", "--quiet", "--device", "cpu", "--resume"]
    assert command([*asked, "--out", str(fitted[0]), "--private"]) == 0
    assert command([*asked, "--out", str(fitted[0])]) == 2
    config = json.loads((fitted[0] / "config.json").read_text())
    assert config["private"] is True
    assert "path" not in config["items"]
    assert len(config["items"]["listing_sha256"]) == 64
