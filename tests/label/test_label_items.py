"""What is shown: pictures within limits and within their folder, rows of a table, arrays."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from likewise.errors import InputError
from likewise.label.items import MAX_CELL, open_items
from likewise.label.pictures import SIDE, Picture, PictureCache


def save(path, size=(20, 10), mode="RGB", colour=None, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour or 0).save(path, **options)
    return path


def decoded(picture):
    return Image.open(io.BytesIO(picture.data))


def png_header(width, height):
    """A PNG file that claims a size and holds no pixels."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    ihdr = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", ihdr) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def test_a_folders_pictures_go_by_their_paths_below_it(tmp_path):
    save(tmp_path / "b.png")
    save(tmp_path / "deep" / "a.JPG")
    save(tmp_path / ".hidden.png")
    (tmp_path / "notes.txt").write_text("not a picture")
    items = open_items(tmp_path)
    assert list(items.ids) == ["b.png", "deep/a.JPG"]
    assert items.are_pictures
    assert items.picture(0).media_type == "image/png"


def test_links_that_lead_out_of_the_folder_are_not_items(tmp_path):
    secret = save(tmp_path / "secret" / "s.png")
    root = tmp_path / "items"
    save(root / "a.png")
    save(root / "b.png")
    (root / "out.png").symlink_to(secret)
    (root / "folder").symlink_to(secret.parent)
    (root / "inside.png").symlink_to(root / "a.png")
    items = open_items(root)
    assert list(items.ids) == ["a.png", "b.png", "inside.png"]
    assert items.picture(2)


def test_a_file_or_folder_swapped_for_a_link_later_is_not_followed(tmp_path):
    secret = save(tmp_path / "secret" / "b.png")
    root = tmp_path / "items"
    save(root / "a.png")
    save(root / "sub" / "b.png")
    items = open_items(root)
    (root / "a.png").unlink()
    (root / "a.png").symlink_to(secret)
    (root / "sub" / "b.png").unlink()
    (root / "sub").rmdir()
    (root / "sub").symlink_to(secret.parent)
    for index in range(2):
        with pytest.raises(InputError, match="leads out"):
            items.picture(index)


def test_pictures_are_reduced_turned_upright_and_stripped_of_metadata(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # taken with the camera on its side
    exif[0x010E] = "taken at home"
    save(tmp_path / "a.jpg", (3000, 1500), exif=exif)
    save(tmp_path / "b.png", (8, 8))
    large, small = (decoded(open_items(tmp_path).picture(k)) for k in range(2))
    assert large.size == (SIDE // 2, SIDE)
    assert large.format == "JPEG"
    assert not large.getexif()
    assert b"taken at home" not in open_items(tmp_path).picture(0).data
    assert small.size == (8, 8)
    assert small.format == "PNG"


@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGBA", "1", "CMYK", "I;16"])
def test_every_kind_of_pixel_is_shown(tmp_path, mode):
    name = "a.tif" if mode in ("CMYK", "I;16") else "a.png"
    save(tmp_path / name, (400, 300), mode)
    save(tmp_path / "b.png")
    assert decoded(open_items(tmp_path).picture(0)).size == (400, 300)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"\x89PNG\r\n\x1a\n broken",
        b"\xff\xd8\xff\xe0 broken",
        png_header(50_000, 50_000),
        png_header(9_000, 9_000),
        png_header(30, 30),
    ],
)
def test_what_is_no_proper_picture_is_refused(tmp_path, content):
    (tmp_path / "a.png").write_bytes(content)
    save(tmp_path / "b.png")
    items = open_items(tmp_path)
    with pytest.raises(InputError):
        items.picture(0)
    assert items.picture(1)


def test_a_picture_that_went_away_is_one_sentence(tmp_path):
    save(tmp_path / "a.png").with_name("b.png").write_bytes(b"")
    items = open_items(tmp_path)
    (tmp_path / "a.png").unlink()
    with pytest.raises(InputError, match="still there"):
        items.picture(0)


def test_the_cache_forgets_what_was_not_asked_for(tmp_path):
    cache = PictureCache(max_bytes=20)
    for k in range(3):
        cache.put(k, Picture(b"x" * 8, "image/png"))
        cache.get(0)
    assert cache.get(0)
    assert cache.get(1) is None
    assert cache.get(2)


def test_rows_of_a_table_show_every_column_but_the_id(tmp_path):
    path = tmp_path / "products.csv"
    path.write_text("id,title,price\nA1,Lamp,5\nB2,<script>alert(1)</script>,\n")
    items = open_items(path)
    assert not items.are_pictures
    assert list(items.ids) == ["A1", "B2"]
    assert items.cells(1) == [("title", "<script>alert(1)</script>"), ("price", "")]
    with pytest.raises(InputError, match="not pictures"):
        items.picture(0)


