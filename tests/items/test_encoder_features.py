"""Features of all items: in batches, in their order, and from the cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from encoder_cases import Heard, Lengths
from likewise.errors import InputError
from likewise.io.progress import listening
from likewise.items.encoders import features
from likewise.items.encoders.arrays import read_arrays, write_arrays
from likewise.items.encoders.features import FeatureCache, encode_items
from likewise.items.encoders.step import Embed
from likewise.items.raw import Texts


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "features"


@pytest.mark.parametrize("cached", [True, False])
def test_all_items_in_their_order(cached: bool) -> None:
    texts = ["a" * (k % 7) + "b" * k for k in range(70)]
    encoder, heard = Lengths(), Heard()
    with listening(heard):
        found = encode_items(Texts(texts, None), encoder, cached=cached)
    assert found.dtype == np.float32
    assert found.tolist() == [[len(text), text.count("a")] for text in texts]
    assert encoder.batches == [32, 32, 6]
    assert heard.words == ["encoding 70 texts with lengths"]


def test_the_cache_is_by_encoder_and_content(cache: Path) -> None:
    raw, encoder = Texts(["a", "bb"], None), Lengths()
    found = encode_items(raw, encoder)
    (folder,) = cache.iterdir()
    assert folder.name == "d" * 32
    assert encode_items(raw, encoder, cached=False).tolist() == found.tolist()
    assert encoder.batches == [2, 2]
    assert encode_items(Texts(["bb", "a"], None), encoder).tolist() == found[::-1].tolist()
    assert encoder.batches == [2, 2]
    key = raw.digest(0)
    assert key in FeatureCache("d" * 64)
    assert key not in FeatureCache("e" * 64)
    assert key not in FeatureCache(None)


def test_what_was_computed_is_written_every_few_seconds(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(features.time, "monotonic", lambda: now[0])
    kept = FeatureCache("x")

    def add(k: int) -> int:
        kept.add([bytes([k]) * 32], np.ones((1, 2), np.float32))
        return len(list(cache.rglob("*.safetensors")))

    assert add(1) == 0
    now[0] = 109.9
    assert add(2) == 0
    now[0] = 110.0
    assert add(3) == 1
    now[0] = 119.9
    assert add(4) == 1
    kept.flush()
    kept.flush()
    assert len(list(cache.rglob("*.safetensors"))) == 2
    again = FeatureCache("x")
    assert all(bytes([k]) * 32 in again for k in (1, 2, 3, 4))
    assert again.take([bytes([2]) * 32], "x").tolist() == [[1, 1]]


def test_blocks_that_do_not_fit_are_left_out(cache: Path) -> None:
    keys, rows = np.zeros((2, 32), np.uint8), np.ones((2, 3))
    for k, block in enumerate(
        [{"keys": keys}, {"items": rows}, {"keys": keys[0], "items": rows[:1]},
         {"keys": keys[:1], "items": rows}]
    ):  # fmt: skip
        (cache / "x").mkdir(parents=True, exist_ok=True)
        write_arrays(cache / "x" / f"{k}.safetensors", block)
    assert bytes(32) not in FeatureCache("x")
    write_arrays(cache / "x" / "9.safetensors", {"keys": keys, "items": rows})
    found = FeatureCache("x").take([bytes(32)], "x")
    assert (found.tolist(), found.dtype) == ([[1, 1, 1]], np.float32)


def test_items_of_unequal_features() -> None:
    kept = FeatureCache(None)
    kept.add([b"a"], np.ones((1, 2), np.float32))
    kept.add([b"b"], np.ones((1, 3), np.float32))
    with pytest.raises(InputError, match=r"^x gives different items different numbers of features"):
        kept.take([b"a", b"b"], "x")


def test_memory_is_known_by_the_first_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_MAX_GB", "0.0000005")
    encoder = Lengths()
    with pytest.raises(InputError, match=r"^70 items of 2 features would take"):
        encode_items(Texts(["a"] * 70, None), encoder, cached=False)
    assert encoder.batches == [32]


def test_arrays_of_encoders(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    write_arrays(path, {"a": np.arange(6).reshape(2, 3).T})
    assert read_arrays(path)["a"].tolist() == [[0, 3], [1, 4], [2, 5]]
    for bad in (np.array([np.nan]), np.array([True])):
        write_arrays(path, {"good": np.ones(1), "bad": bad})
        with pytest.raises(InputError, match=r"holds numbers that are not finite \(bad\)"):
            read_arrays(path)
    for broken in (b"", b"x" * 99):
        path.write_bytes(broken)
        with pytest.raises(
            InputError, match=r"x\.safetensors is not a safetensors file, or is cut"
        ):
            read_arrays(path)


def test_a_step_takes_items_in_batches(tmp_path: Path) -> None:
    own = Lengths()
    step = Embed(own).fit([])
    assert step.encoder_ is own
    assert step.transform(["a" * k for k in range(40)])[:, 0].tolist() == list(range(40))
    assert own.batches == [32, 8]
    with pytest.raises(InputError, match=r"^there are no items to encode"):
        step.transform([])
    tags = step.__sklearn_tags__()
    assert (tags.input_tags.string, tags.input_tags.two_d_array, tags.requires_fit) == (
        True,
        False,
        True,
    )
