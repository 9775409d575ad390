"""A model knows what it was fitted to: columns by name, pixels by their scale."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import likewise as lw
from likewise import InputError, Pairs, SimilarityClassifier
from likewise.cli import run as command
from likewise.items.files import read_items
from likewise.items.schema import ItemSchema, column_names
from tiny import QUICK, blobs, pictures

NAMES = ["length", "width", "weight", "height"]
OPTIONS = {"recipe": QUICK.with_(epochs=4), "random_state": 0, "device": "cpu", "verbose": False}


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    return pd.DataFrame(blobs()[0], columns=NAMES)


@pytest.fixture(scope="module")
def fitted(data: pd.DataFrame) -> SimilarityClassifier:
    return SimilarityClassifier(3, **OPTIONS).fit(data, Pairs.from_labels(blobs()[1]))


def test_columns_are_put_in_the_order_of_the_fit(fitted, data, tmp_path):
    expected = fitted.predict_proba(data)
    turned = data[NAMES[::-1]]
    np.testing.assert_array_equal(fitted.predict_proba(turned), expected)
    np.testing.assert_array_equal(fitted.predict_proba(pl.DataFrame(turned)), expected)
    np.testing.assert_array_equal(fitted.predict_proba(data.to_numpy()), expected)
    np.testing.assert_array_equal(fitted.transform(turned), fitted.transform(data))
    assert fitted.feature_names_in_.tolist() == NAMES
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(lw.load(tmp_path / "model").predict_proba(turned), expected)


def test_other_columns_are_refused(fitted, data):
    with pytest.raises(InputError, match="lack weight and have mass, which it was not fitted to"):
        fitted.predict(data.rename(columns={"weight": "mass"}))
    with pytest.raises(InputError, match="have truth, which it was not fitted to"):
        fitted.predict(data.assign(truth=1))


def test_a_fit_without_names_forgets_those_before(data):
    pairs = Pairs.from_labels(blobs()[1])
    clf = SimilarityClassifier(3, **OPTIONS).fit(data, pairs).fit(data.to_numpy(), pairs)
    assert not hasattr(clf, "feature_names_in_")
    clf.predict(data[NAMES[::-1]])  # nothing is known of names: taken as they come


@pytest.mark.parametrize("channels", [None, 3])
def test_pixels_on_another_scale_are_refused(channels):
    X, y = pictures(n=40, channels=channels)
    pairs, options = Pairs.from_labels(y), {**OPTIONS, "network": "linear"}
    bytes_ = SimilarityClassifier(2, **options).fit(X, pairs)
    assert bytes_.predict(X.astype(np.float32)).shape == (40,)  # the same numbers
    assert bytes_.predict(np.zeros_like(X[:2], np.float32)).shape == (2,)  # black is black
    with pytest.raises(
        InputError, match=r"whole numbers \(uint8\) up to 2\d\d, but these items ar"
    ):
        bytes_.predict(X / 255)
    shares = SimilarityClassifier(2, **options).fit(X / 255, pairs)
    with pytest.raises(InputError, match=r"whole numbers up to 2.*divide them by 255"):
        shares.predict(X)
    with pytest.raises(InputError, match="divide them by 255"):
        shares.score(X.astype(np.int64), y)


def test_a_schema_survives_and_a_spoilt_one_is_named():
    schema = ItemSchema.of(np.arange(6, dtype=np.uint8).reshape(2, 3), ["a", "b", "c"])
    assert schema == ItemSchema("uint8", 0.0, 5.0, ("a", "b", "c"))
    assert ItemSchema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    for change in ({"dtype": "complex"}, {"low": None}, {"columns": "abc"}):
        with pytest.raises(InputError, match="items"):
            ItemSchema.from_dict(schema.to_dict() | change)
    with pytest.raises(InputError, match="there are 1 names of columns"):
        ItemSchema.of(np.zeros((2, 3), np.float32), ["a"])


# -- from the command line -----------------------------------------------------------------------


@pytest.fixture
def run(data, tmp_path):
    data.to_csv(tmp_path / "items.csv", index=False)
    Pairs.from_labels(blobs()[1], per_item=20, random_state=0).write(tmp_path / "pairs.csv")
    out = tmp_path / "run"
    words = ["fit", tmp_path / "items.csv", tmp_path / "pairs.csv", "--classes", 3, "--out", out]
    assert command([*map(str, words), "--method", "mcl", "--epochs", "3", "--quiet"]) == 0
    return out


def predicted(run, items, capsys) -> list[object]:
    capsys.readouterr()
    assert command(["predict", str(run), str(items), "--json"]) == 0
    return [row["class"] for row in json.loads(capsys.readouterr().out)["predictions"]]


def test_a_table_with_turned_columns(run, data, tmp_path, capsys):
    expected = predicted(run, tmp_path / "items.csv", capsys)
    data[NAMES[::-1]].to_csv(tmp_path / "turned.csv", index=False)
    assert predicted(run, tmp_path / "turned.csv", capsys) == expected
    data.rename(columns={"width": "girth"}).to_csv(tmp_path / "other.csv", index=False)
    assert command(["predict", str(run), str(tmp_path / "other.csv")]) == 2
    assert "lack width and have girth" in capsys.readouterr().err


@pytest.mark.parametrize("names", [["1", "2", "3", "4", "5"], ["400", "410", "420", "430", "440"]])
def test_a_header_of_numbers_in_even_steps_is_no_item(names, tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).random((3, 5)), columns=names)
    frame.to_csv(tmp_path / "items.csv", index=False)
    found = read_items(tmp_path / "items.csv")
    assert len(found) == 3
    assert found.columns == tuple(names)


def test_a_header_of_numbers_that_the_model_knows_is_no_item(tmp_path):
    names = ["1.5", "7", "2"]
    pd.DataFrame(np.ones((3, 3)), columns=names).to_csv(tmp_path / "items.csv", index=False)
    assert len(read_items(tmp_path / "items.csv")) == 4  # nothing tells it from an item
    assert len(read_items(tmp_path / "items.csv", known=["2", "1.5", "7"])) == 3


def test_a_file_without_a_header_is_told_what_its_columns_are_taken_for(tmp_path):
    """A header of other numbers is taken for an item too: nobody could tell, so it is said."""
    file = tmp_path / "items.csv"
    file.write_text("400.5,401.0,402.1\n1,2,3\n")
    with pytest.warns(UserWarning, match=r"items\.csv has no header.*an item.* a, b, c, in"):
        assert len(read_items(file, known=["a", "b", "c"])) == 2
    file.write_text("a,b,c\n1,2,3\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read_items(file, known=["a", "b", "c"])) == 1


class TestPlainSchema:
    """What is kept of items, without a model around it."""

    def test_of_items_and_back(self):
        items = np.array([[0.5, 2.0], [-1.0, 3.0]], np.float32)
        found = ItemSchema.of(items, ["a", 1])
        assert found == ItemSchema("float32", -1.0, 3.0, ("a", "1"))
        assert ItemSchema.of(items) == ItemSchema("float32", -1.0, 3.0, None)
        again = ItemSchema("uint8", 0, 9, ("a",), "patches")
        assert ItemSchema.from_dict(again.to_dict()) == again
        assert set(again.to_dict()) == {"dtype", "low", "high", "columns", "encoder"}
        for shape, names in (((2, 3), ["a", "b"]), ((2, 2, 2), ["a", "b"])):
            with pytest.raises(InputError, match=r"there are 2 names of columns for items of sha"):
                ItemSchema.of(np.zeros(shape), names)

    def test_a_range_is_that_of_a_sample(self):
        items = np.zeros((3000, 1), np.float32)
        items[3], items[4] = 7, 9
        assert ItemSchema.of(items).high == 7  # every third is looked at
        assert ItemSchema.of(items[:1999]).high == 9

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"dtype": "int8"}, "the type of its items is 'int8', which cannot be"),
            ({"low": "0"}, "the range of its items is no pair of numbers"),
            ({"high": None}, "the range of its items is no pair of numbers"),
            ({"columns": "ab"}, "the columns of its items are no list of names"),
        ],
    )
    def test_what_cannot_be(self, change, words):
        good = ItemSchema("uint8", 0, 9).to_dict()
        with pytest.raises(InputError, match=f"^{words}"):
            ItemSchema.from_dict(good | change)

    def test_columns_in_order_or_named(self):
        items = np.array([[1, 2, 3]])
        schema = ItemSchema("float32", 0, 1, ("a", "b", "c"))
        assert schema.arranged(items, ["c", "a", "b"]).tolist() == [[2, 3, 1]]
        assert schema.arranged(items, None) is items
        assert schema.arranged(items, ["a", "b", "c"]) is items
        assert ItemSchema("float32", 0, 1).arranged(items, ["x", "y", "z"]) is items
        with pytest.raises(InputError) as both:
            schema.arranged(items, ["a", "x", "y"])
        assert str(both.value) == (
            "these items lack b, c and have x, y, which it was not fitted to; the model's columns "
            "are a, b, c."
        )
        with pytest.raises(InputError, match=r"^these items lack c; the model's"):
            schema.arranged(items, ["a", "b"])
        with pytest.raises(
            InputError, match=r"^these items have 0, 1, 2, 3, 4 \.\.\. \(6 in all\)"
        ):
            schema.arranged(items, [*"abc", *map(str, range(6))])
        with pytest.raises(InputError, match=r"^these items have 0, 1, 2, 3, 4, which it"):
            schema.arranged(items, [*"abc", *map(str, range(5))])

    @pytest.mark.parametrize(
        ("fitted", "items", "words"),
        [
            (("uint8", 0, 255), [[0.0, 0.5]], r"up to 255, but .* from 0 to 0\.5; .* by 255"),
            (("uint8", 0, 2), [[1.0, 0.25]], r"\(uint8\) up to 2, but"),
            (("uint8", 0, 1), [[0.0, 0.5]], None),
            (("uint8", 0, 255), [[0.0, 1.0]], None),
            (("uint8", 0, 255), [[0.5, 1.5]], None),
            (("uint8", 0, 255), [[-0.5, 0.5]], None),
            (("float32", 0, 1), np.array([[2, 0]], np.uint8), r"up to 2; .* divide them by 255"),
            (("float32", 0.25, 0.5), [[[7.0]]], r"numbers from 0\.25 to 0\.5, but .* up to 7"),
            (("float32", 0, 1), [[7.0]], None),
            (("float32", 0, 1), [[[1.0]]], None),
            (("float32", 0, 1), [[[1.5]]], None),
            (("float32", -0.5, 1), [[[7.0]]], None),
            (("float32", 0, 1.5), [[[7.0]]], None),
            (("uint8", 0, 1), [[[7.0]]], None),
        ],
    )
    def test_another_scale(self, fitted, items, words):
        schema = ItemSchema(*fitted)
        if words is None:
            schema.check_scale(np.asarray(items))
        else:
            with pytest.raises(InputError, match=words):
                schema.check_scale(np.asarray(items))

    def test_names_of_columns(self):
        class Frame:
            def __init__(self, *columns):
                self.columns = columns

        assert column_names(Frame("a", "b")) == ["a", "b"]
        assert column_names(Frame("a", 1)) is None
        assert column_names(Frame()) is None
        assert column_names(np.zeros(2)) is None
