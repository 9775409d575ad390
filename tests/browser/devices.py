"""The browser and the windows in which the pages are looked at."""

from __future__ import annotations

import os
import shutil
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
