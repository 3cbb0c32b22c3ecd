"""Making a failure small: fewer operators, budgets closer together."""

from __future__ import annotations

import time as _time
from typing import TYPE_CHECKING, Any

import numpy as np

from monofuzz.counterexample import Counterexample
from monofuzz.replay import TraceSystem
from monofuzz.search import check
from monofuzz.search.confirm import breaks, confirmed, narrowed, side
from monofuzz.search.system import Runner
from monofuzz.search.verdict import Witness
from monofuzz.shrink import reduce_trace, shrink
from monofuzz.shrink.rewrite import relabelled
from monofuzz.suite.listing import happened
from monofuzz.suite.result import Breach

if TYPE_CHECKING:
    from monofuzz.search.system import System
    from monofuzz.search.verdict import Claim
    from monofuzz.suite.settings import Settings
    from monofuzz.suite.subject import Subject
    from monofuzz.trace import Trace

__all__ = ["budgets_of", "of_counterexample", "of_system", "of_trace"]

_MOST_RUNS = 300
"""How often a smaller trace is run before it is given up."""


def budgets_of(system: System, settings: Settings, *, beyond: int = 0) -> tuple[Any, Any]:
    """The range of budgets of a small graph: all up to ``beyond`` its peak, if none is named."""
    if settings.between is not None:
        return settings.between
    return 1, _peak(system) + beyond + 1


def of_system(system: System, witness: Witness, settings: Settings) -> Breach:
    """A breach of a system that takes no trace: its budgets as close as they get."""
    runner = Runner(system)
    witness = _closest(runner, witness, settings)
    return _breach(system, witness, None, runner.name, None)


def of_trace(
    subject: Subject, trace: Trace, witness: Witness, settings: Settings, first: str
) -> Breach:
    """A breach on a trace, shrunk as far as ``settings.time`` allows."""
    if subject.kind == "policy" and not settings.tolerance:
        system = TraceSystem(trace, subject.thing, limit=settings.limit)
        known = Counterexample.of(system, witness.claim, *witness.budgets, severity=0.0)
        small = shrink(known, seconds=settings.time)
        return of_counterexample(subject, small, settings, first, trace.n_operators)
    interest = _StillBreaks(subject, trace, witness, settings)
    small_trace = reduce_trace(trace, interest, seconds=settings.time)
    named = relabelled(small_trace)
    if not interest(named):
        named = small_trace
    system_there = subject.on(named, limit=settings.limit)
    found = interest.look(named)
    assert found is not None
    closest = _closest(Runner(system_there), found, settings)
    return _breach(system_there, closest, named, first, trace.n_operators)


def of_counterexample(
    subject: Subject, example: Counterexample, settings: Settings, first: str, operators: int
) -> Breach:
    """A counterexample as a breach."""
    system = subject.on(example.trace, limit=settings.limit)
    low, high = (side(Runner(system), budget) for budget in example.witness)
    witness = Witness(example.claim, low, high)
    return _breach(system, witness, example.trace, first, operators)


class _StillBreaks:
    """Whether a runtime breaks the claim on another trace, too.

    First it is run where it broke it last, moved by the constants that came or went; then the range
    is searched.
    """

    def __init__(
        self, subject: Subject, trace: Trace, witness: Witness, settings: Settings
    ) -> None:
        self._subject = subject
        self._claim: Claim = witness.claim
        self._settings = settings
        self._budgets = witness.budgets
        self._constants = _constant_bytes(trace)
        # A runtime may need more than a trace's peak, and break the claim only there: as far above
        # it as it did so last, it is searched.
        self._beyond = 0

    def __call__(self, trace: Trace) -> bool:
        # A runtime may not be made for every graph: what it cannot run is of no interest.
        try:
            return self.look(trace) is not None
        except Exception:
            return False

    def look(self, trace: Trace) -> Witness | None:
        """A witness on the trace, or None when none is found."""
        system = self._subject.on(trace, limit=self._settings.limit)
        witness = self._moved(trace, Runner(system))
        if witness is None:
            (one,) = check(
                system,
                claims=(self._claim,),
                between=budgets_of(system, self._settings, beyond=self._beyond),
                max_runs=min(self._settings.max_runs, _MOST_RUNS),
                tolerance=self._settings.tolerance,
                jobs=0,
            )
            witness = one.verdict.witness
        if witness is not None:
            self._budgets, self._constants = witness.budgets, _constant_bytes(trace)
            self._beyond = max(witness.above.budget - _peak(system), 0)
        return witness

    def _moved(self, trace: Trace, runner: Runner) -> Witness | None:
        moved = _constant_bytes(trace) - self._constants
        low, high = (budget + moved for budget in self._budgets)
        if low < 0:
            return None
        witness = Witness(self._claim, side(runner, low), side(runner, high))
        return witness if breaks(witness, tolerance=self._settings.tolerance) else None


def _closest(runner: Runner, witness: Witness, settings: Settings) -> Witness:
    until = _time.perf_counter() + settings.time
    witness = narrowed(runner, witness, tolerance=settings.tolerance, until=until)
    return confirmed(runner, witness, tolerance=settings.tolerance)


def _breach(
    system: System, witness: Witness, trace: Trace | None, first: str, operators: int | None
) -> Breach:
    low, high = (happened(system.run(budget)) for budget in witness.budgets)
    return Breach(witness, low, high, trace, first, operators)


def _peak(system: System) -> int:
    peak: int = getattr(system, "peak")  # noqa: B009 (not every system has one)
    return peak


def _constant_bytes(trace: Trace) -> int:
    return int(np.sum(trace.tensor_size[trace.out_ptr[:-1]][trace.op_constant]))
