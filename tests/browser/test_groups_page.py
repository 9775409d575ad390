"""The page about groups in a real browser: no error, found what is looked for, phone and dark."""

import numpy as np
import pytest
from accessibility import low_contrasts, scrolls_sideways, unnamed_controls
from devices import PHONE

import likewise as lw
from likewise.methods.groups import group
from likewise.report.groups import render_groups

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page_of_groups(tmp_path_factory):
    y = np.arange(40) // 4
    pairs = lw.Pairs.from_labels(y, 39, 0)
    people = np.where(np.arange(len(pairs)) % 2, "ann", "bob")
    ids = np.array([f"record {k:02}" for k in range(40)])
    given = lw.Pairs(pairs.left, pairs.right, pairs.same, people, n_items=40, item_ids=ids)
    return render_groups(group(given), tmp_path_factory.mktemp("groups") / "groups.html")


@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark"}, PHONE])
def test_it_opens(open_page, page_of_groups, options):
    page = open_page(page_of_groups.as_uri(), **options)
    assert "10 groups found in 40 items" in page.locator("h1").inner_text()
    assert not scrolls_sideways(page)
    assert low_contrasts(page) == []
    assert unnamed_controls(page) == []
    page.fill("#group-filter", "record 13")
    assert page.locator("#group-list > article:visible").count() == 1
    page.fill("#group-filter", "")
    assert page.locator("#group-list > article:visible").count() == 10
