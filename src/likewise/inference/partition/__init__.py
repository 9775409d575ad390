"""A partition of items from judgements alone: no features, the number of groups unknown."""

from likewise.inference.partition.infer import Partition, infer_partition

__all__ = ["Partition", "infer_partition"]
