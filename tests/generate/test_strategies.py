"""Every strategy draws what it says, refuses wrong arguments at once, and tells Hypothesis."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

import monofuzz
from monofuzz.errors import MonofuzzError, PolicyError, UsageError
from monofuzz.generate import strategies as mst
from monofuzz.generate.shapes import SHAPES
from monofuzz.replay import TraceSystem
from monofuzz.replay.policy import names, parse
from monofuzz.trace import COMPUTE, PIN, RELEASE, Trace, TraceBuilder
from monofuzz.trace.dtrlog import parse as parse_log
from monofuzz.trace.dtrwrite import format_log

few = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


def test_they_are_where_users_look() -> None:
    assert monofuzz.strategies is mst
    assert all(callable(getattr(mst, name)) for name in mst.__all__)


@given(
    mst.traces(
        min_ops=3, max_ops=5, min_size=2, max_size=9, min_cost=1, max_cost=2, max_args=2,
        max_outputs=2, max_constants=1, views=False, in_place=False, releases=False,
    )
)  # fmt: skip
@few
def test_traces_keep_to_their_sizes(trace: Trace) -> None:
    assert 3 <= trace.n_operators <= 5
    assert 2 <= trace.tensor_size.min() <= trace.tensor_size.max() <= 9
    real = ~trace.op_constant
    assert 1 <= trace.op_cost[real].min() <= trace.op_cost.max() <= 2
    assert all(len(trace.arguments(op)) <= 2 for op in range(trace.n_ops))
    assert all(len(trace.outputs(op)) <= 2 for op in range(trace.n_ops))
    assert trace.op_constant.sum() <= 1
    assert trace.n_tensors == trace.n_storages
    assert set(trace.command.tolist()) <= {COMPUTE, PIN}


@given(mst.traces(min_size=1, max_size=1, min_cost=1, max_cost=1, max_ops=6))
@few
def test_traces_can_be_unit(trace: Trace) -> None:
    own = trace.tensor_root == range(trace.n_tensors)
    assert set(trace.tensor_size[own].tolist()) == {1}
    assert set(trace.op_cost[~trace.op_constant].tolist()) == {1}


@given(mst.traces(max_ops=8))
@few
def test_loggable_traces_are_logs(trace: Trace) -> None:
    assert parse_log(format_log(trace)) == trace


@pytest.mark.parametrize(
    "shown",
    [
        lambda trace: trace.n_tensors > trace.n_storages,
        lambda trace: "update_" in trace.op_label,
        lambda trace: trace.op_constant.any(),
        lambda trace: any(len(trace.outputs(op)) > 1 for op in range(trace.n_ops)),
        lambda trace: any(
            len(set(trace.arguments(op).tolist())) < len(trace.arguments(op))
            for op in range(trace.n_ops)
        ),
        lambda trace: (trace.command == RELEASE).sum() > trace.n_ops,
        lambda trace: 1 in trace.command,
        lambda trace: trace.command.tolist().count(PIN) == 0,
        lambda trace: trace.n_operators == 12,
    ],
    ids=[
        "view",
        "update",
        "constant",
        "tuple",
        "repeat",
        "releases",
        "get",
        "nothing kept",
        "most",
    ],
)
def test_traces_have_everything(shown: Any) -> None:
    quick = settings(max_examples=2000, database=None, derandomize=True, phases=["generate"])  # type: ignore[list-item]
    find(mst.traces(max_ops=12), shown, settings=quick)


@given(st.data())
@few
def test_training_steps_keep_to_their_sizes(data: st.DataObject) -> None:
    least = data.draw(st.integers(2, 12))
    most = data.draw(st.integers(least, 14))
    shape = data.draw(st.sampled_from(SHAPES))
    strategy = mst.training_traces(shape, min_ops=least, max_ops=most, max_size=9, max_cost=5)
    trace = data.draw(strategy)
    assert least <= trace.n_operators <= most
    assert trace.op_cost.max() <= 5
    assert trace.tensor_size.max() <= 2 * 9
    assert trace.meta.model == shape
    assert format_log(trace)


@given(mst.policies())
def test_policies_are_policies(text: str) -> None:
    assert parse(text).name in names()


def test_policies_have_parameters_or_not() -> None:
    quick = settings(max_examples=2000, database=None, derandomize=True)
    for name in names():
        for key, default in parse(name).parameters:
            found = find(
                mst.policies([name]),
                lambda text, key=key, default=default: dict(parse(text).parameters)[key] != default,  # type: ignore[misc]
                settings=quick,
            )
            assert found.startswith(f"{name}:")


@given(mst.policies(["random", "two-phase:k=3"], parameters=False))
@few
def test_policies_as_they_are_given(text: str) -> None:
    assert text in ("random", "two-phase:k=3")


@given(st.data())
@few
def test_budget_pairs_are_two_budgets(data: st.DataObject) -> None:
    system = data.draw(
        mst.systems(mst.traces(max_ops=6), mst.policies(["dtr", "lru"]), engine="interpreted")
    )
    low, high = data.draw(mst.budget_pairs(system))
    assert 0 <= low < high
    assert 0 <= data.draw(mst.budgets(system)) <= system.peak + 1


def chain(length: int = 6) -> Trace:
    build = TraceBuilder(name="chain")
    (at,) = build.op("f", [], 7, 1)
    for _ in range(length - 1):
        (at,) = build.op("f", [at], 7, 1)
    return build.finish(keep=[0, at])


def test_budgets_are_where_runs_change() -> None:
    system = TraceSystem(chain(), "lru")
    edges = {edge for run in system.walk(0, system.peak + 1) for edge in run.interval}
    found: list[int] = []

    @settings(max_examples=200, database=None, derandomize=True, deadline=None)
    @given(mst.budget_pairs(system))
    def collect(pair: tuple[int, int]) -> None:
        found.append(pair[1] in edges or pair[0] + 1 in edges)

    collect()
    assert sum(found) > len(found) / 2


def test_a_trace_and_a_policy_stand_for_themselves() -> None:
    trace = chain(3)
    quick = settings(max_examples=20, database=None, derandomize=True)
    system = find(mst.systems(trace, "lru"), lambda system: True, settings=quick)
    assert (system.trace, system.policy) == (trace, "lru")
    pair = find(mst.budget_pairs(trace, "lru"), lambda pair: True, settings=quick)
    assert pair[0] < pair[1]
    with pytest.raises(UsageError, match="its own policy"):
        mst.budgets(system, "lru")


def test_steering_outside_a_test_measures_only() -> None:
    assert mst.steer(chain(), "lru") <= 1.0
    assert mst.steer(chain(), "lru", claim="cost") <= 1.0


def test_steering_tells_hypothesis(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each steered system of a test case has a label of its own; the fifth and later are let be."""
    told: dict[str, float] = {}

    def target(observation: float, *, label: str) -> float:
        told[label] = observation
        return original(observation, label=label)

    original = hypothesis.target
    monkeypatch.setattr("hypothesis.target", target)

    steered = mst.systems(chain(), "lru", steer="cost")

    @settings(max_examples=2, database=None, derandomize=True, deadline=None)
    @given(st.lists(steered, min_size=5, max_size=6))
    def test(systems: list[TraceSystem]) -> None:
        assert len(systems) >= 5

    test()
    labels = [f"nearness to breaking cost, system {place}" for place in (1, 2, 3, 4)]
    nearness = mst.steer(chain(), "lru", claim="cost")
    assert 0 < nearness <= 1
    assert told == dict.fromkeys(labels, nearness)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: mst.traces(min_ops=5, max_ops=4), "min_ops=5 is more than max_ops=4"),
        (lambda: mst.traces(min_ops=0), "min_ops must be a whole number from 1"),
        (lambda: mst.traces(max_size=-1), "max_size must be"),
        (lambda: mst.traces(min_size=9, max_size=8), "min_size=9 is more than"),
        (lambda: mst.traces(max_cost=2**60), "max_cost must be"),
        (lambda: mst.traces(max_ops=True), "max_ops must be"),
        (lambda: mst.traces(max_args=-1), "max_args must be"),
        (lambda: mst.training_traces(max_ops=1), "max_ops must be"),
        (lambda: mst.training_traces([]), "no shape"),
        (lambda: mst.training_traces("u-shape"), "did you mean u-shaped"),  # type: ignore[arg-type]
        (lambda: mst.training_traces(["chian"]), "did you mean chain"),  # type: ignore[list-item]
        (lambda: mst.amounts("8"), "largest must be"),  # type: ignore[arg-type]
        (lambda: mst.amounts(3, smallest=4), "smallest=4 is more than largest=3"),
        (lambda: mst.policies([]), "no policy"),
        (lambda: mst.dtr_logs(max_instructions=0), "max_instructions must be"),
        (lambda: mst.systems("demo"), "of must be a trace or a strategy"),  # type: ignore[arg-type]
        (lambda: mst.systems(steer="costs"), "did you mean cost"),  # type: ignore[arg-type]
        (lambda: mst.systems(limit=0.5), "limit is a factor of the model's compute"),
        (lambda: mst.systems(align=0), "align must be a whole number"),
        (lambda: mst.systems(engine="quick"), "unknown engine 'quick'"),
        (lambda: mst.systems(under=3), "under must be a policy or"),  # type: ignore[arg-type]
        (lambda: mst.budgets("demo"), "expected a trace or a system"),  # type: ignore[arg-type]
        (lambda: mst.budget_pairs(chain(), max_edges=0), "max_edges must be"),
        (lambda: mst.steer(chain(), claim="feasible"), "did you mean feasibility"),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments_are_refused_at_once(make: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make()


@pytest.mark.parametrize(
    "make", [lambda: mst.policies(["lruu"]), lambda: mst.systems(chain(), "lruu")]
)
def test_unknown_policies_are_refused_at_once(make: Any) -> None:
    with pytest.raises(PolicyError, match="did you mean"):
        make()
    assert issubclass(PolicyError, MonofuzzError)
