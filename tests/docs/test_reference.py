"""The reference names all there is: keys of JSON output, the public interface, commands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import monofuzz
from monofuzz.cli.main import cli
from tests.docs.markdown import DOCS, read

JSON = read(DOCS / "reference" / "json.md")


def keys(heading: str, number: int = 0) -> set[str]:
    """The keys in a table of the page on JSON: the first cells of its rows."""
    section = re.split(r"^## ", JSON, flags=re.MULTILINE)
    (text,) = [part for part in section if part.startswith(f"{heading}\n")]
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    rows = tables[number].splitlines()[2:]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])}


def document(*words: str) -> Any:
    result = CliRunner().invoke(cli, [*words, "--json"])
    assert result.exit_code in (0, 1, 3), result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def hole() -> str:
    return str(Path(__file__).parents[1] / "cli" / "hole.log")


def test_keys_of_replay(hole: str) -> None:
    found = document("replay", hole, "-p", "dtr", "--budget", "19", "--engine", "interpreted")
    assert set(found) == keys("replay")
    for name in found["fail"]:
        assert f"`{name}`" in JSON


def test_keys_of_map_and_check(hole: str) -> None:
    search = ["-p", "dtr", "--between", "16", "36", "--engine", "interpreted"]
    found = document("map", hole, *search, "--factor", "1.01")
    assert set(found) == keys("map")
    assert set(found["holes"][0]) == keys("Holes and cliffs", 0)
    assert set(found["cliffs"][0]) == keys("Holes and cliffs", 1)
    assert set(found["verdicts"]["feasibility"]) == keys("Verdicts")
    for name in found["regimes"][0]:
        assert f"`{name}`" in JSON
    (checked,) = document("check", hole, *search, "--claim", "feasibility")["results"]
    assert set(checked) == keys("check")


def test_keys_of_traces() -> None:
    assert set(document("traces", "list")["traces"][0]) == keys("traces")


def test_each_public_name_is_in_the_reference() -> None:
    page = read(DOCS / "reference" / "python.md")
    for name in monofuzz.__all__:
        assert name == "__version__" or f"`{name}`" in page, name


def test_each_command_is_on_the_page_of_commands() -> None:
    page = read(DOCS / "cli.md")
    for name in cli.list_commands(None):  # type: ignore[arg-type]
        assert f"`monofuzz {name}" in page, name
