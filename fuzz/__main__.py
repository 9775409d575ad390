"""``python -m fuzz``: spoilt files for FUZZ_SECONDS (60) altogether, shared by all readers.

Ends with status 1 and the file kept under fuzz/found/ if a reader did anything but read it or
refuse it in one sentence. FUZZ_SEED makes it the same as another time; FUZZ_TARGET names one.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import time
from pathlib import Path

from fuzz.run import Finding, fuzz_one, warm_up
from fuzz.targets import TARGETS

FOUND = Path(__file__).parent / "found"


def main() -> int:
    seconds = float(os.environ.get("FUZZ_SECONDS", "60"))
    seed = int(os.environ.get("FUZZ_SEED", str(time.time_ns() % 2**32)))
    chosen = [t for t in TARGETS if os.environ.get("FUZZ_TARGET", t.name) == t.name]
    print(f"{len(chosen)} readers, {seconds:g} s, FUZZ_SEED={seed}")
    failed = 0
    for target in chosen:
        rng = random.Random(f"{seed} {target.name}")
        warm_up(target)
        end = time.monotonic() + seconds / len(chosen)
        outcome = fuzz_one(target, rng, lambda end=end: time.monotonic() < end)
        print(f"{target.name:20s} {outcome.read:6d} read {outcome.refused:6d} refused")
        for finding in outcome.findings:
            failed += 1
            print(f"  {finding.error!r} in {_keep(target.name, target.file, finding)}")
    return 1 if failed else 0


def _keep(name: str, file: str, finding: Finding) -> Path:
    mark = hashlib.sha256(finding.content).hexdigest()[:12]
    path = FOUND / name / mark / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(finding.content)
    return path


if __name__ == "__main__":
    sys.exit(main())
