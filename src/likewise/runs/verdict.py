"""What a comparison with baselines and other seeds says, in sentences; needs no PyTorch."""

from __future__ import annotations

from likewise.io.json import Record


def in_words(found: Record | None) -> list[str]:
    """A comparison, as a run keeps it, in sentences; none where none was made."""
    if not found:
        return []
    shares = ", ".join(f"{name} {value:.0%}" for name, value in found["agreement"].items())
    told = [
        f"Of {found['judgements']:,} judgements held out, these foretell so many, “same” and "
        f"“different” counting alike: {shares}."
    ]
    if found.get("changed") is None:
        told.append(
            "Whether another seed finds the same classes was not tried; --stability tries it, with "
            "three fits more."
        )
    else:
        changed, items = found["changed"], max(found["items"], 1)
        told.append(
            f"Over {found['seeds']} seeds, {changed:,} of {items:,} items ({changed / items:.1%}) "
            "change class."
        )
    return told
