"""The report in a real browser: what it shows is what the map says."""

from __future__ import annotations

import dataclasses
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monofuzz.report.page import write_page
from monofuzz.report.palette import DARK, LIGHT
from monofuzz.search.regimes import Map
from monofuzz.search.verdict import holes
from tests.report.maps import PEAK, all_kinds, counterexample, map_of
from tools.browser import Browser

WORDS = {
    "ok": "runs",
    "oom": "fails: out of memory",
    "thrashed": "thrashes",
    "timeout": "timed out",
}
ARROW_LEFT, ARROW_RIGHT, HOME, END = "\ue012", "\ue014", "\ue011", "\ue010"
ENTER = "\ue007"


def many(count: int = 4000) -> Map:
    """Regimes of all widths from one byte on, every 50th of them a hole."""
    random = np.random.default_rng(2)
    widths = np.maximum(random.exponential(1, count) ** 6 * 400, 1).astype(int)
    edges = 10**8 + np.concatenate([[0], np.cumsum(widths)])
    assert edges[-1] < PEAK
    costs = 1 + random.random(count)
    return map_of(
        *(
            (int(lo), int(hi), "oom" if n < 40 or n % 50 == 0 else "ok", float(cost))
            for n, ((lo, hi), cost) in enumerate(zip(pairwise(edges), costs, strict=True))
        ),
    )


@pytest.fixture(scope="module")
def large() -> Map:
    return many()


def show(browser: Browser, folder: Path, *items: Any, title: str | None = None) -> None:
    write_page(items, folder / "page.html", title=title)
    browser.open(folder / "page.html")


def field(browser: Browser, name: str) -> str:
    browser.settle()
    return str(browser.run(f"return document.querySelector('[data-field={name}]')?.textContent"))


def number(text: str) -> int:
    return int(text.replace(",", ""))


def keys(browser: Browser, text: str, selector: str = ".plot[tabindex]") -> None:
    element = browser.find(selector)
    browser.run("arguments[0].focus()", element)
    element.send_keys(text)


def go_to(browser: Browser, budget: int) -> None:
    entry = browser.find(".goto input")
    entry.clear()
    entry.send_keys(f"{budget}{ENTER}")


def scope(browser: Browser) -> tuple[int, int]:
    """The first and the last budget that the chart shows."""
    browser.settle()
    text = browser.find(".map .scope").text
    first, last = re.match(r"([\d,]+) – ([\d,]+)", text).groups()  # type: ignore[union-attr]
    return number(first), number(last)


def check_readout(browser: Browser, found: Map, budget: int) -> None:
    """The readout says of this budget what the map does."""
    regime = found.at(budget)
    assert regime is not None
    assert number(field(browser, "budget")) == budget
    assert field(browser, "status") == WORDS[regime.status]
    assert field(browser, "interval") == f"[{regime.lo:,}, {regime.hi:,})"
    assert field(browser, "ratio") == f"{budget / PEAK:.9f}"
    if regime.status == "ok":
        assert field(browser, "overhead") == f"{regime.overhead:.3f}×"


def pixel(browser: Browser, x: float, from_bottom: float, canvas: str = ".plot .base") -> str:
    """The colour at a place of a canvas, in pixels of the page from its left and bottom."""
    return str(
        browser.run(
            "const canvas = document.querySelector(arguments[0]);"
            "const copy = document.createElement('canvas').getContext('2d');"
            "copy.drawImage(canvas, -Math.floor(arguments[1]), arguments[2] - canvas.clientHeight);"
            "const data = copy.getImageData(0, 0, 1, 1).data;"
            "return '#' + [...data.slice(0, 3)]"
            ".map((one) => one.toString(16).padStart(2, '0')).join('').toUpperCase()",
            canvas,
            x,
            from_bottom,
        )
    )


def strip_x(browser: Browser, budget: float) -> float:
    """Where a budget stands in the chart."""
    first, last = scope(browser)
    width = browser.run("return document.querySelector('.plot').clientWidth")
    return float(46 + (budget - first) / (last + 1 - first) * (width - 60))


STRIP = 38 + 4


def test_any_budget_shows_its_regime(browser: Browser, large: Map, tmp_path: Path) -> None:
    show(browser, tmp_path, large)
    lo, hi = large.between
    for budget in [lo, hi - 1, *np.random.default_rng(1).integers(lo, hi, 20).tolist()]:
        go_to(browser, budget)
        check_readout(browser, large, budget)
        first, last = scope(browser)
        assert first <= budget <= last <= first + 65


