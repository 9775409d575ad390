"""Judgements in SQLite databases: any table with the columns, and the labelling page's own."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from likewise.errors import InputError
from likewise.pairs import Pairs
from likewise.pairs.formats.label_database import (
    APPLICATION_ID,
    is_judgements_database,
    open_read_only,
    read_judgements,
)
from pair_files import rows


def database(path: Path, *statements: str) -> Path:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


ANSWERS = 'CREATE TABLE judgements (id INTEGER, "left", "right", same, annotator)'
GOLD = 'CREATE TABLE gold (id INTEGER, "left", "right", same, annotator)'
SORTS = "CREATE TABLE sorts (sort, annotator, item, pile)"


def page(path: Path, *statements: str, version: int = 2) -> Path:
    marks = f"PRAGMA application_id = {APPLICATION_ID}", f"PRAGMA user_version = {version}"
    tables = (ANSWERS, GOLD, SORTS) if version > 1 else (ANSWERS,)
    return database(path, *marks, *tables, *statements)


class TestTables:
    def test_the_only_one_with_the_columns(self, tmp_path: Path) -> None:
        path = database(
            tmp_path / "x.db",
            "CREATE TABLE other (a)",
            'CREATE TABLE "odd ""name" ("left", "right", same, annotator, weight)',
            """INSERT INTO "odd ""name" VALUES ('b', 'a', 1, 'x', 0.5), ('a', 'c', 0, 'y', 2)""",
        )
        expected = [("b", "a", True, "x", 0.5), ("a", "c", False, "y", 2.0)]
        assert rows(Pairs.read(path)) == rows(Pairs.read(path, table='odd "name')) == expected

    def test_columns_by_name_and_views(self, tmp_path: Path) -> None:
        path = database(
            tmp_path / "x.db",
            "CREATE TABLE t (p, q, r)",
            "INSERT INTO t VALUES ('b', 'a', 1)",
            'CREATE VIEW v AS SELECT q AS "left", p AS "right", r AS same FROM t',
        )
        assert rows(Pairs.read(path)) == [("a", "b", True)]
        assert rows(Pairs.read(path, left="p", right="q", same="r")) == [("b", "a", True)]

    @pytest.mark.parametrize(
        ("statements", "table", "words"),
        [
            ((), None, r"^x\.db has no table with the columns left, right and same; there are no"),
            (("CREATE TABLE t (a, b)", "CREATE TABLE u (c)"), None, r"there are t: a, b; u: c\.$"),
            (('CREATE TABLE t ("left", "right", same)', 'CREATE TABLE u ("left", "right", same)'),
             None, r"^x\.db has several tables of judgements \(t, u\); say which with table="),
            (("CREATE TABLE t (a)",), "w", r"^x\.db has no table w; the tables there are t\.$"),
            (('CREATE TABLE t ("left", "right", same)', "INSERT INTO t VALUES ('a', 'b', 'x')"),
             None, r"^x\.db, row 0: same is 'x'"),
        ],
    )  # fmt: skip
    def test_mistakes(
        self, tmp_path: Path, statements: tuple[str, ...], table: str | None, words: str
    ) -> None:
        path = database(tmp_path / "x.db", "PRAGMA user_version = 7", *statements)
        with pytest.raises(InputError, match=words):
            Pairs.read(path, table=table)

    def test_damage(self, tmp_path: Path) -> None:
        (tmp_path / "x.db").write_bytes(b"SQLite format 3\x00" + b"x" * 200)
        with pytest.raises(InputError, match=r"^x\.db cannot be read: "):
            Pairs.read(tmp_path / "x.db")


class TestPage:
    def test_standing_answers_in_their_order(self, tmp_path: Path) -> None:
        answers = "INSERT INTO judgements VALUES (2, 'a', 'c', 0, 'x'), (1, 'a', 'b', NULL, 'y')"
        gold = "INSERT INTO gold VALUES (0, 'g', 'h', 1, 'x')"
        for version in (1, 2):
            more = (answers, gold) if version == 2 else (answers,)
            path = page(tmp_path / f"{version}.db", *more, version=version)
            expected = {
                "left": ["a", "a"],
                "right": ["b", "c"],
                "same": [None, 0],
                "annotator": ["y", "x"],
            }
            assert read_judgements(path) == expected
            with_gold = read_judgements(str(path), gold=True)
            assert with_gold["left"] == (["g", "a", "a"] if version == 2 else ["a", "a"])
            found = Pairs.read(path)
            assert (rows(found), found.dropped) == ([("a", "c", False, "x")], 1)

    def test_sorts_follow_the_answers(self, tmp_path: Path) -> None:
        path = page(
            tmp_path / "x.db",
            "INSERT INTO judgements VALUES (1, 'p', 'q', 1, 'x')",
            "INSERT INTO sorts VALUES (2, 'y', 'c', 1), (2, 'y', 'a', 0), (2, 'y', 'b', 0)",
            "INSERT INTO sorts VALUES (1, 'x', 'd', 5)",
        )
        assert read_judgements(path) == {
            "left": ["p", "a", "a", "b"],
            "right": ["q", "b", "c", "c"],
            "same": [1, 1, 0, 0],
            "annotator": ["x", "y", "y", "y"],
            "sort": [None, 2, 2, 2],
        }
        alone = page(tmp_path / "y.db", "INSERT INTO sorts VALUES (1, 'x', 'd', 5)")
        assert read_judgements(alone)["sort"] == []

    @pytest.mark.parametrize(
        ("statement", "words"),
        [
            (
                "judgements VALUES (1, 7, 'b', 1, 'x')",
                "holds an item or annotator that is not text",
            ),
            (
                "judgements VALUES (1, 'a', 'b', 1, 7)",
                "holds an item or annotator that is not text",
            ),
            (
                "judgements VALUES (1, 'a', 'b', 2, 'x')",
                "holds the answer 2, which is none of 1, 0",
            ),
            ("judgements VALUES (1, 'a', 'b', 1.0, 'x')", "holds the answer 1.0, which"),
            ("sorts VALUES ('s', 'x', 'a', 0)", "holds a sort without a number or a person"),
            ("sorts VALUES (1, 7, 'a', 0)", "holds a sort without a number or a person"),
            ("sorts VALUES (1, 'x', 7, 0)", "holds a sort of what is no item; it is damaged"),
            ("sorts VALUES (1, 'x', 'a', 'b')", "holds a sort of what is no item; it is damaged"),
        ],
    )
    def test_damaged_rows(self, tmp_path: Path, statement: str, words: str) -> None:
        path = page(tmp_path / "x.db", f"INSERT INTO {statement}")
        with pytest.raises(InputError, match=rf"x\.db {words}"):
            read_judgements(path)

    def test_as_many_items_as_a_screen_has(self, tmp_path: Path) -> None:
        values = ", ".join(f"(1, 'x', '{k}', 0)" for k in range(35))
        path = page(tmp_path / "x.db", f"INSERT INTO sorts VALUES {values}")
        assert len(read_judgements(path)["same"]) == 35 * 34 // 2
        database(path, "INSERT INTO sorts VALUES (1, 'x', 'more', 0)")
        with pytest.raises(InputError, match="holds a sort of more than 35 items, which no screen"):
            read_judgements(path)

    def test_whose_file_it_is(self, tmp_path: Path) -> None:
        path = page(tmp_path / "x.db")
        assert is_judgements_database(path)
        assert not is_judgements_database(tmp_path / "none")
        assert not is_judgements_database(database(tmp_path / "y.db", "CREATE TABLE t (a)"))
        with pytest.raises(InputError, match=r"^x\.db holds no judgement yet: nobody has answered"):
            Pairs.read(path)
        with pytest.raises(InputError, match=r"there is no file .*none; give the database that"):
            open_read_only(tmp_path / "none")
        with pytest.raises(InputError, match=r"y\.db is a database, but not one of judgements"):
            open_read_only(tmp_path / "y.db")
        with pytest.raises(
            InputError, match=r"was written by a newer version of .*\(format 3, this"
        ):
            open_read_only(page(tmp_path / "z.db", version=3))
        empty = database(tmp_path / "e.db", "PRAGMA user_version = 0")
        open_read_only(empty).close()
        (tmp_path / "w.db").write_bytes(b"no database at all" * 9)
        with pytest.raises(InputError, match=r"w\.db is not a database that can be read: "):
            open_read_only(tmp_path / "w.db")
        spoilt = database(
            tmp_path / "v.db", f"PRAGMA application_id = {APPLICATION_ID}", "CREATE TABLE t (a)"
        )
        with pytest.raises(InputError, match=r"v\.db cannot be read as judgements: it is damaged"):
            read_judgements(spoilt)
