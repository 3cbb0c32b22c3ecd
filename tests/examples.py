"""Small counterexamples that several tests use."""

from __future__ import annotations

from monofuzz.trace import Trace, TraceBuilder

__all__ = ["five_operators"]


def five_operators(*, swapped: bool = False, name: str = "five") -> Trace:
    """Feasible at 16 bytes and not at 17, under dtr. ``swapped``: the same graph, two tensors of
    which were made in the other order."""
    build = TraceBuilder(name=name)
    (a,) = build.op("a", [], 3, 9)
    (b,) = build.op("b", [a], 7, 1)
    (c,) = build.op("c", [b], 1, 1)
    (d,) = build.op("d", [c, a], 1, 7)
    if swapped:
        (e,) = build.op("e", [c, b], 8, 5)
        build.release(b)
        return build.finish(keep=[a, c, d, e])
    build.release(b)
    (e,) = build.op("e", [c, b], 8, 5)
    return build.finish(keep=[a, c, d, e])
