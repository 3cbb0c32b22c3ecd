"""Does the page of a large map open at once and zoom without a stall?

Run from the top of the checkout, with a browser (tools/browser.py says which)::

    python -m benchmarks.report [MAP...]

Each page is opened several times in a headless Chromium, and its chart is zoomed by a turning wheel
from the whole range to single bytes at a hole and back, one turn a frame. Without arguments the
maps are those of `dtr-resnet32` (8,521 regimes) and `dtr-densenet121` (69,885).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monofuzz.report.page import write_page
from monofuzz.search import Map
from tools.browser import chromium, missing

if TYPE_CHECKING:
    from tools.browser import Browser

PUBLIC = Path(__file__).parents[1] / "reports" / "public"
MAPS = [PUBLIC / "dtr-resnet32.map", PUBLIC / "dtr-densenet121.map"]
LOADS = 7
ZOOMS = 7
LIMITS = {"megabytes": 6.0, "load": 2.0, "work": 0.05}

# How long the page's own work takes in each frame, whatever else the machine does.
WATCH = """
const inner = window.requestAnimationFrame.bind(window);
window.work = [];
window.requestAnimationFrame = (callback) => inner((now) => {
  const begun = performance.now();
  callback(now);
  window.work.push(performance.now() - begun);
});
"""
ZOOM = """
const [place, done] = arguments;
const plot = document.querySelector('.plot');
plot.scrollIntoView({block: 'center'});
const box = plot.getBoundingClientRect();
const x = box.left + 46 + (box.width - 60) * place;
const frames = [];
const turns = 160;
let turn = 0, before = null;
window.work.length = 0;
function next(now) {
  if (before !== null) frames.push(now - before);
  before = now;
  if (turn === 2 * turns) { done({frames, work: window.work}); return; }
  const deltaY = turn < turns ? -60 : 60;
  plot.dispatchEvent(new WheelEvent('wheel', {
    deltaY, clientX: x, clientY: box.top + 200, bubbles: true, cancelable: true}));
  turn += 1;
  requestAnimationFrame(next);
}
setTimeout(() => requestAnimationFrame(next), 500);
"""


def measure(browser: Browser, page: Path, place: float) -> dict[str, Any]:
    """Seconds until the page is drawn, and of each frame of a zoom at a place of the chart."""
    loads = []
    for _ in range(LOADS):
        browser.open(page)
        loads.append(browser.run("return performance.getEntriesByName('drawn')[0].startTime"))
    zooms = [browser.driver.execute_async_script(ZOOM, place) for _ in range(ZOOMS)]
    # The views are the same in each zoom; what one took longer than another, the machine did.
    work = [min(same) for same in zip(*(zoom["work"] for zoom in zooms), strict=True)]
    return {
        "load": [value / 1000 for value in loads],
        "frames": [value / 1000 for zoom in zooms for value in zoom["frames"]],
        "work": [value / 1000 for value in work],
    }


def place_of(found: Map) -> float:
    """Where the first hole lies, as a share of the range."""
    lo, hi = found.between
    at = found.holes[0].lo if found.holes else (lo + hi) // 2
    return (at - lo) / (hi - lo)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("maps", nargs="*", type=Path, default=MAPS)
    lacking = missing()
    if lacking:
        parser.error(lacking)
    failed = False
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        browser.look(width=1280, height=900)
        browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        for file in parser.parse_args().maps:
            found = Map.load(file)
            page = Path(folder) / "page.html"
            begin = time.perf_counter()
            write_page([found], page)
            made = time.perf_counter() - begin
            megabytes = page.stat().st_size / 1e6
            told = measure(browser, page, place_of(found))
            load, frames, work = told["load"], told["frames"], told["work"]
            good = (
                megabytes < LIMITS["megabytes"]
                and statistics.median(load) < LIMITS["load"]
                and max(work) < LIMITS["work"]
            )
            failed |= not good
            print(
                f"{file.stem}: {len(found.table):,} regimes, page {megabytes:.2f} MB, "
                f"made in {made:.2f} s\n"
                f"  drawn after {statistics.median(load):.2f} s (median of {LOADS}; "
                f"slowest {max(load):.2f} s; limit {LIMITS['load']:g} s)\n"
                f"  work a frame: median {1000 * statistics.median(work):.1f} ms, "
                f"most {1000 * max(work):.1f} ms (limit {1000 * LIMITS['work']:g} ms; "
                f"of each frame the quickest of {ZOOMS})\n"
                f"  between frames: median {1000 * statistics.median(frames):.1f} ms, "
                f"99 of 100 within {1000 * statistics.quantiles(frames, n=100)[-1]:.1f} ms\n"
                f"  {'within its limits' if good else 'FAILED'}"
            )
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