def test_keys_zoom_from_all_to_single_bytes(browser: Browser, large: Map, tmp_path: Path) -> None:
    show(browser, tmp_path, large)
    assert scope(browser) == (large.between[0], large.between[1] - 1)
    keys(browser, "nnn0")
    hole = large.holes[3]
    assert number(field(browser, "budget")) == hole.lo
    keys(browser, "+" * 40)
    first, last = scope(browser)
    assert last - first <= 4
    for budget in range(hole.lo, hole.lo + 12):
        check_readout(browser, large, budget)
        keys(browser, ".")
        first, last = scope(browser)
        assert first <= budget + 1 <= last
    check_readout(browser, large, hole.lo + 12)
    keys(browser, "0")
    assert scope(browser) == (large.between[0], large.between[1] - 1)


def test_keys_walk_over_regimes_holes_and_cliffs(
    browser: Browser, large: Map, tmp_path: Path
) -> None:
    show(browser, tmp_path, large)
    keys(browser, "p")  # before the first comes the last
    assert number(field(browser, "budget")) == large.holes[-1].lo
    regime = large.at(large.holes[-1].lo)
    assert regime is not None
    keys(browser, "n")
    assert number(field(browser, "budget")) == large.holes[0].lo
    browser.run(
        "document.querySelector('.plot').dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'ArrowRight', shiftKey: true, cancelable: true}))"
    )
    assert number(field(browser, "budget")) == large.holes[0].hi
    keys(browser, HOME + "c")
    assert number(field(browser, "budget")) == large.cliffs[0].at
    keys(browser, END)
    assert number(field(browser, "budget")) == large.between[1] - 1


def test_the_chart_shows_holes_where_they_are(browser: Browser, tmp_path: Path) -> None:
    found = all_kinds()
    show(browser, tmp_path, found)
    # A hole of five bytes in nine hundred million still has a mark.
    assert pixel(browser, strip_x(browser, found.holes[0].lo), STRIP) == LIGHT["hole"]
    for budget, colour in [(1.5e8, "oom"), (2.5e8, "ok"), (4.5e8, "thrashed"), (6.5e8, "gap")]:
        assert pixel(browser, strip_x(browser, budget), STRIP) == LIGHT[colour]
    assert pixel(browser, strip_x(browser, 6e8), STRIP) == LIGHT["timeout"]
    go_to(browser, found.holes[0].lo + 2)
    for offset in (-0.5, 5.5):
        assert pixel(browser, strip_x(browser, found.holes[0].lo + offset), STRIP) == LIGHT["ok"]
    for offset in (0.5, 4.5):
        assert pixel(browser, strip_x(browser, found.holes[0].lo + offset), STRIP) == LIGHT["hole"]


def test_the_wheel_zooms_at_the_pointer(browser: Browser, large: Map, tmp_path: Path) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    show(browser, tmp_path, large)
    plot = browser.find(".plot")
    ActionChains(browser.driver).move_to_element_with_offset(plot, 100, 0).perform()
    before = number(browser.find(".tip b").text.split()[0])
    first, last = scope(browser)
    origin = ScrollOrigin.from_element(plot, 100, 0)
    ActionChains(browser.driver).scroll_from_origin(origin, 0, -600).perform()
    narrow_first, narrow_last = scope(browser)
    assert narrow_last - narrow_first < (last - first) / 2
    ActionChains(browser.driver).move_to_element_with_offset(plot, 100, 1).perform()
    after = number(browser.find(".tip b").text.split()[0])
    assert abs(after - before) <= (last - first) / 1000


