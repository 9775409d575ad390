"""The browser and the windows in which the pages are looked at."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from typing import Any

PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 2,
}
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def find_chromium() -> str | None:
    """The browser's path: that of the environment, or Debian's."""
    return os.environ.get("LIKEWISE_CHROMIUM") or shutil.which("chromium")


def missing() -> str | None:
    """What the browser tests lack on this machine; None where they can run."""
    if find_spec("playwright") is None:
        return "browser tests skipped: they need Playwright (pip install playwright)"
    if find_chromium() is None:
        return "browser tests skipped: they need Chromium (apt-get install chromium)"
    return None
