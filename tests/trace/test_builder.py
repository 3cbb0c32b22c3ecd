"""The builder refuses nonsense at once and stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from monofuzz import strategies as mst
from monofuzz.errors import TraceError
from monofuzz.trace import PIN, RELEASE, Trace, TraceBuilder


def begun() -> TraceBuilder:
    """Tensors: 0 constant, 1 of 8 bytes, 2 a view of 1, 3 released."""
    build = TraceBuilder()
    build.constant(16)
    build.op("make", [0], 8, 5)
    build.op("view", [1], [0], 1, views={0: 0})
    build.op("dead", [1], 3, 1)
    build.release(3)
    return build


BAD: dict[str, tuple[Callable[[Any], Any], str | None, str]] = {
    "negative size": (lambda b: b.constant(-1), "size", "negative"),
    "float size": (lambda b: b.op("f", [], 1.5, 1), "sizes", "not 1.5"),
    "true size": (lambda b: b.constant(True), "size", "not True"),
    "great size": (lambda b: b.op("f", [], [1, 2**48 + 1], 1), "sizes", "above 2**48"),
    "no sizes": (lambda b: b.op("f", [], [], 1), "sizes", "makes no tensor"),
    "negative cost": (lambda b: b.op("f", [], 1, -1), "cost", "negative"),
    "text cost": (lambda b: b.op("f", [], 1, "1"), "cost", "not '1'"),
    "unknown pin": (lambda b: b.pin(4), "tensor", "no tensor 4: 4 were made"),
    "unknown argument": (lambda b: b.op("f", [0, 4], 1, 1), "args[1]", "no tensor 4: 4 were made"),
    "negative argument": (lambda b: b.op("f", [-1], 1, 1), "args[0]", "no tensor -1"),
    "not a list": (lambda b: b.op("f", 0, 1, 1), "args", "a list of tensors, not 0"),
    "label": (lambda b: b.op(5, [], 1, 1), "label", "text, not 5"),
    "bad label": (lambda b: b.op("\ud800", [], 1, 1), "label", "Unicode"),
    "view of what": (lambda b: b.op("f", [0], [0], 1, views={0: 1}), "views[0]", "index 1"),
    "view from where": (lambda b: b.op("f", [0], [0], 1, views={1: 0}), "views", "index 1"),
    "view with a size": (lambda b: b.op("f", [0], [1], 1, views={0: 0}), "sizes[0]", "must be 0"),
    "replace nothing": (lambda b: b.mutate("f", [0], [], 1), "replaced", "replaces no argument"),
    "replace what": (lambda b: b.mutate("f", [0], [1], 1), "replaced", "index 1 is outside the 1"),
    "replace twice": (lambda b: b.mutate("f", [1, 1], [0, 1], 1), "replaced", "twice"),
    "replace released": (lambda b: b.mutate("f", [3], 0, 1), "replaced", "no reference left"),
    "get released": (lambda b: b.get(3), "tensor", "no reference left to share"),
    "release released": (lambda b: b.release(3), "tensor", "no reference left to release"),
    "get unknown": (lambda b: b.get(9), "tensor", "no tensor 9"),
    "get text": (lambda b: b.get("x"), "tensor", "an integer, not 'x'"),
    "keep unknown": (lambda b: b.finish(keep=[9]), "keep[0]", "no tensor 9"),
}


@pytest.mark.parametrize("case", BAD)
def test_refusal_leaves_the_builder_as_it_was(case: str) -> None:
    act, field, words = BAD[case]
    build = begun()
    with pytest.raises(TraceError) as caught:
        act(build)
    assert caught.value.field == field
    assert words in str(caught.value)
    assert build.finish() == begun().finish()


def test_too_many_replaced_of_one_storage() -> None:
    build = TraceBuilder()
    build.op("make", [], 8, 1)
    build.op("view", [0], 0, 1, views={0: 0})
    build.release(1)
    with pytest.raises(TraceError, match="tensor 1 has no reference left"):
        build.mutate("f", [0, 1], [0, 1], 1)
    assert build.mutate("f", [0, 1], 0, 1) == (2,)


def test_sums_are_bounded() -> None:
    build = TraceBuilder()
    for _ in range(8191):
        build.op("f", [], 2**48, 2**48)
    with pytest.raises(TraceError, match="sizes add up"):
        build.op("f", [], 2**48, 0)
    with pytest.raises(TraceError, match="costs add up"):
        build.op("f", [], 0, 2**48)
    assert build.finish().model_compute == 8191 * 2**48


def test_finished() -> None:
    build = begun()
    build.finish()
    with pytest.raises(TraceError, match="finished"):
        build.constant(1)
    with pytest.raises(TraceError, match="finished"):
        build.finish()


def test_empty() -> None:
    with pytest.raises(TraceError, match="computes nothing"):
        TraceBuilder().finish()


def test_unknown_metadata() -> None:
    with pytest.raises(TraceError, match="the fields are name, source"):
        TraceBuilder(colour="red")


def test_numpy_integers() -> None:
    build = TraceBuilder(model="m", batch=3)
    weight = build.constant(np.int64(3))
    build.op("f", np.array([weight]), np.int32(4), np.uint8(5))
    trace = build.finish()
    assert trace.tensor_size.tolist() == [3, 4]
    assert (trace.meta.model, trace.meta.batch, trace.meta.recorder) == ("m", 3, "builder")


def test_in_place() -> None:
    build = begun()
    assert build.mutate("add_", [2, 0], [0], 4) == (4,)
    trace = build.finish()
    assert trace.tensor_size[4] == 8  # as large as the storage that the view lies in
    assert trace.tensor_root[4] == 4
    assert (trace.command == RELEASE).sum() == 2
    assert build.references(2) == 1


def test_a_tensor_is_pinned_where_the_step_says_so() -> None:
    build = begun()
    build.pin(3)
    build.op("more", [1], 1, 1)
    trace = build.finish(keep=[1])
    pins = [int(t) for c, t in zip(trace.command, trace.operand, strict=True) if c == PIN]
    assert pins == [0, 3, 1]
    assert trace.command[6] == PIN


def test_default_keeps_what_is_referenced_once_for_each_reference_taken() -> None:
    build = begun()
    build.get(2)
    trace = build.finish()
    pinned = trace.operand[trace.command == PIN].tolist()
    assert pinned == [0, 0, 1, 2, 2]


@given(mst.traces())
def test_random_traces_have_the_operators_asked_for(trace: Trace) -> None:
    assert 1 <= trace.n_operators <= 16
