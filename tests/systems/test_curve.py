"""What is said about measured curves: right where the truth is known, and no more than is known."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import monofuzz
from benchmarks.measured import INVERSIONS, NOISES, SHAPES, detected, false_alarms
from monofuzz.errors import TableError, UsageError
from monofuzz.systems.curve import Measured, check_measured

Rows = list[dict[str, Any]]


def outcomes(**budgets: str) -> Rows:
    """A run for each letter: ``b10="oof"`` is ok, ok, failed at a budget of 10."""
    words = {"o": "ok", "f": "oom", "t": "thrashed", "x": "timeout"}
    return [
        {"budget": int(name[1:]), "outcome": words[letter]}
        for name, letters in budgets.items()
        for letter in letters
    ]


def times(curve: Sequence[float], repeats: int, noise: float, seed: int = 0) -> Rows:
    random = np.random.default_rng(seed)
    return [
        {"budget": i + 1, "time": float(cost * np.exp(noise * random.standard_normal()))}
        for i, cost in enumerate(curve)
        for _ in range(repeats)
    ]


def feasibility(rows: Rows, **how: Any) -> Measured:
    (one,) = check_measured(rows, claims=("feasibility",), **how)
    return one


def cost(rows: Rows, **how: Any) -> Measured:
    (one,) = check_measured(rows, claims=("cost",), **how)
    return one


# -- what people reported -------------------------------------------------------------------------


def test_runs_at_three_quarters_and_fails_with_more() -> None:
    rows = [{"budget": 0.75, "outcome": "ok"}, {"budget": 0.93, "outcome": "failed"}]
    found = feasibility(rows)
    assert found.verdict == "refuted"
    assert found.witness is not None
    assert (found.witness.below.budget, found.witness.above.budget) == (0.75, 0.93)
    assert found.witness.p is None
    assert found.reason == "ok at 0.75 (1 run), failed at 0.93 (1 run)"


def test_measured_peaks_that_are_not_monotone() -> None:
    peaks = zip((0.05, 0.1, 0.15, 0.2, 0.3), (1145, 508, 275, 325, 411), strict=True)
    rows = [{"budget": budget, "outcome": "ok", "peak": peak} for budget, peak in peaks]
    single = cost(rows, column="peak", rising=True)
    assert single.verdict == "undecided"
    assert single.repeats[0].budgets == (0.05, 0.15)
    assert single.repeats[0].runs == (4, 4)
    exact = cost(rows, column="peak", rising=True, noise=0)
    assert exact.verdict == "refuted"
    assert exact.witness is not None
    assert (exact.witness.below.budget, exact.witness.above.budget) == (0.05, 0.15)
    assert exact.witness.factor == pytest.approx(1145 / 275)
    assert exact.found == 7
    assert cost(rows, column="peak", rising=True, noise=0, tolerance=3.5).verdict == "undecided"
    assert cost(rows, column="peak", rising=True, noise=0.02).verdict == "refuted"
    # Nor does it fall all the way.
    assert cost(rows, column="peak", noise=0).found == 3


def test_sweeps_that_disagree_need_pairing() -> None:
    """Throughput against cache size; the machine was slower on some days than on others."""
    random = np.random.default_rng(3)
    true = {4: 10.0, 8: 10.4, 16: 9.4}
    days = np.exp(0.3 * random.standard_normal(8))
    rows = [
        {
            "budget": size,
            "throughput": rate * day * np.exp(0.01 * random.standard_normal()),
            "sweep": f"day {i}",
        }
        for i, day in enumerate(days)
        for size, rate in true.items()
    ]
    together = cost(rows)
    assert together.paired
    assert together.verdict == "refuted"
    assert together.witness is not None
    assert (together.witness.below.budget, together.witness.above.budget) == (8, 16)
    assert together.witness.factor == pytest.approx(10.4 / 9.4, rel=0.02)
    apart = cost([{k: v for k, v in row.items() if k != "sweep"} for row in rows])
    assert not apart.paired
    assert apart.verdict == "undecided"


def test_different_budgets_on_different_days_say_nothing() -> None:
    """The larger budgets were all measured on the slow day."""
    rows = [
        {"budget": budget, "time": (1 + day) * (1 + 0.001 * i), "sweep": day}
        for day, budgets in ((0, (1, 2)), (1, (3, 4)))
        for budget in budgets
        for i in range(10)
    ]
    found = cost(rows)
    assert found.verdict == "undecided"
    assert found.comparisons == 0
    assert found.reason.startswith("no two budgets are together in two sweeps, so that the noise")


def test_days_with_one_budget_each_are_not_compared() -> None:
    rows = [
        {"budget": budget, "time": time, "sweep": day}
        for budget, day, times in (
            (4, "monday", (10.0, 10.1, 9.9, 10.0)),
            (8, "tuesday", (12.0, 12.1, 11.9, 12.0)),
        )
        for time in times
    ]
    assert cost(rows).verdict == "undecided"
    assert cost(rows, noise=0).verdict == "undecided"
    assert cost([{**row, "sweep": "all"} for row in rows]).verdict == "refuted"


# -- feasibility ----------------------------------------------------------------------------------


def test_never_monotone() -> None:
    for found in check_measured(times([5, 4, 3], 10, 0.01)):
        assert found.verdict == "undecided"


@pytest.mark.parametrize(
    ("table", "verdict"),
    [
        ({"b1": "f", "b2": "o"}, "undecided"),
        ({"b1": "f", "b2": "f"}, "undecided"),
        ({"b1": "o", "b2": "f"}, "refuted"),
        ({"b1": "o", "b2": "f", "b3": "o"}, "refuted"),
        # Timeouts never count, thrashed runs only if they are asked for.
        ({"b1": "o", "b2": "x"}, "undecided"),
        ({"b1": "o", "b2": "t"}, "undecided"),
        # Seen once to go either way: chance until there is more.
        ({"b1": "o", "b2": "of"}, "undecided"),
        ({"b1": "of", "b2": "f"}, "undecided"),
        ({"b1": "o", "b2": "of", "b3": "f"}, "undecided"),
        ({"b1": "oooo", "b2": "of", "b3": "ffff"}, "refuted"),
        ({"b1": "o" * 20, "b2": "o" * 10 + "f" * 10}, "refuted"),
    ],
)
def test_feasibility(table: dict[str, str], verdict: str) -> None:
    assert feasibility(outcomes(**table)).verdict == verdict


def test_thrashed_runs_may_count_as_failures() -> None:
    rows = outcomes(b1="o", b2="t")
    assert feasibility(rows, thrash_as="infeasible").verdict == "refuted"
    assert "not counted: 1 run that thrashed or timed out" in feasibility(rows).reason


def test_flaky_budgets_are_named_and_no_witnesses() -> None:
    found = feasibility(outcomes(b1="o", b2="off", b3="f"))
    assert [(point.budget, point.ok, point.failed) for point in found.flaky] == [(2, 1, 2)]
    assert "at 2 (2 of 3 runs failed)" in found.reason
    assert found.witness is None
    assert found.repeats


def test_the_best_supported_witness_comes_first() -> None:
    found = feasibility(outcomes(b1="ooo", b2="f", b3="o", b5="fff", b6="o", b7="f"))
    assert found.witness is not None
    # 3 is closer to 5, but was run once.
    assert found.witness.above.budget == 2
    assert found.found == 3


def test_random_failures_are_no_inversion() -> None:
    """A tenth of the runs fails, whatever the budget: refuted at most as often as promised."""
    random = np.random.default_rng(11)
    refuted = 0
    for _ in range(200):
        table = {
            f"b{b}": "".join("of"[int(random.random() < 0.3)] for _ in range(8)) for b in range(8)
        }
        refuted += feasibility(outcomes(**table)).verdict == "refuted"
    assert refuted <= 200 * 0.05


def test_what_is_suggested_would_decide() -> None:
    found = feasibility(outcomes(b1="o", b2="of", b3="f"))
    step = found.repeats[0]
    enough = {f"b{b}": "" for b in (1, 2, 3)} | {"b2": "of"}
    enough["b1"], enough["b3"] = "o" * (1 + step.runs[0]), "f" * (1 + step.runs[1])
    assert step.budgets == (1, 3)
    assert feasibility(outcomes(**enough)).verdict == "refuted"


# -- cost -----------------------------------------------------------------------------------------


def test_an_inversion_with_its_size() -> None:
    found = cost(times([100, 90, 99, 70], 10, 0.02))
    assert found.verdict == "refuted"
    witness = found.witness
    assert witness is not None
    assert (witness.below.budget, witness.above.budget) == (2, 3)
    assert witness.factor is not None
    assert witness.at_least is not None
    assert witness.interval is not None
    assert witness.p is not None
    assert 1 < witness.at_least < witness.interval[0] < witness.factor < witness.interval[1]
    assert witness.interval[0] < 1.1 < witness.interval[1]
    assert witness.p < 1e-6
    assert found.comparisons == 6


def test_a_tolerance_is_tolerated() -> None:
    rows = times([100, 90, 99, 70], 10, 0.005)
    assert cost(rows, tolerance=0.05).verdict == "refuted"
    assert cost(rows, tolerance=0.11).verdict == "undecided"


def test_one_run_a_budget_decides_nothing() -> None:
    found = cost(times([1, 2, 1, 4], 1, 0))
    assert found.verdict == "undecided"
    assert found.reason.startswith("fewer than two budgets were measured twice")
    assert found.repeats[0].budgets == (1, 4)
    assert cost(times([4, 3, 2, 1], 1, 0)).repeats == ()


def test_budgets_measured_once_beside_others() -> None:
    rows = [*times([5, 5, 5], 5, 0.01), {"budget": 9, "time": 7.0}]
    found = cost(rows)
    assert found.verdict == "undecided"
    assert found.comparisons == 3
    assert any(step.budgets[1] == 9 for step in found.repeats)


def test_repeats_that_agree_exactly_have_no_noise() -> None:
    found = cost(times([5, 4, 4.5], 3, 0))
    assert found.verdict == "refuted"
    assert found.witness is not None
    assert found.witness.factor == pytest.approx(4.5 / 4)
    assert cost(times([5, 4.5, 4], 3, 0)).verdict == "undecided"


def test_a_difference_as_small_as_the_times_are_written_is_none() -> None:
    written = [{"budget": b, "time": t} for b, t in ((1, "12"), (2, "13")) for _ in range(5)]
    assert cost(written).verdict == "undecided"
    finer = [{"budget": b, "time": t} for b, t in ((1, "12.00"), (2, "13.00")) for _ in range(5)]
    assert cost(finer).verdict == "refuted"


def test_two_modes_in_three_runs_are_not_two_budgets() -> None:
    """All three runs of one budget in the fast mode, of another in the slow: it happens."""
    slow = {1: "fsf", 2: "fff", 3: "sss", 4: "sfs", 5: "ffs"}
    rows = [
        {"budget": b, "time": 1.0 + 0.35 * (mode == "s") + 0.001 * i}
        for b, modes in slow.items()
        for i, mode in enumerate(modes)
    ]
    assert cost(rows).verdict == "undecided"


def test_times_of_failed_runs_do_not_count() -> None:
    rows = times([5, 4], 6, 0.01)
    rows = [row | {"outcome": "ok"} for row in rows]
    rows += [{"budget": 2, "time": 100.0, "outcome": "oom"}] * 6
    assert cost(rows).verdict == "undecided"


def test_the_suggested_repeats_decide_as_often_as_they_say() -> None:
    """Nine times in ten, if the rise is what it seemed; some estimates of the noise are off."""
    tried = hits = 0
    for seed in range(40):
        found = cost(times([100.0, 90.0, 96.0, 70.0], 4, 0.05, seed))
        for step in found.repeats[:1]:
            if step.budgets != (2, 3):
                continue
            rise = float(step.why.split(" times")[0].split()[-1])
            curve = [100.0, 90.0, 90.0 * rise, 70.0]
            more = times(curve, step.runs[0], 0.05, seed + 1000)
            rows = times(curve, 4, 0.05, seed + 2000) + [r for r in more if r["budget"] in (2, 3)]
            tried += 1
            hits += cost(rows).verdict == "refuted"
    assert tried >= 20
    assert hits >= 0.75 * tried


def test_what_would_have_been_found_is_found() -> None:
    silent = cost(times([100.0, 100.0, 100.0], 10, 0.05))
    assert silent.detectable is not None
    assert "would have been found with a probability of 90%" in silent.reason
    rise = silent.detectable
    hits = sum(
        cost(times([100.0, 100.0, 100.0 * rise], 10, 0.05, seed)).verdict == "refuted"
        for seed in range(100)
    )
    assert hits >= 80


@given(st.permutations(range(30)), st.sampled_from([1e-6, 1.0, 1e9]))
def test_neither_order_nor_unit_matters(order: list[int], unit: float) -> None:
    rows = times([100, 90, 99], 10, 0.05)
    same = [rows[i] | {"time": rows[i]["time"] * unit} for i in order]
    one, other = cost(rows), cost(same)
    assert one.verdict == other.verdict
    assert one.detectable == pytest.approx(other.detectable)


@given(
    st.lists(
        st.tuples(
            st.integers(1, 4),
            st.sampled_from(["ok", "oom", "thrashed", "timeout"]),
            st.one_of(st.none(), st.floats(1e-3, 1e3)),
            st.sampled_from("ab"),
        ),
        min_size=1,
        max_size=25,
    ),
    st.booleans(),
    st.sampled_from([None, 0.0, 0.1]),
)
def test_whatever_was_measured_gets_an_answer(
    runs: list[tuple[int, str, float | None, str]], swept: bool, noise: float | None
) -> None:
    rows = [
        {"budget": b, "outcome": o, "time": t} | ({"sweep": s} if swept else {})
        for b, o, t, s in runs
    ]
    for found in check_measured(rows, noise=noise):
        assert found.verdict in ("refuted", "undecided")
        assert (found.verdict == "refuted") == (found.witness is not None) == (found.found > 0)
        assert len(found.inversions) == min(found.found, 100)
        for one in found.inversions:
            assert one.below.budget < one.above.budget
            assert one.p is None or one.p <= found.alpha
            assert one.claim != "cost" or (one.at_least or 0) > 1 or noise == 0
        # Infinities and NaN are not JSON.
        json.dumps(found.to_json(), allow_nan=False)


# -- the promises ---------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", NOISES)
def test_false_alarms(noise: str) -> None:
    """At most 5% is promised; 100 curves leave room for chance (a probability below 0.002)."""
    assert false_alarms("flat", noise, 6, 6, 100) <= 0.12


def swept(curve: Sequence[float], sweeps: int, seed: int) -> Rows:
    """Each sweep measures every budget once; sweeps differ by 30%, runs in them by 5%."""
    random = np.random.default_rng(seed)
    return [
        {"budget": i, "time": cost * day * np.exp(0.05 * random.standard_normal()), "sweep": sweep}
        for sweep, day in enumerate(np.exp(0.3 * random.standard_normal(sweeps)))
        for i, cost in enumerate(curve)
    ]


def test_sweeps_keep_the_promises() -> None:
    alarms = sum(cost(swept([10.0] * 6, 8, seed)).verdict == "refuted" for seed in range(100))
    assert alarms <= 12
    tooth = [10.0, 9.0, 8.1, 8.91, 8.0]
    found = sum(cost(swept(tooth, 10, seed)).verdict == "refuted" for seed in range(100))
    assert found >= 75


@pytest.mark.parametrize("inversion", INVERSIONS)
def test_power(inversion: str) -> None:
    """At least 90% is wanted of 10% at 5% noise with 10 repeats; chance may cost some."""
    assert detected(inversion, 8, 10, 100) >= 0.83


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("noise", NOISES)
def test_false_alarms_of_a_thousand(shape: str, noise: str) -> None:
    assert false_alarms(shape, noise, 8, 10, 1000) <= 0.05 + 3 * 0.0069


@pytest.mark.slow
@pytest.mark.parametrize("inversion", INVERSIONS)
def test_power_of_a_thousand(inversion: str) -> None:
    assert detected(inversion, 8, 10, 1000) >= 0.9 - 3 * 0.0095


# -- misuse ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"claims": ()}, "no claim"),
        ({"claims": ("speed",)}, "unknown claim"),
        ({"alpha": 0}, "alpha"),
        ({"alpha": 0.9}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"tolerance": -1}, "tolerance"),
        ({"tolerance": math.inf}, "tolerance"),
        ({"thrash_as": "ok"}, "thrash_as"),
        ({"noise": -0.1}, "noise"),
        ({"noise": math.nan}, "noise"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        check_measured(outcomes(b1="o"), **options)


def test_what_is_no_table() -> None:
    with pytest.raises(UsageError, match="a table is a file or a list of rows, not 5"):
        check_measured(5)  # type: ignore[arg-type]
    with pytest.raises(TableError, match="no such file"):
        check_measured("missing.csv")


def test_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"monofuzz\[stats\]"):
        check_measured(outcomes(b1="o"))


def test_the_public_name() -> None:
    assert monofuzz.check_measured is check_measured
