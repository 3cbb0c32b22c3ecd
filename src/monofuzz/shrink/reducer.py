"""Running the passes until none of them finds anything smaller that is still interesting."""

from __future__ import annotations

import time
from bisect import bisect, insort
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from monofuzz.canonical import canonical_order
from monofuzz.errors import UsageError
from monofuzz.shrink.passes import PASSES
from monofuzz.shrink.rewrite import Draft
from monofuzz.trace.model import COMPUTE, PIN, RELEASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

    from monofuzz.shrink.passes import Desk
    from monofuzz.trace.model import Trace

__all__ = ["Reducer", "complexity", "disorder"]


def complexity(trace: Trace) -> tuple[int, ...]:
    """What shrinking makes less, the most important first.

    Operators and constants, constants, tensors, arguments, views, pins, commands other than
    releases, releases, different numbers, the sum of all sizes and costs, and for how many
    operators releases wait after the last use. Traces that are alike in all of this are compared
    by `disorder`.
    """
    sizes, costs = trace.tensor_size.tolist(), trace.op_cost.tolist()
    command = trace.command.tolist()
    releases = command.count(RELEASE)
    return (
        trace.n_ops,
        trace.n_ops - trace.n_operators,
        trace.n_tensors,
        len(trace.args),
        trace.n_tensors - trace.n_storages,
        command.count(PIN),
        len(command) - releases,
        releases,
        len(set(sizes)) + len(set(costs)),
        sum(sizes) + sum(costs),
        _waits(trace),
    )


def _waits(trace: Trace) -> int:
    """For how many operators the references wait that nobody needs any more, together."""
    args, arg_ptr, out_ptr = trace.args.tolist(), trace.arg_ptr.tolist(), trace.out_ptr.tolist()
    last = [0] * trace.n_tensors
    waits = 0
    for what, x in zip(trace.command.tolist(), trace.operand.tolist(), strict=True):
        if what == COMPUTE:
            now = x
            for tensor in (*args[arg_ptr[x] : arg_ptr[x + 1]], *range(out_ptr[x], out_ptr[x + 1])):
                last[tensor] = x
        elif what == RELEASE:
            waits += now - last[x]
    return waits


def disorder(trace: Trace) -> int:
    """How many pairs of commands stand the other way round than in the canonical order."""
    seen: list[int] = []
    count = 0
    for command in canonical_order(trace):
        count += len(seen) - bisect(seen, command)
        insort(seen, command)
    return count


@dataclass(frozen=True, slots=True)
class _Candidate:
    place: int
    trace: Trace
    ahead: Future[Any] | None

    def cancel(self) -> None:
        if self.ahead is not None:
            self.ahead.cancel()


class Reducer:
    """The smallest trace it can find that ``interesting`` still says yes to.

    ``interesting`` is asked about each trace once, and never about one that is not smaller by
    `complexity`, then `disorder`. What it returns counts as yes if it is true; ``adopted`` is given
    it when the trace is taken over. ``progress`` is called after each success, with the trace and
    the number of questions so far. With several ``jobs``, traces are judged in as many threads,
    ahead of the answers that come before them; what comes out is the same.

    Whatever ``interesting`` raises goes through; `trace` still is the smallest so far. The first
    Ctrl-C ends the reduction like the time limit does.

    Attributes:
        trace: the smallest so far.
        asked: how many traces were tried.
        stopped: ``""`` when no pass finds anything smaller, else ``"time"`` or ``"interrupted"``.
    """

    def __init__(
        self,
        trace: Trace,
        interesting: Callable[[Trace], Any],
        *,
        adopted: Callable[[Any], None] | None = None,
        seconds: float | None = None,
        jobs: int = 1,
        progress: Callable[[Trace, int], None] | None = None,
    ) -> None:
        if jobs < 1:
            raise UsageError(f"jobs is {jobs}; it must be a number of threads, 1 or more")
        self.trace = trace
        self.asked = 0
        self.draft = Draft.of(trace)
        self.stopped: Literal["", "time", "interrupted"] = ""
        self._interesting = interesting
        self._adopted = adopted
        self._end = None if seconds is None else time.perf_counter() + seconds
        self._jobs = jobs
        self._pool: ThreadPoolExecutor | None = None
        self._progress = progress
        self._known = {trace.digest}
        self._least = complexity(trace)
        self._disorder: int | None = None

    @property
    def out_of_time(self) -> bool:
        """Whether the time that was given is over."""
        return self._end is not None and time.perf_counter() >= self._end

    def first(self, drafts: Iterable[Draft | None]) -> int | None:
        """Take over the first of several drafts that is smaller and still interesting.

        Gives its place among them, or None. All must be made from the present draft: later ones
        may be judged before it is known whether an earlier one is taken over.
        """
        waiting: deque[_Candidate] = deque()
        candidates = self._candidates(drafts)
        while True:
            waiting.extend(islice(candidates, self._jobs - len(waiting)))
            if not waiting:
                return None
            candidate = waiting.popleft()
            if self._settled(candidate):
                for later in waiting:
                    later.cancel()
                return candidate.place

    def consider(self, draft: Draft) -> bool:
        """Take a draft over if it is smaller and still interesting."""
        return self.first((draft,)) is not None

    def reduce(self, passes: Iterable[Callable[[Desk], None]] = PASSES) -> Trace:
        """Run all passes until a whole round changes nothing, or the time is over."""
        passes = tuple(passes)
        try:
            if self._jobs > 1:
                self._pool = ThreadPoolExecutor(self._jobs, "monofuzz-shrink")
            while not self.out_of_time:
                before = self.trace
                for one in passes:
                    one(self)
                if self.trace is before:
                    break
            if self.out_of_time:
                self.stopped = "time"
        except KeyboardInterrupt:
            self.stopped = "interrupted"
        finally:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
                self._pool = None
        return self.trace

    def _candidates(self, drafts: Iterable[Draft | None]) -> Iterator[_Candidate]:
        """The drafts worth the question, which is asked ahead of time if there is a pool."""
        for place, draft in enumerate(drafts):
            if self.out_of_time:
                return
            trace = None if draft is None else draft.trace(self.trace.meta)
            if trace is None or trace.digest in self._known or not self._smaller(trace):
                continue
            pool = self._pool
            yield _Candidate(
                place, trace, None if pool is None else pool.submit(self._interesting, trace)
            )

    def _settled(self, candidate: _Candidate) -> bool:
        """Hear the answer about a candidate, and take it over if it is yes."""
        trace = candidate.trace
        if trace.digest in self._known:
            return False
        self._known.add(trace.digest)
        self.asked += 1
        ahead = candidate.ahead
        evidence = self._interesting(trace) if ahead is None else ahead.result()
        if not evidence:
            return False
        self.trace, self.draft, self._least = trace, Draft.of(trace), complexity(trace)
        self._disorder = None
        if self._adopted is not None:
            self._adopted(evidence)
        if self._progress is not None:
            self._progress(trace, self.asked)
        return True

    def _smaller(self, trace: Trace) -> bool:
        size = complexity(trace)
        if size != self._least:
            return size < self._least
        if self._disorder is None:
            self._disorder = disorder(self.trace)
        return disorder(trace) < self._disorder
