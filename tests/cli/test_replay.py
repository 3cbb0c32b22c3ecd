"""`monofuzz replay`."""

from __future__ import annotations

import json

import pytest

from tests.cli.support import HOLE, Run

KEYS = {
    "trace",
    "policy",
    "budget",
    "ratio",
    "status",
    "model_compute",
    "remat_compute",
    "overhead",
    "evictions",
    "evictions_all",
    "distinct_evicted",
    "remats",
    "victims_sha256",
    "interval",
    "peak_memory",
    "peak_pinned",
    "depth_at_peak_pinned",
    "max_depth",
    "fail",
}


def test_json_is_one_object_a_budget(run: Run) -> None:
    result = run("replay", HOLE, "--policy", "dtr", "--budget", "18", "19", "20", "1.0", "--json")
    assert result.exit_code == 0
    assert result.stderr == ""
    runs = [json.loads(line) for line in result.stdout.splitlines()]
    assert all(set(one) >= KEYS for one in runs)
    assert [one["budget"] for one in runs] == [18, 19, 20, 35]
    assert [one["status"] for one in runs] == ["ok", "oom", "ok", "ok"]
    assert [one["ratio"] for one in runs] == [18 / 35, 19 / 35, 20 / 35, 1.0]
    assert [one["interval"] for one in runs] == [[18, 19], [19, 20], [20, 21], [35, None]]
    assert [one["fail"] is None for one in runs] == [True, False, True, True]
    assert set(runs[1]["fail"]) == {"pinned_bytes", "request", "depth", "over_by"}
    assert {one["trace"] for one in runs} == {"hole"}
    assert {one["policy"] for one in runs} == {"dtr"}


def test_budgets_may_be_said_in_every_way(run: Run) -> None:
    texts = ("18", "0.52", "52%", "18B")
    result = run("replay", HOLE, "-p", "dtr", *(f"--budget={text}" for text in texts), "--json")
    assert [json.loads(line)["budget"] for line in result.stdout.splitlines()] == [18] * 4


def test_policy_is_shown_in_its_canonical_form(run: Run) -> None:
    result = run("replay", HOLE, "-p", "nbhd-penalty:b=0.250", "-b", "1.0", "--json")
    assert json.loads(result.stdout)["policy"] == "nbhd-penalty"


def test_one_run_in_words(run: Run) -> None:
    result = run("replay", HOLE, "-p", "dtr", "-b", "19")
    assert result.exit_code == 0
    assert "out of memory" in result.stdout
    assert "a request of 4 bytes was 1 byte too much" in result.stdout


def test_several_runs_in_a_table(run: Run) -> None:
    result = run("replay", HOLE, "-p", "dtr", "-b", "18", "19")
    lines = result.stdout.splitlines()
    assert lines[0] == "hole under dtr, peak 35 bytes"
    assert lines[2].split()[:2] == ["budget", "bytes"]
    assert "0.514286" in lines[3]
    assert "1.312x" in lines[3]


@pytest.mark.parametrize(("limit", "status"), [("60", "ok"), ("none", "ok"), ("1.1", "thrashed")])
def test_compute_limit(run: Run, limit: str, status: str) -> None:
    result = run("replay", HOLE, "-p", "dtr", "-b", "20", "--limit", limit, "--json")
    assert json.loads(result.stdout)["status"] == status


def test_alignment_rounds_sizes_up(run: Run) -> None:
    result = run("replay", HOLE, "-p", "dtr", "-b", "1.0", "--align", "512", "--json")
    assert json.loads(result.stdout)["budget"] % 512 == 0
