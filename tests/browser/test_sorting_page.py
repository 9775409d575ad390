"""The sorting page in a real browser: mouse, touch, keyboard, undo, reload, tabs, kill."""

from __future__ import annotations

import json
import signal
import sqlite3
from itertools import combinations

import pytest
from accessibility import low_contrasts, scrolls_sideways, unnamed_controls
from devices import DESKTOP, PHONE
from label_servers import ServerProcess, in_thread
from PIL import Image
from sklearn.datasets import load_digits

from forked import likewise
from likewise.label import read_judgements

pytestmark = pytest.mark.browser

KINDS = 3


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """45 noughts, ones and twos; a file's name begins with its class."""
    folder, digits = tmp_path_factory.mktemp("digits"), load_digits(n_class=KINDS)
    for k, (image, digit) in enumerate(zip(digits.images[:45], digits.target, strict=False)):
        picture = Image.fromarray((255 - image * 255 / 16).astype("uint8"))
        picture.resize((96, 96), Image.Resampling.BICUBIC).save(folder / f"{digit}-{k:02d}.png")
    return folder


@pytest.fixture
def server(chromium, pictures, tmp_path):
    with in_thread(pictures, tmp_path / "judgements.db", sort=35) as server:
        yield server


def enter(page, name="Ada"):
    page.get_by_label("Your name or initials").fill(name)
    page.get_by_role("button", name="Start judging").click()
    page.get_by_role("heading", name="into one pile").wait_for()


def tray(page):
    """The names of the items that are not sorted, in order."""
    return page.locator("#tray-cards .name").all_inner_texts()


def pile(page, number):
    return page.locator(f".pile[data-pile='{number}']")


def card(page, name):
    return page.locator(".card", has_text=name)


def standing(page):
    """The pile of each item, as the page shows it."""
    return page.evaluate(
        "() => Object.fromEntries([...document.querySelectorAll('.pile .card')].map((e) =>"
        " [e.querySelector('.name').textContent, Number(e.closest('.pile').dataset.pile)]))"
    )


def wait_until_stored(page):
    """Until every move is acknowledged."""
    page.wait_for_function(
        "() => document.querySelectorAll('.card').length > 0"
        " && document.querySelectorAll('.card.waiting, .ghost').length === 0"
    )


def moves_stored(server):
    """The piles of open screens, as the database has them: the last standing move of each item."""
    with sqlite3.connect(server.database) as connection:
        rows = connection.execute(
            "SELECT item, pile FROM moves WHERE undone_at IS NULL ORDER BY screen, step"
        ).fetchall()
    connection.close()
    return {item: where for item, where in dict(rows).items() if where is not None}


def rows_of(server):
    columns = read_judgements(server.database)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def drag(page, name, target):
    """Drag one item by mouse."""
    page.wait_for_function("() => document.querySelectorAll('.ghost').length === 0")
    card(page, name).hover()
    page.mouse.down()
    box = target.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 12, steps=4)
    page.mouse.up()


def check_sorted(rows, names, who="Ada"):
    assert {frozenset((r["left"], r["right"])) for r in rows} == set(
        map(frozenset, combinations(names, 2))
    )
    for row in rows:
        assert row["same"] == (row["left"][0] == row["right"][0])
        assert row["annotator"] == who


def test_by_mouse_with_undo_and_a_reload_then_fit(server, open_page, tmp_path):
    page = open_page(server.url)
    enter(page)
    names, piles = tray(page), {}
    assert len(names) == 35
    for k, name in enumerate(names):
        kind = name[0]
        target = pile(page, piles[kind]) if kind in piles else page.locator("#new-pile")
        piles.setdefault(kind, len(piles))
        drag(page, name, target)
        wait_until_stored(page)
        if k == 8:  # taken back by mouse, and done again
            page.get_by_role("button", name="Undo", exact=True).click()
            page.locator("#tray-cards .card", has_text=name).wait_for()
            drag(page, name, target)  # a pile that it had opened is gone again
            wait_until_stored(page)
        if k == 17:  # in the middle
            before = standing(page)
            page.reload()
            page.locator(".card").nth(34).wait_for()
            assert standing(page) == before
            assert len(before) == 18
    drag(page, names[0], page.locator("#tray"))  # back, and in again
    wait_until_stored(page)
    assert tray(page) == [names[0]]
    drag(page, names[0], pile(page, piles[names[0][0]]))
    wait_until_stored(page)
    assert rows_of(server) == []  # it counts when it is finished
    page.get_by_role("button", name="Done, next screen").click()
    page.get_by_text("screen sorted").wait_for()
    rows = rows_of(server)
    assert len(rows) == 595
    check_sorted(rows, names)
    described = json.loads(likewise("describe", server.database, "--json"))
    assert (described["judgements"], described["annotators"]) == (595, 1)
    options = ("--classes", "3", "--image-size", "16", "--out", tmp_path / "run", "--json")
    fitted = json.loads(likewise("fit", server.items, server.database, *options))
    assert fitted["judgements"] == 595


