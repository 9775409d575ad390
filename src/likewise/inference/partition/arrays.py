"""Types of the arrays that partitions are made of."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
# What people hand in: whole numbers of any width, floating-point numbers of any width.
IndexArray: TypeAlias = NDArray[np.integer[Any]]
Vectors: TypeAlias = NDArray[np.floating[Any]]
# Floating-point numbers that stay as wide as they came.
Float = TypeVar("Float", np.float32, np.float64)
