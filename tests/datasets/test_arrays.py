"""Readers of the sets that fit in memory, on small trees of the published layouts."""

from __future__ import annotations

import gzip
import io
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from likewise.datasets import load, load_packed
from likewise.datasets.cifar import load_cifar10, load_cifar10n, load_cifar100
from likewise.datasets.mnist import load_mnist, read_idx
from likewise.datasets.safe_pickle import load_arrays
from likewise.errors import InputError

REPOSITORY = Path(__file__).resolve().parents[2]


def write_idx(path: Path, array: np.ndarray, *, compress: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    data = header + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(data) if compress else data)


def make_mnist(root: Path, *, compress: bool, dotted: bool = False) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = {}
    for split, n in (("train", 12), ("t10k", 5)):
        arrays[f"{split}-images-idx3-ubyte"] = rng.integers(0, 256, (n, 28, 28))
        arrays[f"{split}-labels-idx1-ubyte"] = rng.integers(0, 10, n)
    for name, array in arrays.items():
        spelled = name.replace("-idx", ".idx") if dotted else name
        path = root / "MNIST/raw" / (spelled + (".gz" if compress else ""))
        write_idx(path, array, compress=compress)
    return arrays


@pytest.mark.parametrize(("compress", "dotted"), [(True, False), (False, False), (False, True)])
def test_mnist_reads_what_was_written(tmp_path: Path, compress: bool, dotted: bool) -> None:
    arrays = make_mnist(tmp_path, compress=compress, dotted=dotted)
    dataset = load_mnist(tmp_path, partial=True)
    np.testing.assert_array_equal(dataset.train_x, arrays["train-images-idx3-ubyte"])
    np.testing.assert_array_equal(dataset.test_y, arrays["t10k-labels-idx1-ubyte"])
    assert dataset.train_x.dtype == np.uint8
    assert dataset.train_y.dtype == np.int64


def test_mnist_of_the_wrong_size_is_refused(tmp_path: Path) -> None:
    make_mnist(tmp_path, compress=True)
    with pytest.raises(InputError, match=r"60,000 \+ 10,000 images, but 12 \+ 5"):
        load("mnist", tmp_path)


def test_idx_cut_short_or_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "x-idx3-ubyte"
    write_idx(path, np.zeros((3, 4, 4)))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="should hold 48 bytes"):
        read_idx(path)
    path.write_bytes(b"not an idx file")
    with pytest.raises(InputError, match="not an idx file"):
        read_idx(path)
    packed = tmp_path / "y.gz"
    write_idx(packed, np.arange(4000) % 251, compress=True)
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(InputError, match="damaged or incomplete"):
        read_idx(packed)


def test_idx_header_that_asks_for_the_whole_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb-idx3-ubyte"
    path.write_bytes(bytes([0, 0, 8, 3]) + b"\xff" * 12)
    with pytest.raises(InputError, match="header makes no sense"):
        read_idx(path)


@pytest.mark.parametrize("name", ["mnist", "cifar10", "cifar10n", "cifar100"])
def test_missing_sets_say_what_to_put_where(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"was not found under .*: put .* there \(published on"):
        load(name, tmp_path)


def test_unknown_name_and_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="known are digits, mnist"):
        load("imagenet", tmp_path)
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    with pytest.raises(InputError, match="LIKEWISE_DATA"):
        load("mnist")
    with pytest.raises(InputError, match="does not exist"):
        load("mnist", tmp_path / "nowhere")


def test_root_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path))
    with pytest.raises(InputError, match="CIFAR-100 was not found under"):
        load("cifar100")


def test_digits_split() -> None:
    digits = load("digits")
    assert digits.train_x.shape == (1437, 64)
    assert digits.test_x.shape == (360, 64)
    assert digits.train_x.min() >= 0
    assert digits.train_x.max() == 1
    assert set(digits.test_y) == set(range(10))
    assert "1,437 + 360" in repr(digits)


# -- CIFAR ------------------------------------------------------------------------------------


def fake_cifar(n: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (n, 32, 32, 3)).astype(np.uint8)
    return images, rng.integers(0, n_classes, n).astype(np.uint8)


def planes(images: np.ndarray) -> np.ndarray:
    return images.transpose(0, 3, 1, 2).reshape(len(images), -1)


