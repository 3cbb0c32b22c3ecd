"""The trace itself: what it promises, and what it refuses."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from monofuzz import strategies as mst
from monofuzz.errors import TraceError
from monofuzz.trace import COMPUTE, GET, PIN, RELEASE, Trace, TraceBuilder


def example() -> Trace:
    """A constant, an operator, a view of it, a reader of both, some references."""
    build = TraceBuilder(name="example")
    weight = build.constant(16)
    (made,) = build.op("make", [weight], 8, 5)
    (view,) = build.op("view", [weight, made], [0], 1, views={0: 1})
    build.get(view)
    build.op("read", [view, made, made], [4, 4], 7)
    build.release(made)
    return build.finish()


def test_arrays() -> None:
    trace = example()
    assert (trace.n_ops, trace.n_operators, trace.n_tensors, trace.n_storages) == (4, 3, 5, 4)
    assert trace.model_compute == 13
    assert trace.op_label == ("constant", "make", "view", "read")
    assert trace.op_constant.tolist() == [True, False, False, False]
    assert trace.arg_ptr.tolist() == [0, 0, 1, 3, 6]
    assert trace.args.tolist() == [0, 0, 1, 2, 1, 1]
    assert trace.out_ptr.tolist() == [0, 1, 2, 3, 5]
    assert trace.tensor_size.tolist() == [16, 8, 0, 4, 4]
    assert trace.tensor_root.tolist() == [0, 1, 1, 3, 4]
    assert trace.command.tolist() == [
        COMPUTE, PIN, COMPUTE, COMPUTE, GET, COMPUTE, RELEASE, PIN, PIN, PIN, PIN, PIN,
    ]  # fmt: skip
    assert trace.operand.tolist() == [0, 0, 1, 2, 2, 3, 1, 0, 2, 2, 3, 4]
    assert trace.arguments(3).tolist() == [2, 1, 1]
    assert list(trace.outputs(3)) == [3, 4]


def test_immutable() -> None:
    trace = example()
    with pytest.raises(ValueError, match="read-only"):
        trace.op_cost[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        trace.op_cost = trace.op_cost  # type: ignore[misc]


def test_arrays_given_are_not_shared() -> None:
    cost = example().op_cost.copy()
    trace = dataclasses.replace(example(), op_cost=cost)
    cost[1] = 99
    assert trace.op_cost[1] == 5


def test_equality_is_about_replays() -> None:
    trace = example()
    same = dataclasses.replace(trace.with_meta(name="other"), op_label=("a", "b", "c", "d"))
    assert same == trace
    assert hash(same) == hash(trace)
    assert same.digest == trace.digest
    other = dataclasses.replace(trace, op_cost=trace.op_cost * 2)
    assert other != trace
    assert other.digest != trace.digest
    assert trace != "trace"


def test_digest_is_stable() -> None:
    assert example().digest == ("bc40241c58dba44d97c1e476d5c0cd06bf2dc3350d9fa3486a5aa193f82495cd")


@given(mst.traces(loggable=False))
def test_pickle_for_worker_processes(trace: Trace) -> None:
    again = pickle.loads(pickle.dumps(trace))
    assert again == trace
    assert not again.op_cost.flags.writeable


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "float": ({"op_cost": [0.0, 1.5, 1, 1]}, "op_cost", "expected integers"),
    "text": ({"op_cost": ["a", "b", "c", "d"]}, "op_cost", "expected integers"),
    "objects": ({"op_cost": [2**70, 1, 1, 1]}, "op_cost", "expected integers"),
    "two dimensions": ({"op_cost": [[0, 1, 1, 1]]}, "op_cost", "2 dimensions"),
    "unsigned beyond": (
        {"op_cost": np.array([0, 2**63, 1, 1], np.uint64)},
        "op_cost",
        "does not fit",
    ),
    "negative cost": ({"op_cost": [0, -1, 1, 1]}, "op_cost[1]", "negative"),
    "great cost": ({"op_cost": [0, 2**48 + 1, 1, 1]}, "op_cost[1]", "above"),
    "negative size": ({"tensor_size": [16, -8, 0, 4, 4]}, "tensor_size[1]", "negative"),
    "sized view": ({"tensor_size": [16, 8, 1, 4, 4]}, "tensor_size[2]", "a view must have size 0"),
    "short": ({"op_constant": [True]}, "op_constant", "1 entries, expected 4"),
    "labels": ({"op_label": ("a", "b", "c", 4)}, "op_label[3]", "not valid text"),
    "surrogate": ({"op_label": ("a", "b", "c", "\ud800")}, "op_label[3]", "not valid text"),
    "pointers": ({"arg_ptr": [0, 0, 1, 3, 5]}, "arg_ptr", "from 0 to 6"),
    "falling pointers": ({"arg_ptr": [0, 7, 1, 3, 6]}, "arg_ptr[0]", "must not"),
    "no output": ({"out_ptr": [0, 1, 1, 3, 5]}, "out_ptr[1]", "at least one output"),
    "argument too late": ({"args": [0, 2, 1, 2, 1, 1]}, "args[1]", "not computed before"),
    "argument below 0": ({"args": [-1, 0, 1, 2, 1, 1]}, "args[0]", "not computed before"),
    "root too late": ({"tensor_root": [0, 1, 3, 3, 4]}, "tensor_root[2]", "earlier"),
    "root of a view": ({"tensor_root": [0, 0, 1, 3, 4]}, "tensor_root[2]", "not be a view"),
    "foreign root": (
        {"tensor_root": [0, 1, 1, 0, 4], "tensor_size": [16, 8, 0, 0, 4]},
        "tensor_root[3]",
        "one of its operator's arguments",
    ),
    "no command": (
        {"command": [0, 2, 0, 0, 1, 0, 4, 2, 2, 2, 2, 2]},
        "command[6]",
        "no such command",
    ),
    "order": ({"operand": [0, 0, 2, 1, 2, 3, 1, 0, 2, 2, 3, 4]}, "operand", "in order"),
    "too late": ({"operand": [0, 0, 1, 2, 3, 3, 1, 0, 2, 2, 3, 4]}, "operand[4]", "before it"),
    "constant with a cost": ({"op_cost": [1, 1, 1, 1]}, "op_cost[0]", "must cost 0"),
    "constant with arguments": (
        {"op_constant": [True, False, True, False], "op_cost": [0, 1, 0, 1]},
        "arg_ptr[2]",
        "no arguments",
    ),
    "constant without a pin": (
        {"command": [0, 1, 0, 0, 1, 0, 3, 2, 2, 2, 2, 2]},
        "op_constant[0]",
        "pinned right after",
    ),
    "released too often": (
        {
            "command": [0, 2, 0, 0, 3, 0, 3, 3, 2, 2, 2, 2],
            "operand": [0, 0, 1, 2, 2, 3, 1, 1, 2, 2, 3, 4],
        },
        "command[7]",
        "released after the last reference",
    ),
    "shared too late": (
        {
            "command": [0, 2, 0, 0, 3, 0, 3, 1, 2, 2, 2, 2],
            "operand": [0, 0, 1, 2, 2, 3, 1, 2, 2, 2, 3, 4],
        },
        "command[7]",
        "another reference after the last reference",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_arrays(case: str) -> None:
    changes, field, words = BAD[case]
    with pytest.raises(TraceError) as caught:
        dataclasses.replace(example(), **changes)
    assert caught.value.field == field
    assert words in str(caught.value)


def test_empty_trace() -> None:
    nothing: list[int] = []
    with pytest.raises(TraceError, match="computes nothing"):
        Trace(nothing, nothing, (), [0], nothing, [0], nothing, nothing, nothing, nothing)  # type: ignore[arg-type]


def test_sums_that_would_overflow() -> None:
    count = 2**13
    ones = np.arange(count + 1)
    sizes = np.full(count, 2**48)
    with pytest.raises(TraceError, match="sizes add up to 2"):
        Trace(
            op_cost=np.zeros(count, np.int64),
            op_constant=np.zeros(count, np.bool_),
            op_label=("x",) * count,
            arg_ptr=np.zeros(count + 1, np.int64),
            args=np.zeros(0, np.int64),
            out_ptr=ones,
            tensor_size=sizes,
            tensor_root=ones[:-1],
            command=np.zeros(count, np.int8),
            operand=ones[:-1],
        )
