"""A real browser for the tests in this folder: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import pytest
from devices import ARGUMENTS, DESKTOP, find_chromium


@pytest.fixture(scope="session")
def chromium():
    """One browser for all tests; each opens contexts of its own."""
    api = pytest.importorskip("playwright.sync_api", reason="browser tests need Playwright")
    path = find_chromium()
    if path is None:
        pytest.skip("browser tests need Chromium (apt-get install chromium)")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Opens pages; at the end none of them may have logged an error."""
    contexts, problems = [], []

    def watch(page):
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: (problems.append("a dialog"), dialog.dismiss()))
        page.on(
            "console",
            lambda message: (
                problems.append(message.text) if message.type in ("error", "warning") else None
            ),
        )

    def open_(url, *, context=None, **options):
        if context is None:
            context = chromium.new_context(**{**DESKTOP, **options})
            contexts.append(context)
        page = context.new_page()
        watch(page)
        page.goto(url)
        return page

    open_.problems = problems
    yield open_
    for context in contexts:
        context.close()
    assert problems == []
