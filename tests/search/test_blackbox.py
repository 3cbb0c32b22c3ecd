"""Runtimes of a user's own: what they may be, what they may answer, and what is said about them."""

from __future__ import annotations

import functools
import math
import sys
from bisect import bisect_right
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import monofuzz
from monofuzz import FlakyError, MonofuzzError, MonotonicityViolation, Run
from monofuzz.errors import UsageError
from monofuzz.search import BlackBox, as_system, assert_monotone, check, map_budgets
from monofuzz.search.blackbox import takes_trace
from monofuzz.search.confirm import narrowed
from monofuzz.search.system import Runner
from tests.search.toys import Steps, step_lists

SPAN = 60


def fits(budget: int) -> bool:
    return budget >= 10


class Planner:
    name = "planner"
    peak = 1000

    def run(self, budget: int) -> float:
        if budget < 100:
            raise MemoryError("too little")
        return 2000 / budget


@pytest.mark.parametrize(
    ("answer", "status", "cost"),
    [
        (True, "ok", 0),
        (False, "oom", 0),
        (np.True_, "ok", 0),
        (np.False_, "oom", 0),
        (3, "ok", 3),
        (0, "ok", 0),
        (2.5, "ok", 2.5),
        (np.float32(2.5), "ok", 2.5),
        (np.int64(7), "ok", 7),
        (2**70, "ok", 2.0**70),
        (Run("ok", 4), "ok", 4),
        (Run("oom"), "oom", 0),
        (Run("thrashed", 9), "thrashed", 9),
        (Run("timeout"), "timeout", 0),
    ],
)
def test_answers(answer: Any, status: str, cost: float) -> None:
    found = map_budgets(lambda budget: answer, between=(5, 6))
    (regime,) = found.regimes
    assert (regime.status, regime.cost) == (status, cost)
    assert not regime.certified


class OutOfMemoryError(RuntimeError):
    """Called like PyTorch's."""


@pytest.mark.parametrize("error", [MemoryError("too much"), OutOfMemoryError("too much")])
def test_out_of_memory_is_an_outcome(error: Exception) -> None:
    def run(budget: int) -> bool:
        raise error

    system = BlackBox(run)
    assert system.run(5).status == "oom"
    assert system.run(5).detail == "too much"


def test_other_exceptions_go_through_with_the_budget() -> None:
    def run(budget: int) -> bool:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost") as caught:
        check(run, between=(5, 9))
    assert caught.value.__notes__ == ["monofuzz: while run ran at budget 5"]