def write_batch(
    root: Path, kind: str, pickled: bool, name: str, x: np.ndarray, y: np.ndarray, protocol: int = 2
) -> None:
    folder = {
        ("10", False): "cifar-10-batches-bin",
        ("10", True): "cifar-10-batches-py",
        ("100", False): "cifar-100-binary",
        ("100", True): "cifar-100-python",
    }[kind, pickled]
    (root / folder).mkdir(parents=True, exist_ok=True)
    if pickled:
        key = b"labels" if kind == "10" else b"fine_labels"
        fields = {
            b"data": planes(x),
            key: y.tolist(),
            b"batch_label": b"",
            b"filenames": [b"a.png"],
        }
        (root / folder / name).write_bytes(pickle.dumps(fields, protocol=protocol))
    else:
        columns = [y[:, None]] if kind == "10" else [y[:, None] // 5, y[:, None]]
        np.concatenate([*columns, planes(x)], axis=1).tofile(root / folder / f"{name}.bin")


def make_cifar(root: Path, kind: str, pickled: bool, protocol: int = 2) -> dict[str, Any]:
    names = (
        ["train", "test"]
        if kind == "100"
        else [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    )
    made = {name: fake_cifar(4, int(kind), seed) for seed, name in enumerate(names)}
    for name, (x, y) in made.items():
        write_batch(root, kind, pickled, name, x, y, protocol)
    return made


@pytest.mark.parametrize(("pickled", "protocol"), [(False, 2), (True, 2), (True, 4), (True, 5)])
def test_cifar10_both_versions(tmp_path: Path, pickled: bool, protocol: int) -> None:
    made = make_cifar(tmp_path, "10", pickled, protocol)
    dataset = load_cifar10(tmp_path, partial=True)
    np.testing.assert_array_equal(dataset.train_x[4:8], made["data_batch_2"][0])
    np.testing.assert_array_equal(dataset.train_y[16:], made["data_batch_5"][1])
    np.testing.assert_array_equal(dataset.test_x, made["test_batch"][0])
    assert dataset.classes[3] == "cat"
    assert not dataset.noisy


@pytest.mark.parametrize("pickled", [False, True])
def test_cifar100_reads_fine_labels(tmp_path: Path, pickled: bool) -> None:
    made = make_cifar(tmp_path, "100", pickled)
    dataset = load_cifar100(tmp_path, partial=True)
    np.testing.assert_array_equal(dataset.train_x, made["train"][0])
    np.testing.assert_array_equal(dataset.test_y, made["test"][1])
    assert dataset.n_classes == 100


def write_human(root: Path, clean: np.ndarray, **changes: np.ndarray) -> None:
    keys = ["aggre_label", "random_label1", "random_label2", "random_label3", "worse_label"]
    fields = (
        {key: (clean + i) % 10 for i, key in enumerate(keys)} | {"clean_label": clean} | changes
    )
    (root / "CIFAR-10N").mkdir(exist_ok=True)
    np.savez(root / "CIFAR-10N/CIFAR-10_human.npz", **fields)


def test_cifar10n_sources_and_order(tmp_path: Path) -> None:
    make_cifar(tmp_path, "10", False)
    clean = load_cifar10(tmp_path, partial=True).train_y
    write_human(tmp_path, clean)
    dataset = load_cifar10n(tmp_path, partial=True)
    assert list(dataset.noisy) == ["aggre", "random1", "random2", "random3", "worse"]
    np.testing.assert_array_equal(dataset.noisy["worse"], (clean + 4) % 10)
    write_human(tmp_path, clean, clean_label=clean[::-1])
    with pytest.raises(InputError, match="do not stand in the order"):
        load_cifar10n(tmp_path, partial=True)
    write_human(tmp_path, clean, worse_label=clean + 10)
    with pytest.raises(InputError, match="classes are 0 to 9"):
        load_cifar10n(tmp_path, partial=True)
    write_human(tmp_path, clean, worse_label=clean[:3])
    with pytest.raises(InputError, match="does not hold 20 labels"):
        load_cifar10n(tmp_path, partial=True)


def test_cifar_damage_is_named(tmp_path: Path) -> None:
    make_cifar(tmp_path, "10", False)
    path = tmp_path / "cifar-10-batches-bin/data_batch_3.bin"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(InputError, match=r"data_batch_3.bin is cut short"):
        load_cifar10(tmp_path, partial=True)
    path.unlink()
    with pytest.raises(InputError, match=r"data_batch_3.bin was not found"):
        load_cifar10(tmp_path, partial=True)


def test_cifar_label_out_of_range(tmp_path: Path) -> None:
    make_cifar(tmp_path, "10", False)
    x, y = fake_cifar(4, 10, 0)
    y[2] = 11
    write_batch(tmp_path, "10", False, "test_batch", x, y)
    with pytest.raises(InputError, match="gives item 2 the class 11"):
        load_cifar10(tmp_path, partial=True)


# -- pickles from strangers -------------------------------------------------------------------


class Payload:
    """Pickles to a call of ``function(*args)``."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.call = (function, args)

    def __reduce__(self) -> Any:
        return self.call


def malicious(marker: Path) -> dict[str, bytes]:
    dump = pickle.dumps
    return {
        "os.system": dump({b"data": Payload(os.system, f"touch {marker}")}, protocol=2),
        "open": dump({b"data": Payload(open, str(marker), "w")}, protocol=4),
        "eval": dump({b"data": Payload(eval, f"open({str(marker)!r}, 'w')")}, protocol=2),
        "numpy call": dump({b"data": Payload(np.save, str(marker), 1)}, protocol=2),
        "object array": dump({b"data": np.array([Payload(os.getcwd)], object)}, protocol=2),
        "inst opcode": b"(S'touch %s'\nios\nsystem\n." % os.fsencode(marker),
        "change a function": b"cnumpy\ndtype\n}S'x'\nI1\nsb.",
        "persistent id": b"Pmarker\n.",
        "extension": b"\x82\x01.",
        "other codec": b"c_codecs\nencode\n(S'x'\nS'rot13'\ntR.",
        "not a dict": dump([1, 2]),
    }


@pytest.mark.parametrize("name", list(malicious(Path("x"))))
def test_malicious_pickle_is_refused_without_running(tmp_path: Path, name: str) -> None:
    marker, path = tmp_path / "marker.npy", tmp_path / "data_batch_1"
    path.write_bytes(malicious(marker)[name])
    with pytest.raises(InputError, match=r"data_batch_1 (was refused|is damaged)"):
        load_arrays(path)
    assert not marker.exists()


def test_the_payloads_do_run_under_plain_pickle(tmp_path: Path) -> None:
    """The refusals above mean something only if these bytes are dangerous elsewhere."""
    marker = tmp_path / "marker.npy"
    pickle.loads(malicious(marker)["os.system"])
    assert marker.exists()


@pytest.mark.parametrize("cut", [0, 1, 10, 200, -1])
def test_truncated_pickle(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "batch"
    path.write_bytes(pickle.dumps({b"data": np.arange(300)}, protocol=2)[:cut])
    with pytest.raises(InputError, match=r"is damaged or no pickle|was refused"):
        load_arrays(path)


@pytest.mark.parametrize("dtype", ["u1", "<i4", ">i8", "f4", "f8"])
def test_arrays_survive_whatever_their_layout(tmp_path: Path, dtype: str) -> None:
    array = np.asfortranarray(np.arange(12).reshape(3, 4).astype(dtype))
    path = tmp_path / "batch"
    path.write_bytes(pickle.dumps({b"a": array, "t": ["x", 1, 2.5, None]}, protocol=2))
    loaded = load_arrays(path)
    np.testing.assert_array_equal(loaded[b"a"], array)
    assert loaded[b"t"][1:] == [1, 2.5, None]


# -- packed parts -----------------------------------------------------------------------------


def sheet(images: np.ndarray) -> np.ndarray:
    image_module = pytest.importorskip("PIL.Image")
    buffer = io.BytesIO()
    image_module.fromarray(images.reshape(-1, 32, 3)).save(buffer, "WEBP", lossless=True)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def make_parts(root: Path) -> tuple[np.ndarray, np.ndarray]:
    x, y = fake_cifar(12, 10, 0)
    test_x, test_y = fake_cifar(3, 10, 1)
    for k in (1, 2):
        rows = slice(6 * (k - 1), 6 * k)
        fields = {
            f"train-00{2 * k - 2}": sheet(x[rows][:3]),
            f"train-00{2 * k - 1}": sheet(x[rows][3:]),
        }
        fields["train_labels"] = y[rows]
        if k == 1:
            fields |= {"test-000": sheet(test_x), "test_labels": test_y}
        np.savez(root / f"cifar10-{k}of2.npz", **fields)
    return x, y


def test_packed_parts_are_joined_in_order(tmp_path: Path) -> None:
    x, y = make_parts(tmp_path)
    dataset = load_packed(tmp_path, "cifar10")
    np.testing.assert_array_equal(dataset.train_x, x)
    np.testing.assert_array_equal(dataset.train_y, y)
    assert dataset.test_x.shape == (3, 32, 32, 3)
    with pytest.raises(InputError, match=r"CIFAR-10_human.npz is missing"):
        load_packed(tmp_path, "cifar10n")
    (tmp_path / "cifar10-2of2.npz").unlink()
    with pytest.raises(InputError, match="should hold all parts"):
        load_packed(tmp_path, "cifar10")
    with pytest.raises(InputError, match="no packed parts of 'food101'"):
        load_packed(tmp_path, "food101")


# -- the real data, where it is -----------------------------------------------------------------


def test_real_mnist() -> None:
    root = os.environ.get("LIKEWISE_DATA")
    if not root or not (Path(root) / "MNIST/raw").is_dir():
        pytest.skip("set LIKEWISE_DATA to a folder with MNIST/raw to run this")
    dataset = load("mnist", root)
    assert np.bincount(dataset.train_y).tolist()[:3] == [5923, 6742, 5958]
