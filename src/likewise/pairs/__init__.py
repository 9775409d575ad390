"""Judgements: who was said to be the same as whom, by whom, and what they say of themselves."""

from likewise.pairs.coercion import as_pairs
from likewise.pairs.container import Pairs

__all__ = ["Pairs", "as_pairs"]