def test_dragging_moves_the_chart(browser: Browser, large: Map, tmp_path: Path) -> None:
    from selenium.webdriver import ActionChains

    show(browser, tmp_path, large)
    go_to(browser, sum(large.between) // 2)
    keys(browser, "-" * 20)
    first, last = scope(browser)
    plot = browser.find(".plot")
    width = browser.run("return document.querySelector('.plot').clientWidth") - 60
    ActionChains(browser.driver).drag_and_drop_by_offset(plot, 100, 0).perform()
    moved_first, moved_last = scope(browser)
    assert moved_last - moved_first == pytest.approx(last - first, abs=2)
    assert first - moved_first == pytest.approx(100 / width * (last - first), rel=0.1)


def test_tables_are_sorted_and_lead_to_the_chart(
    browser: Browser, large: Map, tmp_path: Path
) -> None:
    show(browser, tmp_path, large)
    head = next(one for one in browser.all(".tables th") if one.text == "width")

    def firsts() -> list[int]:
        cells = browser.all(".tables .table:first-child tbody td:first-child")
        return [number(cell.text) for cell in cells]

    assert firsts() == [hole.lo for hole in large.holes[:50]]
    browser.run("arguments[0].querySelector('button').click()", head)
    widest = sorted(large.holes, key=lambda hole: -hole.bytes)
    assert head.get_attribute("aria-sort") == "descending"
    assert [large.at(lo).width for lo in firsts()] == [hole.bytes for hole in widest[:50]]  # type: ignore[union-attr]
    browser.run("arguments[0].querySelector('button').click()", head)
    assert head.get_attribute("aria-sort") == "ascending"
    browser.run("arguments[0].querySelector('button').click()", head)
    row = browser.find(".tables tbody tr")
    browser.run("arguments[0].focus()", row)
    row.send_keys(ENTER)
    hole = widest[0]
    check_readout(browser, large, hole.lo)
    first, last = scope(browser)
    assert first < hole.lo
    assert hole.hi <= last
    assert last - first < 3 * hole.bytes + 20


def test_long_tables_are_shown_in_parts(browser: Browser, large: Map, tmp_path: Path) -> None:
    show(browser, tmp_path, large)
    assert len(large.holes) > 50
    rows = ".tables .table:first-child tbody tr"
    assert len(browser.all(rows)) == 50
    browser.run("document.querySelector('.more').click()")
    assert len(browser.all(rows)) == len(large.holes)


def test_verdicts_say_why_and_lead_to_their_budgets(browser: Browser, tmp_path: Path) -> None:
    found = all_kinds()
    show(browser, tmp_path, found)
    card = browser.find("[data-claim=feasibility]")
    assert "refuted" in card.text
    witness = found.verdict("feasibility").witness
    assert witness is not None
    assert f"{witness.below.budget:,} bytes" in card.text
    browser.run("arguments[0].querySelector('button').click()", card)
    check_readout(browser, found, witness.above.budget)
    assert "% known, 1 gap, 1 timeout" in browser.find(".badge").text


def test_an_incomplete_map_says_so(browser: Browser, tmp_path: Path) -> None:
    found = map_of((10, 20, "oom", 1.0), (30, 40, "ok", 1.0), between=(5, 50), peak=None)
    show(browser, tmp_path, found)
    assert "44.44% known, 3 gaps" in browser.find(".badge").text
    for claim in ("feasibility", "cost"):
        text = browser.find(f"[data-claim={claim}]").text
        assert "undecided" in text
        assert "3 gaps are left" in text
    go_to(browser, 25)
    assert field(browser, "interval") == "[20, 30)"
    assert field(browser, "status") == "is not explored"


@pytest.mark.parametrize("text", ["", "x", "5", "99999999999", "2.0", "1e400", "-3", "0.15x"])
def test_what_is_no_budget_is_refused(text: str, browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, all_kinds())
    before = scope(browser)
    entry = browser.find(".goto input")
    entry.send_keys(f"{text}{ENTER}")
    assert entry.get_attribute("aria-invalid") == "true"
    assert scope(browser) == before


@pytest.mark.parametrize(
    ("text", "budget"), [("0.15", 150_000_000), ("15%", 150_000_000), ("150,000,001", 150_000_001)]
)
def test_budgets_are_read_as_on_the_command_line(
    text: str, budget: int, browser: Browser, tmp_path: Path
) -> None:
    show(browser, tmp_path, all_kinds())
    browser.find(".goto input").send_keys(f"{text}{ENTER}")
    assert number(field(browser, "budget")) == budget


def test_several_maps_zoom_together(browser: Browser, tmp_path: Path) -> None:
    maps = [all_kinds(trace, policy) for policy in ("dtr", "lru") for trace in ("one", "two")]
    show(browser, tmp_path, *maps)
    assert [head.text for head in browser.all(".column-head")] == ["one", "two"]
    assert [head.text for head in browser.all(".row-head")] == ["dtr", "lru"]
    assert len(browser.all("article.map")) == 4
    pictures = "return [...document.querySelectorAll('.cell .base')].map((one) => one.toDataURL())"
    browser.settle()
    before = browser.run(pictures)
    keys(browser, "++", ".cell .plot")
    browser.settle()
    after = browser.run(pictures)
    assert len(before) == 4
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert len(set(after)) == 1


def test_themes(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, all_kinds())
    button = browser.find("#theme-button")

    def look() -> tuple[str, str]:
        ground = browser.run("return getComputedStyle(document.body).backgroundColor")
        return ground, pixel(browser, strip_x(browser, 2.5e8), STRIP)

    light = look()
    assert light[1] == LIGHT["ok"]
    button.click()
    assert button.text == "Light"
    assert look() == light
    button.click()
    assert button.text == "Dark"
    dark = look()
    assert dark[0] != light[0]
    assert dark[1] == DARK["ok"]
    button.click()
    assert button.text == "Auto"
    assert look() == light
    browser.look(width=1280, height=900, dark=True)
    assert look() == dark


def test_a_counterexample_is_stepped_through(browser: Browser, tmp_path: Path) -> None:
    example = counterexample()
    show(browser, tmp_path, example)

    def words() -> list[str]:
        return [one.text for one in browser.all(".words")]

    def count() -> str:
        return str(browser.find(".stepper .scope").text)

    assert "where they part" in count()
    keys(browser, HOME, ".stepper")
    assert words() == ["Before anything happens"] * 2
    keys(browser, ARROW_RIGHT, ".stepper")
    assert words() == ["Computes a, 3 bytes."] * 2
    assert "step 1 of" in count()
    keys(browser, ARROW_RIGHT * 2 + ARROW_LEFT, ".stepper")
    assert "step 2 of" in count()
    keys(browser, END, ".stepper")
    fail = example.above.fail
    assert fail is not None
    assert "Out of memory for e" in words()[1]
    assert f"{fail.over_by} byte" in words()[1]
    log = browser.all(".side:last-child .log li")
    assert log[-1].text == "fail: no room for e"
    evictions = [one for one in log if one.text.startswith("evict")]
    assert len(evictions) == example.above.evictions
    browser.run("arguments[0].click()", evictions[-1])
    assert "the least score of 2 candidates, 0.09722; next would have been d with 0.6" in words()[1]
    assert browser.find(".side:last-child .pool .victim").text.endswith("evicted")
    keys(browser, "d", ".stepper")
    assert "where they part" in count()


def test_an_example_too_large_to_step_through_says_so(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monofuzz.report.stepping.STEPPED_OPERATORS", 4)
    show(browser, tmp_path, counterexample())
    assert "not shown event by event: with more than 4 operators" in browser.find(".none").text


def test_hostile_names_are_shown_as_they_are(browser: Browser, tmp_path: Path) -> None:
    name = "</script><img src=x onerror=alert(1)>&amp;\"'"
    show(browser, tmp_path, *[all_kinds(trace=name, policy=name)] * 2, title=name)
    assert browser.driver.title == name
    assert browser.find("h2 bdi").text == name
    assert browser.all("img") == []
    assert "'</script><img" in browser.find(".command code").text


def test_a_phone_needs_no_scrolling_sideways(browser: Browser, tmp_path: Path) -> None:
    browser.look(width=360, height=800)
    name = "a-rather-long-name-of-a-trace-that-someone-recorded-last-tuesday"
    show(browser, tmp_path, all_kinds(trace=name), all_kinds(policy="lru"), counterexample())
    browser.settle()
    assert browser.run("return document.documentElement.scrollWidth") == 360


def test_long_labels_are_wrapped(browser: Browser, tmp_path: Path) -> None:
    example = counterexample()
    trace = dataclasses.replace(example.trace, op_label=("x" * 400,) * example.trace.n_ops)
    show(browser, tmp_path, dataclasses.replace(example, trace=trace))
    browser.settle()
    assert "xxx" in browser.find(".log").text
    assert browser.run("return document.documentElement.scrollWidth") == 1280
    for step in browser.all(".log li"):
        browser.run("arguments[0].click()", step)
        browser.settle()
        assert browser.run("return document.documentElement.scrollWidth") == 1280


def test_every_control_has_a_name(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, all_kinds(), all_kinds(policy="lru"), counterexample())
    nameless = browser.run(
        "return [...document.querySelectorAll('button, input, [tabindex=\"0\"], a')]"
        ".filter((one) => !one.textContent.trim() && !one.getAttribute('aria-label')"
        " && !one.labels?.length).map((one) => one.outerHTML)"
    )
    assert nameless == []
    headings = browser.run(
        "return [...document.querySelectorAll('h1, h2, h3, h4')].map((one) => one.tagName)"
    )
    assert headings[0] == "H1"
    levels = [int(tag[1]) for tag in headings]
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_what_is_under_the_cursor_is_said(browser: Browser, tmp_path: Path) -> None:
    found = all_kinds()
    show(browser, tmp_path, found)
    keys(browser, "n")
    said = browser.until("return document.getElementById('live').textContent")
    assert said.startswith(f"{holes(found)[1].lo:,} bytes")
    assert "hole: fails, less suffices" in said


def test_keys_are_listed(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, all_kinds())
    keys(browser, "?")
    assert browser.find("#help").is_displayed()
    browser.find("#help form button").click()
    assert not browser.find("#help").is_displayed()
