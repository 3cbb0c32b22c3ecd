"""`monofuzz check`."""

from __future__ import annotations

import pytest

from tests.cli.support import HOLE, Run, document

KEYS = {"trace", "policy", "claim", "verdict", "witness", "covered", "runs"}


def test_json(run: Run) -> None:
    result = run("check", HOLE, HOLE, "--policy", "dtr", "--policy", "lru", "--json")
    assert result.exit_code == 1
    assert result.stderr == ""
    results = document(result)["results"]
    assert len(results) == 2 * 2 * 2
    assert all(set(one) >= KEYS for one in results)
    assert {(one["policy"], one["claim"]) for one in results} == {
        (policy, claim) for policy in ("dtr", "lru") for claim in ("feasibility", "cost")
    }


@pytest.mark.parametrize("claim", ["feasibility", "cost"])
def test_one_claim(run: Run, claim: str) -> None:
    (one,) = document(run("check", HOLE, "-p", "dtr", "--claim", claim, "--json"))["results"]
    assert one["claim"] == claim
    assert one["verdict"] == "refuted"


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        ((), 1, "refuted"),
        (("--claim", "feasibility", "--between", "20", "36"), 0, "monotone"),
        (("--claim", "feasibility", "--between", "20", "36", "--max-runs", "2"), 3, "undecided"),
    ],
)
def test_exit_codes(run: Run, options: tuple[str, ...], code: int, word: str) -> None:
    result = run("check", HOLE, "-p", "dtr", *options)
    assert result.exit_code == code
    assert word in result.stdout


def test_a_refutation_outweighs_what_is_undecided(run: Run) -> None:
    options = ("--limit", "1.2", "--between", "18", "30")
    assert run("check", HOLE, "-p", "dtr", *options).exit_code == 1
