"""What must stay when a counterexample is shrunk: that it is one, that it is as bad, or how."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from monofuzz.counterexample import (
    Counterexample,
    closest,
    examine,
    findings,
    least_budget,
    signature_of,
)
from monofuzz.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from monofuzz.replay import Outcome, TraceSystem
    from monofuzz.trace import Trace

__all__ = ["EXACT_COMMANDS", "Interest", "Keep"]

Keep = Literal["any", "severity", "signature"]
"""*any*: it breaks the claim. *severity*: and at least as badly as at first. *signature*: and by
the same mechanism (`monofuzz.counterexample.Signature`)."""

EXACT_COMMANDS = 160
"""A trace with at most so many commands is mapped completely; a larger one is sampled."""
MOST_RUNS = 4000
"""The most runs of a complete map, and of a walk through one hole."""
_COARSE, _FINE = 24, 48
_PORTION, _MOST_EVICTIONS = 8, 40_000
"""A grid is asked in portions of so many budgets, until its runs have evicted so often."""
_SLACK = 1e-9
_ROOM = 2.0
"""How much dearer than the two known runs a run may be while budgets are sampled."""
_LOOKED_AT = 4


class Interest:
    """Whether a trace still shows what a counterexample shows.

    Small traces are mapped completely. Larger ones are asked about some budgets: those of the last
    interesting trace, moved by what was pinned throughout and is gone, then a grid over the range,
    then one over where it begins to be feasible. What is not found there is called uninteresting.
    ``within``: what else must be true of a trace.

    Attributes:
        current: the counterexample that the last trace taken over is.
    """

    def __init__(
        self,
        example: Counterexample,
        keep: Keep = "any",
        within: Callable[[Trace], bool] | None = None,
    ) -> None:
        if keep not in get_args(Keep):
            raise UsageError(f"keep is {keep!r}; it must be {', '.join(get_args(Keep))}")
        self._example = example
        self._within = within
        self._keep = keep
        self._signature = signature_of(example) if keep == "signature" else None
        self._least = example.severity * (1 - _SLACK) if keep == "severity" else 0.0
        self.current = example

    def __call__(self, trace: Trace) -> Counterexample | None:
        """The counterexample that a trace still is, or None. Depends on `current`."""
        if self._within is not None and not self._within(trace):
            return None
        if len(trace.command) > EXACT_COMMANDS:
            return self._sampled(trace)
        example = self._example
        return examine(
            trace,
            example.rule,
            example.claim,
            limit=example.limit,
            align=example.align,
            most_runs=MOST_RUNS,
            accept=self.accepts,
        )

    def adopt(self, example: Counterexample) -> None:
        """Take what was found in a trace as what budgets are guessed from."""
        self.current = example

    def accepts(self, example: Counterexample) -> bool:
        """Whether a counterexample keeps what is to be kept."""
        if self._signature is not None:
            assert example.signature is not None
            return example.signature.keeps(self._signature)
        return example.severity > 0 and example.severity >= self._least

    def _sampled(self, trace: Trace) -> Counterexample | None:
        from monofuzz.replay.system import TraceSystem

        example, current = self._example, self.current
        # A run that ends below this limit is the same below the example's own.
        dearest = max(current.below.overhead, current.above.overhead, 2.0)
        limit = min(example.limit or np.inf, _ROOM * dearest)
        system = TraceSystem(trace, example.rule, limit=limit, align=example.align)
        lo, hi = least_budget(trace, align=example.align), system.peak + 1
        if lo + 2 >= hi:
            return None
        moved = _constant_bytes(trace) - _constant_bytes(current.trace)
        guess = [current.below.budget + moved, current.above.budget + moved]
        sample = _Sample(system, lo, hi)
        for budgets in sample.portions(guess):
            sample.ask(budgets)
            found = self._worst(sample)
            if found is not None:
                return found
        return None

    def _worst(self, sample: _Sample) -> Counterexample | None:
        """The worst of what the runs so far show that is accepted."""
        example = self._example
        listed = sorted(
            findings(sample.runs, example.claim, sample.peak), key=lambda f: -f.severity
        )
        for finding in listed[:_LOOKED_AT]:
            pair = finding.below, finding.above
            if pair in sample.refused:
                continue
            sample.refused.add(pair)
            severity = finding.severity
            if example.claim == "feasibility" and self._keep != "any":
                pair = closest(sample.system, *sample.system.run_many(pair))
                if self._keep == "severity":
                    severity = sample.width(pair[1], self._least)
            found = Counterexample.of(sample.system, example.claim, *pair, severity)
            if self.accepts(found):
                return replace(found, limit=example.limit)
        return None


class _Sample:
    """Runs of one system at some budgets ``lo <= budget < hi``.

    Attributes:
        refused: pairs of budgets that have been looked at.
    """

    def __init__(self, system: TraceSystem, lo: int, hi: int) -> None:
        self.system = system
        self.lo, self.hi = lo, hi
        self.peak = hi - 1
        self.refused: set[tuple[int, int]] = set()
        self._known: dict[int, Outcome] = {}
        self._evictions = 0

    @property
    def runs(self) -> list[Outcome]:
        """What is known, in the order of the budgets."""
        return [self._known[budget] for budget in sorted(self._known)]

    def ask(self, budgets: Iterable[int]) -> None:
        """Run at those budgets that lie in the range."""
        wanted = sorted({b for b in budgets if self.lo <= b < self.hi} - set(self._known))
        for run in self.system.run_many(wanted):
            self._known[run.budget] = run
            self._evictions += run.evictions

    def portions(self, guess: Sequence[int]) -> Iterator[Sequence[int]]:
        """What to ask, a portion after the other, as long as it does not become too much."""
        yield [guess[0] - 1, *guess, guess[1] + 1]
        yield from self._grid(self.lo, self.hi, _COARSE, guess[1])
        runs = self.runs
        feasible = [k for k, run in enumerate(runs) if run.status == "ok"]
        if feasible:
            first = runs[feasible[0]].budget
            start = runs[feasible[0] - 1].budget if feasible[0] else self.lo
            yield from self._grid(start, min(self.hi, 2 * first - start + 1), _FINE, guess[1])

    def _grid(self, lo: int, hi: int, count: int, near: int) -> Iterator[Sequence[int]]:
        """Budgets that divide a range, closer together at its lower end; the nearest ones first."""
        budgets = {lo + int((hi - lo) * share) for share in np.linspace(0.0, 1.0, count) ** 2}
        ordered = sorted(budgets, key=lambda b: (abs(b - near), b))
        for start in range(0, len(ordered), _PORTION):
            if self._evictions > _MOST_EVICTIONS:
                return
            yield ordered[start : start + _PORTION]

    def width(self, start: int, enough: float) -> float:
        """The hole that begins at a budget, as a share of the peak, as far as it needs be known."""
        end = start
        for run in islice(self.system.walk(start, self.hi), MOST_RUNS):
            if run.status != "oom" or end - start >= enough * self.peak:
                break
            end = self.hi if run.interval[1] is None else run.interval[1]
        return (end - start) / max(self.peak, 1)


def _constant_bytes(trace: Trace) -> int:
    return int(trace.tensor_size[trace.out_ptr[:-1]][trace.op_constant].sum())
