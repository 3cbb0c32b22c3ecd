"""Timelines: the same runs as the compiled engine's, and the memory and scores of the oracle."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monofuzz import strategies as mst
from monofuzz.counterexample import Counterexample, load
from monofuzz.explain.timeline import Choice, Timeline, parting, timeline
from monofuzz.replay import TraceSystem
from monofuzz.replay._jit import fresh_kernel, load_kernel
from monofuzz.replay.policy import names, policy
from monofuzz.trace import Trace, TraceBuilder
from tests import oracle

CORPUS = Path(__file__).parents[2] / "corpus" / "counterexamples"
SAMPLE = ["dtr", "dtr-eq", "dtr-unopt", "he-star", "lru", "size", "two-phase", "t-control"]
PARAMETERS = ["random:seed=7", "nbhd-penalty:b=2.5", "two-phase:k=2", "t-control:alpha=0.9"]
ANY_TRACE = st.one_of(mst.traces(max_ops=12), mst.training_traces())
relaxed = functools.partial(settings, deadline=None, suppress_health_check=list(HealthCheck))


@policy
def own_score(cost: float, size: float, staleness: float, region_cost: float) -> float:
    return (cost + region_cost) / (size * staleness) if size * staleness > 0 else math.inf


def budget_of(trace: Trace, data: st.DataObject) -> int:
    return data.draw(st.integers(0, TraceSystem(trace, "lru", limit=None).peak + 1))


def check_consistency(trace: Trace, found: Timeline) -> None:
    """What must hold between the events of any run."""
    outcome = found.outcome
    size = trace.tensor_size.tolist()
    victims, time, command = [], 0, 0
    for index, event in enumerate(found.events):
        assert event.time >= time
        assert event.command >= command
        assert 0 <= event.pinned <= event.memory
        time, command = event.time, event.command
        assert event.memory == sum(size[s] for s in found.resident(index + 1))
        assert event.pinned == sum(size[s] for s in found.locked(index))
        if event.kind == "evict":
            assert event.choice is not None
            assert event.storages == (event.choice.storage,)
            assert event.choice.storage in found.pool(index)
            assert len(found.pool(index)) == event.choice.candidates
            assert (event.choice.runner_up is None) >= (event.choice.candidates == 1)
            assert event.choice.storage != event.choice.runner_up
            victims.append(event.choice.storage)
        else:
            assert event.choice is None
    kinds = [event.kind for event in found.events]
    assert tuple(victims) == outcome.victims
    assert kinds.count("recompute") == sum(e.operator is not None for e in found.events) - sum(
        k in ("compute", "evict", "fail") for k in kinds
    )
    assert kinds.count("evict") + kinds.count("release") == outcome.evictions_all
    assert kinds.count("fail") == (outcome.status == "oom")
    assert max((e.depth for e in found.events), default=0) <= outcome.max_depth
    if outcome.status == "oom":
        last = found.events[-1]
        assert last.kind == "fail"
        assert outcome.fail is not None
        assert (last.pinned, last.depth) == (outcome.fail.pinned_bytes, outcome.fail.depth)
    assert time == outcome.cost


@pytest.mark.parametrize("name", SAMPLE)
def test_counterexamples_run_as_they_do_compiled(name: str) -> None:
    for path in sorted((CORPUS / name).glob("*.json")):
        example: Counterexample = load(path)
        system = example.system()
        for budget in example.witness:
            found = timeline(example.trace, name, budget, limit=example.limit, align=example.align)
            assert found.outcome == system.run(budget)
            check_consistency(example.trace, found)


@pytest.mark.parametrize("name", [*names(), *PARAMETERS])
@relaxed(max_examples=8)
@given(trace=ANY_TRACE, data=st.data())
def test_runs_are_those_of_the_compiled_engine(
    name: str, trace: Trace, data: st.DataObject
) -> None:
    budget = budget_of(trace, data)
    limit = data.draw(st.sampled_from([None, 3.0]))
    found = timeline(trace, name, budget, limit=limit)
    assert found.outcome == TraceSystem(trace, name, limit=limit).run(budget)
    check_consistency(trace, found)


@relaxed(max_examples=8)
@given(trace=ANY_TRACE, data=st.data())
def test_own_policies_are_listened_to(trace: Trace, data: st.DataObject) -> None:
    budget = budget_of(trace, data)
    found = timeline(trace, own_score, budget, limit=5.0)
    assert found.outcome == TraceSystem(trace, own_score, limit=5.0).run(budget)
    check_consistency(trace, found)


class Told(oracle.Replay):
    """The oracle, telling its memory after each change and what it chose from."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.curve: list[int] = []
        self.choices: list[tuple[int, float | None, int | None, float | None, int]] = []

    def execute(self, tensor: oracle.Tensor, remat: bool) -> None:
        super().execute(tensor, remat)
        self.curve.append(self.memory)

    def evict(self, storage: oracle.Storage) -> None:
        super().evict(storage)
        self.curve.append(self.memory)

    def choose(self) -> oracle.Storage:
        chosen = super().choose()
        other: oracle.Storage | None = None
        if len(self.pool) > 1 and self.policy != "random":
            # Without what it chose, and without letting the interval learn of it.
            lo, hi, place = self.lo, self.hi, self.pool.index(chosen)
            del self.pool[place]
            other = super().choose()
            self.pool.insert(place, chosen)
            self.lo, self.hi = lo, hi
        self.choices.append(
            (
                chosen.root,
                self.score(chosen),
                None if other is None else other.root,
                None if other is None else self.score(other),
                len(self.pool),
            )
        )
        return chosen

    def score(self, storage: oracle.Storage) -> float | None:
        if self.policy == "random":
            return None
        if self.policy == "two-phase":
            return oracle.e_stale(self, storage)
        return oracle.SCORES.get(self.policy, oracle.dtr)(self, storage)


