"""The labelling page in a real browser: keyboard, mouse, touch, reload, kill, light and dark."""

from __future__ import annotations

import re
import signal

import pytest
from accessibility import low_contrasts, scrolls_sideways, unnamed_controls
from devices import DESKTOP, PHONE
from label_servers import ServerProcess, in_thread
from PIL import Image
from sklearn.datasets import load_digits

from forked import likewise
from likewise.label import read_judgements

pytestmark = pytest.mark.browser

SCRIPT = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Nine noughts and ones, which is 36 pairs; a file's name begins with its class."""
    folder, digits = tmp_path_factory.mktemp("digits"), load_digits(n_class=2)
    for k, (image, digit) in enumerate(zip(digits.images[:9], digits.target, strict=False)):
        picture = Image.fromarray((255 - image * 255 / 16).astype("uint8"))
        picture.resize((96, 96), Image.Resampling.BICUBIC).save(folder / f"{digit}-{k:02d}.png")
    return folder


@pytest.fixture
def server(chromium, pictures, tmp_path):
    with in_thread(pictures, tmp_path / "judgements.db") as server:
        yield server


@pytest.fixture
def table_server(chromium, tmp_path):
    table = tmp_path / "products.csv"
    table.write_text(f'id,title,note\na,"{SCRIPT}",\nb,Lamp,"one\ntwo"\nc,Table,x\n')
    with in_thread(table, tmp_path / "judgements.db") as server:
        yield server


def join(page, name="Ada"):
    page.get_by_label("Your name or initials").fill(name)
    page.get_by_role("button", name="Start judging").click()
    page.get_by_role("heading", name="same kind").wait_for()


def shown(page):
    """The names under the two items, left and right."""
    return tuple(page.locator("figcaption").all_inner_texts())


def wait_for_count(page, count):
    from playwright.sync_api import expect

    expect(page.locator("#progress b")).to_have_text(str(count))


def stored(server):
    columns = read_judgements(server.database)
    return list(zip(*columns.values(), strict=True))


def give(page, answer, by_key):
    """Answer by key or by mouse."""
    if by_key:
        page.keyboard.press({"Same": "s", "Different": "d", "Not sure": "n"}[answer])
    else:
        page.get_by_role("button", name=answer, exact=True).click()


def test_the_whole_story_from_thirty_judgements_to_the_report(server, open_page, tmp_path):
    """By keyboard and mouse, with undo and a reload in the middle; then fit, then the report."""
    page, expected = open_page(server.url), []
    values = {"Same": 1, "Different": 0, "Not sure": None}
    join(page)
    for k in range(30):
        pair = shown(page)
        alike = len({name[0] for name in pair}) == 1  # the class begins the name
        answer = "Not sure" if k % 10 == 5 else "Same" if alike else "Different"
        give(page, answer, by_key=k % 2 == 0)
        wait_for_count(page, k + 1)
        if k in (9, 20):  # undo, once by key and once by mouse, and answer again
            if k == 9:
                page.keyboard.press("u")
            else:
                page.get_by_role("button", name="Undo", exact=True).click()
            wait_for_count(page, k)
            assert shown(page) == pair
            answer = "Not sure"
            give(page, answer, by_key=True)
            wait_for_count(page, k + 1)
        if k == 14:
            before = shown(page)
            page.reload()
            wait_for_count(page, 15)
            assert shown(page) == before
        expected.append((*pair, values[answer], "Ada"))
    assert stored(server) == expected
    assert len({frozenset(row[:2]) for row in expected}) == 30

    run, report = tmp_path / "run", tmp_path / "report.html"
    options = ("--classes", "2", "--image-size", "16")
    likewise("fit", server.items, server.database, *options, "--out", run)
    likewise("report", run, "--out", report)
    page.goto(report.as_uri())
    text = page.locator("body").inner_text()
    answered = sum(row[2] is not None for row in expected)
    assert re.search(rf"\b{answered} judgements", text)
    assert re.search(r"\b9 items", text)
    assert page.locator("img").count() > 0


def test_a_killed_server_loses_no_answer_and_the_page_goes_on(
    chromium, open_page, pictures, tmp_path
):
    server = ServerProcess(pictures, tmp_path / "judgements.db")
    open_page.expect(r"Failed to load resource: net::ERR_")  # from the browser itself
    page = open_page(server.url)
    join(page)
    for k in range(3):
        page.keyboard.press("s")
        wait_for_count(page, k + 1)
    pair = shown(page)
    server.end(signal.SIGKILL)
    page.keyboard.press("d")  # nobody is there to take it
    page.get_by_role("alert").filter(has_text="Not stored yet").wait_for()
    assert shown(page) == pair  # an answer that is not safe is not left behind
    server.start()
    wait_for_count(page, 4)
    assert page.locator("#trouble").is_hidden()
    rows = stored(server)
    assert [row[2] for row in rows] == [1, 1, 1, 0]
    assert rows[3][:2] == pair
    server.end()


