"""Takes the pictures of the labelling page that the documentation shows.

python tests/browser/label_screenshots.py docs/images
"""

from __future__ import annotations

import math
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from devices import ARGUMENTS, DESKTOP, PHONE, find_chromium
from label_servers import in_thread
from PIL import Image, ImageDraw
from playwright.sync_api import sync_playwright

from likewise.label.hiring import Hiring

PETALS = {5: (214, 96, 77), 8: (244, 190, 82), 13: (120, 122, 190)}
PRODUCTS = """id,title,description,price
1,"Walnut dining table, 180 cm","Solid walnut with an oiled finish. Seats eight.",€ 890
2,"Table à manger en noyer 180","Noyer massif huilé, pour huit personnes.",899 EUR
3,"Desk lamp, brass","Adjustable arm, 40 cm high, E14 bulb.",€ 59
"""


def draw_flower(path: Path, petals: int, rng: random.Random) -> None:
    """A flower of one of three kinds, each time a little different."""
    size, scale = 640, 3
    image = Image.new("RGB", (size * scale, size * scale), (226 + rng.randrange(12), 232, 218))
    draw = ImageDraw.Draw(image)
    middle = [size * scale * (0.5 + rng.uniform(-0.04, 0.04)) for _ in range(2)]
    length = size * scale * rng.uniform(0.28, 0.38)
    width, turn = length * 2.2 / petals**0.75, rng.uniform(0, 2 * math.pi)
    colour = tuple(min(255, max(0, c + rng.randrange(-18, 19))) for c in PETALS[petals])
    for k in range(petals):
        angle = turn + 2 * math.pi * k / petals
        for step in range(40):
            t = step / 39
            x = middle[0] + math.cos(angle) * length * t
            y = middle[1] + math.sin(angle) * length * t
            r = width / 2 * math.sin(math.pi * (0.12 + 0.83 * t)) ** 0.8
            draw.ellipse((x - r, y - r, x + r, y + r), fill=colour)
    r = length * 0.22
    draw.ellipse((middle[0] - r, middle[1] - r, middle[0] + r, middle[1] + r), fill=(92, 70, 42))
    image.resize((size, size), Image.Resampling.LANCZOS).save(path, quality=92)


def judge(page: Any, url: str, answers: str) -> None:
    """Come as Ada and give some answers by key."""
    page.goto(f"{url}?annotator=Ada")
    for k, key in enumerate(answers):
        page.locator("#progress b", has_text=f"{k}").wait_for()
        page.keyboard.press(key)
    page.locator("#progress b", has_text=f"{len(answers)}").wait_for()
    page.wait_for_load_state("networkidle")
    page.mouse.move(5, 5)
    page.wait_for_timeout(300)


def sort_some(page: Any, url: str, kinds: dict[str, int]) -> None:
    """Come as Ada and put some flowers into piles of their kind, then choose two more."""
    page.goto(f"{url}?annotator=Ada")
    page.locator(".card").nth(34).wait_for()
    page.wait_for_load_state("networkidle")
    for name in page.locator("#tray-cards .name").all_inner_texts()[:14]:
        card = page.locator(".card", has_text=name)
        card.focus()
        page.keyboard.press(str(kinds[name] + 1))
    page.wait_for_function(
        "() => document.querySelectorAll('.pile .card:not(.waiting)').length === 14"
    )
    page.evaluate("document.activeElement.blur()")
    left = page.locator("#tray-cards .name").all_inner_texts()
    for name in [name for name in left if kinds[name] == 0][:2]:
        page.locator(".card", has_text=name).click()
    page.evaluate("for (const name of document.querySelectorAll('.card .name')) name.remove()")
    page.mouse.move(5, 5)
    page.wait_for_timeout(400)


def sorting_views(browser: Any, folder: Path, out: Path, kinds: dict[str, int]) -> None:
    """The sorting page on a desktop, on a phone and in the dark."""
    views = (
        ("desktop", DESKTOP, "light"),
        ("phone", PHONE, "dark"),
        ("desktop-dark", DESKTOP, "dark"),
    )
    for view, device, scheme in views:
        with in_thread(folder / "flowers", folder / f"sort-{view}.db", sort=35) as server:
            page = browser.new_context(**device, color_scheme=scheme).new_page()
            sort_some(page, server.url, kinds)
            page.screenshot(path=out / f"sort-{view}.png")
            page.context.close()


def hiring_view(browser: Any, folder: Path, out: Path) -> None:
    """What a hired person sees at the end."""
    hire = Hiring(per_person=2, code="C1ABCDEF", finish="https://app.prolific.com/")
    with in_thread(folder / "flowers", folder / "hire.db", hire=hire) as server:
        page = browser.new_context(**{**DESKTOP, "viewport": {"width": 900, "height": 520}})
        page = page.new_page()
        page.goto(f"{server.url}?PROLIFIC_PID=5f3a0c91d2e84b7760f1a2b3")
        for count in ("0", "1"):
            page.locator("#progress b", has_text=count).wait_for()
            page.keyboard.press("s")
        page.locator("#code").wait_for()
        page.wait_for_timeout(300)
        page.screenshot(path=out / "hire-end.png")
        page.context.close()


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder, rng = Path(name), random.Random(3)
        (folder / "flowers").mkdir()
        kinds: dict[str, int] = {}
        for k in range(45):
            kind = rng.randrange(len(PETALS))
            kinds[f"{k:02d}.jpg"] = kind
            draw_flower(folder / "flowers" / f"{k:02d}.jpg", list(PETALS)[kind], rng)
        (folder / "products.csv").write_text(PRODUCTS)
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        views = (
            ("desktop", DESKTOP, "light", "flowers", "sddnsd"),
            ("phone", PHONE, "dark", "flowers", "sddnsd"),
            ("desktop-dark", DESKTOP, "dark", "flowers", "sddnsd"),
            ("table", DESKTOP, "light", "products.csv", "d"),
        )
        for view, device, scheme, items, answers in views:
            with in_thread(folder / items, folder / f"{view}.db", show_names=False) as server:
                page = browser.new_context(**device, color_scheme=scheme).new_page()
                if view == "phone":
                    page.goto(server.url)
                    page.get_by_label("Your name or initials").fill("Ada")
                    page.screenshot(path=out / "label-welcome.png")
                judge(page, server.url, answers)
                page.screenshot(path=out / f"label-{view}.png")
                page.context.close()
        sorting_views(browser, folder, out, kinds)
        hiring_view(browser, folder, out)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
