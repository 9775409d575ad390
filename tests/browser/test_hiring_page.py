"""Hired people in a real browser: named by the address, a code and a link at the end."""

from __future__ import annotations

import pytest
from accessibility import low_contrasts, scrolls_sideways, unnamed_controls
from devices import PHONE
from label_servers import in_thread

from likewise.label import read_judgements
from likewise.label.hiring import Hiring

pytestmark = pytest.mark.browser


@pytest.fixture
def server(chromium, tmp_path):
    table = tmp_path / "items.csv"
    table.write_text("id,title\n" + "".join(f"{k},text {k}\n" for k in range(9)))
    gold = tmp_path / "gold.csv"
    gold.write_text("left,right,same\n0,1,1\n2,3,0\n")
    finish = "https://platform.example/end?cc={code}"
    hire = Hiring(per_person=4, gold=gold, gold_every=2, finish=finish)
    with in_thread(table, tmp_path / "judgements.db", hire=hire) as server:
        yield server


def test_from_the_platforms_address_to_the_completion_code(server, open_page):
    from playwright.sync_api import expect

    page = open_page(f"{server.url}?PROLIFIC_PID=5f3a0c91d2&STUDY_ID=s", **PHONE)
    expect(page.locator("#annotator")).to_have_text("5f3a0c91d2")
    for k in range(4):
        expect(page.locator("#progress b")).to_have_text(str(k))
        assert page.locator("#code").is_hidden()
        page.get_by_role("button", name="Same", exact=True).tap()
    page.get_by_role("heading", name="Thank you, that was all").wait_for()
    code = page.locator("#code").inner_text()
    assert len(code) == 12
    link = page.get_by_role("link", name="Finish")
    assert link.get_attribute("href") == f"https://platform.example/end?cc={code}"
    assert low_contrasts(page) == []
    assert unnamed_controls(page) == []
    assert not scrolls_sideways(page)
    page.reload()
    expect(page.locator("#code")).to_have_text(code)
    assert read_judgements(server.database)["annotator"] == ["5f3a0c91d2"] * 2
    assert len(read_judgements(server.database, gold=True)["same"]) == 4


def test_a_second_address_is_asked_about_and_not_taken(server, open_page):
    from playwright.sync_api import expect

    ada = open_page(f"{server.url}?workerId=ADA")
    expect(ada.locator("#annotator")).to_have_text("ADA")
    other = open_page(f"{server.url}?PROLIFIC_PID=BO", context=ada.context)
    other.get_by_role("alert").filter(
        has_text="You are judging as ADA; the link says BO"
    ).wait_for()
    other.keyboard.press("d")
    expect(other.locator("#progress b")).to_have_text("1")
    assert set(read_judgements(server.database, gold=True)["annotator"]) == {"ADA"}
