"""Where benchmarks keep what they measured: a JSON list of runs, the newest last."""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Any


def append(path: Path, figures: dict[str, Any], load: float | None = None) -> None:
    """Add a run with its date, machine and load (now, unless it was taken before), or nothing."""
    about = {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0] if load is None else load, 2),
        "python": platform.python_version(),
    }
    earlier = json.loads(path.read_text()) if path.exists() else []
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps([*earlier, about | figures], indent=1) + "\n")
    partial.replace(path)
