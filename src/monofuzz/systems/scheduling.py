"""List scheduling: tasks with dependencies on so many processors.

Whenever a processor is free, it takes the first task of a list whose predecessors are done. More
processors can take longer (Graham, "Bounds on multiprocessing timing anomalies", SIAM Journal on
Applied Mathematics 17(2), 1969).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from monofuzz.errors import BudgetError

if TYPE_CHECKING:
    from monofuzz.trace.model import Trace

__all__ = ["ListScheduling", "Schedule"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """A run on so many processors: ``cost`` is the time when the last task ends, ``overhead`` that
    time as a multiple of the longest chain of tasks, ``starts`` when each task starts. Without any
    processor, the run fails."""

    status: Literal["ok", "oom"]
    cost: int
    overhead: float
    interval: tuple[int, int | None]
    starts: tuple[int, ...] = ()
    certified: bool = True


class ListScheduling:
    """The operators of a trace as tasks; the budget is the number of processors.

    A task takes as long as the operator costs and needs those whose outputs the operator reads; the
    list is the order of the trace. What the trace says about sizes and references does not matter.
    Every result is certified.
    """

    policy = "list"

    def __init__(self, trace: Trace) -> None:
        maker = np.repeat(np.arange(trace.n_ops), np.diff(trace.out_ptr)).tolist()
        self.durations = tuple(trace.op_cost.tolist())
        self.needs = tuple(
            tuple(sorted({maker[tensor] for tensor in trace.arguments(op).tolist()}))
            for op in range(trace.n_ops)
        )
        self.peak = trace.n_ops
        self.name = trace.meta.name or trace.digest[:12]
        self.identity = f"list scheduling {self.durations} {self.needs}"
        ends: list[int] = []
        for duration, needs in zip(self.durations, self.needs, strict=True):
            ends.append(duration + max((ends[task] for task in needs), default=0))
        self._longest = max(ends)

    def run(self, processors: int) -> Schedule:
        """The schedule on so many processors."""
        if processors < 0:
            raise BudgetError(f"a number of processors is 0 or more, not {processors}")
        if processors == 0:
            return Schedule("oom", 0, 0.0, (0, 1))
        waiting = list(range(len(self.durations)))
        starts = [0] * len(waiting)
        running: list[tuple[int, int]] = []
        done: set[int] = set()
        now = 0
        while waiting or running:
            ready = [task for task in waiting if done.issuperset(self.needs[task])]
            for task in ready[: processors - len(running)]:
                starts[task] = now
                waiting.remove(task)
                heapq.heappush(running, (now + self.durations[task], task))
            now = running[0][0]
            while running and running[0][0] == now:
                done.add(heapq.heappop(running)[1])
        enough = processors >= self.peak
        interval = (self.peak, None) if enough else (processors, processors + 1)
        overhead = now / self._longest if self._longest else 1.0
        return Schedule("ok", now, overhead, interval, tuple(starts))
