"""Ids that leave no doubt which item they mean, and those that do."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.pairs.formats.shortening import match_ids


class TestForms:
    @pytest.mark.parametrize(
        ("word", "items", "meant"),
        [
            ("cat", ["pets/cat.jpg", "dog"], 0),
            ("cat.jpg", ["dog", "cat"], 1),
            ("C:\\mine\\pets\\cat.jpg", ["pets/cat.jpg"], 0),
            ("other/cat.jpg", ["pets/cat.jpg"], -1),
            ("cat.png", ["cat.jpg"], -1),
            ("3.9", ["3.1", "3"], -1),
            ("a.b@x.org", ["a.b@x.com"], -1),
            ("/data/upload/1/1f2e3d4c-cat.jpg", ["pets/cat.jpg"], 0),
            ("1f2e3d4c-cat.jpg", ["1f2e3d4c-cat.png", "cat.jpg"], 1),
            (".jpg", ["jpg"], -1),
            ("cat.jpeg2", ["cat"], 0),
            ("cat.jpeg23", ["cat"], -1),
            ("cat.j", ["cat"], -1),
        ],
    )
    def test_which_item_is_meant(self, word: str, items: list[str], meant: int) -> None:
        found = match_ids(np.array([word]), np.array(items))
        assert found.position.tolist() == [meant]
        assert found.shortened == (meant >= 0)
        assert found.example == ((word, items[meant]) if meant >= 0 else ("", ""))

    def test_doubt_is_no_match(self) -> None:
        items = np.array(["a/cat.jpg", "b/cat.jpg", "c/dog.jpg"])
        found = match_ids(np.array(["c/dog.jpg", "cat", "dog"]), items)
        assert (found.position.tolist(), found.shortened) == ([2, -1, -1], 0)
        assert found.doubt == {
            "cat": "which may be 'a/cat.jpg' or 'b/cat.jpg'; write the item's own id, whole.",
            "dog": "but 'c/dog.jpg' would then be the same item, 'c/dog.jpg'; write the items' own "
            "ids, whole.",
        }
        two = match_ids(np.array(["dog", "dog.jpg"]), items)
        assert two.position.tolist() == [-1, -1]
        assert two.doubt["dog"].startswith("but 'dog.jpg' would then be the same item, 'c/dog.jpg'")
        assert two.doubt["dog.jpg"].startswith("but 'dog' would then be the same item")

    def test_whole_ids_need_no_more(self) -> None:
        words = np.array(["b", "c", "zz"])
        found = match_ids(words, np.array(["c", "zz", "b"]))
        assert (found.position.tolist(), found.shortened, found.doubt) == ([2, 0, 1], 0, {})
        assert match_ids(words, np.array([], np.str_)).position.tolist() == [-1, -1, -1]
        some = match_ids(np.array(["a", "b.png", "q"]), np.array(["b", "a"]))
        assert (some.position.tolist(), some.shortened) == ([1, 0, -1], 1)
        assert some.example == ("b.png", "b")