def test_without_an_id_column_rows_go_by_their_number(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("text\n" + "x" * (MAX_CELL + 10) + "\nb\n\n")
    items = open_items(path)
    assert list(items.ids) == ["0", "1"]
    assert len(items.cells(0)[0][1]) == MAX_CELL + 1


def test_the_id_column_can_be_named_and_must_be_distinct(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("sku,text\nu,one\nv,two\nu,three\n")
    assert list(open_items(path).ids) == ["0", "1", "2"]
    assert list(open_items(path, id_column="text").ids) == ["one", "two", "three"]
    with pytest.raises(InputError, match="line 4: the column sku has 'u' twice"):
        open_items(path, id_column="sku")
    with pytest.raises(InputError, match="no column key; the columns there are sku, text"):
        open_items(path, id_column="key")


def test_items_are_known_by_the_names_that_fit_gives_them(tmp_path):
    """Else the answers of a database would be about other items than those that are fitted."""
    from likewise.items.files import read_items

    tables = ["id,a\nx,1\ny,2\n", "item,a\n7,1\n8,2\n", "a,b\n1,2\n3,4\n", "1.5,2\n3,4\n5,6\n"]
    tables += ["id;a;b\nx,1;1;2\ny;3;4\n", "id\ta\n007\t1\n7\t2\n", '\ufeffid|a\n"x"|1\ny|2\n']
    for k, text in enumerate(tables):
        path = tmp_path / f"{k}.csv"
        path.write_text(text, encoding="utf-8")
        assert list(open_items(path).ids) == list(read_items(path).names)
    named = tmp_path / "items.tsv"
    named.write_text("key\ta\nx\t1\ny\t2\n")
    assert list(open_items(named, "key").ids) == list(read_items(named, id_column="key").names)
    np.savez(tmp_path / "x.npz", items=np.zeros((2, 4, 4), np.uint8), ids=["p", "q"])
    found = open_items(tmp_path / "x.npz")
    assert list(found.ids) == list(read_items(tmp_path / "x.npz").names) == ["p", "q"]
    pq.write_table(pa.table({"id": [1.5, 2.0], "a": [1, 2]}), tmp_path / "x.parquet")
    found = open_items(tmp_path / "x.parquet")
    assert list(found.ids) == list(read_items(tmp_path / "x.parquet").names) == ["1.5", "2.0"]
    for name in ("b.png", "sub/a.png"):
        save(tmp_path / "folder" / name, (8, 8))
    assert list(open_items(tmp_path / "folder").ids) == list(read_items(tmp_path / "folder").names)


def test_parquet_tables_are_read_too(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"id": [7, 8], "size": [1.5, None], "note": ["a", "b"]}), path)
    items = open_items(path)
    assert list(items.ids) == ["7", "8"]
    assert items.cells(1) == [("size", ""), ("note", "b")]


@pytest.mark.parametrize("shape", [(3, 8, 8), (3, 8, 8, 3)])
def test_arrays_of_images_are_shown(tmp_path, shape):
    path = tmp_path / "x.npy"
    pixels = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    np.save(path, pixels)
    shown = np.asarray(decoded(open_items(path).picture(2)))
    np.testing.assert_array_equal(shown, pixels[2])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "a.csv is empty"),
        ("a.csv", b"text\nonly\n", "holds 1 items"),
        ("a.csv", b"a,b\n1,2\n3\n", "Row #3: Expected 2 columns, got 1"),
        ("a.csv", b"a\n\xff\xfe\n", "not UTF-8"),
        ("a.csv", b'a,b\n1,2\n"open,3\n4,5\n', "a.csv, line 3: a quote is opened and never closed"),
        ("a.csv", b"id,a\n1,2\n,3\n", "line 3: the column id is blank"),
        ("a.parquet", b"PAR1 broken", "cannot be read"),
        ("a.npy", b"broken", "is not a NumPy file"),
        ("a.npy", b"\x80\x04cos\nsystem\n.", "is not a NumPy file"),
        ("a.xlsx", b"PK\x03\x04", "is a ZIP archive"),
    ],
)
def test_other_files_get_one_sentence(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        open_items(path)


def test_features_are_not_pictures(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((5, 4)))
    with pytest.raises(InputError, match="uint8 images"):
        open_items(tmp_path / "x.npy")
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="Python objects"):
        open_items(tmp_path / "o.npy")
    with pytest.raises(InputError, match="no file or folder"):
        open_items(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="there are no images"):
        open_items(tmp_path / "empty")


def test_a_folder_of_text_files_is_shown_as_texts(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "secret.txt").write_text("outside")
    for k in range(3):
        (tmp_path / "notes" / f"n{k}.txt").write_text(f"note {k}")
    (tmp_path / "notes" / "link.txt").symlink_to(tmp_path / "secret.txt")
    items = open_items(tmp_path / "notes")
    assert list(items.ids) == ["n0.txt", "n1.txt", "n2.txt"]
    assert not items.are_pictures
    assert items.cells(1) == [("text", "note 1")]
