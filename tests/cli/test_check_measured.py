"""`monofuzz check` on tables of measurements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from monofuzz.cli.main import cli
from tests.cli.support import HOLE, document
from tests.cli.test_check import KEYS

Check = Callable[..., Result]

NOISY = "budget,outcome,time\n" + "".join(
    f"{budget},ok,{time}\n"
    for budget, times in {
        "0.5": ("2.01", "2.03", "1.98", "2.02", "1.99", "2.00"),
        "0.6": ("1.51", "1.49", "1.50", "1.52", "1.48", "1.50"),
        "0.7": ("1.70", "1.72", "1.69", "1.71", "1.68", "1.70"),
    }.items()
    for time in times
)


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Checks a table with that content."""
    monkeypatch.chdir(tmp_path)

    def checks(content: str, *options: str, name: str = "measured.csv") -> Result:
        (tmp_path / name).write_text(content, encoding="utf-8")
        return command("check", name, *options)

    return checks


def command(*words: str, given: str | None = None) -> Result:
    result = CliRunner().invoke(cli, list(words), input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_failure_above_a_success(check: Check) -> None:
    result = check("budget,outcome\n0.75,ok\n0.93,failed\n")
    assert result.exit_code == 1
    assert result.stderr == ""
    assert result.stdout == (
        "measured.csv, 2 runs at 2 budgets\n"
        "  feasibility  refuted: ok at 0.75 (1 run), failed at 0.93 (1 run)\n"
        "  cost         undecided: no run that was ok has a time\n"
    )


def test_a_rise_above_the_noise(check: Check) -> None:
    result = check(NOISY)
    assert result.exit_code == 1
    assert "  feasibility  undecided: no run failed with more than another was ok" in result.stdout
    assert "  cost         refuted: 1.133 times the cost at 0.7 compared with 0.6" in result.stdout


def test_json(check: Check) -> None:
    result = check(NOISY, "--json")
    assert result.exit_code == 1
    first, second = document(result)["results"]
    assert set(first) >= KEYS
    assert (first["trace"], first["policy"], first["measured"]) == ("measured.csv", "", True)
    assert (first["claim"], first["verdict"], first["witness"]) == (
        "feasibility",
        "undecided",
        None,
    )
    assert (second["claim"], second["verdict"], second["runs"]) == ("cost", "refuted", 18)
    assert second["witness"]["budgets"] == [0.6, 0.7]
    assert second["witness"]["factor"] == pytest.approx(1.133, abs=1e-3)
    assert second["witness"]["p"] < 0.001
    assert second["covered"] == 0


def test_undecided_says_what_to_measure(check: Check) -> None:
    result = check("budget,time\n1,10\n2,12\n", "--claim", "cost")
    assert result.exit_code == 3
    assert "fewer than two budgets were measured twice" in result.stdout
    assert (
        "next: 4 more runs at 1 and at 2 each: 2 seems to cost 1.2 times as much" in result.stdout
    )


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 3),
        (("--noise", "0"), 1),
        (("--noise", "5%"), 1),
        (("--noise", "5%", "--tolerance", "30%"), 3),
        (("--noise", "10%"), 3),
        (("--noise", "10%", "--alpha", "0.2"), 1),
    ],
)
def test_options(check: Check, options: tuple[str, ...], code: int) -> None:
    assert check("budget,time\n1,10\n2,12.00\n", *options, "--claim", "cost").exit_code == code


def test_column_and_peak(check: Check) -> None:
    table = "budget,time,peak\n50%,1,275\n3GiB,1,411\n"
    refused = check(table, "--column", "peak", "--noise", "0")
    assert refused.exit_code == 2
    assert "measured.csv:3: '3GiB' beside '50%'" in refused.stderr
    assert check(table, "--column", "peak", "--noise", "0", "--peak", "4GiB").exit_code == 1


def test_standard_input() -> None:
    assert command("check", "-", "--claim", "cost", given=NOISY).stdout.startswith("<stdin>, 18 ru")
    trace = Path(HOLE).read_text()
    words = ("check", "-", "-p", "dtr", "--engine", "interpreted", "--claim", "feasibility")
    assert command(*words, given=trace).exit_code == 1


def test_tables_and_traces_together(check: Check) -> None:
    result = check(NOISY, HOLE, "-p", "dtr", "--engine", "interpreted", "--json")
    results: list[dict[str, Any]] = document(result)["results"]
    assert [one["policy"] for one in results] == ["", "", "dtr", "dtr"]


def test_flaky_budgets_are_shown(check: Check) -> None:
    result = check("budget,outcome\n1,ok\n2,ok\n2,oom\n")
    assert result.exit_code == 3
    assert "  flaky        2 (1 of 2 runs failed)\n" in result.stdout


@pytest.mark.parametrize(
    ("content", "options", "problem"),
    [
        (NOISY, ("-p", "dtr"), "--policy means nothing for a table of measurements"),
        (NOISY, ("--max-runs", "3"), "--max-runs means nothing"),
        (NOISY, ("--between", "0", "1"), "--between means nothing"),
        (NOISY, ("--alpha", "0"), "--alpha"),
        (NOISY, ("--alpha", "nan"), "alpha"),
        (NOISY, ("--noise", "loud"), "--noise"),
        (NOISY, ("--column", "tmie"), "did you mean time"),
        (NOISY, ("--peak", "0.5"), "is a ratio"),
        ("budget,outcome\nnan,ok\n", (), "measured.csv:2: budget 'nan' is not understood"),
        ("budget,outcome\n-1,ok\n", (), "(field budget)"),
        ("budget,outcome\n", (), "measured.csv:1: there are no rows"),
    ],
)
def test_wrong_use(check: Check, content: str, options: tuple[str, ...], problem: str) -> None:
    result = check(content, *options)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("content", "why"), [("", "it is empty"), ("memory,time\n1,2\n", "names no column 'budget'")]
)
def test_files_that_are_neither(check: Check, content: str, why: str) -> None:
    result = check(content)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: measured.csv is no table of measurements (it")
    assert why in result.stderr
    assert "no such file" in command("check", "missing.csv").stderr


def test_traces_want_a_policy_and_no_alpha() -> None:
    result = command("check", HOLE)
    assert result.exit_code == 2
    assert "names no column 'budget'), and a trace needs a policy: --policy" in result.stderr
    assert "--alpha is for tables" in command("check", HOLE, "-p", "dtr", "--alpha", "0.1").stderr
