"""Systems whose whole behaviour is written down, to search and to know what must be found."""

from __future__ import annotations

import time
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence

    from monofuzz.search.system import Stop

STATUSES = ("ok", "oom", "thrashed")


@dataclass(frozen=True)
class ToyResult:
    status: str
    cost: float
    overhead: float
    interval: tuple[int, int | None]
    certified: bool = True


@dataclass
class Steps:
    """A step function: at ``budget`` the last step (start, status, cost) at or below it holds.

    Steps with equal (status, cost) beside each other are different intervals of one regime.
    """

    steps: Sequence[tuple[int, str, float]]
    certified: bool = True
    timeouts: frozenset[int] = frozenset()
    seconds: float = 0.0
    peak: int = 1000
    name: str = "steps"
    policy: str = "toy"
    runs: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.starts = [start for start, _, _ in self.steps]
        self.identity = repr((list(self.steps), self.certified))

    def run(self, budget: int) -> ToyResult:
        self.runs.append(budget)
        if self.seconds:
            time.sleep(self.seconds)
        return self.expect(budget)

    def expect(self, budget: int) -> ToyResult:
        if budget in self.timeouts:
            return ToyResult("timeout", 0, 0.0, (budget, budget + 1), certified=False)
        place = bisect_right(self.starts, budget) - 1
        start, status, cost = self.steps[place]
        end = self.starts[place + 1] if place + 1 < len(self.starts) else None
        interval = (start, end) if self.certified else (budget, budget + 1)
        return ToyResult(status, cost, cost / 10, interval, self.certified)


@dataclass
class BatchSteps(Steps):
    """The same with batches, so that it is run from several threads; sleeping frees the GIL."""

    def run_many(self, budgets: Sequence[int], *, stop: Stop | None = None) -> list[ToyResult]:
        results = []
        for budget in budgets:
            if stop is not None and stop.is_set():
                break
            results.append(self.run(budget))
        return results


@st.composite
def step_lists(
    draw: st.DrawFn,
    *,
    span: int = 60,
    statuses: Sequence[str] = STATUSES,
) -> list[tuple[int, str, float]]:
    """Steps from 0 on, with starts below ``span``; few costs, so that equal neighbours occur."""
    starts = draw(st.sets(st.integers(1, span - 1), max_size=16))
    step = st.tuples(st.sampled_from(statuses), st.sampled_from([10, 11, 12, 13, 20, 40]))
    return [(start, *draw(step)) for start in sorted({0, *starts})]
