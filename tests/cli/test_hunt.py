"""`monofuzz hunt`, `shrink`, and `verify` of what they write."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from monofuzz.counterexample import load
from monofuzz.errors import MonofuzzError
from tests.cli.support import HOLE, Run, document

KEYS = {"id", "policy", "claim", "goal", "operators", "severity", "witness", "file"}


@pytest.fixture
def found(run: Run, tmp_path: Path) -> Path:
    """A counterexample file."""
    result = run(
        "hunt", "-p", "dtr", "--claim", "feasibility", "--max-examples", 20_000, "--seed", 3,
        "--out", tmp_path / "found", "--json",
    )  # fmt: skip
    assert result.exit_code == 1
    return Path(document(result)["counterexamples"][0]["file"])


def test_hunt_json(run: Run, tmp_path: Path) -> None:
    result = run("hunt", "-p", "dtr,lru", "--max-examples", 20_000, "--out", tmp_path, "--json")
    assert result.exit_code == 1
    made = document(result)
    assert made["found"] is True
    assert made["searched"] == 40_000
    assert made["seed"] == 0
    assert made["seconds"] > 0
    assert len(made["counterexamples"]) == 2 * 2 * 2
    for one in made["counterexamples"]:
        assert set(one) >= KEYS
        example = load(one["file"])
        assert example.id == one["id"]
        assert list(example.witness) == one["witness"]
        assert example.differences() == []


def test_hunt_for_people(run: Run) -> None:
    result = run("hunt", "-p", "dtr", "--max-examples", 5000, "--claim", "cost")
    assert result.exit_code == 1
    assert "smallest" in result.stdout
    assert "worst" in result.stdout
    nothing = run("hunt", "-p", "dtr", "--max-examples", 50, "--max-ops", 2)
    assert nothing.exit_code == 3
    assert "nothing found; graphs by operators: 50 of 2" in nothing.stdout


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["-p", "dtrr"], "unknown policy"),
        (["-p", "dtr", "--class", "x"], "Invalid value"),
        (["-p", "dtr", "--min-ops", "5", "--max-ops", "4"], "5 to 4 operators"),
        (["-p", "dtr", "--time", "soon"], "length of time"),
        ([], "Missing option"),
    ],
)
def test_wrong_options(run: Run, options: list[str], problem: str) -> None:
    result = run("hunt", *options)
    assert result.exit_code == 2
    assert problem in result.stderr


def test_shrink_a_file(run: Run, found: Path, tmp_path: Path) -> None:
    result = run("shrink", found, "--json")
    assert result.exit_code == 1
    (one,) = document(result)["counterexamples"]
    assert set(one) >= KEYS
    assert one["file"] == str(found.with_name(f"{found.stem}.min.json"))
    assert load(one["file"]).operators <= load(found).operators


def test_shrink_a_trace(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "small.json"
    result = run("shrink", HOLE, "-p", "dtr", "--out", target)
    assert result.exit_code == 1
    assert load(target).operators < 8
    assert "from 8 operators" in result.stdout


def test_nothing_to_shrink(run: Run, tmp_path: Path) -> None:
    result = run("shrink", HOLE, "-p", "dtr", "--between", "18", "19", "--json")
    assert result.exit_code == 0
    assert document(result)["found"] is False
    wrong = run("shrink", HOLE)
    assert wrong.exit_code == 2
    assert "no counterexample" in wrong.stderr


def test_verify_a_file(run: Run, found: Path) -> None:
    result = run("verify", found, "--json")
    assert result.exit_code == 0
    made = document(result)
    assert (made["runs"], made["agree"], made["reference"]) == (2, 2, None)
    told = run("verify", found)
    assert "both runs are as recorded" in told.stdout
    assert "--simrd names none" in told.stdout


def test_verify_a_false_file(run: Run, found: Path) -> None:
    content = json.loads(found.read_text())
    content["above"]["evictions"] += 1
    found.write_text(json.dumps(content))
    result = run("verify", found, "--json")
    assert result.exit_code == 1
    assert document(result)["agree"] == 1
    assert "evictions" in run("verify", found).stdout


def test_verify_needs_one_thing(run: Run, found: Path, tmp_path: Path) -> None:
    assert run("verify").exit_code == 2
    assert run("verify", found, "--golden", found).exit_code == 2
    empty = run("verify", found, "--simrd", tmp_path)
    assert empty.exit_code == 2
    assert "no simrd package" in empty.stderr


@pytest.mark.skipif(
    "MONOFUZZ_SIMRD" not in os.environ, reason="MONOFUZZ_SIMRD names no reference simulator"
)
def test_the_reference_simulator_agrees(run: Run, found: Path) -> None:
    result = run("verify", found, "--simrd", os.environ["MONOFUZZ_SIMRD"], "--json")
    assert result.exit_code == 0
    assert document(result)["agree"] == 2


def test_the_reference_simulator_has_no_nbhd_penalty(tmp_path: Path) -> None:
    from monofuzz.counterexample import examine
    from monofuzz.counterexample.reference import compare
    from tests.examples import five_operators

    example = examine(five_operators(), "nbhd-penalty", "feasibility")
    package = tmp_path / "simrd" / "runtime"
    package.mkdir(parents=True)
    (package / "v2.py").touch()
    assert example is not None
    with pytest.raises(MonofuzzError, match="it has no nbhd-penalty"):
        compare(example, tmp_path)