def test_by_touch_several_at_once(server, open_page):
    page = open_page(server.url, **PHONE)
    enter(page)
    names = tray(page)
    kinds = sorted({name[0] for name in names})
    for k, kind in enumerate(kinds):
        for name in [name for name in names if name[0] == kind]:
            card(page, name).tap()
        page.get_by_text(" chosen: now a pile").wait_for(state="attached")
        page.locator("#new-pile").tap()
        wait_until_stored(page)
        assert pile(page, k).locator(".card").count() == sum(n[0] == kind for n in names)
    card(page, names[0]).tap()
    pile(page, (kinds.index(names[0][0]) + 1) % 3).locator(".put").tap()  # to the wrong one
    wait_until_stored(page)
    page.get_by_role("button", name="Undo", exact=True).tap()
    page.wait_for_function("() => document.querySelector('#status').textContent.includes('Undone')")
    page.get_by_role("button", name="Done, next screen").tap()
    page.get_by_text("screen sorted").wait_for()
    check_sorted(rows_of(server), names)


def test_by_keyboard_alone_with_the_focus_in_sight(server, open_page):
    from playwright.sync_api import expect

    page = open_page(server.url)
    expect(page.get_by_label("Your name or initials")).to_be_focused()
    page.keyboard.type("Ada")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="into one pile").wait_for()
    names = tray(page)
    for _ in range(3):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('card')"):
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    for name in names:  # each goes where its digit says, and the focus goes on
        expect(card(page, name)).to_be_focused()
        page.keyboard.press(str(int(name[0]) + 1))
    wait_until_stored(page)
    page.keyboard.press("u")
    page.locator("#tray-cards .card").wait_for()
    card(page, names[-1]).focus()
    page.keyboard.press("n")  # a pile of its own
    wait_until_stored(page)
    assert standing(page)[names[-1]] == 3
    page.keyboard.press("ArrowLeft")
    assert not card(page, names[-1]).evaluate("e => e === document.activeElement")
    page.keyboard.press("ArrowRight")
    expect(card(page, names[-1])).to_be_focused()
    page.keyboard.press("z")  # look closer, and back
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    card(page, names[-1]).focus()
    page.keyboard.press("0")
    wait_until_stored(page)
    page.get_by_label("Letter keys").uncheck()  # then by tab and space only
    card(page, names[-1]).focus()
    page.keyboard.press("1")
    page.keyboard.press(" ")
    assert card(page, names[-1]).get_attribute("aria-pressed") == "true"
    pile(page, int(names[-1][0])).locator(".put").focus()
    page.keyboard.press("Enter")
    wait_until_stored(page)
    page.locator("#finish").focus()
    page.keyboard.press("Enter")
    page.get_by_text("screen sorted").wait_for()
    check_sorted(rows_of(server), names)


def test_a_second_person_and_a_second_tab_at_once(server, open_page):
    open_page.expect(r"Failed to load resource: .* 409")  # a tab that is behind
    ada = open_page(f"{server.url}?annotator=Ada")
    bo = open_page(f"{server.url}?annotator=Bo")
    for page in (ada, bo):
        page.locator(".card").nth(34).wait_for()
    assert tray(ada) != tray(bo)
    for k in range(6):
        for page in (ada, bo):
            page.locator("#tray-cards .card").first.focus()
            page.keyboard.press(str(k % 2 + 1))
            wait_until_stored(page)
    behind = open_page(server.url, context=ada.context)
    behind.locator(".card").nth(34).wait_for()
    assert standing(behind) == standing(ada)
    ada.locator("#tray-cards .card").first.focus()
    ada.keyboard.press("1")
    wait_until_stored(ada)
    behind.locator("#tray-cards .card").last.focus()
    behind.keyboard.press("2")
    behind.get_by_role("alert").filter(has_text="changed in another tab").wait_for()
    wait_until_stored(behind)
    assert standing(behind) == standing(ada)  # and it has caught up
    assert moves_stored(server) == standing(ada) | standing(bo)
    assert len(standing(bo)) == 6


