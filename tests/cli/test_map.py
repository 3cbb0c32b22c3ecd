"""`monofuzz map`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import HOLE, Run, document

KEYS = {
    "trace",
    "policy",
    "peak",
    "between",
    "certified",
    "covered",
    "runs",
    "limit",
    "regimes",
    "holes",
    "cliffs",
    "verdicts",
}


def test_json(run: Run) -> None:
    result = run("map", HOLE, "--policy", "dtr", "--between", "1", "36", "--json")
    assert result.exit_code == 0
    assert result.stderr == ""
    found = document(result)
    assert set(found) >= KEYS
    assert found["between"] == [1, 36]
    assert found["certified"] is True
    assert found["covered"] == 1.0
    assert found["peak"] == 35
    assert found["limit"] == 60.0
    assert found["regimes"][0]["lo"] == 1
    assert found["regimes"][-1]["hi"] == 36
    for regime in found["regimes"]:
        assert set(regime) >= {"lo", "hi", "status", "overhead", "evictions", "remat_compute"}
    (hole,) = found["holes"]
    assert set(hole) >= {"lo", "hi", "bytes", "ratio_lo", "ratio_hi"}
    assert (hole["lo"], hole["hi"], hole["bytes"]) == (19, 20, 1)
    assert (hole["ratio_lo"], hole["ratio_hi"]) == (19 / 35, 20 / 35)
    assert set(found["verdicts"]) == {"feasibility", "cost"}
    for verdict in found["verdicts"].values():
        assert verdict["verdict"] == "refuted"
        assert verdict["witness"] is not None


def test_cliffs_have_their_keys(run: Run) -> None:
    found = document(run("map", HOLE, "-p", "dtr", "--factor", "1.05", "--json"))
    assert found["cliffs"]
    for cliff in found["cliffs"]:
        assert set(cliff) >= {"at", "below", "above", "factor"}
        assert cliff["factor"] > 1.05


def test_what_breaks_comes_first_and_the_verdicts_last(run: Run) -> None:
    result = run("map", HOLE, "-p", "dtr")
    text = result.stdout
    assert text.index("1 hole") < text.index("cliffs") < text.index("feasibility")
    assert "refuted: runs with 18 bytes (0.514286), out of memory with 1 byte more" in text
    assert "certified: exact for each of the 34 budgets" in text
    assert "All regimes" not in text


def test_regimes_are_listed_when_asked_for(run: Run) -> None:
    text = run("map", HOLE, "-p", "dtr", "--regimes").stdout
    assert "All regimes" in text
    assert "0.571429     20           21  ok               1.594x" in text


def test_a_limit_that_is_reached_first_is_undecided(run: Run) -> None:
    result = run("map", HOLE, "-p", "dtr", "--max-runs", "3", "--json")
    assert result.exit_code == 3
    found = document(result)
    assert found["certified"] is False
    assert 0 < found["covered"] < 1
    assert found["gaps"]
    assert "--max-runs" in result.stderr
    assert "--out FILE" in result.stderr


def test_an_unfinished_map_goes_on_in_its_file(run: Run, tmp_path: Path) -> None:
    whole = document(run("map", HOLE, "-p", "dtr", "--json"))
    file = tmp_path / "some.map"
    assert run("map", HOLE, "-p", "dtr", "--out", file, "--max-runs", "3").exit_code == 3
    result = run("map", HOLE, "-p", "dtr", "--out", file, "--json")
    assert result.exit_code == 0
    assert document(result)["regimes"] == whole["regimes"]
    again = document(run("map", HOLE, "-p", "dtr", "--out", file, "--max-runs", "1", "--json"))
    assert again["regimes"] == whole["regimes"]


def test_a_map_of_another_trace_is_refused(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "some.map"
    assert run("map", HOLE, "-p", "dtr", "--out", file).exit_code == 0
    result = run("map", HOLE, "-p", "lru", "--out", file)
    assert result.exit_code == 2
    assert str(file) in result.stderr


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_plot(run: Run, tmp_path: Path, kind: str) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / f"map.{kind}"
    assert run("map", HOLE, "-p", "dtr", "--plot", file).exit_code == 0
    magic = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert file.read_bytes().startswith(magic[kind])


def test_thrashed_runs_count_as_asked(run: Run) -> None:
    options = ("--limit", "1.5", "--between", "20", "36", "--tolerance", "1e9", "--json")
    own = document(run("map", HOLE, "-p", "dtr", *options))
    assert {regime["status"] for regime in own["regimes"]} == {"thrashed", "ok"}
    assert own["verdicts"]["feasibility"]["verdict"] == "monotone"


def test_tolerance_forgives_small_rises(run: Run) -> None:
    options = ("--between", "20", "36", "--json")
    strict = document(run("map", HOLE, "-p", "dtr", *options))
    lax = document(run("map", HOLE, "-p", "dtr", "--tolerance", "10%", *options))
    assert strict["verdicts"]["cost"]["verdict"] == "refuted"
    assert lax["verdicts"]["cost"]["verdict"] == "monotone"
