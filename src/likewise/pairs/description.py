"""What judgements say about themselves, before any model: balance, contradictions, triangles."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.pairs.agreement import Agreement, agreement
from likewise.pairs.container import Pairs
from likewise.pairs.counting import count_from_judgements
from likewise.pairs.figures import (
    MIN_TRIANGLES,
    Counts,
    Noise,
    describe_counts,
    describe_noise,
    spread,
)
from likewise.pairs.graph import JudgementGraph
from likewise.pairs.triangles import PairIndex, Triangles, complete_triangles, count_triangles

# Beyond this many judgements the classes are not counted: it would take longer than all else.
MAX_TO_COUNT = 1_000_000


@dataclass(frozen=True)
class Description:
    """What a set of judgements looks like; its repr is a readable table."""

    items: int
    """Items there are."""
    items_judged: int
    """Items with at least one judgement."""
    judgements: int
    """Judgements that count."""
    same: int
    """Those that say "same"."""
    different: int
    """Those that say "different"."""
    dropped: int
    """Rows without an answer, which were left out."""
    weightless: int
    """Judgements of weight 0, which are left out of all else here."""
    shortened: int
    """Ids of the file that stand for an item whose own id is longer or shorter."""
    unknown: int
    """Judgements that name an item which is not there, and were left out."""
    annotators: int
    """People, 0 where judgements do not say who gave them."""
    judgements_per_item: tuple[float, float, float]
    """Least, median and most."""
    repeats: int
    """Judgements about a pair that was judged before."""
    contradictions: int
    """Pairs that were called both "same" and "different"."""
    agreement: Agreement | None
    """Between people, about pairs that several of them judged; None where there are none."""
    components: int
    """Groups of two or more items linked by "same" judgements."""
    largest_components: list[int]
    """Their sizes, at most ten."""
    unlinked: int
    """Items without a "same" judgement."""
    inside: int
    """"different" judgements between two items of one group: each contradicts a chain of "same"."""
    loops: int
    """Judgements that could have contradicted: both items already linked by others."""
    triangles: Triangles
    """What triples of items say."""
    noise: Noise
    """What all this suggests."""

    @property
    def verdict(self) -> str:
        """One sentence: what the judgements suggest."""
        return _verdict(self)

    def to_dict(self) -> dict[str, object]:
        """Everything as JSON can hold it."""
        return asdict(self) | {
            "judgements_per_item": list(self.judgements_per_item),
            "triangles": asdict(self.triangles) | {"transitivity": self.triangles.transitivity},
            "verdict": self.verdict,
        }

    def __repr__(self) -> str:
        rows = _rows(self)
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def describe(
    pairs: Pairs, n_classes: int | None = None, random_state: int | np.random.Generator | None = 0
) -> Description:
    """Describe judgements. ``n_classes``, where it is known, sharpens the guess at the noise.

    Otherwise it is counted from the judgements, if they are not too many. On large sets triangles
    are sampled (seeded by ``random_state``); all other counts are exact.
    """
    if pairs.is_complete:
        return _describe_complete(pairs)
    graph = pairs.graph
    index = PairIndex(graph)
    distinct, contradictions = index.count()
    rng = np.random.default_rng(random_state)
    triangles = count_triangles(graph, rng, index=index)
    agreed = agreement(pairs, index)
    del index
    return Description(
        **_counts_of(pairs, graph.sizes, len(graph), graph.n_same),
        items_judged=int(np.count_nonzero(graph.degree)),
        judgements_per_item=spread(graph.degree),
        repeats=len(graph) - distinct,
        contradictions=contradictions,
        agreement=agreed,
        inside=graph.contradictions,
        loops=graph.redundant + graph.contradictions,
        triangles=triangles,
        noise=_noise(pairs, graph, triangles, n_classes, rng),
    )


def _describe_complete(pairs: Pairs) -> Description:
    """From the partition alone: a list of all pairs could be billions long."""
    ids = pairs.components()
    sizes = np.bincount(ids)
    others = float(pairs.n_items - 1)
    loops = pairs.n_same - (pairs.n_items - len(sizes))
    return Description(
        **_counts_of(pairs, sizes, len(pairs), pairs.n_same),
        items_judged=pairs.n_items,
        judgements_per_item=(others, others, others),
        repeats=0,
        contradictions=0,
        agreement=None,
        inside=0,
        loops=loops,
        triangles=complete_triangles(ids),
        noise=Noise("exact", n_classes=len(sizes)) if loops else Noise("unknown"),
    )


def _counts_of(pairs: Pairs, sizes: NDArray[np.int64], judgements: int, same: int) -> Counts:
    return describe_counts(
        sizes=sizes,
        judgements=judgements,
        same=same,
        dropped=pairs.dropped,
        weightless=len(pairs) - judgements,
        annotators=0 if pairs.annotator_names is None else len(pairs.annotator_names),
        shortened=pairs.shortened,
        unknown=pairs.unknown,
    )


def _noise(
    pairs: Pairs,
    graph: JudgementGraph,
    triangles: Triangles,
    n_classes: int | None,
    rng: np.random.Generator,
) -> Noise:
    counted = n_classes is None and graph.contradictions > 0 and len(graph) <= MAX_TO_COUNT
    if counted and triangles.closed >= MIN_TRIANGLES:
        n_classes, _ = count_from_judgements(pairs, rng)
    return describe_noise(
        contradictions=graph.contradictions,
        redundant=graph.redundant,
        p_same=graph.n_same / max(len(graph), 1),
        triangles=triangles,
        n_classes=n_classes,
        counted=counted,
    )


def _verdict(d: Description) -> str:
    if d.judgements == 0:
        return "There is no judgement."
    if d.same == 0 or d.different == 0:
        only = "same" if d.same else "different"
        return f'Every answer is "{only}": nothing can be learned from one kind of answer.'
    if d.noise.kind == "unknown":
        return "Too sparse to tell the noise: no judgement is about items that others already link."
    if d.noise.kind == "exact":
        return (
            f'Consistent: none of {d.loops:,} judgements that could contradict a chain of "same" '
            "does, as if every item were taken for one class by everybody."
        )
    text = (
        f'Inconsistent: {d.inside:,} of {d.different:,} "different" answers contradict a chain of '
        '"same", so single judgements were flipped'
    )
    if d.noise.miss is None or d.noise.false_alarm is None:
        return f"{text}."
    what = "as counted from the judgements" if d.noise.counted else "of equal size"
    return (
        f'{text}: about {d.noise.miss:.0%} of "same" pairs and {d.noise.false_alarm:.0%} of '
        f'"different" ones, taking {d.noise.n_classes} classes {what}.'
    )


def _rows(d: Description) -> list[tuple[str, str]]:
    total = max(d.judgements, 1)
    least, median, most = d.judgements_per_item
    sizes = ", ".join(f"{size:,}" for size in d.largest_components)
    kind = "triangles sampled" if d.triangles.sampled else "triangles"
    third = d.triangles.transitivity
    several = d.triangles.two_same + d.triangles.three_same
    return [
        ("items", f"{d.items:,} ({d.items_judged:,} judged)"),
        ("judgements", f"{d.judgements:,}" + _left_out(d)),
        ("same", f"{d.same:,} ({d.same / total:.1%})"),
        ("different", f"{d.different:,} ({d.different / total:.1%})"),
        ("annotators", f"{d.annotators:,}" if d.annotators else "not given"),
        ("an item has", f"{least:g} to {most:g} judgements, median {median:g}"),
        ("repeats", f"{d.repeats:,}, pairs with both answers {d.contradictions:,}"),
        *_agreement_rows(d.agreement),
        ("linked groups", f"{d.components:,}" + (f", largest {sizes}" if sizes else "")),
        ("not linked", f"{d.unlinked:,} items"),
        ('"different" inside', f"{d.inside:,} of {d.loops:,} judgements that could contradict"),
        (kind, f"{d.triangles.closed:,.0f}, with two same sides {several:,.0f}"),
        ("third side same", "unknown" if third is None else f"{third:.1%}"),
        ("verdict", d.verdict),
    ]


def _agreement_rows(agreed: Agreement | None) -> list[tuple[str, str]]:
    if agreed is None:
        return []
    alpha = "unknown" if agreed.alpha is None else f"{agreed.alpha:.2f}"
    value = f"alpha {alpha} (Krippendorff), over {agreed.pairs:,} pairs that several people judged"
    return [("agreement", value)]


def _left_out(d: Description) -> str:
    dropped = f", {d.dropped:,} dropped" if d.dropped else ""
    weightless = f", {d.weightless:,} of weight 0 left out" if d.weightless else ""
    shortened = f", {d.shortened:,} ids matched by a shorter form" if d.shortened else ""
    unknown = f", {d.unknown:,} of items that are not there left out" if d.unknown else ""
    return dropped + weightless + shortened + unknown