def test_a_killed_server_loses_no_move_and_the_page_goes_on(
    chromium, open_page, pictures, tmp_path
):
    server = ServerProcess(pictures, tmp_path / "judgements.db", sort=12)
    open_page.expect(r"Failed to load resource: net::ERR_")  # from the browser itself
    page = open_page(f"{server.url}?annotator=Ada")
    page.locator(".card").nth(11).wait_for()
    page.wait_for_load_state("networkidle")
    names = tray(page)
    for key in "11":
        page.locator("#tray-cards .card").first.focus()
        page.keyboard.press(key)
        wait_until_stored(page)
    server.end(signal.SIGKILL)
    page.locator("#tray-cards .card").first.focus()
    page.keyboard.press("2")  # nobody is there to take these
    page.keyboard.press("2")
    page.get_by_role("alert").filter(has_text="Not stored yet").wait_for()
    assert page.locator(".card.waiting").count() == 2
    server.start()
    wait_until_stored(page)
    expected = dict(zip(names[:4], (0, 0, 1, 1), strict=True))
    assert standing(page) == expected
    assert moves_stored(server) == expected
    page.get_by_role("button", name="Done, leave 8 out").click()
    page.get_by_text("screen sorted").wait_for()
    assert [row["same"] for row in rows_of(server)].count(1) == 2
    assert len(rows_of(server)) == 6
    server.end()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_basics_hold_on_every_view(chromium, open_page, tmp_path, scheme, device):
    table = tmp_path / "products.csv"
    script = "<img src=x onerror=alert(1)>"
    table.write_text(
        "id,title,note\n" + "".join(f'{k},"{script} {k}",note {k}\n' for k in range(40))
    )
    with in_thread(table, tmp_path / "judgements.db", sort=35, show_names=False) as server:
        page = open_page(server.url, color_scheme=scheme, **device)

        def check():
            assert low_contrasts(page) == []
            assert unnamed_controls(page) == []
            assert not scrolls_sideways(page)

        check()
        enter(page)
        assert page.locator(".card").count() == 35
        assert script in page.locator(".card .words").first.inner_text()
        assert page.locator("img[src=x]").count() == 0
        check()
        for key in "123":
            page.locator("#tray-cards .card").first.focus()
            page.keyboard.press(key)
            wait_until_stored(page)
        page.locator("#tray-cards .card").first.click()
        page.wait_for_timeout(200)
        check()
        page.get_by_role("button", name="Look closer").click()
        check()
        page.get_by_role("button", name="Close", exact=True).click()
        for target in ("#new-pile", "#finish", "#undo", ".pile .put"):
            box = page.locator(target).first.bounding_box()
            assert min(box["height"], box["width"]) >= 44, target
            assert box["y"] + box["height"] <= device["viewport"]["height"]
        for screens in (1, 2):
            page.locator("#finish").click()
            page.wait_for_function(
                f"() => document.querySelector('#progress b').textContent == '{screens}'"
            )
        page.get_by_role("heading", name="That was everything").wait_for()
        check()


def test_a_screen_reader_hears_what_happened(server, open_page):
    from playwright.sync_api import expect

    page = open_page(server.url)
    enter(page)
    status = page.get_by_role("status")
    expect(status).to_have_text(
        "Screen 1, 35 of 35 not sorted. Put what is of the same kind into one pile."
    )
    first = tray(page)[0]
    button = page.get_by_role("button", name=f"Item 1, {first}, not sorted")
    assert button.get_attribute("aria-pressed") == "false"
    button.focus()
    page.keyboard.press("1")
    expect(status).to_have_text(
        "Moved 1 item to pile 1. Screen 1, 34 of 35 not sorted. "
        "Put what is of the same kind into one pile."
    )
    assert page.get_by_role("button", name=f"Item 1, {first}, in pile 1").count() == 1
    assert page.get_by_role("region", name="Pile 1").count() == 1
    page.keyboard.press("u")
    expect(status).to_have_text(
        "Undone. Screen 1, 35 of 35 not sorted. Put what is of the same kind into one pile."
    )
