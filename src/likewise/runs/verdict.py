"""What a run says of itself, for its page, its card and the terminal alike; needs no PyTorch."""

from __future__ import annotations

from likewise.io.json import Record

OWN = "this fit"  # among the procedures, where it was made anew without what they are asked


def source_of_transition(config: Record) -> str:
    """Where T comes from: given by the person, as numbers, or estimated."""
    parameters = config.get("parameters")
    asked = parameters.get("transition") if isinstance(parameters, dict) else None
    return "as estimated" if asked is None or isinstance(asked, str) else "as given"


def in_words(found: Record | None) -> list[str]:
    """A comparison, as a run keeps it, in sentences; none where none was made."""
    if not found:
        return []
    shares = ", ".join(f"{name} {value:.0%}" for name, value in found["agreement"].items())
    has_own = OWN in found["agreement"]
    who = "simple procedures" + (" and this fit, made anew without them," if has_own else "")
    told = [
        f"Of {found['judgements']:,} judgements that were kept from them, {who} foretell so many, "
        f"“same” and “different” counting alike: {shares}."
    ]
    if not has_own:
        told.append(
            "How many this fit foretells was not computed, since it learned from them too; "
            "--stability computes it, by a fit without them."
        )
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
