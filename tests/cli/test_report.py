"""`monofuzz report` and `monofuzz plot`."""

from __future__ import annotations

from pathlib import Path

import pytest

from monofuzz.cli import exits
from monofuzz.counterexample import save
from tests.cli.support import HOLE, Run
from tests.report.maps import counterexample


@pytest.fixture
def maps(run: Run, tmp_path: Path) -> list[Path]:
    """Two maps of a small trace."""
    files = [tmp_path / f"{policy}.map" for policy in ("dtr", "lru")]
    for file in files:
        assert run("map", HOLE, "-p", file.stem, "--out", file).exit_code == exits.DONE
    return files


def test_a_page_of_maps_and_a_counterexample(run: Run, maps: list[Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    save(counterexample(), tmp_path / "hole.json")
    result = run("report", *maps, tmp_path / "hole.json", "--out", page, "--title", "a & b")
    assert result.exit_code == exits.DONE
    assert result.stdout == ""
    assert "3 items" in result.stderr
    text = page.read_text()
    assert text.count('class="blob"') == 3
    assert "<title>a &amp; b</title>" in text


def test_a_file_of_another_kind_is_one_sentence(run: Run, tmp_path: Path) -> None:
    result = run("report", HOLE, "--out", tmp_path / "page.html")
    assert result.exit_code == exits.WRONG
    assert "this is no counterexample" in result.stderr
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("count", [1, 2])
def test_figures_of_maps(count: int, run: Run, maps: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = run("plot", *maps[:count], "--out", tmp_path / "maps.svg")
    assert result.exit_code == exits.DONE
    assert (tmp_path / "maps.svg").read_text().startswith("<?xml")


def test_a_figure_of_no_known_format_is_refused_first(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = run("plot", tmp_path / "missing.map", "--out", tmp_path / "maps.gif")
    assert result.exit_code == exits.WRONG
    assert "must end in one of" in result.stderr
