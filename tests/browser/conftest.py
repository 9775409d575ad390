"""A real browser for the tests in this folder: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import pytest
from console import unexpected
from devices import ARGUMENTS, DESKTOP, find_chromium, missing

# Without a browser, test_browser.py alone says so, in one line.
collect_ignore_glob = [] if missing() is None else ["test_*_page.py"]


@pytest.fixture(scope="session")
def chromium():
    """One browser for all tests; each opens contexts of its own."""
    if (reason := missing()) is not None:
        pytest.skip(reason)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=30_000)  # a shared machine is slow at times
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Opens pages; at the end none of them may have logged an error but those that were expected.

    The browser reports a refused or broken connection when it likes, perhaps after the last line
    of a test: so a test says what it expects (``open_page.expect``), and all is compared when the
    pages are closed.
    """
    contexts, problems, expected = [], [], []

    def watch(page):
        page.set_default_timeout(30_000)
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

    open_.expect = expected.append
    yield open_
    for context in contexts:
        context.close()
    assert unexpected(problems, expected) == []
