"""Exploring: the map is what brute force finds, whatever the order, the threads, the limits."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monofuzz.errors import BudgetError, MonofuzzError, UsageError
from monofuzz.search import Map, check, map_budgets
from monofuzz.search.mapping import (
    MonotonicityUndecided,
    MonotonicityViolation,
    assert_monotone,
)
from tests.search.toys import BatchSteps, Steps, ToyResult, step_lists

SPAN = 60
RANGE = (5, SPAN + 10)


def by_brute_force(system: Steps, lo: int, hi: int) -> list[tuple[int, int, str, float, bool]]:
    """The regimes: neighbouring budgets with the same outcome are one."""
    regimes: list[tuple[int, int, str, float, bool]] = []
    for budget in range(lo, hi):
        result = system.expect(budget)
        what = (result.status, result.cost, result.certified)
        if regimes and regimes[-1][2:] == what:
            regimes[-1] = (regimes[-1][0], budget + 1, *what)
        else:
            regimes.append((budget, budget + 1, *what))
    return regimes


def shown(found: Map) -> list[tuple[int, int, str, float, bool]]:
    return [(r.lo, r.hi, r.status, r.cost, r.certified) for r in found.regimes]


def intervals(system: Steps, lo: int, hi: int) -> int:
    return len({system.expect(b).interval for b in range(lo, hi)})


def many_steps(count: int, *, seed: int = 0, span: int = 10**9) -> list[tuple[int, str, float]]:
    rng = np.random.default_rng(seed)
    starts = np.unique(rng.integers(1, span, count - 1)).tolist()
    starts = [0, *starts]
    statuses = np.array(["ok", "ok", "ok", "oom"])[rng.integers(0, 4, len(starts))].tolist()
    costs = rng.integers(10, 60, len(starts)).tolist()
    return list(zip(starts, statuses, costs, strict=True))


@given(step_lists(span=SPAN), st.booleans())
@settings(deadline=None)
def test_the_map_is_what_brute_force_finds(
    steps: list[tuple[int, str, float]], certified: bool
) -> None:
    maps = []
    for direction in ("adaptive", "up", "down"):
        for jobs in (0, 1, 2):
            system = BatchSteps(steps, certified=certified)
            found = map_budgets(system, between=RANGE, jobs=jobs, direction=direction)
            assert shown(found) == by_brute_force(system, *RANGE)
            inside = [b for b in system.runs if b < RANGE[1]]
            assert len(inside) == found.runs == intervals(system, *RANGE), "no run is wasted"
            assert found.certified is certified
            assert found.stopped == "complete"
            maps.append(found)
    assert all(other == maps[0] and other.runs == maps[0].runs for other in maps)


@given(step_lists(span=SPAN), st.integers(0, 12), st.sampled_from(["adaptive", "up", "down"]))
@settings(deadline=None)
def test_what_is_known_early_is_true_and_runs_are_limited(
    steps: list[tuple[int, str, float]], most: int, direction: Any
) -> None:
    system = BatchSteps(steps)
    found = map_budgets(system, between=RANGE, jobs=2, max_runs=most, direction=direction)
    needed = intervals(system, *RANGE)
    assert found.runs == min(most, needed)
    assert found.stopped == ("complete" if most >= needed else "max-runs")
    for regime in found.regimes:
        for budget in range(regime.lo, regime.hi):
            expected = system.expect(budget)
            assert (regime.status, regime.cost) == (expected.status, expected.cost)
    assert found.certified is (most >= needed)


@given(step_lists(span=SPAN), st.sets(st.integers(0, SPAN), max_size=6))
@settings(deadline=None)
def test_timeouts_are_regimes_of_one_budget_and_exploring_ends(
    steps: list[tuple[int, str, float]], timeouts: set[int]
) -> None:
    for direction in ("adaptive", "up", "down"):
        system = BatchSteps(steps, timeouts=frozenset(timeouts))
        found = map_budgets(system, between=RANGE, jobs=2, direction=direction)
        for regime in found.regimes:
            for budget in range(regime.lo, regime.hi):
                expected = system.expect(budget)
                # An interval may hold a budget that would have timed out, had it been asked.
                if expected.status != "timeout" or regime.status == "timeout":
                    assert (regime.status, regime.cost) == (expected.status, expected.cost)
        timed_out = [r for r in found.regimes if r.status == "timeout"]
        assert all(not r.certified for r in timed_out)
        assert found.certified is not (bool(timed_out) or bool(found.gaps))
        if found.gaps:
            assert found.stopped == "timeouts"


def test_a_stretch_of_timeouts_costs_few_runs() -> None:
    everywhere = frozenset(range(1000, 900_000))
    system = BatchSteps([(0, "ok", 10)], timeouts=everywhere)
    system.expect = lambda b: (  # type: ignore[method-assign]
        ToyResult("timeout", 0, 0, (b, b + 1), certified=False)
        if b in everywhere
        else ToyResult("ok", 10, 1.0, (0, 1000) if b < 1000 else (900_000, None))
    )
    found = map_budgets(system, between=(0, 10**6), jobs=2)
    assert found.stopped == "timeouts"
    assert len(system.runs) < 100
    assert found.covered == pytest.approx(0.101)
    limited = map_budgets(system, between=(0, 10**6), jobs=2, max_runs=300)
    assert (limited.stopped, limited.runs) == ("max-runs", 300)


class WithoutIntervals:
    """The least that a system can be."""

    def __init__(self) -> None:
        self.runs = 0

    def run(self, budget: int) -> Any:
        self.runs += 1

        class Bare:
            status = "ok" if budget > 400_000 or 1000 < budget < 2000 else "oom"
            cost = overhead = 1.5
            interval = (0, 10**9)
            certified = False

        return Bare()


def test_a_system_without_intervals_is_sampled_adaptively() -> None:
    system = WithoutIntervals()
    found = map_budgets(system, between=(0, 10**6), max_runs=60)
    assert system.runs == found.runs == 60
    assert found.sampled
    assert not found.certified
    assert found.origin.trace == "WithoutIntervals"
    edge = next(r for r in found.regimes if r.status == "ok")
    assert edge.lo == 400_001, "changes of status are closed in on first"
    assert found.at(400_000) is not None
    assert found.verdict("feasibility").verdict == "undecided"
    assert "sampled" in found.verdict("feasibility").reason


def test_sampling_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monofuzz.search.explorer.SAMPLED_RUNS", 50)
    found = map_budgets(WithoutIntervals(), between=(0, 10**6))
    assert found.stopped == "sampled"
    assert 50 <= found.runs < 200


def test_edges_come_before_wide_gaps() -> None:
    steps = [(0, "oom", 10), (123_457, "ok", 10)]
    steps += [(200_000 + 1000 * i, "ok", 10 + i % 2) for i in range(700)]
    found = map_budgets(BatchSteps(steps), between=(0, 10**6), jobs=2, max_runs=40)
    positions = {r.lo for r in found.regimes}
    assert 123_457 in positions


@given(step_lists(span=SPAN), st.sampled_from([2.0, 1.1]))
@settings(deadline=None, max_examples=30)
def test_check_agrees_with_the_complete_map(
    steps: list[tuple[int, str, float]], tolerance: float
) -> None:
    found = map_budgets(BatchSteps(steps), between=RANGE, jobs=0)
    for claim in ("feasibility", "cost"):
        for thrash_as in ("own", "infeasible"):
            (checked,) = check(
                BatchSteps(steps), between=RANGE, jobs=0, claims=(claim,),
                thrash_as=thrash_as, tolerance=tolerance,
            )  # fmt: skip
            complete = found.verdict(claim, thrash_as=thrash_as, tolerance=tolerance)
            assert checked.verdict.verdict == complete.verdict
            assert checked.map.stopped in ("complete", "decided")
            assert set(checked.to_json()) >= {
                "trace", "policy", "claim", "verdict", "witness", "covered", "runs",
            }  # fmt: skip


def test_check_stops_as_soon_as_it_is_refuted() -> None:
    steps = many_steps(5000)
    for jobs in (0, 2):
        (checked,) = check(BatchSteps(steps), between=(0, 10**9), jobs=jobs, claims=("cost",))
        assert checked.verdict.verdict == "refuted"
        assert checked.map.stopped == "decided"
        assert checked.map.runs < 2000


def test_assert_monotone_says_what_it_found() -> None:
    hole = [(0, "ok", 10), (40, "oom", 10), (50, "ok", 10)]
    with pytest.raises(MonotonicityViolation, match="steps under toy: more memory fails: ok at"):
        assert_monotone(Steps(hole), between=(0, 60))
    with pytest.raises(AssertionError, match="costs more") as caught:
        assert_monotone(Steps([(0, "ok", 10), (9, "ok", 20)]), claim="cost", between=(0, 60))
    assert isinstance(caught.value, MonotonicityViolation)
    assert caught.value.witness.budgets == (8, 9)
    assert assert_monotone(Steps([(0, "oom", 1), (9, "ok", 2)]), between=(0, 60)).certified
    sampled = Steps([(0, "ok", 1)], certified=False)
    with pytest.raises(MonotonicityUndecided, match="sampled"):
        assert_monotone(sampled, between=(0, 60))
    assert_monotone(sampled, between=(0, 60), allow_undecided=True)


def test_a_hole_at_the_upper_end_is_looked_at_from_above() -> None:
    steps = [(0, "ok", 10), (40, "oom", 10), (50, "ok", 10)]
    found = map_budgets(Steps(steps), between=(0, 45))
    assert found.beyond == ((45, "oom"), (1000, "ok"))
    assert [(h.lo, h.hi, h.exact_hi) for h in found.holes] == [(40, 45, False)]
    assert map_budgets(Steps(steps), between=(0, 50)).holes[0].exact_hi
    assert map_budgets(Steps(steps), between=(0, 60)).beyond == ()
    only = Steps([*steps[:2]], peak=45)
    found = map_budgets(only, between=(0, 45))
    assert found.beyond == ((45, "oom"),)
    assert [(h.lo, h.hi) for h in found.open_holes] == [(40, 45)]


class Crowd(BatchSteps):
    """Counts how many runs go on at once."""

    def __init__(self, steps: list[tuple[int, str, float]]) -> None:
        super().__init__(steps)
        self.lock = threading.Lock()
        self.present = self.most = 0

    def run(self, budget: int) -> ToyResult:
        with self.lock:
            self.present += 1
            self.most = max(self.most, self.present)
        time.sleep(0.005)
        with self.lock:
            self.present -= 1
        return super().run(budget)


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_threads_overlap_runs_that_free_the_interpreter(jobs: int) -> None:
    steps = many_steps(80)
    system = Crowd(steps)
    found = map_budgets(system, between=(0, 10**9), jobs=jobs)
    assert found.certified
    assert len(system.runs) == found.runs == len(steps)
    assert (system.most == 1) if jobs == 1 else (1 < system.most <= jobs)


def test_the_time_limit_holds_between_runs() -> None:
    system = BatchSteps(many_steps(5000), seconds=0.002)
    started = time.perf_counter()
    found = map_budgets(system, between=(0, 10**9), jobs=2, time=0.3)
    assert time.perf_counter() - started < 1.5
    assert found.stopped == "time"
    assert found.runs > 20
    assert found.runs == len(system.runs), "what was run is kept"
    assert map_budgets(BatchSteps(many_steps(50)), between=(0, 10**9), time=0).runs == 0


@pytest.mark.parametrize("jobs", [0, 1, 2])
def test_ctrl_c_keeps_what_was_found(jobs: int) -> None:
    system = BatchSteps(many_steps(100_000), seconds=0.001)
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.4, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    found = map_budgets(system, between=(0, 10**9), jobs=jobs)
    timer.join()
    assert found.stopped == "interrupted"
    assert found.runs == len(system.runs) > 10
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_errors_of_the_system_come_through() -> None:
    class Broken(BatchSteps):
        def run(self, budget: int) -> ToyResult:
            if len(self.runs) > 20:
                raise RuntimeError("no more")
            return super().run(budget)

    for jobs in (0, 2):
        with pytest.raises(RuntimeError, match="no more"):
            map_budgets(Broken(many_steps(500)), between=(0, 10**9), jobs=jobs)


def test_a_system_that_contradicts_itself_is_found_out() -> None:
    class Liar:
        def run(self, budget: int) -> ToyResult:
            return ToyResult("ok", budget, 1.0, (max(0, budget - 20), budget + 1))

    with pytest.raises(MonofuzzError, match="contradicts itself"):
        map_budgets(Liar(), between=(0, 100))


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (ToyResult("fine", 1, 1.0, (0, 9)), "status 'fine'"),
        (ToyResult("ok", 1, 1.0, (3, 4)), "does not hold the budget"),
        (ToyResult("ok", float("nan"), 1.0, (0, 9)), "not finite"),
        (ToyResult("ok", 1, float("inf"), (0, 9)), "not finite"),
        (ToyResult("ok", "much", 1.0, (0, 9)), "not usable"),  # type: ignore[arg-type]
        (ToyResult("ok", 1, 1.0, (0.5, 9)), "not usable"),  # type: ignore[arg-type]
        (None, "not usable"),
    ],
)
def test_results_that_make_no_sense_are_refused(result: Any, why: str) -> None:
    class Odd:
        name = "odd"

        def run(self, budget: int) -> Any:
            return result

    with pytest.raises(MonofuzzError, match=why) as caught:
        map_budgets(Odd(), between=(0, 9))
    assert "odd" in str(caught.value)


def test_costs_may_be_any_numbers() -> None:
    steps: list[tuple[int, str, float]] = [(0, "ok", 0.5), (9, "ok", 2**70), (20, "ok", 3)]
    found = map_budgets(Steps(steps), between=(0, 30))
    assert [r.cost for r in found.regimes] == [0.5, float(2**70), 3.0]
    whole = [(0, "ok", np.int64(3)), (9, "ok", True)]
    found = map_budgets(Steps(whole), between=(0, 30))  # type: ignore[arg-type]
    assert found.table["cost"].dtype == np.int64
    failing = ToyResult("oom", float("inf"), float("nan"), (0, None))

    class Failing:
        def run(self, budget: int) -> ToyResult:
            return failing

    assert map_budgets(Failing(), between=(0, 9)).regimes[0].cost == 0


def test_wrong_use_is_refused_in_words() -> None:
    system = Steps([(0, "ok", 1)])
    with pytest.raises(BudgetError, match="empty"):
        map_budgets(system, between=(5, 5))
    with pytest.raises(UsageError, match="jobs"):
        map_budgets(system, between=(0, 5), jobs=-1)
    with pytest.raises(UsageError, match="max_runs"):
        map_budgets(system, between=(0, 5), max_runs=-1)
    with pytest.raises(UsageError, match="time"):
        map_budgets(system, between=(0, 5), time=float("nan"))
    with pytest.raises(UsageError, match="direction"):
        map_budgets(system, between=(0, 5), direction="sideways")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="own policy"):
        map_budgets(system, "dtr", between=(0, 5))
    with pytest.raises(UsageError, match="claim"):
        check(system, between=(0, 5), claims=())
    with pytest.raises(BudgetError, match="no peak"):
        map_budgets(WithoutIntervals())


def test_progress_rises_to_the_end() -> None:
    seen = []
    system = BatchSteps(many_steps(300), seconds=0.002)
    found = map_budgets(system, between=(0, 10**9), jobs=2, progress=seen.append)
    assert len(seen) >= 3
    assert [p.runs for p in seen] == sorted(p.runs for p in seen)
    assert seen[-1].covered == 1.0
    assert seen[-1].runs == found.runs == seen[-1].regimes
    assert seen[-1].gaps == 0
    middle = seen[len(seen) // 2]
    assert middle.seconds_left is not None
    assert middle.seconds_left > 0


def test_walks_are_taken_where_they_pay() -> None:
    class Walker(BatchSteps):
        walks = 0

        def walk(self, lo: int, hi: int, *, stop: Any = None) -> Any:
            Walker.walks += 1
            budget: int | None = lo
            while budget is not None and budget < hi and not stop.is_set():
                result = self.run(budget)
                yield result
                budget = result.interval[1]

    for jobs in (0, 1, 2):
        for direction in ("adaptive", "up"):
            system = Walker(many_steps(400))
            found = map_budgets(system, between=(0, 10**9), jobs=jobs, direction=direction)
            plain = map_budgets(BatchSteps(many_steps(400)), between=(0, 10**9), jobs=0)
            assert found == plain
            assert len(system.runs) == found.runs == 400
    assert Walker.walks
    system = Walker(many_steps(400))
    assert map_budgets(system, between=(0, 10**9), jobs=2, max_runs=150).runs == 150


@pytest.mark.parametrize("jobs", [0, 2])
def test_walks_that_compute_ahead_waste_nothing(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ahead(BatchSteps):
        def walk(self, lo: int, hi: int, *, stop: Any = None) -> Any:
            budget: int | None = lo
            while budget is not None and budget < hi:
                batch = []
                while budget is not None and budget < hi and len(batch) < 64:
                    batch.append(self.run(budget))
                    budget = batch[-1].interval[1]
                yield from batch

    monkeypatch.setattr("monofuzz.search.explorer._TASK_SECONDS", 0.002)
    for direction in ("adaptive", "up"):
        system = Ahead(many_steps(3000))
        found = map_budgets(system, between=(0, 10**9), jobs=jobs, direction=direction)
        assert len(system.runs) == found.runs == 3000


@pytest.mark.parametrize("jobs", [0, 2])
def test_a_walk_ends_where_runs_time_out(jobs: int) -> None:
    class Walker(BatchSteps):
        def walk(self, lo: int, hi: int) -> Any:
            for budget in range(lo, hi):
                yield self.run(budget)

    slow = range(400, 900_000)
    for direction in ("adaptive", "up"):
        system = Walker([(0, "ok", 10)], certified=False)
        system.expect = lambda b: (  # type: ignore[method-assign]
            ToyResult("timeout", 0, 0, (b, b + 1), certified=False)
            if b in slow
            else ToyResult("ok", 10, 1.0, (b, b + 1) if b < 400 else (900_000, None))
        )
        found = map_budgets(system, between=(0, 10**6), jobs=jobs, direction=direction)
        assert found.stopped == "timeouts"
        assert len(system.runs) < 1000


@pytest.mark.parametrize("jobs", [0, 2])
def test_a_system_that_gives_nothing_is_found_out(jobs: int) -> None:
    class Silent(BatchSteps):
        def run_many(self, budgets: Any, *, stop: Any = None) -> list[ToyResult]:
            return []

    with pytest.raises(MonofuzzError, match="gives no results"):
        map_budgets(Silent([(0, "ok", 10)]), between=(0, 100), jobs=jobs)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="measures process time on Linux")
def test_the_explorer_itself_is_cheap() -> None:
    steps = many_steps(10_000)
    system = BatchSteps(steps)
    started = time.process_time()
    found = map_budgets(system, between=(0, 10**9), jobs=2)
    spent = time.process_time() - started
    started = time.process_time()
    for budget in list(system.runs):
        system.run(budget)
    own = time.process_time() - started
    assert found.certified
    # Measured 15 to 25 microseconds a run; the bound leaves room for slow machines.
    assert (spent - own) / found.runs < 100e-6
