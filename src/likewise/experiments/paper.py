"""The numbers that the paper reports (Tables 1 to 5, section 5.3), for printing beside ours.

Accuracies are fractions: mean and standard deviation over the paper's five trials, the deviation
None in Tables 4 and 5, which give one figure each.
"""

from __future__ import annotations

from dataclasses import dataclass

NOISE_RATES = (0.2, 0.3, 0.4, 0.5, 0.6)


@dataclass(frozen=True)
class Reported:
    """A figure of the paper: mean and deviation over its trials."""

    mean: float  # accuracy in percent
    deviation: float | None = None  # over trials, where it was reported


def _row(*percent: tuple[float, float]) -> dict[float | None, Reported]:
    return {
        rate: Reported(mean / 100, deviation / 100)
        for rate, (mean, deviation) in zip(NOISE_RATES, percent, strict=True)
    }


def _single(percent: float) -> dict[float | None, Reported]:
    return {None: Reported(percent / 100)}


# (table, method) -> noise rate (None: the data set's own noise) -> accuracy
ACCURACY: dict[tuple[str, str], dict[float | None, Reported]] = {
    ("table1", "kcl"): _row(
        (99.20, 0.02), (99.06, 0.05), (95.97, 3.65), (90.61, 0.78), (85.20, 4.69)
    ),
    ("table1", "mcl"): _row(
        (98.51, 0.10), (98.28, 0.06), (97.92, 0.24), (97.54, 0.09), (96.94, 0.20)
    ),
    ("table1", "mns_estimated"): _row(
        (98.56, 0.07), (98.29, 0.16), (98.01, 0.15), (97.61, 0.41), (97.26, 0.23)
    ),
    ("table1", "mns_true"): _row(
        (98.75, 0.07), (98.69, 0.11), (98.32, 0.09), (98.18, 0.13), (94.48, 4.49)
    ),
    ("table2", "kcl"): _row(
        (19.14, 1.27), (17.67, 2.15), (18.58, 1.28), (17.96, 3.41), (15.14, 1.67)
    ),
    ("table2", "mcl"): _row(
        (75.58, 3.64), (68.90, 0.32), (63.38, 1.32), (61.67, 0.98), (44.55, 2.96)
    ),
    ("table2", "mns_estimated"): _row(
        (78.83, 1.81), (76.80, 1.33), (70.35, 1.21), (68.87, 0.97), (50.99, 2.88)
    ),
    ("table2", "mns_true"): _row(
        (82.42, 0.37), (77.42, 0.46), (70.71, 0.33), (69.28, 0.41), (40.24, 0.61)
    ),
    ("table3", "kcl"): _row(
        (13.32, 1.57), (7.982, 0.57), (5.406, 0.15), (3.738, 0.45), (3.208, 0.55)
    ),
    ("table3", "mcl"): _row(
        (48.38, 0.38), (40.48, 0.79), (32.75, 0.77), (26.48, 0.36), (21.94, 0.19)
    ),
    ("table3", "mns_estimated"): _row(
        (48.78, 0.74), (43.90, 0.39), (40.26, 0.93), (35.14, 0.69), (31.40, 0.26)
    ),
    ("table3", "mns_true"): _row(
        (51.95, 0.44), (48.97, 0.25), (46.45, 1.00), (42.01, 0.78), (36.50, 0.45)
    ),
    ("table4", "kcl"): _single(9.49),
    ("table4", "mcl"): _single(66.20),
    ("table4", "mns_estimated"): _single(67.50),
    ("table5", "kcl"): _single(30.17),
    ("table5", "mcl"): _single(48.08),
    ("table5", "mns_estimated"): _single(71.18),
}

# (table, noise rate) -> |T - T_hat|_1 / |T|_1, section 5.3
TRANSITION_ERROR: dict[tuple[str, float | None], float] = {
    ("table1", 0.6): 0.0668,
    ("table2", 0.6): 0.1144,
    ("table3", 0.6): 0.1055,
}


def reported(table: str, method: str, noise: float | None) -> Reported | None:
    """What the paper reports for a cell, or None where it has no such cell."""
    return ACCURACY.get((_paper_table(table), method), {}).get(noise)


def reported_transition_error(table: str, method: str, noise: float | None) -> float | None:
    """The paper's error of its estimated T, which it gives at noise 0.6 only."""
    if method not in ("mns_estimated", "joint"):
        return None
    return TRANSITION_ERROR.get((_paper_table(table), noise))


def _paper_table(table: str) -> str:
    """The table to compare with: variants, and the rows as the paper wrote them, have the same."""
    return table.removesuffix("_pretrained").replace("paper", "table")
