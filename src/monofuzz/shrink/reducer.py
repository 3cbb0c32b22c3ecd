"""Running the passes until none of them finds anything smaller that is still interesting."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from monofuzz.shrink.passes import PASSES
from monofuzz.shrink.rewrite import Draft
from monofuzz.trace.model import PIN, RELEASE

if TYPE_CHECKING:
    from collections.abc import Callable

    from monofuzz.trace.model import Trace

__all__ = ["Reducer", "complexity"]


def complexity(trace: Trace) -> tuple[int, ...]:
    """What shrinking makes less, the most important first.

    Operators, constants, tensors, arguments, views, pins, commands other than releases, releases,
    different numbers, and the sum of all sizes and costs.
    """
    sizes, costs = trace.tensor_size.tolist(), trace.op_cost.tolist()
    command = trace.command.tolist()
    releases = command.count(RELEASE)
    return (
        trace.n_operators,
        trace.n_ops,
        trace.n_tensors,
        len(trace.args),
        trace.n_tensors - trace.n_storages,
        command.count(PIN),
        len(command) - releases,
        releases,
        len(set(sizes)) + len(set(costs)),
        sum(sizes) + sum(costs),
    )


class Reducer:
    """The smallest trace it can find that ``interesting`` still says yes to.

    ``interesting`` is asked about each trace once, and never about one that is not smaller by
    `complexity`. ``stop`` is asked before each; ``progress`` is called after each success, with the
    trace and the number of questions so far.

    Attributes:
        trace: the smallest so far.
        asked: how many traces were tried.
    """

    def __init__(
        self,
        trace: Trace,
        interesting: Callable[[Trace], bool],
        *,
        seconds: float | None = None,
        progress: Callable[[Trace, int], None] | None = None,
    ) -> None:
        self.trace = trace
        self.asked = 0
        self.draft = Draft.of(trace)
        self._interesting = interesting
        self._end = None if seconds is None else time.perf_counter() + seconds
        self._progress = progress
        self._known = {trace.digest}
        self._least = complexity(trace)

    @property
    def out_of_time(self) -> bool:
        """Whether the time that was given is over."""
        return self._end is not None and time.perf_counter() >= self._end

    def consider(self, draft: Draft) -> bool:
        """Take a draft over if it is smaller and still interesting."""
        if self.out_of_time:
            return False
        trace = draft.trace(self.trace.meta)
        if trace is None or trace.digest in self._known:
            return False
        self._known.add(trace.digest)
        size = complexity(trace)
        if size >= self._least:
            return False
        self.asked += 1
        if not self._interesting(trace):
            return False
        self.trace, self.draft, self._least = trace, Draft.of(trace), size
        if self._progress is not None:
            self._progress(trace, self.asked)
        return True

    def reduce(self) -> Trace:
        """Run all passes until a whole round changes nothing, or the time is over."""
        while not self.out_of_time:
            before = self._least
            for one in PASSES:
                one(self)
            if self._least == before:
                break
        return self.trace
