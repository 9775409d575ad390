"""Colours: of classes, and of heat maps whose numbers stay readable on every shade."""

from __future__ import annotations

import colorsys

RGB = tuple[float, float, float]

# Told apart on light and on dark ground; more classes go round the colour circle.
_CLASSES = (
    "#2f8578", "#d98e32", "#6377cf", "#c9536f", "#6f9a3d", "#9460b0",
    "#3d93c4", "#ab7440", "#d1689f", "#868f2f", "#4ea9a9", "#8a6f64",
)  # fmt: skip
_GOLDEN = 0.6180339887
LEVELS = 20
_INKS = ("#000000", "#ffffff")  # one of the two has a contrast of 4.5 on any ground
_HEAT = {"light": ("#ffffff", "#14564f"), "dark": ("#1e2425", "#8fe0d2")}


def class_colours(n_classes: int) -> list[str]:
    """A colour for each class."""
    return [_CLASSES[k] if k < len(_CLASSES) else _on_circle(k) for k in range(n_classes)]


def heat_level(share: float) -> int:
    """The level, 0 to LEVELS, of a share between 0 and 1; only a true zero is level 0."""
    if share <= 0:
        return 0
    return max(1, min(LEVELS, round(share * LEVELS)))


def heat_rules(scheme: str) -> list[tuple[int, str, str]]:
    """(level, ground, ink) of each level in the "light" or "dark" scheme."""
    cold, hot = (parse(colour) for colour in _HEAT[scheme])
    rules = []
    for level in range(LEVELS + 1):
        ground = mix(cold, hot, (level / LEVELS) ** 0.8)
        ink = max(_INKS, key=lambda colour: contrast(parse(colour), ground))
        rules.append((level, to_hex(ground), ink))
    return rules


def parse(colour: str) -> RGB:
    """#rrggbb as numbers from 0 to 1."""
    red, green, blue = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return red, green, blue


def to_hex(colour: RGB) -> str:
    return "#" + "".join(f"{round(part * 255):02x}" for part in colour)


def mix(one: RGB, other: RGB, share: float) -> RGB:
    """``one`` with ``share`` of it replaced by ``other``."""
    red, green, blue = (a + (b - a) * share for a, b in zip(one, other))
    return red, green, blue


def contrast(one: RGB, other: RGB) -> float:
    """Contrast ratio as WCAG defines it, 1 to 21."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: RGB) -> float:
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _on_circle(k: int) -> str:
    hue = (k * _GOLDEN) % 1.0
    lightness, saturation = ((0.48, 0.50), (0.58, 0.42), (0.40, 0.40))[k % 3]
    return to_hex(colorsys.hls_to_rgb(hue, lightness, saturation))
