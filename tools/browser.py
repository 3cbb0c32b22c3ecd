"""A headless Chromium for tests, benchmarks and screenshots of the HTML report.

It is driven by selenium (the extra ``browser``), with Debian's packages chromium and
chromium-driver or whatever ``MONOFUZZ_CHROMIUM`` and ``MONOFUZZ_CHROMEDRIVER`` name. It reaches no
network: every host name is unknown to it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SWITCHES = (
    "--headless",
    "--no-sandbox",  # which root may not use
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost",
)


def missing() -> str | None:
    """What is not installed, as a sentence; None when there is a browser."""
    try:
        import selenium  # noqa: F401
    except ModuleNotFoundError:
        return "selenium is not installed: pip install 'monofuzz[browser]'"
    if not _chromium():
        return "chromium is not installed (Debian: apt install chromium chromium-driver)"
    if not _driver():
        return "chromedriver is not installed (Debian: apt install chromium-driver)"
    return None


def _chromium() -> str | None:
    return os.environ.get("MONOFUZZ_CHROMIUM") or shutil.which("chromium")


def _driver() -> str | None:
    return os.environ.get("MONOFUZZ_CHROMEDRIVER") or shutil.which("chromedriver")


class Browser:
    """One window; what its pages complain about and ask the network for is kept."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path, *, fragment: str = "") -> None:
        """Load a page and wait until it has been drawn."""
        self.complaints()
        self.driver.get(page.resolve().as_uri() + fragment)
        self.until("return document.documentElement.dataset.ready === 'yes'")

    def look(self, *, width: int, height: int, dark: bool = False, scale: float = 1) -> None:
        """The size of the window in CSS pixels, its pixel density, and the system's theme."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, still]})

    def run(self, script: str, *args: Any) -> Any:
        """What a script returns."""
        return self.driver.execute_script(script, *args)

    def until(self, script: str, seconds: float = 20.0) -> Any:
        """Wait until a script returns something true; that."""
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, seconds, poll_frequency=0.02).until(
            lambda driver: driver.execute_script(script)
        )

    def settle(self) -> None:
        """Wait until what was asked to be drawn has been drawn."""
        self.driver.execute_async_script(
            "const done = arguments[0];"
            "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)))"
        )

    def find(self, selector: str) -> Any:
        """The first element of a CSS selector."""
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        """All elements of a CSS selector."""
        found: list[Any] = self.driver.find_elements("css selector", selector)
        return found

    def screenshot(self, path: Path) -> None:
        """What the window shows, as PNG."""
        self.settle()
        path.write_bytes(self.driver.get_screenshot_as_png())

    def complaints(self) -> list[str]:
        """What the console said since the last call: errors and warnings."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that pages asked for since the last call, files included."""
        events = (
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        )
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A fresh headless Chromium, gone afterwards with all its files."""
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    with tempfile.TemporaryDirectory(prefix="monofuzz-chromium-") as profile:
        options = ChromeOptions()
        options.binary_location = _chromium() or ""
        for switch in (*_SWITCHES, f"--user-data-dir={profile}"):
            options.add_argument(switch)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = ChromeService(executable_path=_driver())
        driver = Chrome(options=options, service=service)
        try:
            driver.execute_cdp_cmd("Network.enable", {})
            yield Browser(driver)
        finally:
            driver.quit()
            service.stop()
