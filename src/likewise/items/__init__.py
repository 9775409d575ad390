"""Items as people have them: arrays, tables, folders and streams, read once for all commands."""

from likewise.items.arrays import Items, Selection, check_items, network_shape

__all__ = ["Items", "Selection", "check_items", "network_shape"]
