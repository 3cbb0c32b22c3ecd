"""A headless Chromium; without one the tests here are skipped, and say why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.browser import Browser, chromium, missing


@pytest.fixture(scope="session")
def window() -> Iterator[Browser]:
    lacking = missing()
    if lacking:
        pytest.skip(lacking)
    with chromium() as window:
        yield window


@pytest.fixture
def browser(window: Browser, tmp_path: Path) -> Iterator[Browser]:
    """The window, as wide as a laptop; a page that complains fails its test."""
    window.look(width=1280, height=900)
    window.complaints()
    window.requests()
    yield window
    assert window.complaints() == []
    asked = {address for address in window.requests() if not address.startswith(("data:", "blob:"))}
    assert {address for address in asked if not address.startswith(tmp_path.as_uri())} == set()
