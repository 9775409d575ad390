"""scikit-learn's handwritten digits: small, and on every machine that has scikit-learn."""

from __future__ import annotations

import numpy as np

from likewise.datasets.dataset import Dataset


def load_digits(random_state: int = 0) -> Dataset:
    """1,797 digits as (N, 64) float32 features in 0..1, split 80/20, every class in proportion."""
    from sklearn import datasets as bundled
    from sklearn.model_selection import train_test_split

    x, y = bundled.load_digits(return_X_y=True)
    scaled = (x / 16.0).astype(np.float32)
    train_x, test_x, train_y, test_y = train_test_split(
        scaled, y.astype(np.int64), test_size=0.2, random_state=random_state, stratify=y
    )
    return Dataset("digits", train_x, train_y, test_x, test_y, tuple(map(str, range(10))))
