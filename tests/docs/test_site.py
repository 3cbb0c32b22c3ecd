"""The documentation as a site: built strictly, needing no network, its links right."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.docs.markdown import DOCS, ROOT
from tools.browser import Browser, chromium, missing

NEEDED = ("mkdocs", "material", "mkdocstrings")
pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in NEEDED),
    reason="building the site needs the extra docs",
)
LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}


class Page(HTMLParser):
    """What a built page links to, loads and names."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.names: set[str] = set()
        self.headings = 0
        self.language: str | None = None
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given:
            self.loads.append(given[LOADED[tag]])
        self.names |= {given[name] for name in ("id", "name") if name in given}
        self.headings += tag == "h1"
        if tag == "html":
            self.language = given.get("lang")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {path: Page(path) for path in sorted(folder.rglob("*.html"))}


def test_each_page_is_there(site: dict[Path, Page]) -> None:
    built = {path.name for path in site}
    for page in DOCS.rglob("*.md"):
        assert page.with_suffix(".html").name.replace("README", "index") in built


def test_nothing_is_loaded_from_elsewhere(site: dict[Path, Page]) -> None:
    for path, page in site.items():
        for target in page.loads:
            assert not target.startswith(("http:", "https:", "//")), f"{path.name} loads {target}"
    folder = min(site, key=lambda path: len(path.parts)).parent
    for style in folder.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert "url(http" not in text
        assert "@import" not in text


def test_links_and_anchors_lead_somewhere(site: dict[Path, Page]) -> None:
    for path, page in site.items():
        if path.name == "404.html":  # its links are absolute, for whatever address failed
            continue
        for link in page.links:
            if link.startswith(("http:", "https:", "mailto:")):
                continue
            target, _, anchor = unquote(link).partition("#")
            other = (path.parent / target).resolve() if target else path
            assert other.exists(), f"{path.name} links to {link}"
            if anchor and other.suffix == ".html":
                assert anchor in site[other].names, f"{path.name} links to {link}"


def test_each_page_has_a_heading_and_a_language(site: dict[Path, Page]) -> None:
    for path, page in site.items():
        assert page.language == "en"
        assert page.headings == 1, path.name


def test_the_interface_is_in_the_reference(site: dict[Path, Page]) -> None:
    names = next(page for path, page in site.items() if path.name == "python.html").names
    for name in (
        "monofuzz.replay.replay",
        "monofuzz.search.Map.holes",
        "monofuzz.errors.TraceError",
    ):
        assert name in names


def test_every_command_and_option_is_in_the_reference(site: dict[Path, Page]) -> None:
    path = next(path for path in site if path.name == "commands.html")
    text = path.read_text(encoding="utf-8")
    for command in ("map", "check", "traces-add"):
        assert f"monofuzz-{command}" in site[path].names
    assert "--thrash-as" in text
    assert "UNSET" not in text


@pytest.fixture(scope="module")
def browser(site: dict[Path, Page]) -> Iterator[Browser]:
    lacking = missing()
    if lacking:
        pytest.skip(lacking)
    with chromium() as window:
        yield window


def opened(browser: Browser, site: dict[Path, Page], name: str) -> None:
    (path,) = [path for path in site if path.as_posix().endswith(f"/{name}.html")]
    browser.driver.get(path.as_uri())
    browser.until("return document.readyState === 'complete'")


def test_search_works_from_files_by_keyboard_alone(
    browser: Browser, site: dict[Path, Page]
) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser.look(width=1280, height=900)
    opened(browser, site, "cli")
    browser.requests()
    ActionChains(browser.driver).send_keys("/").perform()
    browser.until("return document.activeElement.matches('.md-search__input')")
    ActionChains(browser.driver).send_keys("thrashed").perform()
    browser.until("return document.querySelector('.md-search-result__item') !== null")
    ActionChains(browser.driver).send_keys(Keys.ENTER).perform()
    browser.until("return location.pathname.endsWith('/theory.html')")
    asked = browser.requests()
    assert asked
    assert all(address.startswith(("file:", "data:", "blob:")) for address in asked), asked
    assert browser.complaints() == []


@pytest.mark.parametrize("name", ["tutorial", "theory", "reference/commands", "reference/python"])
def test_no_page_is_wider_than_a_phone(browser: Browser, site: dict[Path, Page], name: str) -> None:
    browser.look(width=390, height=800, dark=True)
    opened(browser, site, name)
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
