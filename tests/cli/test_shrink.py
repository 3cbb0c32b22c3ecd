"""`monofuzz shrink`: what it is given, and what comes of it when that is wrong or ends early."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

import monofuzz
from monofuzz.counterexample import Counterexample, load
from monofuzz.shrink import Interest, complexity
from monofuzz.trace import Trace
from tests.cli.support import HOLE, Run, document


@pytest.fixture
def found(run: Run, tmp_path: Path) -> Path:
    target = tmp_path / "hole.json"
    run("shrink", HOLE, "-p", "dtr", "--budgets", "18", "19", "--out", target)
    return target


def test_two_budgets_are_enough(found: Path) -> None:
    example = load(found)
    assert example.operators < 8
    assert example.found["kept"] == "any"
    assert "stopped" not in example.found


def test_budgets_that_show_nothing_are_refused(run: Run) -> None:
    for budgets in (("19", "20"), ("19", "18"), ("20", "21")):
        result = run("shrink", HOLE, "-p", "dtr", "--budgets", *budgets)
        assert result.exit_code == 2
        assert "do not break the feasibility claim" in result.stderr
    assert run("shrink", HOLE, "-p", "dtr", "--budgets", "18", "much").exit_code == 2


@pytest.mark.parametrize(
    "options", [("--budgets", "18", "19"), ("--claim", "cost"), ("--between", "0.1", "1.0")]
)
def test_what_a_file_says_itself_is_not_to_be_told(
    run: Run, found: Path, options: tuple[str, ...]
) -> None:
    result = run("shrink", found, *options)
    assert result.exit_code == 2
    assert f"{options[0]} is for a TRACE" in result.stderr


def test_a_file_has_its_policy(run: Run, found: Path) -> None:
    result = run("shrink", found, "-p", "dtr")
    assert result.exit_code == 2
    assert "leave --policy out" in result.stderr


def test_where_it_cannot_be_written_is_told_before_the_work(
    run: Run, found: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: object, **__: object) -> None:
        raise AssertionError("shrinking has begun")

    monkeypatch.setattr("monofuzz.shrink.shrink", work)
    result = run("shrink", found, "--out", tmp_path / "none" / "small.json")
    assert result.exit_code == 2
    assert "folder does not exist" in result.stderr


@pytest.mark.parametrize("keep", ["any", "severity", "signature"])
def test_what_is_kept(run: Run, found: Path, keep: str) -> None:
    result = run("shrink", found, "--keep", keep, "--jobs", "2", "--json")
    assert result.exit_code == 1
    (one,) = document(result)["counterexamples"]
    assert one["signature"]["depth"] >= 1
    assert load(one["file"]).differences() == []


def test_the_largest_factor_of_cost_is_shrunk(run: Run, tmp_path: Path) -> None:
    result = run("shrink", HOLE, "-p", "dtr", "--claim", "cost", "--json", "--out", tmp_path / "c")
    assert result.exit_code == 1
    (one,) = document(result)["counterexamples"]
    assert one["claim"] == "cost"
    assert one["severity"] > 1
    kept = run(
        *("shrink", HOLE, "-p", "dtr", "--claim", "cost", "--keep", "severity", "--json"),
        *("--out", tmp_path / "d"),
    )
    (worst,) = document(kept)["counterexamples"]
    assert worst["severity"] >= one["severity"]


def test_an_interrupt_keeps_what_was_found(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = itertools.count()
    judge = Interest.__call__

    def interrupted(self: Interest, trace: Trace) -> Counterexample | None:
        if next(asked) == 40:
            raise KeyboardInterrupt
        return judge(self, trace)

    monkeypatch.setattr(Interest, "__call__", interrupted)
    target = tmp_path / "small.json"
    result = run("shrink", HOLE, "-p", "dtr", "--out", target)
    assert result.exit_code == 130
    assert "stopped early" in result.stdout
    example = load(target)
    assert example.found["stopped"] == "interrupted"
    assert example.found["tried"] <= 41
    assert complexity(example.trace) < complexity(monofuzz.load(HOLE))
    assert example.differences() == []


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 0.999])
def test_truncated_files_are_one_sentence(run: Run, found: Path, share: float) -> None:
    data = found.read_bytes()
    found.write_bytes(data[: int(len(data) * share)])
    result = run("shrink", found)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


def test_files_that_lie_are_refused(run: Run, found: Path) -> None:
    content = json.loads(found.read_text())
    for name, value, problem in (
        ("policy", "no-such-policy", "unknown policy"),
        ("policy", "lru", "the file was changed"),
        ("operators", 10**30, "operators"),
        ("witness", [1, 2], "witness"),
    ):
        found.write_text(json.dumps(content | {name: value}))
        result = run("shrink", found)
        assert result.exit_code == 2
        assert problem in result.stderr
    content["above"]["remats"] += 1
    found.write_text(json.dumps(content))
    result = run("shrink", found)
    assert result.exit_code == 2
    assert "does not replay" in result.stderr
