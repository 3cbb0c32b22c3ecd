from __future__ import annotations

import itertools
import time
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings

from monofuzz import strategies as mst
from monofuzz.canonical import canonical_order
from monofuzz.counterexample import Counterexample, examine
from monofuzz.counterexample.signature import DEPTH
from monofuzz.errors import UsageError
from monofuzz.generate.fast import Sampler
from monofuzz.shrink import Interest, Keep, Reducer, complexity, disorder, reduce_trace, shrink
from monofuzz.shrink.passes import PASSES
from monofuzz.trace import Trace, TraceBuilder
from monofuzz.trace.dtrlog import parse
from monofuzz.trace.dtrwrite import format_log


def holes(operators: int, count: int) -> list[Counterexample]:
    sampler = Sampler("dtr", "free", operators, claims=["feasibility"])
    hits, _ = sampler.search(0, 20_000)
    found = [examine(sampler.trace(hit.seed), "dtr", "feasibility") for hit in hits[:count]]
    return [example for example in found if example is not None]


def rises(operators: int) -> Counterexample:
    sampler = Sampler("dtr", "free", operators, claims=["cost"])
    hits, _ = sampler.search(0, 2_000)
    example = examine(sampler.trace(hits[0].seed), "dtr", "cost")
    assert example is not None
    return example


@pytest.mark.parametrize("operators", [8, 14])
def test_what_comes_out_is_a_smaller_counterexample(operators: int) -> None:
    for example in holes(operators, 3):
        small = shrink(example)
        assert complexity(small.trace) < complexity(example.trace)
        assert small.operators <= 8
        assert small.differences() == []
        assert small.found["shrunk_from"] == operators


@pytest.mark.parametrize("keep", get_args(Keep))
def test_no_single_pass_improves_on_the_result(keep: Keep) -> None:
    for example in holes(9, 2):
        small = shrink(example, keep=keep).trace
        for one in PASSES:
            reducer = Reducer(small, Interest(example, keep))
            assert reducer.reduce([one]) is small, one.__name__
            assert not reducer.stopped


