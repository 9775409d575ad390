"""Noise models: transition matrices of whole items, channels of single answers, annotators."""

from likewise.noise.matrices import (
    check_transition,
    corrupt_labels,
    flip_judgements,
    pair_flip,
    symmetric,
)

__all__ = ["check_transition", "corrupt_labels", "flip_judgements", "pair_flip", "symmetric"]
