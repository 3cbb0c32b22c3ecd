from __future__ import annotations

import pytest

from monofuzz.counterexample import Counterexample, examine
from monofuzz.errors import UsageError
from monofuzz.generate.fast import Sampler
from monofuzz.shrink import Interest, Reducer, complexity, reduce_trace, shrink
from monofuzz.trace import Trace, TraceBuilder


def holes(operators: int, count: int) -> list[Counterexample]:
    sampler = Sampler("dtr", "free", operators, claims=["feasibility"])
    hits, _ = sampler.search(0, 20_000)
    found = [examine(sampler.trace(hit.seed), "dtr", "feasibility") for hit in hits[:count]]
    return [example for example in found if example is not None]


@pytest.mark.parametrize("operators", [8, 14])
def test_what_comes_out_is_a_smaller_counterexample(operators: int) -> None:
    for example in holes(operators, 3):
        small = shrink(example)
        assert complexity(small.trace) < complexity(example.trace)
        assert small.operators <= 8
        assert small.differences() == []
        assert small.found["shrunk_from"] == operators


def test_no_pass_improves_on_the_result() -> None:
    for example in holes(9, 3):
        small = shrink(example).trace
        again = Reducer(small, Interest(example)).reduce()
        assert complexity(again) == complexity(small)


def test_no_operator_argument_or_command_is_superfluous() -> None:
    from monofuzz.shrink.rewrite import Draft

    example = shrink(holes(9, 1)[0])
    draft = Draft.of(example.trace)
    for place in range(len(draft.steps)):
        fewer = draft.without([place]).trace()
        if fewer is not None and complexity(fewer) < complexity(example.trace):
            assert examine(fewer, "dtr", "feasibility") is None


def test_severity_can_be_kept() -> None:
    for example in holes(8, 3):
        small = shrink(example, keep="severity")
        assert small.severity >= example.severity * 0.999
        assert complexity(small.trace) <= complexity(example.trace)


def test_a_condition_can_be_kept() -> None:
    example = holes(8, 1)[0]
    small = shrink(example, within=lambda trace: trace.n_operators >= 6)
    assert small.operators >= 6


def test_time_limits_it() -> None:
    example = holes(14, 1)[0]
    stopped = shrink(example, seconds=1e-6)
    assert stopped == example.with_found(stopped="time")


def test_an_unknown_keep_is_refused() -> None:
    with pytest.raises(UsageError, match="keep"):
        shrink(holes(8, 1)[0], keep="nothing")  # type: ignore[arg-type]


def messy() -> Trace:
    """Constants, views, tuples, in-place operators, references taken and dropped."""
    build = TraceBuilder(name="messy")
    weights = [build.constant(4 * (k + 1)) for k in range(3)]
    x = weights[0]
    for k in range(12):
        (x, extra) = build.op("pair", [x, weights[k % 3]], [7 + k, 3], 10 + k)
        (view,) = build.op("view", [x], [0], 1, views={0: 0})
        build.get(view)
        (x,) = build.mutate("add_", [x, extra], [0], 2)
        build.release(view)
        build.release(extra)
    return build.finish()


@pytest.mark.parametrize(
    ("interesting", "expected"),
    [
        (lambda trace: True, (1, 1, 1, 0, 0, 1)),
        (lambda trace: trace.n_operators >= 5, (5, 5, 5, 0, 0, 0)),
        (lambda trace: len(trace.args) >= 2, (3, 3, 3, 2, 0, 0)),
        (lambda trace: trace.n_tensors > trace.n_storages, (2, 2, 2, 1, 1, 0)),
        (lambda trace: int(trace.op_constant.sum()) >= 2, (0, 2, 2, 0, 0, 2)),
        (lambda trace: int(trace.tensor_size.max()) >= 9, (1, 1, 1, 0, 0, 0)),
        (lambda trace: int(trace.op_cost.max()) >= 10, (1, 1, 1, 0, 0, 0)),
    ],
    ids=["anything", "operators", "arguments", "view", "constants", "size", "cost"],
)
def test_known_minima_are_reached(interesting: object, expected: tuple[int, ...]) -> None:
    small = reduce_trace(messy(), interesting)  # type: ignore[arg-type]
    assert interesting(small)  # type: ignore[operator]
    assert complexity(small)[: len(expected)] <= expected


def test_the_least_number_that_does_is_found() -> None:
    small = reduce_trace(messy(), lambda trace: int(trace.tensor_size.max()) >= 9)
    assert small.tensor_size.tolist() == [9]
    small = reduce_trace(messy(), lambda trace: int(trace.op_cost.max()) >= 11)
    assert small.op_cost.tolist() == [11]
