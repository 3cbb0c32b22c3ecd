"""Screenshots of the HTML report, and a figure of several maps: reports/report.

Run from a checkout, with a browser (tools/browser.py says which)::

    python -m tools.report_screenshots

shows the complete map of dtr-resnet32 at three zoom levels, in both themes and as wide as a phone;
several maps beside each other; and a counterexample.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from monofuzz import map_budgets
from monofuzz.counterexample import load as load_counterexample
from monofuzz.report.figures import plot_maps
from monofuzz.report.page import write_page
from monofuzz.search import Map
from monofuzz.trace import load
from tools.browser import chromium, missing

if TYPE_CHECKING:
    from monofuzz.report.inputs import Item
    from tools.browser import Browser

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "reports" / "report"
RESNET = ROOT / "reports" / "public" / "dtr-resnet32.map"
EXAMPLE = ROOT / "corpus" / "counterexamples" / "dtr" / "training-cost-worst.json"
GRID = [(trace, policy) for policy in ("dtr", "dtr-eq") for trace in ("demo", "resnet32")]
MOST_BYTES = 300_000
# Key strokes in the chart: the third hole; and from there to single bytes.
ZOOMS = {"1-all": "", "2-hole": "nn", "3-bytes": "nn" + "+" * 22}


class Camera:
    """Makes pages and takes pictures of them."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self.browser = browser
        self.page = folder / "page.html"

    def show(self, *items: Item) -> None:
        """The items as the page of all following pictures."""
        write_page(items, self.page)

    def take(
        self, name: str, size: tuple[int, int], *, dark: bool, keys: str = "", at: str = ".plot"
    ) -> None:
        """A picture, after some key strokes in an element of the page."""
        phone = size[0] < 600
        self.browser.look(width=size[0], height=size[1], dark=dark, scale=2 if phone else 1)
        self.browser.open(self.page)
        if keys:
            element = self.browser.find(at)
            self.browser.run("arguments[0].focus({preventScroll: true})", element)
            element.send_keys(keys)
            self.browser.run("arguments[0].blur(); scrollTo(0, 0)", element)
        target = OUT / f"{name}-{'dark' if dark else 'light'}.png"
        self.browser.screenshot(target)
        size_of = target.stat().st_size
        if size_of > MOST_BYTES:
            raise SystemExit(f"{target} has {size_of:,} bytes, more than {MOST_BYTES:,}")


def main() -> None:
    lacking = missing()
    if lacking:
        raise SystemExit(lacking)
    OUT.mkdir(exist_ok=True)
    grid = [map_budgets(load(trace), policy, between=(0.2, 0.6)) for trace, policy in GRID]
    for kind in ("png", "svg"):
        plot_maps(grid, OUT / f"figure.{kind}")
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        camera = Camera(browser, Path(folder))
        camera.show(Map.load(RESNET))
        for name, keys in ZOOMS.items():
            for dark in (False, True):
                camera.take(f"map-{name}", (1280, 1000), dark=dark, keys=keys)
                camera.take(f"map-{name}-phone", (390, 1240), dark=dark, keys=keys)
        camera.show(*grid)
        for dark in (False, True):
            camera.take("several-maps", (1280, 760), dark=dark)
        camera.show(load_counterexample(EXAMPLE))
        for dark in (False, True):
            at = {"keys": "\ue014" * 3, "at": ".stepper"}
            camera.take("counterexample", (1280, 1000), dark=dark, **at)
            camera.take("counterexample-phone", (390, 1240), dark=dark, **at)


if __name__ == "__main__":
    main()