def test_the_name_may_come_with_the_address(server, open_page):
    page = open_page(f"{server.url}?annotator=Bo")
    wait_for_count(page, 0)
    page.keyboard.press("s")
    wait_for_count(page, 1)
    page.reload()
    wait_for_count(page, 1)
    assert page.locator("#annotator").inner_text() == "Bo"
    assert [row[3] for row in stored(server)] == ["Bo"]


def test_a_bad_name_is_explained_where_it_was_typed(server, open_page):
    open_page.expect(r"Failed to load resource: .* 422")
    page = open_page(server.url)
    page.get_by_label("Your name or initials").fill("<script>")
    page.keyboard.press("Enter")
    page.get_by_text("Use letters, digits").wait_for()
    assert page.locator("#name").evaluate("e => e === document.activeElement")
    assert page.locator("#name").input_value() == "<script>"
    page.get_by_label("Your name or initials").fill("Ada")
    page.keyboard.press("Enter")
    wait_for_count(page, 0)


def test_a_link_does_not_change_under_whose_name_a_person_judges(server, open_page):
    ada = open_page(f"{server.url}?annotator=Ada")
    wait_for_count(ada, 0)
    linked = open_page(f"{server.url}?annotator=Bo", context=ada.context)
    linked.get_by_role("alert").filter(has_text="You are judging as Ada").wait_for()
    linked.keyboard.press("s")
    wait_for_count(linked, 1)
    ada.reload()
    wait_for_count(ada, 1)
    assert ada.locator("#annotator").inner_text() == "Ada"
    assert [row[3] for row in stored(server)] == ["Ada"]


def test_two_tabs_of_one_browser_judge_under_their_own_names(server, open_page):
    open_page.expect(r"Failed to load resource: .* 409")  # before a name is taken up again
    ada = open_page(f"{server.url}?annotator=Ada")
    wait_for_count(ada, 0)
    bo = open_page(f"{server.url}?annotator=Bo", context=ada.context)
    bo.get_by_role("button", name="Change name").click()
    join(bo, "Bo")
    wait_for_count(bo, 0)
    for k in range(2):
        for page in (ada, bo):
            page.keyboard.press("s")
            wait_for_count(page, k + 1)
    assert sorted(row[3] for row in stored(server)) == ["Ada", "Ada", "Bo", "Bo"]


def test_letter_keys_can_be_switched_off_and_typing_a_name_judges_nothing(server, open_page):
    page = open_page(server.url)
    join(page, "sdnu")
    page.get_by_label("Letter keys").uncheck()
    page.keyboard.press("s")
    page.reload()
    wait_for_count(page, 0)
    page.keyboard.press("d")
    page.get_by_role("button", name="Same", exact=True).click()
    wait_for_count(page, 1)
    page.get_by_label("Letter keys").check()
    page.keyboard.press("d")
    wait_for_count(page, 2)
    assert [row[2] for row in stored(server)] == [1, 0]


def test_the_space_bar_never_repeats_a_click_but_presses_what_has_the_focus(server, open_page):
    page = open_page(server.url)
    join(page)
    page.get_by_role("button", name="Same", exact=True).click()
    wait_for_count(page, 1)
    page.keyboard.press(" ")
    wait_for_count(page, 2)
    page.get_by_role("button", name="Different", exact=True).focus()
    page.keyboard.press(" ")
    wait_for_count(page, 3)
    assert [row[2] for row in stored(server)] == [1, None, 0]


def test_it_is_usable_by_tab_and_enter_alone_with_the_focus_in_sight(server, open_page):
    from playwright.sync_api import expect

    page = open_page(server.url)
    expect(page.get_by_label("Your name or initials")).to_be_focused()
    page.keyboard.type("Ada")
    page.keyboard.press("Enter")
    wait_for_count(page, 0)
    reached = []
    for _ in range(6):
        page.keyboard.press("Tab")
        focus = page.evaluate(
            "() => { const e = document.activeElement, s = getComputedStyle(e);"
            " return [e.id, s.outlineStyle, parseFloat(s.outlineWidth)]; }"
        )
        reached.append(focus[0])
        if focus[0] in ("same", "unsure", "different", "shortcuts"):
            assert focus[1] != "none"
            assert focus[2] >= 2
        if focus[0] == "different":
            break
    assert reached[-3:] == ["same", "unsure", "different"]
    page.keyboard.press("Enter")
    wait_for_count(page, 1)
    assert page.evaluate("document.activeElement.id") == "different"
    assert [row[2] for row in stored(server)] == [0]


