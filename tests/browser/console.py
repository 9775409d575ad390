"""What a page may log, and what it may not."""

from __future__ import annotations

import re
from collections.abc import Sequence


def unexpected(problems: Sequence[str], expected: Sequence[str]) -> list[str]:
    """The problems that nobody said would come, whenever each was reported."""
    return [text for text in problems if not any(re.search(e, text) for e in expected)]
