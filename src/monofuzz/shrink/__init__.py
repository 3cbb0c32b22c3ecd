"""From a large counterexample to a minimal one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monofuzz.canonical import canonical_order
from monofuzz.counterexample import Counterexample, examine
from monofuzz.shrink.interest import Interest, Keep
from monofuzz.shrink.reducer import Reducer, complexity
from monofuzz.shrink.rewrite import relabelled, reordered

if TYPE_CHECKING:
    from collections.abc import Callable

    from monofuzz.trace import Trace

__all__ = ["Interest", "Keep", "Reducer", "complexity", "reduce_trace", "shrink"]


def shrink(
    example: Counterexample,
    *,
    keep: Keep = "any",
    within: Callable[[Trace], bool] | None = None,
    seconds: float | None = None,
    progress: Callable[[Trace, int], None] | None = None,
) -> Counterexample:
    """The smallest counterexample to the same claim and policy that can be found from this one.

    ``keep`` ``"any"``: whatever breaks the claim; ``"severity"``: what does so at least as badly.
    ``within``: what else must be true of the trace. ``seconds``: stop after that long, with the
    smallest so far. The result is one by its complete map; its trace is in canonical order, if it
    is still one then, and its operators are named a, b, c, … in their order.
    """
    interest = Interest(example, keep, within)
    reducer = Reducer(example.trace, interest, seconds=seconds, progress=progress)
    trace = reducer.reduce()
    ordered = reordered(trace, canonical_order(trace))
    if ordered != trace and not reducer.out_of_time and interest(ordered):
        trace = ordered
    smallest = examine(
        relabelled(trace), example.policy, example.claim, limit=example.limit, align=example.align
    )
    if smallest is None or complexity(smallest.trace) >= complexity(example.trace):
        return example
    return smallest.with_found(
        **{**example.found, "shrunk_from": example.operators, "tried": reducer.asked}
    )


def reduce_trace(
    trace: Trace,
    interesting: Callable[[Trace], bool],
    *,
    seconds: float | None = None,
    progress: Callable[[Trace, int], None] | None = None,
) -> Trace:
    """The smallest trace that ``interesting`` still says yes to, by the same passes.

    ``interesting`` must be deterministic, and is supposed to say yes to ``trace`` itself.
    """
    return Reducer(trace, interesting, seconds=seconds, progress=progress).reduce()
