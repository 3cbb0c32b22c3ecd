"""What the runs of one trace, in the order of their budgets, say against a claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from monofuzz.replay import Outcome, TraceSystem
    from monofuzz.search.verdict import Claim
    from monofuzz.trace import Trace

__all__ = ["Finding", "closest", "findings", "inspect_runs", "least_budget", "runs_of"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The worst break of a claim: two budgets, and how bad it is.

    ``severity`` of a hole is its width as a share of the peak, of a rise in cost the factor.
    """

    below: int
    above: int
    severity: float


def least_budget(trace: Trace, *, align: int | None = None) -> int:
    """A budget below which no run can succeed: what some operator needs at once, in bytes."""
    size = trace.tensor_size
    if align is not None:
        size = -(-size // align) * align
    maker = np.repeat(np.arange(trace.n_ops), np.diff(trace.out_ptr))
    reader = np.repeat(np.arange(trace.n_ops), np.diff(trace.arg_ptr))
    need = np.zeros(trace.n_ops, np.int64)
    np.add.at(need, maker, size)
    pairs = np.unique(reader * trace.n_tensors + trace.tensor_root[trace.args])
    np.add.at(need, pairs // trace.n_tensors, size[pairs % trace.n_tensors])
    return int(need.max(initial=0))


def runs_of(system: TraceSystem, *, most: int | None = None) -> list[Outcome] | None:
    """All runs of a system from its least sensible budget up to its peak, in order.

    None when there are more than ``most``.
    """
    lo = least_budget(system.trace, align=system.align)
    runs: list[Outcome] = []
    for run in system.walk(lo, system.peak + 1):
        runs.append(run)
        if most is not None and len(runs) > most:
            return None
    return runs


def inspect_runs(runs: Iterable[Outcome], claim: Claim, peak: int) -> Finding | None:
    """The worst of the `findings` among runs, the first of equals; None when there are none."""
    best: Finding | None = None
    for finding in findings(runs, claim, peak):
        if best is None or finding.severity > best.severity:
            best = finding
    return best


def findings(runs: Iterable[Outcome], claim: Claim, peak: int) -> Iterator[Finding]:
    """All breaks of a claim among runs without gaps, in the order of their budgets.

    For *feasibility* the holes (a thrashed run ends one, as it is no failure): the last feasible
    budget below each and its first. For *cost* every run that costs more than the cheapest below
    it: the two budgets that are closest.
    """
    return _holes(runs, peak) if claim == "feasibility" else _rises(runs)


def _holes(runs: Iterable[Outcome], peak: int) -> Iterator[Finding]:
    feasible = start = -1
    end = 0
    for run in runs:
        lo, hi = run.interval
        if run.status == "oom" and feasible >= 0:
            start = lo if start < 0 else start
            end = peak + 1 if hi is None else hi
            continue
        if start >= 0:
            yield Finding(feasible, start, (end - start) / max(peak, 1))
            start = -1
        if run.status == "ok":
            feasible = (lo if hi is None else hi) - 1


def _rises(runs: Iterable[Outcome]) -> Iterator[Finding]:
    least = feasible = -1
    for run in runs:
        if run.status != "ok":
            continue
        lo, hi = run.interval
        if least >= 0 and run.cost > least:
            yield Finding(feasible, lo, run.cost / least if least else float("inf"))
        if least < 0 or run.cost <= least:
            least, feasible = run.cost, (lo if hi is None else hi) - 1


def closest(system: TraceSystem, below: Outcome, above: Outcome) -> tuple[int, int]:
    """Two budgets between two runs, ok at the lower and out of memory at the upper one.

    They are next to each other, unless the bisection meets a run that ends otherwise.
    """
    while True:
        end = below.interval[1]
        assert end is not None
        if end >= above.interval[0]:
            break
        (middle,) = system.run_many([(end + above.interval[0]) // 2])
        if middle.status == "ok":
            below = middle
        elif middle.status == "oom":
            above = middle
        else:
            break
    return end - 1, above.interval[0]
