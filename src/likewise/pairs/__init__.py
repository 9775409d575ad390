"""Judgements: who was said to be the same as whom, by whom, and what they say of themselves."""

from likewise.pairs.container import Pairs, as_pairs

__all__ = ["Pairs", "as_pairs"]
