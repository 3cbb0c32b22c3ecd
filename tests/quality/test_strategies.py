"""What Hypothesis finds with the strategies, and to what it shrinks that."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, find, settings

from monofuzz import strategies as mst
from monofuzz.counterexample import inspect_runs, runs_of
from monofuzz.replay import TraceSystem
from monofuzz.search.verdict import Claim
from monofuzz.shrink import complexity, reduce_trace
from monofuzz.trace import COMPUTE, Trace

SEARCH = settings(
    max_examples=3000, database=None, derandomize=True, deadline=None,
    phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck),
)  # fmt: skip
PLAIN = {
    "views": False, "in_place": False, "max_outputs": 1, "max_constants": 0,
    "min_size": 1, "min_cost": 1, "max_size": 16, "max_cost": 16,
}  # fmt: skip


def shown(trace: Trace) -> str:
    """A trace in a line: ``t1:8 = f(t0) 5ns`` is an operator, ``-t0`` drops, ``!t1`` keeps."""
    parts = []
    for what, x in zip(trace.command.tolist(), trace.operand.tolist(), strict=True):
        if what != COMPUTE:
            parts.append({1: "+", 2: "!", 3: "-"}[what] + f"t{x}")
            continue
        made = []
        for tensor in trace.outputs(x):
            root = int(trace.tensor_root[tensor])
            own = f":{trace.tensor_size[tensor]}" if root == tensor else f"~t{root}"
            made.append(f"t{tensor}{own}")
        read = ", ".join(f"t{tensor}" for tensor in trace.arguments(x).tolist())
        call = "constant" if trace.op_constant[x] else f"f({read}) {trace.op_cost[x]}ns"
        parts.append(f"{' '.join(made)} = {call}")
    return "; ".join(parts)


def some_run(policy: str, what: str) -> Callable[[Trace], bool]:
    """Whether a run that succeeds, with less than the peak, counts some of this."""

    def interesting(trace: Trace) -> bool:
        system = TraceSystem(trace, policy)
        runs = system.walk(0, system.peak)
        return any(run.status == "ok" and getattr(run, what) for run in runs)

    return interesting


def breaks(policy: str, claim: Claim) -> Callable[[Trace], bool]:
    def interesting(trace: Trace) -> bool:
        system = TraceSystem(trace, policy)
        return inspect_runs(runs_of(system) or [], claim, system.peak) is not None

    return interesting


def any_argument_twice(trace: Trace) -> bool:
    return any(
        len(set(trace.arguments(op).tolist())) < len(trace.arguments(op))
        for op in range(trace.n_ops)
    )


@pytest.mark.parametrize(
    ("interesting", "smallest"),
    [
        (
            lambda trace: trace.n_tensors > trace.n_storages,
            "t0:0 = f() 0ns; t1~t0 = f(t0) 0ns; !t0; !t1",
        ),
        (lambda trace: "update_" in trace.op_label, "t0:0 = f() 0ns; t1:0 = f(t0) 0ns; -t0; !t1"),
        (any_argument_twice, "t0:0 = f() 0ns; t1:0 = f(t0, t0) 0ns; !t0; !t1"),
        (
            lambda trace: trace.n_operators >= 3,
            "t0:0 = f() 0ns; t1:0 = f() 0ns; t2:0 = f() 0ns; !t0; !t1; !t2",
        ),
        (lambda trace: int(trace.tensor_size.max()) >= 9, "t0:9 = f() 0ns; !t0"),
        (
            lambda trace: int(trace.op_constant.sum()) >= 2,
            "t0:0 = constant; !t0; t1:0 = constant; !t1; t2:0 = f() 0ns; !t0; !t1; !t2",
        ),
        (some_run("lru", "evictions"), "t0:1 = f() 0ns; t1:1 = f() 0ns; -t1; !t0"),
        (some_run("lru", "remats"), "t0:1 = f() 0ns; t1:1 = f() 0ns; -t1; !t0"),
    ],
    ids=["view", "update", "twice", "operators", "size", "constants", "eviction", "remat"],
)
def test_finds_and_shrinks_to(interesting: Callable[[Trace], bool], smallest: str) -> None:
    found = find(mst.traces(max_ops=8), interesting, settings=SEARCH)
    assert shown(found) == smallest


@pytest.mark.parametrize("policy", ["dtr", "lru"])
def test_finds_a_rise_in_cost_that_reduces_to_six_operators(policy: str) -> None:
    """Hypothesis ends where no choice of its own can be less; the reducer goes on from there."""
    interesting = breaks(policy, "cost")
    found = find(mst.traces(min_ops=5, max_ops=8, **PLAIN), interesting, settings=SEARCH)  # type: ignore[arg-type]
    small = reduce_trace(found, interesting)
    assert interesting(small)
    assert small.n_operators <= 6
    assert complexity(small) <= complexity(found)