@pytest.mark.parametrize("exact", [0, 160], ids=["sampled", "mapped"])
@pytest.mark.parametrize("keep", get_args(Keep))
def test_the_result_does_not_depend_on_threads(
    keep: Keep, exact: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monofuzz.shrink.interest.EXACT_COMMANDS", exact)
    (example,) = holes(12, 1)
    one, two, five = (shrink(example, keep=keep, jobs=jobs) for jobs in (1, 2, 5))
    assert one == two == five
    assert one.found["tried"] > 20


def test_threads_that_answer_late_change_nothing() -> None:
    """Whoever is asked second answers first; still the first yes in order counts."""
    number = itertools.count()

    def slow(trace: Trace) -> bool:
        time.sleep(0.002 * (next(number) % 3 == 0))
        return len(trace.args) >= 3

    results = [Reducer(messy(), slow, jobs=jobs) for jobs in (1, 4)]
    one, four = (reducer.reduce() for reducer in results)
    assert one == four
    assert results[0].asked == results[1].asked


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


def test_the_mechanism_can_be_kept() -> None:
    kept = 0
    for example in holes(14, 6):
        assert example.signature is not None
        small = shrink(example, keep="signature")
        assert small.signature is not None
        assert small.signature.keeps(example.signature)
        assert small.differences() == []
        kept += example.signature.depth >= DEPTH
    assert kept


def test_large_traces_are_sampled_and_the_result_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = holes(14, 1)
    monkeypatch.setattr("monofuzz.shrink.interest.EXACT_COMMANDS", 0)
    for keep in get_args(Keep):
        small = shrink(example, keep=keep)
        assert small.operators < 14
        assert small.limit == example.limit
        assert small.differences() == []
        exact = examine(small.trace, "dtr", "feasibility", accept=Interest(example, keep).accepts)
        assert exact is not None


def test_costs_can_be_shrunk_by_their_mechanism() -> None:
    example = rises(10)
    assert example.signature is not None
    small = shrink(example, keep="signature")
    assert small.signature is not None
    assert small.claim == "cost"
    assert small.signature.keeps(example.signature)
    assert small.operators < 10


def test_what_does_not_replay_is_refused() -> None:
    (example,) = holes(8, 1)
    false = replace(example, above=replace(example.above, evictions=99))
    with pytest.raises(UsageError, match=r"does not replay.*evictions"):
        shrink(false)


@pytest.mark.parametrize("jobs", [1, 3])
def test_what_the_predicate_raises_goes_through(jobs: int) -> None:
    asked = itertools.count()

    def breaks(trace: Trace) -> bool:
        if next(asked) == 8:
            raise ZeroDivisionError("mine")
        return trace.n_operators >= 4

    reducer = Reducer(messy(), breaks, jobs=jobs)
    with pytest.raises(ZeroDivisionError, match="mine"):
        reducer.reduce()
    assert 4 <= reducer.trace.n_operators < messy().n_operators
    with pytest.raises(ZeroDivisionError):
        reduce_trace(messy(), lambda trace: bool(1 // 0))


@pytest.mark.parametrize("jobs", [1, 3])
def test_the_first_interrupt_keeps_what_was_found(
    jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (example,) = holes(14, 1)
    asked = itertools.count()
    judge = Interest.__call__

    def interrupted(self: Interest, trace: Trace) -> Counterexample | None:
        if next(asked) == 12:
            raise KeyboardInterrupt
        return judge(self, trace)

    monkeypatch.setattr(Interest, "__call__", interrupted)
    small = shrink(example, jobs=jobs)
    assert small.found["stopped"] == "interrupted"
    assert small.operators < 14
    assert small.differences() == []


@pytest.mark.parametrize(
    ("options", "problem"), [({"keep": "nothing"}, "keep"), ({"jobs": 0}, "jobs is 0")]
)
def test_wrong_options_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        shrink(holes(8, 1)[0], **options)


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
        (lambda trace: True, (1, 0, 1, 0, 0, 0)),
        (lambda trace: trace.n_operators >= 5, (5, 0, 5, 0, 0, 0)),
        (lambda trace: trace.n_tensors >= 5, (1, 0, 5, 0, 0, 0)),
        (lambda trace: len(trace.args) >= 2, (2, 0, 3, 2, 0, 0)),
        (lambda trace: int(trace.tensor_size.sum()) >= 40, (1, 0, 1, 0, 0, 0)),
        (lambda trace: int(trace.op_cost.sum()) >= 60, (1, 0, 1, 0, 0, 0)),
        (lambda trace: trace.n_tensors > trace.n_storages, (2, 0, 2, 1, 1, 0)),
        (lambda trace: int(trace.op_constant.sum()) >= 2, (2, 2, 2, 0, 0, 2)),
        (lambda trace: int(trace.tensor_size.max()) >= 9, (1, 0, 1, 0, 0, 0)),
        (lambda trace: int(trace.op_cost.max()) >= 10, (1, 0, 1, 0, 0, 0)),
    ],
    ids=[
        "anything",
        "operators",
        "tensors",
        "arguments",
        "total",
        "time",
        "view",
        "constants",
        "size",
        "cost",
    ],
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


def test_what_is_left_is_in_order() -> None:
    small = reduce_trace(messy(), lambda trace: trace.n_operators >= 6 and len(trace.args) >= 5)
    assert disorder(small) == 0
    assert canonical_order(small) == list(range(len(small.command)))
    gone = reduce_trace(
        messy(), lambda trace: trace.n_operators >= 6 and trace.command.tolist().count(3) >= 3
    )
    assert complexity(gone)[-1] == 0


def test_numbers_come_down_together() -> None:
    """Neither of two sizes can be lowered alone when their difference counts."""
    build = TraceBuilder(name="two")
    build.op("one", [], [1000], 1)
    build.op("two", [], [1007], 1)

    def apart(trace: Trace) -> bool:
        sizes = trace.tensor_size.tolist()
        return len(sizes) == 2 and max(sizes) - min(sizes) == 7

    assert sorted(reduce_trace(build.finish(), apart).tensor_size.tolist()) == [1, 8]


@settings(max_examples=60, deadline=None)
@given(mst.traces(max_ops=7, loggable=True))
def test_every_candidate_of_a_log_is_a_log(trace: Trace) -> None:
    """And is smaller than the one before it; yes and no are as good as random here."""
    least = [(complexity(trace), disorder(trace))]

    def coin(candidate: Trace) -> bool:
        assert parse(format_log(candidate)) == candidate
        size = complexity(candidate), disorder(candidate)
        assert size < least[-1]
        if int(candidate.digest[:4], 16) % 3 == 0:
            return False
        least.append(size)
        return True

    small = reduce_trace(trace, coin)
    assert (complexity(small), disorder(small)) == least[-1]
