"""A partition of items from judgements, alone or with features; the number of groups unknown."""

from likewise.inference.partition.continued import continue_partition
from likewise.inference.partition.infer import (
    Partition,
    draw_partitions,
    find_labels,
    infer_partition,
)

__all__ = [
    "Partition",
    "continue_partition",
    "draw_partitions",
    "find_labels",
    "infer_partition",
]
