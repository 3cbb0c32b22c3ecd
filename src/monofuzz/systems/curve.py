"""Does a measured curve break monotonicity, or is it the noise?

The verdict on a table of measurements: *refuted*, with the two budgets, or *undecided*, with what
to measure next. Samples prove nothing, so it is never *monotone*. docs/notes/measured.md gives the
statistics and their limits.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from monofuzz.errors import TableError, UsageError
from monofuzz.search.verdict import CLAIMS, ThrashAs
from monofuzz.systems import measured, statistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from monofuzz.budget import Budget
    from monofuzz.search.verdict import Claim
    from monofuzz.systems.measured import Table
    from monofuzz.trace.files import Source

__all__ = ["Inversion", "Measured", "Point", "Repeat", "check_measured"]

POWER = 0.9
"""The probability with which the repeats that are suggested find what they look for."""

_LISTED = 100
_SUGGESTED = 5
_CONSIDERED = 50
_FEWEST = 5
"""Runs of a budget from which its noise can be told."""
_MOST_REPEATS = 1000
_MOST_CELLS = 50_000_000


@dataclass(frozen=True, slots=True)
class Point:
    """All runs at one budget; ``cost`` is the geometric mean of those that were ok, if any was.

    ``budget`` is a number on the table's scale, ``written`` how the table writes it.
    """

    budget: float
    written: str
    ok: int
    failed: int
    cost: float | None

    @property
    def status(self) -> str:
        """``"ok"``, ``"failed"``, or ``"flaky"`` if there are runs of both kinds."""
        if self.ok and self.failed:
            return "flaky"
        return "failed" if self.failed else "ok"

    def to_json(self) -> dict[str, Any]:
        return {
            "budget": self.budget,
            "written": self.written,
            "status": self.status,
            "cost": self.cost,
            "overhead": None,
            "runs": self.ok + self.failed,
            "failed": self.failed,
        }

    def __str__(self) -> str:
        runs = self.ok + self.failed
        how_many = f"{self.failed} of {runs} runs failed" if self.status == "flaky" else _runs(runs)
        return f"{self.written} ({how_many})"


@dataclass(frozen=True, slots=True)
class Inversion:
    """Two budgets ``below < above`` of which the larger is worse.

    Attributes:
        claim: what it breaks.
        factor: for the cost claim, how many times dearer the larger budget is, as measured.
        at_least: the lower end of that factor; those of all inversions hold at once with
            probability ``1 - alpha``.
        interval: of that factor, for these two budgets alone, with the same confidence.
        p: corrected for the number of comparisons; None if no noise was seen, so that there was
            nothing to test.
    """

    claim: Claim
    below: Point
    above: Point
    factor: float | None = None
    at_least: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "claim": self.claim,
            "budgets": [self.below.budget, self.above.budget],
            "below": self.below.to_json(),
            "above": self.above.to_json(),
            "factor": self.factor,
            "at_least": self.at_least,
            "interval": None if self.interval is None else list(self.interval),
            "p": self.p,
        }

    def __str__(self) -> str:
        if self.claim == "feasibility":
            chance = "" if self.p is None else f" (p = {self.p:.2g})"
            return (
                f"{self.below.status} at {self.below}, {self.above.status} at {self.above}{chance}"
            )
        text = (
            f"{self.factor:.4g} times the cost at {self.above.written} "
            f"compared with {self.below.written}"
        )
        if self.interval is None or self.p is None or self.interval[0] == self.interval[1]:
            return text
        lo, hi = self.interval
        return f"{text} (interval {lo:.4g} to {hi:.4g}, p = {self.p:.2g})"


@dataclass(frozen=True, slots=True)
class Repeat:
    """What to measure next: so many more runs at each of two budgets, and what that would show."""

    budgets: tuple[float, float]
    written: tuple[str, str]
    runs: tuple[int, int]
    why: str

    def to_json(self) -> dict[str, Any]:
        return {
            "budgets": list(self.budgets),
            "written": list(self.written),
            "runs": list(self.runs),
            "why": self.why,
        }

    def __str__(self) -> str:
        first, second = self.runs
        more = "more run" if first == 1 else "more runs"
        if first == second:
            each = f"{first} {more} at {self.written[0]} and at {self.written[1]} each"
        else:
            each = f"{first} {more} at {self.written[0]}, {second} at {self.written[1]}"
        return f"{each}: {self.why}"


@dataclass(frozen=True, slots=True)
class Measured:
    """The verdict on one claim about a table.

    Attributes:
        table: the name of the file.
        claim: ``"feasibility"`` or ``"cost"``.
        verdict: ``"refuted"`` or ``"undecided"``.
        reason: a sentence for people.
        witness: the inversion that is surest, if there is any.
        inversions: up to a hundred, the surest first; ``found`` counts all.
        flaky: budgets at which some runs were ok and others failed.
        repeats: the further runs that would decide what is doubtful, most promising first.
        detectable: the rise between two neighbouring budgets, as a factor, that would have been
            found with probability `POWER`, for the pair of neighbours where that is hardest.
        comparisons: how many pairs of budgets were compared.
        alpha: the probability of refuting a curve that is monotone.
        budgets, runs: how many there are.
        paired: whether runs of one sweep were compared with each other only.
    """

    table: str
    claim: Claim
    verdict: Literal["refuted", "undecided"]
    reason: str
    witness: Inversion | None
    inversions: tuple[Inversion, ...]
    found: int
    flaky: tuple[Point, ...]
    repeats: tuple[Repeat, ...]
    detectable: float | None
    comparisons: int
    alpha: float
    budgets: int
    runs: int
    paired: bool

    def to_json(self) -> dict[str, Any]:
        """The result as ``check --json`` prints it."""
        return {
            "trace": self.table,
            "policy": "",
            "measured": True,
            "claim": self.claim,
            "verdict": self.verdict,
            "witness": None if self.witness is None else self.witness.to_json(),
            "covered": 0.0,
            "gaps": self.budgets + 1,
            "reason": self.reason,
            "runs": self.runs,
            "budgets": self.budgets,
            "paired": self.paired,
            "alpha": self.alpha,
            "comparisons": self.comparisons,
            "inversions": [one.to_json() for one in self.inversions],
            "inversions_found": self.found,
            "flaky": [one.to_json() for one in self.flaky],
            "next": [one.to_json() for one in self.repeats],
            "detectable": None
            if self.detectable is None
            else {"factor": self.detectable, "power": POWER},
        }


def check_measured(
    source: Source | Iterable[Mapping[str, Any]],
    *,
    claims: Sequence[Claim] = CLAIMS,
    alpha: float = 0.05,
    tolerance: float = 0.0,
    thrash_as: ThrashAs = "own",
    noise: float | None = None,
    column: str | None = None,
    rising: bool = False,
    peak: Budget | None = None,
) -> list[Measured]:
    """The verdict on each claim about a table of measurements.

    If the true curve is monotone, *cost* is refuted with probability at most ``alpha``, and
    *feasibility* never, as long as a budget decides how a run ends; where the table shows that it
    does not, that too is tested, with the same ``alpha``.

    Args:
        source: a file, or rows: mappings with the keys ``budget`` and ``outcome`` or ``time`` (or
            both); see docs/how-to/measured-curves.md.
        claims: which to judge.
        alpha: the probability of a false alarm, for each claim.
        tolerance: how much dearer a larger budget may be before that counts.
        thrash_as: ``"own"``: thrashed runs count for nothing; ``"infeasible"``: as failures.
        noise: the relative standard deviation of a run's cost, if it is known: 0 for a
            deterministic system. None: it is told from repeats, so that there must be some.
        column: the column of costs, if its name does not say so.
        rising: more of it is better, as of a throughput, so that it should rise with the budget;
            `Point.cost` is then one divided by it.
        peak: what ratios refer to, where a table has both ratios and bytes.

    Raises `TableError` for a table that is none, `UsageError` for options that make no sense, or
    when SciPy is missing (extra ``stats``).
    """
    _check_options(claims, alpha, tolerance, thrash_as, noise)
    statistics.require_scipy()
    table = measured.read_table(source, column=column, rising=rising, peak=peak)
    curve = _Curve(table, thrash_as, alpha)
    found: list[Measured] = []
    for claim in claims:
        if claim == "feasibility":
            found.append(_feasibility(curve))
        else:
            found.append(_cost(curve, tolerance, noise))
    return found


class _Curve:
    """A table, and what both claims need to know of it."""

    def __init__(self, table: Table, thrash_as: ThrashAs, alpha: float) -> None:
        self.table = table
        self.alpha = alpha
        count = len(table.budgets)
        failed = table.status == measured.FAILED
        if thrash_as == "infeasible":
            failed = failed | (table.status == measured.THRASHED)
        good = table.status == measured.OK
        self.ok = np.bincount(table.budget[good], minlength=count)
        self.failed = np.bincount(table.budget[failed], minlength=count)
        self.uncounted = len(table.budget) - int(self.ok.sum() + self.failed.sum())
        self.timed = good & ~np.isnan(table.cost)
        self.times = np.bincount(table.budget[self.timed], minlength=count)
        with np.errstate(invalid="ignore"):
            self.logs = np.log(table.cost)
            self.mean = (
                np.bincount(table.budget[self.timed], self.logs[self.timed], minlength=count)
                / self.times
            )

    def point(self, at: int) -> Point:
        table = self.table
        return Point(
            table.budgets[at],
            table.written[at],
            int(self.ok[at]),
            int(self.failed[at]),
            math.exp(self.mean[at]) if self.times[at] else None,
        )

    def judged(
        self,
        claim: Claim,
        reason: str,
        *,
        inversions: tuple[Inversion, ...] = (),
        found: int | None = None,
        repeats: list[Repeat] | None = None,
        detectable: float | None = None,
        comparisons: int = 0,
        paired: bool = False,
    ) -> Measured:
        """The verdict, with what there is to say about every table."""
        flaky = np.flatnonzero((self.ok > 0) & (self.failed > 0))
        if self.uncounted:
            reason += f"; not counted: {_runs(self.uncounted)} that thrashed or timed out"
        return Measured(
            table=self.table.label,
            claim=claim,
            verdict="refuted" if inversions else "undecided",
            reason=reason,
            witness=inversions[0] if inversions else None,
            inversions=inversions[:_LISTED],
            found=len(inversions) if found is None else found,
            flaky=tuple(self.point(at) for at in flaky.tolist()),
            repeats=tuple(repeats or ())[:_SUGGESTED],
            detectable=detectable,
            comparisons=comparisons,
            alpha=self.alpha,
            budgets=len(self.table.budgets),
            runs=len(self.table.budget),
            paired=paired,
        )


# -- feasibility ----------------------------------------------------------------------------------


def _feasibility(curve: _Curve) -> Measured:
    known = np.flatnonzero(curve.ok + curve.failed)
    ok, failed = curve.ok[known], curve.failed[known]
    if not ok.any():
        return curve.judged("feasibility", "no run was ok")
    if ((ok > 0) & (failed > 0)).any():
        return _flaky_feasibility(curve, known)
    nearest_ok = np.maximum.accumulate(np.where(ok > 0, np.arange(len(known)), -1))
    bad = np.flatnonzero((failed > 0) & (nearest_ok >= 0))
    below = nearest_ok[bad]
    if not len(bad):
        return curve.judged(
            "feasibility",
            f"no run failed with more than another was ok with, in {_runs(len(curve.table.budget))}"
            f" at {_budgets(len(known))}; what happens between these was not measured",
        )
    # The best supported pair first, then the closest.
    support = np.minimum(failed[bad], ok[below])
    order = np.lexsort((bad, bad - below, -support))
    inversions = tuple(
        Inversion(
            "feasibility", curve.point(int(known[below[at]])), curve.point(int(known[bad[at]]))
        )
        for at in order.tolist()
    )
    return curve.judged("feasibility", str(inversions[0]), inversions=inversions)


def _flaky_feasibility(curve: _Curve, known: NDArray[np.intp]) -> Measured:
    """Where the same budget gives both outcomes, an inversion may be chance: test each."""
    ok, failed = curve.ok[known], curve.failed[known]
    low, high, p, share = statistics.failures_rise(ok, failed, alpha=curve.alpha)

    def inversion(pair: int) -> Inversion:
        ends = curve.point(int(known[low[pair]])), curve.point(int(known[high[pair]]))
        return Inversion("feasibility", *ends, p=float(p[pair]))

    sure = np.flatnonzero(p <= curve.alpha)
    if len(sure):
        order = sure[np.lexsort((high[sure] - low[sure], p[sure]))]
        inversions = tuple(inversion(pair) for pair in order[:_LISTED].tolist())
        return curve.judged(
            "feasibility",
            str(inversions[0]),
            inversions=inversions,
            found=len(sure),
            comparisons=len(p),
        )
    flaky = curve.point(int(known[np.flatnonzero((ok > 0) & (failed > 0))[0]]))
    rate = failed / (ok + failed)
    rising = np.flatnonzero(rate[high] > rate[low])
    reason = f"runs with one budget end differently, at {flaky}"
    if len(rising):
        first = rising[np.lexsort((high[rising] - low[rising], p[rising]))]
        reason += f", so that this may be chance: {inversion(int(first[0]))}"
    else:
        first = rising
        reason += ", and at no larger budget a larger share of them failed"
    steps: list[Repeat] = []
    for pair in first[:_CONSIDERED].tolist():
        i, j = int(low[pair]), int(high[pair])
        needed = statistics.runs_to_tell(
            float(rate[i]), float(rate[j]), alpha=curve.alpha * float(share[pair]), power=POWER
        )
        runs = (int(ok[i] + failed[i]), int(ok[j] + failed[j]))
        why = f"decides, if {rate[j]:.0%} of the runs fail with more, and {rate[i]:.0%} with less"
        steps += _repeat(curve, int(known[i]), int(known[j]), needed, runs, why)
    steps.sort(key=lambda step: sum(step.runs))
    return curve.judged("feasibility", reason, repeats=steps, comparisons=len(p))


# -- cost -----------------------------------------------------------------------------------------


def _cost(curve: _Curve, tolerance: float, noise: float | None) -> Measured:
    table, alpha = curve.table, curve.alpha
    if not curve.timed.any():
        return curve.judged("cost", "no run that was ok has a time")
    deviation = None if noise is None else math.log1p(noise)
    paired = table.sweeps > 0
    if paired:
        kept = np.flatnonzero(curve.times)
        pairs = statistics.paired(_by_sweep(curve, kept), noise=deviation)
    else:
        kept = np.flatnonzero(curve.times >= (2 if noise is None else 1))
        place = np.full(len(table.budgets), -1)
        place[kept] = np.arange(len(kept))
        group = place[table.budget]
        used = curve.timed & (group >= 0)
        pairs = statistics.unpaired(curve.logs[used], group[used], len(kept), noise=deviation)
    grain = np.zeros(len(table.budgets))
    np.maximum.at(grain, table.budget[curve.timed], table.grain[curve.timed])
    low, high = kept[pairs.low], kept[pairs.high]
    margin = math.log1p(tolerance) + (grain[low] + grain[high]) / 2
    tested = statistics.compare(pairs, margin, alpha=alpha, power=POWER)

    def inversion(pair: int) -> Inversion:
        return Inversion(
            "cost",
            curve.point(int(low[pair])),
            curve.point(int(high[pair])),
            factor=math.exp(pairs.rise[pair]),
            at_least=math.exp(tested.least[pair]),
            interval=(math.exp(tested.lower[pair]), math.exp(tested.upper[pair])),
            p=float(tested.p[pair]),
        )

    neighbours = pairs.distance == 1
    detectable = None
    if neighbours.any():
        detectable = math.exp(float(np.max(tested.detectable[neighbours])))
    judged = functools.partial(
        curve.judged, "cost", detectable=detectable, comparisons=len(low), paired=paired
    )
    sure = np.flatnonzero(tested.p <= alpha)
    if len(sure):
        order = sure[np.lexsort((pairs.distance[sure], -tested.least[sure]))]
        inversions = tuple(inversion(pair) for pair in order[:_LISTED].tolist())
        return judged(str(inversions[0]), inversions=inversions, found=len(sure))
    doubtful = np.flatnonzero(pairs.rise > margin)
    doubtful = doubtful[np.lexsort((pairs.distance[doubtful], tested.p[doubtful]))]
    needed = tested.repeats_needed(alpha, POWER, margin)
    steps: list[Repeat] = []
    for pair in doubtful[:_SUGGESTED].tolist():
        i, j = int(low[pair]), int(high[pair])
        runs = (
            (int(pairs.repeats[pair]),) * 2
            if paired
            else (int(curve.times[i]), int(curve.times[j]))
        )
        why = f"decides, if more really costs {math.exp(pairs.rise[pair]):.4g} times as much"
        steps += _repeat(curve, i, j, float(needed[pair]), runs, why)
    if not paired and noise is None:
        steps += _measured_once(curve, tolerance)
    reason = _why_no_rise(curve, len(low), detectable, paired=paired)
    return judged(reason, repeats=steps)


def _by_sweep(curve: _Curve, kept: NDArray[np.intp]) -> NDArray[np.float64]:
    """Mean logarithm of the cost, a row a budget, a column a sweep; NaN where there is none."""
    table = curve.table
    if len(kept) * table.sweeps > _MOST_CELLS:
        raise TableError(
            f"{table.sweeps:,} sweeps of {len(kept):,} budgets are too many; split the table",
            file=table.label,
        )
    place = np.zeros(len(table.budgets), np.intp)
    place[kept] = np.arange(len(kept))
    cell = place[table.budget[curve.timed]] * table.sweeps + table.sweep[curve.timed]
    size = len(kept) * table.sweeps
    with np.errstate(invalid="ignore"):
        mean = np.bincount(cell, curve.logs[curve.timed], minlength=size) / np.bincount(
            cell, minlength=size
        )
    matrix: NDArray[np.float64] = mean.reshape(len(kept), table.sweeps)
    return matrix


def _measured_once(curve: _Curve, tolerance: float) -> list[Repeat]:
    """Repeats for the largest rises that a budget without repeats has a part in."""
    timed = np.flatnonzero(curve.times)
    mean = curve.mean[timed]
    least = np.minimum.accumulate(mean)[:-1]
    cheapest = np.array([int(np.flatnonzero(mean == value)[0]) for value in least], np.intp)
    rise = mean[1:] - least - math.log1p(tolerance)
    once = (curve.times[timed[1:]] == 1) | (curve.times[timed[cheapest]] == 1)
    largest = np.flatnonzero(once & (rise > 0))
    largest = largest[np.argsort(-rise[largest], kind="stable")][:_SUGGESTED]
    steps: list[Repeat] = []
    for at in largest.tolist():
        i, j = int(timed[cheapest[at]]), int(timed[at + 1])
        factor = math.exp(mean[at + 1] - least[at])
        name = curve.table.written[j]
        why = f"{name} seems to cost {factor:.4g} times as much, but its noise is unknown"
        runs = int(curve.times[i]), int(curve.times[j])
        steps += _repeat(curve, i, j, _FEWEST, runs, why)
    return steps


def _why_no_rise(curve: _Curve, comparisons: int, detectable: float | None, *, paired: bool) -> str:
    timed = int(np.count_nonzero(curve.times))
    if timed < 2:
        return "only one budget has times"
    if not comparisons and paired:
        return (
            "no two budgets are together in two sweeps, so that the noise is unknown: measure all "
            "budgets in each sweep"
        )
    if not comparisons:
        return "fewer than two budgets were measured twice, so that the noise is unknown"
    reason = (
        f"no rise is certain at the level {curve.alpha:g}, in "
        f"{_plural(comparisons, 'comparison')} of {_budgets(timed)}"
    )
    if detectable is not None:
        reason += (
            f"; a rise by {100 * (detectable - 1):.3g}% from one of them to the next would have "
            f"been found with a probability of {POWER:.0%}"
        )
    return reason


def _repeat(
    curve: _Curve, low: int, high: int, needed: float, runs: tuple[int, int], why: str
) -> list[Repeat]:
    """The runs that are missing, if that many can be asked for."""
    if needed > _MOST_REPEATS:
        return []
    missing = max(int(needed) - runs[0], 0), max(int(needed) - runs[1], 0)
    table = curve.table
    return [
        Repeat(
            (table.budgets[low], table.budgets[high]),
            (table.written[low], table.written[high]),
            missing if any(missing) else (1, 1),
            why,
        )
    ]


def _check_options(
    claims: Sequence[Claim],
    alpha: float,
    tolerance: float,
    thrash_as: ThrashAs,
    noise: float | None,
) -> None:
    listed = " and ".join(CLAIMS)
    if not claims:
        raise UsageError(f"no claim to check; the claims are {listed}")
    for claim in claims:
        if claim not in CLAIMS:
            raise UsageError(f"unknown claim {claim!r}; the claims are {listed}")
    if not 0 < alpha <= 0.5:
        raise UsageError(f"alpha is {alpha}; it must be above 0 and at most 0.5")
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise UsageError(f"the tolerance must be a number from 0 on, not {tolerance}")
    if thrash_as not in get_args(ThrashAs):
        raise UsageError(f"thrash_as is {thrash_as!r}; it must be 'own' or 'infeasible'")
    if noise is not None and not 0 <= noise <= 10:
        raise UsageError(f"the noise is {noise}; it must be a share of the cost, such as 0.05")


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _runs(count: int) -> str:
    return _plural(count, "run")


def _budgets(count: int) -> str:
    return _plural(count, "budget")
