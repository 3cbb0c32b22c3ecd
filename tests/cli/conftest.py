"""Running the command line in this process, with a library of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from monofuzz.cli.main import cli
from tests.cli.support import Run


@pytest.fixture(autouse=True)
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty trace library."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("MONOFUZZ_CACHE", str(folder))
    return folder


@pytest.fixture
def run() -> Run:
    """Runs a command on the interpreted engine, which needs no compilation."""

    def runs(*args: str | Path) -> Result:
        words = [str(arg) for arg in args]
        if words and words[0] in ("replay", "map", "check", "verify") and "--help" not in words:
            words[1:1] = ["--engine", "interpreted"]
        result = CliRunner().invoke(cli, words)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return runs