@pytest.mark.parametrize("name", [*names(), *PARAMETERS])
@relaxed(max_examples=8)
@given(trace=ANY_TRACE, data=st.data())
def test_memory_and_choices_are_those_of_the_oracle(
    name: str, trace: Trace, data: st.DataObject
) -> None:
    budget = budget_of(trace, data)
    run = Told(trace, name, budget, 5 * trace.model_compute, None)
    with oracle.deep_recursion():
        run.run()
    found = timeline(trace, name, budget, limit=6.0)
    moves = ("compute", "recompute", "evict", "release")
    assert [e.memory for e in found.events if e.kind in moves] == run.curve
    choices = [e.choice for e in found.events if e.choice is not None]
    assert [
        (c.storage, c.score, c.runner_up, c.runner_up_score, c.candidates) for c in choices
    ] == run.choices


def test_events_of_a_small_run() -> None:
    build = TraceBuilder()
    weight = build.constant(2)
    (a,) = build.op("a", [weight], 3, cost=5)
    (b,) = build.op("b", [a], 3, cost=7)
    build.op("c", [b], 3, cost=1)
    build.op("d", [a], 1, cost=1)
    build.release(b)
    found = timeline(build.finish(), "lru", 8)
    shown = [(e.kind, e.operator, e.storages, e.memory, e.pinned, e.depth) for e in found.events]
    assert shown == [
        ("compute", 0, (0,), 2, 0, 1),
        ("pin", None, (0,), 2, 2, 0),
        ("compute", 1, (1,), 5, 2, 1),
        ("compute", 2, (2,), 8, 2, 1),
        ("evict", 3, (1,), 5, 5, 1),
        ("compute", 3, (3,), 8, 2, 1),
        ("evict", 1, (2,), 5, 2, 2),
        ("recompute", 1, (1,), 8, 2, 2),
        ("evict", 4, (3,), 5, 5, 1),
        ("compute", 4, (4,), 6, 2, 1),
        ("pin", None, (1,), 6, 5, 0),
        ("evict", 2, (4,), 5, 5, 2),
        ("recompute", 2, (2,), 8, 5, 2),
        ("fail", 3, (), 8, 8, 1),
    ]
    assert found.events[6].choice == Choice(2, 13.0, 3, 14.0, 2)
    assert found.resident(0) == frozenset()
    assert found.resident(5) == {0, 2}
    assert found.pool(6) == {2, 3}
    assert found.locked(4) == {0, 2}


def test_where_two_runs_part() -> None:
    example = load(CORPUS / "dtr" / "unit-sizes-feasibility-smallest.json")
    low, high = (timeline(example.trace, "dtr", budget) for budget in example.witness)
    where = parting(low, high)
    assert low.events[where].kind == "evict"
    assert high.events[where].kind != "evict"
    assert parting(low, low) == len(low.events)


def test_other_runs_are_not_observed() -> None:
    one, other = fresh_kernel(), fresh_kernel()
    one.evict = None  # type: ignore[attr-defined]
    assert other.evict is not None
    assert load_kernel("interpreted") not in (one, other)
