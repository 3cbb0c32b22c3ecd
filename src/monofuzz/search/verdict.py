"""What a map says about monotonicity: holes, cliffs, witnesses, verdicts.

Everything here is computed from the regimes that are known, and only what they prove is said.
What is not known (gaps, and budgets at which the run timed out) never refutes a claim and always
keeps it from being proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from monofuzz.errors import UsageError
from monofuzz.search.rows import OK, OOM, STATUSES, THRASHED, TIMEOUT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monofuzz.search.regimes import Map
    from monofuzz.search.rows import Rows

__all__ = [
    "CLAIMS",
    "CLIFF_FACTOR",
    "Claim",
    "Cliff",
    "Hole",
    "Side",
    "ThrashAs",
    "Verdict",
    "Witness",
    "cliffs",
    "find_witness",
    "holes",
    "verdict",
]

Claim = Literal["feasibility", "cost"]
"""*feasibility*: more memory never turns ok into failure. *cost*: more memory never costs more."""

ThrashAs = Literal["own", "infeasible"]
"""What a run that reached the compute limit counts as: a fact of its own, or a failure."""

CLAIMS: tuple[Claim, ...] = get_args(Claim)
CLIFF_FACTOR = 1.25
"""By how much the overhead must rise from one regime to the next to be a cliff."""


@dataclass(frozen=True, slots=True)
class Hole:
    """A maximal range ``[lo, hi)`` of infeasible budgets above a feasible one.

    Where gaps adjoin it or lie inside, ``lo`` and ``hi - 1`` are the outermost budgets known to be
    infeasible: the hole may reach further (``exact_lo`` / ``exact_hi`` are False then), and
    ``unknown`` budgets inside are not known to belong to it. Two holes always have a budget
    between them that is known not to be infeasible, so that there are at least as many as listed.
    ``open``: no feasible budget is known above it.
    """

    lo: int
    hi: int
    exact_lo: bool
    exact_hi: bool
    unknown: int
    open: bool

    @property
    def bytes(self) -> int:
        """How many budgets are known to be infeasible."""
        return self.hi - self.lo - self.unknown

    def to_json(self, peak: int | None) -> dict[str, Any]:
        return {
            "lo": self.lo,
            "hi": self.hi,
            "bytes": self.bytes,
            "ratio_lo": self.lo / peak if peak else None,
            "ratio_hi": self.hi / peak if peak else None,
            "exact_lo": self.exact_lo,
            "exact_hi": self.exact_hi,
            "unknown": self.unknown,
        }


@dataclass(frozen=True, slots=True)
class Cliff:
    """Two neighbouring feasible regimes whose overheads differ by more than a factor.

    The budgets up to ``at - gap - 1`` have the overhead ``below``, those from ``at`` on ``above``.
    ``gap`` budgets between them are not known: with 0 this is a certain cliff, otherwise the rise
    is certain, but it may be made of several.
    """

    at: int
    below: float
    above: float
    gap: int

    @property
    def factor(self) -> float:
        """How many times dearer the upper regime is (below 1: cheaper)."""
        return _ratio(self.above, self.below)

    @property
    def exact(self) -> bool:
        """Whether the two regimes touch."""
        return self.gap == 0

    def to_json(self) -> dict[str, Any]:
        return {
            "at": self.at,
            "below": self.below,
            "above": self.above,
            "factor": _finite(self.factor),
            "exact": self.exact,
            "gap": self.gap,
        }


@dataclass(frozen=True, slots=True)
class Side:
    """What happens at one of the two budgets of a witness."""

    budget: int
    status: str
    cost: float
    overhead: float

    def to_json(self) -> dict[str, Any]:
        return {
            "budget": self.budget,
            "status": self.status,
            "cost": self.cost,
            "overhead": self.overhead,
        }


@dataclass(frozen=True, slots=True)
class Witness:
    """Two budgets ``below < above`` that refute a claim."""

    claim: Claim
    below: Side
    above: Side

    @property
    def budgets(self) -> tuple[int, int]:
        return self.below.budget, self.above.budget

    @property
    def factor(self) -> float | None:
        """For the cost claim, how many times dearer the larger budget is."""
        return _ratio(self.above.cost, self.below.cost) if self.claim == "cost" else None

    def to_json(self) -> dict[str, Any]:
        return {
            "claim": self.claim,
            "budgets": list(self.budgets),
            "below": self.below.to_json(),
            "above": self.above.to_json(),
            "factor": _finite(self.factor),
        }

    def __str__(self) -> str:
        low, high = self.below, self.above
        if self.claim == "feasibility":
            more = high.budget - low.budget
            return (
                f"{low.status} at {low.budget} bytes, {high.status} at {high.budget} "
                f"({more} {'byte' if more == 1 else 'bytes'} more)"
            )
        # A system without a reference for its cost has no other overhead than the cost itself.
        word = "cost" if low.overhead == low.cost else "overhead"
        return (
            f"{word} {low.overhead:.4g} at {low.budget} bytes, "
            f"{high.overhead:.4g} at {high.budget} ({self.factor:.4g} times the cost)"
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """``monotone`` (proved over the range), ``refuted`` (by the witness) or ``undecided``.

    ``reason`` is a sentence for people. ``covered`` is the share of the range that is known and
    ``gaps`` the number of ranges that are not.
    """

    claim: Claim
    verdict: Literal["monotone", "refuted", "undecided"]
    witness: Witness | None
    covered: float
    gaps: int
    reason: str

    def to_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "witness": None if self.witness is None else self.witness.to_json(),
            "covered": self.covered,
            "gaps": self.gaps,
            "reason": self.reason,
        }


def holes(found: Map, *, thrash_as: ThrashAs = "own") -> list[Hole]:
    """The holes of a map in order, open ones included.

    A thrashed run ends a hole (``thrash_as="own"``) or belongs to it (``"infeasible"``).
    """
    rows = _known(found.table)
    _, first, last = _groups(rows, thrash_as)
    good = np.flatnonzero(rows["status"] == OK)
    if not len(good) or not len(first):
        return []
    above = first > good[0]
    first, last = first[above], last[above]
    lo, hi = rows["lo"], rows["hi"]
    feasible_beyond, exact_end = _beyond(found, thrash_as)
    through = np.concatenate(([0], np.cumsum(hi - lo)))
    start, end = lo[first], hi[last]
    after = np.append(lo[1:], -1)[last]
    exact_hi = np.where(end == found.between[1], exact_end, after == end)
    unknown = end - start - (through[last + 1] - through[first])
    is_open = (last > good[-1]) & (not feasible_beyond)
    columns = (start, end, hi[first - 1] == start, exact_hi, unknown, is_open)
    return [Hole(*values) for values in zip(*(c.tolist() for c in columns), strict=True)]


def cliffs(
    found: Map, *, factor: float = CLIFF_FACTOR, either_direction: bool = False
) -> list[Cliff]:
    """The cliffs of a map in order; with ``either_direction`` all regime switches.

    Two feasible regimes with nothing but unexplored budgets between them count as neighbours, and
    `Cliff.gap` says so; with a failing run between them they are none.
    """
    if not (math.isfinite(factor) and factor >= 1):
        raise UsageError(f"a cliff's factor must be at least 1, not {factor}")
    rows = _known(found.table)
    good = rows["status"] == OK
    overhead = rows["overhead"]
    low, high = overhead[:-1], overhead[1:]
    steep = high > low * factor
    if either_direction:
        steep |= low > high * factor
    return [
        Cliff(
            at=int(rows["lo"][i + 1]),
            below=float(overhead[i]),
            above=float(overhead[i + 1]),
            gap=int(rows["lo"][i + 1] - rows["hi"][i]),
        )
        for i in np.flatnonzero(steep & good[:-1] & good[1:]).tolist()
    ]


def verdict(
    found: Map, claim: Claim, *, thrash_as: ThrashAs = "own", tolerance: float = 0.0
) -> Verdict:
    """Whether a claim holds over the range of a map.

    - *refuted*: two budgets are known that break it (`find_witness`); gaps cannot change that.
    - *monotone*: the map is certified, and no two budgets break it. A thrashed run above an ok one
      refutes nothing under ``thrash_as="own"``, but leaves the claim undecided; under
      ``"infeasible"`` it is a failure like oom. Failing runs have no cost, so the cost claim is
      about feasible budgets only: no ``b1 < b2`` with ``cost(b2) > cost(b1) * (1 + tolerance)``.
    - *undecided*: anything else.
    """
    _check_options(claim, thrash_as, tolerance)
    covered, gaps = found.covered, len(found.gaps)
    witness = find_witness(found.table, claim, thrash_as=thrash_as, tolerance=tolerance)
    if witness is not None:
        return Verdict(claim, "refuted", witness, covered, gaps, str(witness))
    reason = _why_undecided(found, thrash_as)
    if reason:
        return Verdict(claim, "undecided", None, covered, gaps, reason)
    proved = f"proved for every budget from {found.between[0]} up to {found.between[1] - 1}"
    return Verdict(claim, "monotone", None, covered, gaps, proved)


def find_witness(
    table: Rows, claim: Claim, *, thrash_as: ThrashAs = "own", tolerance: float = 0.0
) -> Witness | None:
    """Two budgets that break the claim, or None if no two known budgets do.

    For *feasibility* the last feasible budget below a hole and the hole's first: of all holes the
    one where these two are closest, among them the largest, among them the lowest. For *cost* the
    pair with the largest factor, the two budgets as close as their regimes allow. ``table`` is
    sorted by budget.
    """
    rows = _known(table)
    if claim == "feasibility":
        pair = _infeasible_above_feasible(rows, thrash_as)
    else:
        pair = _dearer_above_cheaper(rows, tolerance)
    if pair is None:
        return None
    low, high = pair
    return Witness(
        claim, _side(rows, low, int(rows["hi"][low]) - 1), _side(rows, high, int(rows["lo"][high]))
    )


def _infeasible_above_feasible(rows: Rows, thrash_as: ThrashAs) -> tuple[int, int] | None:
    _, first, last = _groups(rows, thrash_as)
    good = rows["status"] == OK
    before = np.maximum.accumulate(np.where(good, np.arange(len(rows)), -1))[first]
    first, last, before = (part[before >= 0] for part in (first, last, before))
    if not len(first):
        return None
    distance = rows["lo"][first] - rows["hi"][before]
    through = np.concatenate(([0], np.cumsum(rows["hi"] - rows["lo"])))
    size = through[last + 1] - through[first]
    best = np.lexsort((first, -size, distance))[0]
    return int(before[best]), int(first[best])


def _dearer_above_cheaper(rows: Rows, tolerance: float) -> tuple[int, int] | None:
    good = np.flatnonzero(rows["status"] == OK)
    cost = rows["cost"][good]
    if len(cost) < 2:
        return None
    least = np.minimum.accumulate(cost)[:-1]
    # Without a tolerance integers are compared as integers.
    allowed = least * (1.0 + tolerance) if tolerance else least
    dearer = np.flatnonzero(cost[1:] > allowed)
    if not len(dearer):
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = cost[1:][dearer] / least[dearer].astype(float)
    top = int(dearer[np.argmax(factor)])
    low = int(np.flatnonzero(cost[: top + 1] == least[top])[-1])
    return int(good[low]), int(good[top + 1])


def _known(table: Rows) -> Rows:
    timed_out = table["status"] == TIMEOUT
    known: Rows = table[~timed_out] if timed_out.any() else table
    return known


def _groups(
    rows: Rows, thrash_as: ThrashAs
) -> tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.intp]]:
    """Which rows are infeasible, and the first and last of each unbroken series of them."""
    bad = rows["status"] == OOM
    if thrash_as == "infeasible":
        bad |= rows["status"] == THRASHED
    edges = np.diff(np.concatenate(([0], bad.view(np.int8), [0])))
    return bad, np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1


def _beyond(found: Map, thrash_as: ThrashAs) -> tuple[bool, bool]:
    """Whether a feasible budget is known above the range, and what is at its very end."""
    ends_holes = {"ok"} if thrash_as == "infeasible" else {"ok", "thrashed"}
    exact = any(
        budget == found.between[1] and status in ends_holes for budget, status in found.beyond
    )
    return any(status == "ok" for _, status in found.beyond), exact


def _why_undecided(found: Map, thrash_as: ThrashAs) -> str:
    reasons = []
    if found.gaps:
        many = len(found.gaps)
        reasons.append(
            f"{found.covered:.4%} of the range is covered, {many} "
            f"{'gap is' if many == 1 else 'gaps are'} left"
        )
    if found.timeouts:
        reasons.append(f"the run timed out at {found.timeouts} budgets")
    if found.sampled:
        reasons.append(
            "every budget was run, but runs of a system that gives no intervals are sampled, "
            "and prove nothing"
            if found.covered == 1.0
            else "the system gives no intervals: its budgets were sampled"
        )
        if not found.feasible:
            reasons.append("no run succeeded, so that nothing was compared")
    if thrash_as == "own":
        status = found.table["status"]
        good = np.flatnonzero(status == OK)
        thrashed = np.flatnonzero(status == THRASHED)
        if len(good) and len(thrashed) and thrashed[-1] > good[0]:
            at = int(found.table["lo"][thrashed[thrashed > good[0]][0]])
            reasons.append(f"the run at {at} bytes reached the compute limit, above a feasible one")
    return "; ".join(reasons)


def _side(rows: Rows, position: int, budget: int) -> Side:
    row = rows[position]
    return Side(budget, STATUSES[row["status"]], row["cost"].item(), float(row["overhead"]))


def _check_options(claim: str, thrash_as: str, tolerance: float) -> None:
    if claim not in CLAIMS:
        raise UsageError(f"unknown claim {claim!r}; the claims are {' and '.join(CLAIMS)}")
    if thrash_as not in get_args(ThrashAs):
        raise UsageError(f"thrash_as is {thrash_as!r}; it must be 'own' or 'infeasible'")
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise UsageError(f"the tolerance must be a number from 0 on, not {tolerance}")


def _ratio(dear: float, cheap: float) -> float:
    if cheap == 0:
        return math.inf if dear > 0 else 1.0
    return dear / cheap


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
