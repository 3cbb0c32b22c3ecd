from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

import monofuzz
from monofuzz.errors import PolicyError, UsageError
from monofuzz.generate import strategies as mst
from monofuzz.replay import TraceSystem
from monofuzz.replay.policy import parse
from monofuzz.trace import Trace


def test_they_are_where_users_look() -> None:
    assert monofuzz.strategies is mst


@given(mst.traces(min_ops=3, max_ops=5, max_size=9, max_cost=2, views=False))
def test_traces_keep_to_their_sizes(trace: Trace) -> None:
    assert 3 <= trace.n_operators <= 5
    assert trace.tensor_size.max() <= 9
    assert trace.op_cost.max() <= 2
    assert trace.n_tensors == trace.n_storages


@given(mst.policies())
def test_policies_are_policies(text: str) -> None:
    parse(text)


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_budget_pairs_are_two_budgets(data: st.DataObject) -> None:
    system = data.draw(
        mst.systems(mst.traces(max_ops=6), mst.policies(["dtr", "lru"]), engine="interpreted")
    )
    low, high = data.draw(mst.budget_pairs(system))
    assert 0 <= low < high
    assert system.run(low).status in ("ok", "oom", "thrashed")


def test_they_shrink_to_little() -> None:
    found = find(mst.traces(max_ops=12), lambda trace: trace.n_operators >= 3)
    assert found.n_operators == 3
    assert len(found.args) <= 2
    assert int(found.tensor_size.sum() + found.op_cost.sum()) == 0


def test_an_eviction_is_found() -> None:
    def evicts(system: TraceSystem) -> bool:
        return any(run.evictions and run.status == "ok" for run in system.walk(0, system.peak))

    systems = mst.systems(mst.traces(max_ops=6), st.just("lru"), engine="interpreted")
    assert find(systems, evicts).trace.n_operators <= 5


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (mst.traces, {"min_ops": 5, "max_ops": 4}),
        (mst.traces, {"min_ops": 0}),
        (mst.traces, {"max_size": -1}),
        (mst.traces, {"max_cost": 2**60}),
        (mst.training_traces, {"max_layers": 0}),
        (mst.training_traces, {"max_size": 0}),
        (mst.amounts, {"largest": "8"}),
        (mst.policies, {"choose_from": []}),
    ],
)
def test_wrong_arguments_are_refused_at_once(make: Any, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        make(**options)


def test_unknown_policies_are_refused_at_once() -> None:
    with pytest.raises(PolicyError, match="did you mean"):
        mst.policies(["lruu"])