def test_a_screen_reader_hears_what_happened(server, open_page):
    from playwright.sync_api import expect

    page = open_page(server.url)
    join(page)
    status = page.get_by_role("status")
    expect(status).to_have_text("Pair 1. Are these two of the same kind?")
    page.keyboard.press("n")
    expect(status).to_have_text("Stored: not sure. Pair 2. Are these two of the same kind?")
    page.keyboard.press("u")
    expect(status).to_have_text("Undone. Pair 1. Are these two of the same kind?")
    names = page.get_by_role("button").evaluate_all("all => all.map((e) => e.id)")
    assert {"same", "different", "unsure", "undo"} <= set(names)
    for name in ("Same", "Different", "Not sure", "Undo"):
        assert page.get_by_role("button", name=name, exact=True).count() == 1
    assert page.get_by_role("img", name="Left picture").count() == 1
    assert page.locator("html").get_attribute("lang") == "en"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_basics_hold_on_every_view(table_server, open_page, scheme, device):
    page = open_page(table_server.url, color_scheme=scheme, **device)

    def check():
        assert low_contrasts(page) == []
        assert unnamed_controls(page) == []
        assert not scrolls_sideways(page)

    check()
    join(page)
    check()
    for name in ("Same", "Different", "Not sure"):
        button = page.get_by_role("button", name=name, exact=True)
        button.hover()
        page.wait_for_timeout(200)
        check()
        box = button.bounding_box()
        assert box["height"] >= 44
        assert box["width"] >= 44
        assert box["y"] + box["height"] <= device["viewport"]["height"]
    for k in range(3):
        button = page.get_by_role("button", name="Different", exact=True)
        button.tap() if device is PHONE else button.click()
        wait_for_count(page, k + 1)
    page.get_by_role("heading", name="That was every pair").wait_for()
    check()
    page.get_by_role("button", name="Undo", exact=True).click()
    wait_for_count(page, 2)
    check()


def test_a_script_in_an_item_is_text(table_server, open_page):
    page = open_page(table_server.url)
    join(page)
    texts = []
    for k in range(3):
        texts += page.locator("dd").all_inner_texts()
        page.keyboard.press("d")
        wait_for_count(page, k + 1)
    assert SCRIPT in texts
    assert "one\ntwo" in texts
    assert page.locator("img[src=x]").count() == 0


def test_a_script_in_a_files_name_is_text(chromium, open_page, tmp_path):
    for name in (f"{SCRIPT}.png", "b.png"):
        (tmp_path / "items").mkdir(exist_ok=True)
        Image.new("RGB", (300, 200), (200, 120, 0)).save(tmp_path / "items" / name)
    with in_thread(tmp_path / "items", tmp_path / "judgements.db") as server:
        page = open_page(server.url)
        join(page)
        assert sorted(shown(page)) == [f"{SCRIPT}.png", "b.png"]
        assert page.locator("img").count() == 2
        page.close()


def test_a_broken_picture_is_said_and_can_be_passed(chromium, open_page, tmp_path):
    open_page.expect(r"Failed to load resource: .* 422")
    (tmp_path / "items").mkdir()
    for name in ("a.png", "b.png"):
        (tmp_path / "items" / name).write_bytes(b"broken")
    with in_thread(tmp_path / "items", tmp_path / "judgements.db") as server:
        page = open_page(server.url)
        join(page)
        page.get_by_text("The left picture cannot be shown").wait_for()
        page.keyboard.press("n")
        page.get_by_role("heading", name="That was every pair").wait_for()
        page.close()


def test_the_token_lets_in_and_leaves_the_address_bar(chromium, open_page, pictures, tmp_path):
    token = "0123456789abcdef0123"
    open_page.expect(r"Failed to load resource: .* 401")
    with in_thread(pictures, tmp_path / "judgements.db", token=token) as server:
        page = open_page(f"{server.url}?token={token}")
        join(page)
        assert page.url == server.url
        page.keyboard.press("s")
        wait_for_count(page, 1)
        page.reload()
        wait_for_count(page, 1)
        stranger = open_page(server.url)
        stranger.get_by_role("heading", name="own link").wait_for()
        page.close()
        stranger.close()


def test_people_can_change_their_name(server, open_page):
    page = open_page(f"{server.url}?annotator=Ada")
    wait_for_count(page, 0)
    page.get_by_role("button", name="Change name").click()
    join(page, "Bo")
    page.keyboard.press("s")
    wait_for_count(page, 1)
    assert page.url == server.url
    assert [row[3] for row in stored(server)] == ["Bo"]