def test_a_runtime_that_ends_the_process_is_told_of() -> None:
    with pytest.raises(SystemExit) as caught:
        check(lambda budget: sys.exit(0), between=(5, 9))
    assert caught.value.__notes__ == ["monofuzz: while <lambda> ran at budget 5"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "it is None; return True"),
        ("ok", "it is 'ok'; return True"),
        (math.nan, "a cost is finite, not nan"),
        (math.inf, "gives False"),
        (-1, "a cost is 0 or more, not -1"),
        (10**400, "a cost is less than 1e308"),
    ],
)
def test_answers_that_say_nothing_are_refused(answer: Any, words: str) -> None:
    with pytest.raises(MonofuzzError, match=words) as caught:
        check(lambda budget: answer, between=(5, 9), claims=("feasibility",))
    assert "at budget 5 is not usable" in str(caught.value)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (("fine",), "the status of a run is one of ok, oom, thrashed, timeout, not 'fine'"),
        (("ok", "cheap"), "a cost is a number, not 'cheap'"),
        (("ok", -1), "0 or more"),
        (("ok", True), "a cost is a number"),
    ],
)
def test_a_run_is_checked_where_it_is_made(values: tuple[Any, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Run(*values)


class TestKinds:
    def test_with_and_without_a_trace(self) -> None:
        class Object:
            def run(self, trace: Any, budget: int) -> bool:
                return True

        def seeded(budget: int, seed: int = 0) -> bool:
            return True

        def with_default(trace: Any, budget: int = 3) -> bool:
            return True

        assert not takes_trace(fits)
        assert not takes_trace(Planner())
        assert not takes_trace(seeded)
        assert takes_trace(Object())
        assert takes_trace(with_default)
        assert takes_trace(lambda graph, memory: True)
        assert not takes_trace(functools.partial(Object().run, None))

    @pytest.mark.parametrize(
        ("runtime", "words"),
        [
            (Planner, "Planner is a class; give an object of it"),
            (3, "3 cannot be run; a runtime is a function of a budget"),
            (lambda: True, "takes \\(\\); a runtime is"),
            (lambda a, b, c: True, "takes \\(a, b, c\\)"),
            (lambda budget, *, device: True, "takes \\(budget, \\*, device\\)"),
            (lambda *everything: True, "takes \\(\\*everything\\)"),
            (lambda trace, budget: True, "say on which trace"),
        ],
    )
    def test_what_is_no_runtime_is_refused(self, runtime: Any, words: str) -> None:
        with pytest.raises(UsageError, match=words):
            BlackBox(runtime)

    def test_a_coroutine_is_refused(self) -> None:
        async def run(budget: int) -> bool:
            return True

        with pytest.raises(UsageError, match="coroutine"):
            BlackBox(run)

    def test_a_trace_for_what_takes_none_is_refused(self) -> None:
        with pytest.raises(UsageError, match="fits takes no trace"):
            monofuzz.check("demo", fits)

    def test_an_object_that_walks_is_taken_as_it_is(self) -> None:
        class Walking(Steps):
            def walk(self, lo: int, hi: int) -> Any:
                yield from ()

        system = Walking([(0, "ok", 1)])
        assert as_system(system) is system


@given(step_lists(span=SPAN, statuses=("ok", "oom")), st.sampled_from(["feasibility", "cost"]))
def test_verdicts_are_honest(steps: list[tuple[int, str, float]], claim: Any) -> None:
    """Every budget run: refuted exactly if two of them break the claim, and never monotone."""
    toy = Steps(steps)
    starts = [start for start, _, _ in steps]

    def run(budget: int) -> float | bool:
        _, status, cost = steps[bisect_right(starts, budget) - 1]
        return cost if status == "ok" else False

    (checked,) = check(run, between=(0, SPAN), claims=(claim,))
    (known,) = check(toy, between=(0, SPAN), claims=(claim,), jobs=0)
    expected = "refuted" if known.verdict.verdict == "refuted" else "undecided"
    assert checked.verdict.verdict == expected
    if expected == "undecided":
        assert checked.verdict.covered == 1.0
        assert "every budget was run" in checked.verdict.reason
        feasible = any(status == "ok" for _, status, _ in steps)
        assert ("no run succeeded" in checked.verdict.reason) == (not feasible)
        return
    witness = checked.verdict.witness
    assert witness is not None
    close = narrowed(Runner(as_system(run)), witness)
    assert close.above.budget - close.below.budget <= witness.above.budget - witness.below.budget
    low, high = toy.expect(close.below.budget), toy.expect(close.above.budget)
    assert low.status == "ok"
    assert high.status == "oom" if claim == "feasibility" else high.cost > low.cost
    if claim == "feasibility":
        assert close.above.budget == close.below.budget + 1


def test_a_hole_of_one_part_in_two_thousand_is_found_by_its_edges() -> None:
    runs = []

    def run(budget: int) -> bool:
        runs.append(budget)
        return budget >= 700_000_000 and not 800_000_000 <= budget < 800_500_000

    with pytest.raises(MonotonicityViolation) as caught:
        assert_monotone(run, between=(0, 2**30))
    low, high = caught.value.witness.budgets
    assert low < 800_500_000
    assert 800_000_000 <= high < 800_500_000
    assert len(runs) < 10_000


def test_a_range_of_ratios_needs_a_peak() -> None:
    assert check(Planner(), between=(0.5, 1.0), claims=("cost",), max_runs=20)
    with pytest.raises(MonofuzzError, match="the system has no peak; give whole bytes"):
        check(fits, between=(0.5, 1.0))


def test_the_cost_claim_needs_costs() -> None:
    with pytest.raises(UsageError, match="fits does not say what a run costs"):
        check(fits, between=(0, 100))


def test_what_happens_once_is_flaky_not_refuted() -> None:
    seen: set[int] = set()

    def run(budget: int) -> bool:
        first = budget not in seen
        seen.add(budget)
        return budget >= 10 and not (first and budget == 50)

    with pytest.raises(FlakyError, match=r"run is flaky: ok at .* oom at 50 .*; run again, ok at"):
        check(run, between=(0, 100), claims=("feasibility",))


def test_noise_in_costs_is_flaky_and_a_tolerance_helps() -> None:
    calls = iter(range(10**6))

    def run(budget: int) -> float:
        return 100 + next(calls) * 37 % 11

    with pytest.raises(FlakyError, match="costs that vary need a tolerance"):
        check(run, between=(0, 2000), claims=("cost",))
    (checked,) = check(run, between=(0, 2000), claims=("cost",), tolerance=0.2)
    assert checked.verdict.verdict == "undecided"


def test_runs_are_made_in_the_calling_thread() -> None:
    import threading

    threads = set()

    def run(budget: int) -> bool:
        threads.add(threading.current_thread())
        return True

    check(run, between=(0, 50), claims=("feasibility",))
    assert threads == {threading.current_thread()}


def test_a_runtime_runs_a_trace() -> None:
    trace = monofuzz.load("demo")

    def half_full(graph: monofuzz.Trace, budget: int) -> bool:
        assert graph is trace
        return budget * 2 >= monofuzz.peak_memory(graph)

    (checked,) = check(trace, half_full, between=(0.2, 1.0), max_runs=60, claims=("feasibility",))
    assert (checked.map.origin.trace, checked.map.origin.policy) == ("demo", "half_full")
    assert checked.map.peak == monofuzz.peak_memory(trace)
    assert checked.verdict.verdict == "undecided"

    def holey(graph: monofuzz.Trace, budget: int) -> bool:
        return half_full(graph, budget) and budget % 2**24 > 2**20

    with pytest.raises(MonotonicityViolation, match="demo under holey: more memory fails: ok at"):
        monofuzz.assert_monotone(trace, holey)


def test_a_policy_is_no_runtime_although_it_can_be_called() -> None:
    @monofuzz.policy
    def largest(size: float) -> float:
        return -size

    found = map_budgets("demo", largest, between=(0.9, 1.0), max_runs=2)
    assert found.origin.policy == "largest"
    assert not found.sampled
