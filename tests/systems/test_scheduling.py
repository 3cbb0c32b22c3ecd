"""List scheduling: Graham's anomaly is found and shrinks; without dependencies it is not there."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings

import monofuzz
from monofuzz import strategies as mst
from monofuzz.errors import BudgetError
from monofuzz.shrink import reduce_trace
from monofuzz.systems.scheduling import ListScheduling
from monofuzz.trace import Trace, TraceBuilder


def graham() -> Trace:
    """Nine tasks that take 12 on three processors and 15 on four (Graham 1969, figure 3)."""
    build = TraceBuilder(name="graham")
    first = [build.op("task", [], 1, duration)[0] for duration in (3, 2, 2, 2)]
    for _ in range(4):
        build.op("task", [first[3]], 1, 4)
    build.op("task", [first[0]], 1, 9)
    return build.finish(keep=[])


def times(trace: Trace) -> list[int]:
    system = ListScheduling(trace)
    return [system.run(processors).cost for processors in range(1, system.peak + 1)]


def slows_down(trace: Trace) -> bool:
    cost = times(trace)
    return any(above > below for below, above in itertools.pairwise(cost))


def test_the_example_of_1969() -> None:
    assert times(graham()) == [34, 17, 12, 15, 12, 12, 12, 12, 12]
    verdict = monofuzz.map_budgets(ListScheduling(graham()), between=(1, 10)).verdict("cost")
    assert verdict.verdict == "refuted"
    assert verdict.witness is not None
    assert verdict.witness.budgets == (3, 4)


def test_it_shrinks_to_seven_tasks() -> None:
    small = reduce_trace(graham(), slows_down)
    assert slows_down(small)
    assert small.n_operators == 7
    assert len(small.args) == 3
    assert sorted(small.op_cost.tolist()) == [1, 1, 1, 1, 1, 1, 4]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(mst.traces(max_ops=8, max_constants=0))
def test_schedules_are_schedules(trace: Trace) -> None:
    system = ListScheduling(trace)
    for processors in range(1, system.peak + 2):
        run = system.run(processors)
        ends = [s + d for s, d in zip(run.starts, system.durations, strict=True)]
        assert run.cost == max(ends)
        for task, needs in enumerate(system.needs):
            assert all(ends[need] <= run.starts[task] for need in needs)
        for now in run.starts:
            running = sum(s <= now < e for s, e in zip(run.starts, ends, strict=True))
            assert running <= processors
        # Graham's bound: no list schedule takes longer than twice the best one.
        assert run.cost <= sum(system.durations) / processors + run.cost / run.overhead
    assert system.run(1).cost == sum(system.durations)


def test_no_processor_does_nothing() -> None:
    assert ListScheduling(graham()).run(0).status == "oom"
    with pytest.raises(BudgetError, match="0 or more"):
        ListScheduling(graham()).run(-1)
