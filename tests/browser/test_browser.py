"""Whether there is a browser at all; where there is none, the other tests here are left out."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser


def test_there_is_a_browser(chromium):
    assert chromium.version
