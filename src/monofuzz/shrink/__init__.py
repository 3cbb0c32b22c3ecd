"""From a large counterexample to a minimal one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from monofuzz.errors import UsageError
from monofuzz.shrink.interest import EXACT_COMMANDS, Interest, Keep
from monofuzz.shrink.reducer import Reducer, complexity, disorder
from monofuzz.shrink.rewrite import relabelled
from monofuzz.shrink.seek import seek, seek_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from monofuzz.counterexample import Counterexample
    from monofuzz.trace import Trace

__all__ = [
    "EXACT_COMMANDS",
    "Interest",
    "Keep",
    "Reducer",
    "complexity",
    "disorder",
    "reduce_trace",
    "seek",
    "seek_at",
    "shrink",
]


def shrink(
    example: Counterexample,
    *,
    keep: Keep = "any",
    within: Callable[[Trace], bool] | None = None,
    seconds: float | None = None,
    jobs: int = 1,
    progress: Callable[[Trace, int], None] | None = None,
) -> Counterexample:
    """The smallest counterexample to the same claim and policy that can be found from this one.

    ``keep`` ``"any"``: whatever breaks the claim; ``"severity"``: what does so at least as badly;
    ``"signature"``: what does so by the same mechanism. ``within``: what else must be true of the
    trace. ``seconds``: stop after that long, with the smallest so far; so does the first Ctrl-C.
    ``jobs``: threads; the result does not depend on them.

    No pass improves on the result, unless its ``found["stopped"]`` says what came in between. It
    is a counterexample by the complete map of its trace, unless that has more than
    `EXACT_COMMANDS` commands. Its operators are named a, b, c, … in their order.

    Raises `UsageError` for an example whose runs are not what it says.
    """
    differences = example.differences()
    if differences:
        raise UsageError(f"a counterexample that does not replay is not shrunk: {differences[0]}")
    interest = Interest(example, keep, within)
    reducer = Reducer(
        example.trace,
        interest,
        adopted=interest.adopt,
        seconds=seconds,
        jobs=jobs,
        progress=progress,
    )
    trace = reducer.reduce()
    if trace is example.trace:
        return example if not reducer.stopped else example.with_found(stopped=reducer.stopped)
    facts: dict[str, Any] = {"shrunk_from": example.operators, "tried": reducer.asked, "kept": keep}
    if reducer.stopped:
        facts["stopped"] = reducer.stopped
    smallest = interest.current
    return replace(smallest, trace=relabelled(trace), found={**example.found, **facts})


def reduce_trace(
    trace: Trace,
    interesting: Callable[[Trace], bool],
    *,
    seconds: float | None = None,
    jobs: int = 1,
    progress: Callable[[Trace, int], None] | None = None,
) -> Trace:
    """The smallest trace that ``interesting`` still says yes to, by the same passes.

    ``interesting`` must be deterministic, and is supposed to say yes to ``trace`` itself; what it
    raises goes through. With several ``jobs`` it is called from as many threads at once.
    """
    reducer = Reducer(trace, interesting, seconds=seconds, jobs=jobs, progress=progress)
    return reducer.reduce()
