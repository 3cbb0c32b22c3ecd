"""`monofuzz traces`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.support import HOLE, Run, document

KEYS = {"name", "model", "operators", "storages", "peak", "model_compute", "source"}


def test_add_list_and_use(run: Run) -> None:
    added = run("traces", "add", HOLE, "--name", "mine", "--engine", "interpreted", "--json")
    assert added.exit_code == 0
    (entry,) = document(added)["traces"]
    assert set(entry) >= KEYS
    assert entry["name"] == "mine"
    assert entry["operators"] == 8
    assert entry["peak"] == 35
    listed = document(run("traces", "list", "--json"))["traces"]
    assert [one for one in listed if one["name"] == "mine"] == [entry]
    assert run("replay", "mine", "-p", "dtr", "-b", "1.0").exit_code == 0


def test_list_in_words(run: Run) -> None:
    run("traces", "add", HOLE, "--engine", "interpreted")
    result = run("traces", "list")
    assert result.exit_code == 0
    assert "hole" in result.stdout
    assert "traces fetch dtr" in result.stderr


def test_info(run: Run) -> None:
    result = run("traces", "info", HOLE, "--engine", "interpreted", "--json")
    found = document(result)
    assert set(found) >= KEYS | {"digest", "tensors", "views", "constants"}
    assert found["peak"] == 35
    assert found["model_compute"] == 32
    text = run("traces", "info", HOLE, "--engine", "interpreted").stdout
    assert "35 bytes without a budget" in text


def test_another_trace_of_the_same_name_needs_replace(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "hole.log"
    other.write_text(Path(HOLE).read_text().replace('"TIME": "', '"TIME": "1'))
    assert run("traces", "add", HOLE, "--engine", "interpreted").exit_code == 0
    refused = run("traces", "add", other, "--engine", "interpreted")
    assert refused.exit_code == 2
    assert "hole" in refused.stderr
    assert run("traces", "add", other, "--replace", "--engine", "interpreted").exit_code == 0


def test_an_unknown_collection(run: Run) -> None:
    result = run("traces", "fetch", "nothing", "--engine", "interpreted")
    assert result.exit_code == 2
    assert "nothing" in result.stderr
