"""What the tests of recording share."""

from __future__ import annotations

import dataclasses

import numpy as np

from monofuzz.trace import COMPUTE, GET, PIN, RELEASE, Trace


def structure(trace: Trace) -> Trace:
    """The trace with all costs 0: what was done, not how long it took."""
    return dataclasses.replace(trace, op_cost=np.zeros_like(trace.op_cost))


def script(trace: Trace) -> list[str]:
    """The schedule in words, costs aside; what a failing comparison is best read in."""
    lines = []
    for command, operand in zip(trace.command.tolist(), trace.operand.tolist(), strict=True):
        if command == COMPUTE:
            made = [
                f"{t} {trace.tensor_size[t]}"
                if trace.tensor_root[t] == t
                else f"{t} of {trace.tensor_root[t]}"
                for t in trace.outputs(operand)
            ]
            args = " ".join(map(str, trace.arguments(operand)))
            lines.append(f"{trace.op_label[operand]} ({args}) -> {', '.join(made)}")
        else:
            lines.append(f"{ {GET: 'get', PIN: 'pin', RELEASE: 'release'}[command] } {operand}")
    return lines


def assert_same(trace: Trace, expected: Trace) -> None:
    """Same labels, arguments, sizes, views, references and outputs; costs aside."""
    assert script(trace) == script(expected)
    assert structure(trace) == structure(expected)
