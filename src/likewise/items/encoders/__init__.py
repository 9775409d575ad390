"""Encoders: photographs and texts as they are in, features out, by one small protocol."""

from likewise.items.encoders.protocol import Batch, Encoder

__all__ = ["Batch", "Encoder"]
