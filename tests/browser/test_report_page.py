"""The report in a real browser: it shows, sorts and filters; it meets the basics; it prints."""

from __future__ import annotations

import itertools

import pytest
from accessibility import low_contrasts, scrolls_sideways, unnamed_controls
from devices import PHONE

from likewise.report import render_report
from report_runs import HOSTILE, small_run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    run = small_run(folder / "run", name="Ada & Bob")
    return render_report(run.folder, folder / "report.html").as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", [{}, PHONE], ids=["desktop", "phone"])
def test_the_basics_hold(open_page, report, scheme, device):
    page = open_page(report, color_scheme=scheme, **device)
    page.locator("#suspect-more, #suspect-count").first.wait_for(state="attached")
    assert low_contrasts(page) == []
    assert unnamed_controls(page) == []
    assert not scrolls_sideways(page)


@pytest.mark.parametrize("device", [{}, PHONE], ids=["desktop", "phone"])
def test_large_numbers_have_room(open_page, report, device):
    """A hundred million judgements: on one line of their tile, and nothing scrolls sideways."""
    page = open_page(report, **device)
    page.evaluate(
        """for (const e of document.querySelectorAll(".tile b, #calibration td:last-child"))
             if (/^[\\d,]+$/.test(e.textContent)) e.textContent = "100,000,000";"""
    )
    tile = page.locator(".tile b", has_text="100,000,000").first
    lines = "(e) => e.getBoundingClientRect().height / parseFloat(getComputedStyle(e).lineHeight)"
    assert tile.evaluate(lines) < 1.5
    assert page.locator("#calibration td", has_text="100,000,000").count() > 0
    assert not scrolls_sideways(page)


def test_people_are_sorted_and_found(open_page, report):
    page = open_page(report)
    first = page.locator("#people-table tbody tr").first
    assert "Ada & Bob 0" in first.inner_text()
    page.get_by_role("button", name="reliability").click()
    assert "Ada & Bob 4" in first.inner_text()
    assert page.locator("th[aria-sort=ascending]").count() == 1
    page.get_by_label("Find a person").fill("bob 3")
    assert page.locator("#people-table tbody tr:visible").count() == 1
    assert page.locator("#people-table-count").inner_text() == "1 of 5"


def test_suspects_are_filtered_and_shown_in_full(open_page, report):
    page = open_page(report)
    shown = page.locator("#suspect-list > li:visible")
    assert shown.count() == 24
    assert shown.first.locator("img").count() == 2
    assert page.evaluate("[...document.images].every((i) => i.complete && i.naturalWidth > 0)")
    page.get_by_role("button", name="Show more").click()
    assert shown.count() == 72
    page.get_by_label("Answer", exact=True).select_option("different")
    assert set(shown.evaluate_all("rows => rows.map((r) => r.dataset.answer)")) <= {"different"}


def test_the_map_answers_to_pointing_and_hides_classes(open_page, report):
    page = open_page(report)
    painted = """() => {
      const c = document.getElementById("map-canvas");
      const copy = new OffscreenCanvas(c.width, c.height).getContext("2d");
      copy.drawImage(c, 0, 0);
      const pixels = copy.getImageData(0, 0, c.width, c.height).data;
      return pixels.filter((v, k) => k % 4 === 3 && v > 0).length;
    }"""
    before = page.evaluate(painted)
    assert before > 500
    canvas = page.locator("#map-canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    tip = page.locator("#tip")
    # Where the points lie is up to the fit: look along several lines.
    for down, along in itertools.product(range(1, 10), range(1, 40)):
        place = box["x"] + box["width"] * along / 40, box["y"] + box["height"] * down / 10
        page.mouse.move(*place)
        if tip.is_visible():
            break
    assert "item " in tip.inner_text()
    assert "truly" in tip.inner_text()
    legend = page.locator("#map-legend button")
    assert legend.count() == 3
    for k in range(3):
        legend.nth(k).click()
    page.wait_for_timeout(100)
    assert page.evaluate(painted) == 0
    page.get_by_label("Colour by").select_option("sure")
    page.wait_for_timeout(100)
    assert page.evaluate(painted) > 500


def test_nothing_that_people_type_runs(open_page, tmp_path):
    run = small_run(
        tmp_path / "run",
        name=HOSTILE,
        class_names=[HOSTILE + str(k) for k in range(3)],
        ids=[HOSTILE + str(k) for k in range(150)],
        features=True,
    )
    page = open_page(render_report(run.folder, tmp_path / "report.html").as_uri())
    assert page.locator("#map-legend button").first.inner_text().strip() == HOSTILE + "0"
    assert page.locator("img").count() == 0


def test_it_prints_in_light_with_everything_open(open_page, report):
    page = open_page(report, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()
    assert low_contrasts(page) == []
