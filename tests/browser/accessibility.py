"""The basics that every page must meet, asked of the page itself."""

from __future__ import annotations

from typing import Any

# Text elements whose contrast with what is painted behind them is below a bound.
_CONTRAST = """
(bound) => {
  const parse = (text) => {
    const part = text.match(/[\\d.]+/g).map(Number);
    return [part[0], part[1], part[2], part.length > 3 ? part[3] : 1];
  };
  const over = (top, under) => {
    const mix = (k) => top[k] * top[3] + under[k] * (1 - top[3]);
    return [mix(0), mix(1), mix(2), 1];
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((c) => {
      const v = c / 255;
      return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      layers.push(parse(getComputedStyle(e).backgroundColor));
    }
    const canvas = matchMedia("(prefers-color-scheme: dark)").matches
      ? [18, 18, 18, 1] : [255, 255, 255, 1];
    return layers.reverse().reduce((under, top) => over(top, under), canvas);
  };
  const failures = [];
  for (const element of document.body.querySelectorAll("*")) {
    const text = [...element.childNodes].some(
      (node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
    if (!text || !element.checkVisibility({ opacityProperty: true })) continue;
    const box = element.getBoundingClientRect();
    if (box.width <= 1 || box.height <= 1) continue;
    const under = background(element);
    const ink = over(parse(getComputedStyle(element).color), under);
    const [low, high] = [luminance(ink), luminance(under)].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < bound) failures.push([element.textContent.trim().slice(0, 40), ratio]);
  }
  return failures;
}
"""

_UNNAMED = """
() => [...document.querySelectorAll("button, input, select, textarea, a, [role=button], img")]
  .filter((e) => e.checkVisibility())
  .filter((e) => {
    const label = e.labels && e.labels.length ? e.labels[0].textContent : "";
    const name = e.getAttribute("aria-label") || e.getAttribute("alt") || e.title
      || label || (e.tagName === "INPUT" ? "" : e.textContent);
    return !name.trim();
  })
  .map((e) => e.outerHTML.slice(0, 80))
"""


def low_contrasts(page: Any, bound: float = 4.5) -> list[Any]:
    """[text, ratio] of every visible text whose contrast is below the bound."""
    return page.evaluate(_CONTRAST, bound)


def unnamed_controls(page: Any) -> list[str]:
    """The beginning of every control or picture without a name."""
    return page.evaluate(_UNNAMED)


def scrolls_sideways(page: Any) -> bool:
    """Whether the page is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
