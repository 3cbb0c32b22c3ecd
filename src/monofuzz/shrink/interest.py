"""What must stay when a counterexample is shrunk: that it is one, or that it is as bad."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from monofuzz.counterexample import examine, inspect_runs, least_budget
from monofuzz.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from monofuzz.counterexample import Counterexample
    from monofuzz.replay import Outcome
    from monofuzz.trace import Trace

__all__ = ["Interest", "Keep"]

Keep = Literal["any", "severity"]
"""*any*: it breaks the claim. *severity*: and at least as badly as at first."""

EXACT_COMMANDS = 160
"""A trace with at most so many commands is mapped completely; a larger one is sampled."""
MOST_RUNS = 4000
_COARSE, _FINE = 24, 48
_SLACK = 1e-9


class Interest:
    """Whether a trace still shows what a counterexample shows.

    Small traces are mapped completely. Larger ones are asked about some budgets: those of the last
    interesting trace, moved by what was pinned throughout and is gone, then a grid over the range,
    then one over where it begins to be feasible. What is not found there is called uninteresting.
    ``within``: what else must be true of a trace.
    """

    def __init__(
        self,
        example: Counterexample,
        keep: Keep = "any",
        within: Callable[[Trace], bool] | None = None,
    ) -> None:
        if keep not in get_args(Keep):
            raise UsageError(f"keep is {keep!r}; it must be {' or '.join(get_args(Keep))}")
        self._example = example
        self._within = within
        self._least = example.severity * (1 - _SLACK) if keep == "severity" else 0.0
        self._budgets = list(example.witness)
        self._constants = _constant_bytes(example.trace)

    def __call__(self, trace: Trace) -> bool:
        example = self._example
        if self._within is not None and not self._within(trace):
            return False
        if len(trace.command) <= EXACT_COMMANDS or self._least:
            found = examine(
                trace,
                example.policy,
                example.claim,
                limit=example.limit,
                align=example.align,
                most_runs=MOST_RUNS,
            )
            return found is not None and found.severity >= self._least
        return self._sampled(trace)

    def _sampled(self, trace: Trace) -> bool:
        from monofuzz.replay.system import TraceSystem

        example = self._example
        system = TraceSystem(trace, example.policy, limit=example.limit, align=example.align)
        constants = _constant_bytes(trace)
        moved = [b - self._constants + constants for b in self._budgets]
        lo, hi = least_budget(trace, align=example.align), system.peak + 1
        if lo + 2 >= hi:
            return False
        known: dict[int, Outcome] = {}

        def broken(budgets: list[int]) -> bool:
            wanted = sorted({b for b in budgets if lo <= b < hi} - set(known))
            for run in system.run_many(wanted):
                known[run.budget] = run
            runs = [known[b] for b in sorted(known)]
            finding = inspect_runs(runs, example.claim, hi - 1)
            if finding is None or not finding.severity > 0:
                return False
            self._budgets, self._constants = _around(finding.below, finding.above), constants
            return True

        if broken(moved) or broken(_between(lo, hi, _COARSE)):
            return True
        feasible = [b for b in sorted(known) if known[b].status == "ok"]
        if not feasible:
            return False
        first = feasible[0]
        failing = [b for b in sorted(known) if b < first and known[b].status != "ok"]
        start = failing[-1] if failing else lo
        return broken(_between(start, min(hi, first + (first - start) + 1), _FINE))


def _around(below: int, above: int) -> list[int]:
    return [below - 1, below, above, above + 1]


def _between(lo: int, hi: int, count: int) -> list[int]:
    """Budgets that divide a range, closer together at its lower end."""
    return [lo + int((hi - lo) * share) for share in np.linspace(0.0, 1.0, count) ** 2]


def _constant_bytes(trace: Trace) -> int:
    return int(trace.tensor_size[trace.out_ptr[:-1]][trace.op_constant].sum())
