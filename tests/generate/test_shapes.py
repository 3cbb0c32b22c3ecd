"""Training steps of every shape: the right operators, the right edges, the right memory."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from monofuzz.errors import UsageError
from monofuzz.generate.shapes import DROPS, INPUT, SAVES, SHAPES, Shape, network, training_step
from monofuzz.trace import PIN, RELEASE


@pytest.mark.parametrize(
    ("shape", "reads"),
    [
        ("chain", [(-1,), (0,), (1,), (2,), (3,), (4,), (5,)]),
        ("residual", [(-1,), (0,), (-1, 1), (2,), (3,), (2, 4), (5,)]),
        ("dense", [tuple(range(INPUT, k)) for k in range(7)]),
        ("u-shaped", [(-1,), (0,), (1,), (2,), (2, 3), (1, 4), (0, 5)]),
        ("recurrent", [(-1,), (0,), (0, -1), (2,), (2, -1), (4,), (4, -1)]),
        ("tree", [(-1,), (-1,), (-1,), (-1,), (0, 1), (2, 3), (4, 5)]),
        ("unrolled", [(-1,), (-1, 0), (-1, 1), (2,), (2, 3), (2, 4), (5,)]),
        ("attention", [(-1,), (-1,), (0, 1), (-1,), (2, 3), (-1, 4), (5,)]),
    ],
)
def test_networks(shape: Shape, reads: list[tuple[int, ...]]) -> None:
    assert [node.reads for node in network(shape, 7)] == reads


def test_a_small_step_is_what_it_says() -> None:
    trace = training_step("chain", 2, sizes=(10, 20), costs=(3,), weights=True, updates=True)
    assert trace.op_label == (
        "weight", "weight", "input", "forward", "forward", "loss", "backward", "backward",
        "update_", "update_",
    )  # fmt: skip
    w0, w1, x, h0, h1, loss, g0, gw1, gw0 = range(9)
    read = [trace.arguments(op).tolist() for op in range(3, 10)]
    assert read == [[x, w0], [h0, w1], [h1], [loss, h0, w1], [g0, x, w0], [w1, gw1], [w0, gw0]]
    dropped = trace.operand[trace.command == RELEASE].tolist()
    assert dropped == [loss, h1, g0, h0, w1, gw1, w0, gw0]
    assert trace.operand[trace.command == PIN].tolist()[3:] == [x, 9, 10]
    assert trace.tensor_size.tolist() == [10, 20, 10, 20, 10, 20, 10, 20, 10, 20, 10]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_step_of_every_shape(shape: Shape) -> None:
    for layers, saves, drops, loss, updates, accumulate, views in itertools.product(
        (1, 3, 7), SAVES, DROPS, *[(False, True)] * 4
    ):
        trace = training_step(
            shape, layers, saves=saves, drops=drops, loss=loss, weights=updates, updates=updates,
            accumulate=accumulate, views=views,
        )  # fmt: skip
        labels = trace.op_label
        backward = labels.count("backward") + labels.count("view") + labels.count("forward")
        assert backward == 2 * layers
        assert trace.n_operators == 2 * layers + loss + labels.count("update_") + labels.count(
            "add_"
        )
        assert updates or "update_" not in labels
        assert accumulate or "add_" not in labels
        kept = set(trace.operand[trace.command == PIN].tolist())
        forward = [trace.outputs(op)[0] for op, label in enumerate(labels) if label == "forward"]
        assert (drops == "never") == bool(kept & set(forward))


def test_sizes_follow_the_shape() -> None:
    trace = training_step("u-shaped", 5, sizes=(16,), costs=(1,))
    forward = [op for op, label in enumerate(trace.op_label) if label == "forward"]
    assert [int(trace.tensor_size[trace.outputs(op)[0]]) for op in forward] == [16, 8, 4, 8, 16]
    assert set(training_step("u-shaped", 9).tensor_size.tolist()) == {1}


def test_weights_are_shared_in_time() -> None:
    trace = training_step("recurrent", 6, weights=True, accumulate=True)
    assert trace.op_label.count("weight") == 2
    assert trace.op_label.count("add_") > 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"shape": "unet"}, "did you mean"),
        ({"layers": 0}, "layers must be"),
        ({"layers": True}, "layers must be"),
        ({"saves": "input"}, "did you mean inputs"),
        ({"drops": "ends"}, "did you mean end"),
        ({"sizes": ()}, "at least one size"),
        ({"updates": True}, "weights=True"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        training_step(**{"shape": "chain", "layers": 3, **arguments})
