"""Maps: what is known of every budget of a range, as an ordered sequence of regimes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from monofuzz.errors import BudgetError
from monofuzz.search import rows as _rows
from monofuzz.search import verdict as _verdict

if TYPE_CHECKING:
    import os

    from monofuzz.search.rows import Rows
    from monofuzz.search.system import Runner
    from monofuzz.search.verdict import Claim, Cliff, Hole, ThrashAs, Verdict

__all__ = ["Map", "Origin", "Regime", "Regimes"]


@dataclass(frozen=True, slots=True)
class Regime:
    """A maximal interval ``[lo, hi)`` of budgets at which the same run happens, and that run.

    ``certified`` False: these budgets were sampled one by one, or the run timed out.
    Compute is in nanoseconds, memory in bytes.
    """

    lo: int
    hi: int
    status: str
    certified: bool
    cost: float
    overhead: float
    model_compute: int
    remat_compute: int
    evictions: int
    evictions_all: int
    distinct_evicted: int
    remats: int
    fingerprint: int
    peak_memory: int
    peak_pinned: int
    depth_at_peak_pinned: int
    max_depth: int

    @property
    def width(self) -> int:
        """How many budgets it holds."""
        return self.hi - self.lo


_FIELDS = [f.name for f in dataclasses.fields(Regime)]


class Regimes(Sequence[Regime]):
    """The rows of a table as `Regime` objects, made when asked for."""

    def __init__(self, table: Rows) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    @overload
    def __getitem__(self, position: int) -> Regime: ...
    @overload
    def __getitem__(self, position: slice) -> Regimes: ...
    def __getitem__(self, position: int | slice) -> Regime | Regimes:
        if isinstance(position, slice):
            return Regimes(self._table[position])
        values = dict(zip(_FIELDS, self._table[position][_FIELDS].item(), strict=True))
        values["status"] = _rows.STATUSES[values["status"]]
        values["certified"] = bool(values["certified"])
        return Regime(**values)


@dataclass(frozen=True, slots=True)
class Origin:
    """Which system a map is of.

    ``identity`` is the text that determines the outcomes; two origins are equal if it is (the other
    fields are to show). ``limit`` is the compute limit as a multiple of the model compute,
    ``timeout`` the wall time allowed for a run in seconds.
    """

    identity: str
    trace: str = field(default="", compare=False)
    policy: str = field(default="", compare=False)
    peak: int | None = field(default=None, compare=False)
    limit: float | None = field(default=None, compare=False)
    align: int | None = field(default=None, compare=False)
    timeout: float | None = field(default=None, compare=False)

    @classmethod
    def of(cls, runner: Runner) -> Origin:
        return cls(
            identity=runner.identity,
            trace=runner.name,
            policy=runner.policy,
            peak=runner.peak,
            limit=runner.limit,
            align=runner.align,
            timeout=runner.timeout,
        )


class Map:
    """The ordered regimes of the budgets ``lo <= b < hi``, and the gaps still unexplored.

    Maps are equal if they are of the same system and range and know the same of every budget; how
    many runs that took, and why the exploration ended, is not compared.

    Attributes:
        origin: the system.
        between: ``(lo, hi)`` in bytes.
        table: the regimes as a read-only structured array sorted by ``lo`` (fields: those of
            `Regime`, ``status`` as an index of `STATUSES`), for work on very large maps.
        beyond: (budget, status) of runs at or above ``hi``, made to learn whether a hole that
            touches the upper end ends there.
        runs: how many runs inside the range the map rests on.
        stopped: why the exploration ended: ``"complete"``, ``"max-runs"``, ``"time"``,
            ``"interrupted"``, ``"decided"``, ``"sampled"`` or ``"timeouts"``; "" for a map that was
            not just explored.
        seconds: how long this exploration took.
    """

    STATUSES = _rows.STATUSES

    def __init__(
        self,
        origin: Origin,
        between: tuple[int, int],
        rows: Rows,
        *,
        beyond: tuple[tuple[int, str], ...] = (),
        runs: int = 0,
        stopped: str = "",
        seconds: float = 0.0,
    ) -> None:
        lo, hi = between
        if lo >= hi:
            raise BudgetError(f"the range [{lo}, {hi}) is empty")
        self.origin = origin
        self.between = (lo, hi)
        self.table = _rows.merged(_rows.clip(rows, lo, hi))
        self.table.flags.writeable = False
        self.beyond = beyond
        self.runs = runs
        self.stopped = stopped
        self.seconds = seconds
        self._gaps = _rows.unknown_ranges(self.table, lo, hi)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Map):
            return NotImplemented
        return (
            self.origin == other.origin
            and self.between == other.between
            and self.table.dtype == other.table.dtype
            and self.table.tobytes() == other.table.tobytes()
            and self.beyond == other.beyond
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        what = "certified" if self.certified else f"{self.covered:.1%} covered"
        return (
            f"<Map of {self.origin.trace} under {self.origin.policy or '(no policy)'}, "
            f"[{self.between[0]}, {self.between[1]}), {len(self.table)} regimes, {what}>"
        )

    @property
    def peak(self) -> int | None:
        """The budget that ratios refer to; None if the system has none."""
        return self.origin.peak

    @property
    def regimes(self) -> Regimes:
        """The regimes in the order of their budgets; a sequence that makes them when asked."""
        return Regimes(self.table)

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """The maximal ranges ``(lo, hi)`` of which nothing is known."""
        return [(lo, hi) for lo, hi in self._gaps.tolist()]

    @property
    def covered(self) -> float:
        """The share of the range's budgets whose outcome is known (a timeout is none)."""
        lo, hi = self.between
        unknown = int(np.sum(self._gaps[:, 1] - self._gaps[:, 0])) + self.timeouts
        share = 1.0 - unknown / (hi - lo)
        # Rounding must never make an incomplete map look complete.
        return min(share, math.nextafter(1.0, 0.0)) if unknown else 1.0

    @property
    def certified(self) -> bool:
        """No gaps, and every regime certified: the map is a proof."""
        return not len(self._gaps) and bool((self.table["certified"] == 1).all())

    @property
    def sampled(self) -> bool:
        """Whether some runs count for their own budget only, so that no proof is possible."""
        rows = self.table
        return bool(((rows["certified"] == 0) & (rows["status"] != _rows.TIMEOUT)).any())

    @property
    def feasible(self) -> bool:
        """Whether any run is known to have succeeded."""
        return bool((self.table["status"] == _rows.OK).any())

    @property
    def timeouts(self) -> int:
        """At how many budgets the run timed out."""
        rows = self.table[self.table["status"] == _rows.TIMEOUT]
        return int(np.sum(rows["hi"] - rows["lo"]))

    def at(self, budget: int) -> Regime | None:
        """The regime that holds ``budget``, or None in a gap."""
        position = int(np.searchsorted(self.table["lo"], budget, side="right")) - 1
        if position < 0 or budget >= self.table["hi"][position]:
            return None
        return self.regimes[position]

    @property
    def holes(self) -> list[Hole]:
        """Infeasible ranges with feasible budgets on both sides; `verdict.holes` has options."""
        return [hole for hole in _verdict.holes(self) if not hole.open]

    @property
    def open_holes(self) -> list[Hole]:
        """Infeasible ranges above a feasible budget with no feasible budget known above them."""
        return [hole for hole in _verdict.holes(self) if hole.open]

    @property
    def cliffs(self) -> list[Cliff]:
        """Rises of the overhead by more than 1.25; `verdict.cliffs` has options."""
        return _verdict.cliffs(self)

    @property
    def verdicts(self) -> dict[Claim, Verdict]:
        """The verdict on each claim with the default options; `verdict` has them."""
        return {claim: self.verdict(claim) for claim in _verdict.CLAIMS}

    def verdict(
        self, claim: Claim, *, thrash_as: ThrashAs = "own", tolerance: float = 0.0
    ) -> Verdict:
        """Whether the claim holds: see `monofuzz.search.verdict.verdict`."""
        return _verdict.verdict(self, claim, thrash_as=thrash_as, tolerance=tolerance)

    def within(self, lo: int, hi: int) -> Map:
        """What this map knows of ``[lo, hi)``, as a map of that range."""
        return Map(
            self.origin,
            (lo, hi),
            self.table,
            beyond=self.beyond if hi == self.between[1] else (),
            runs=self.runs,
            stopped=self.stopped,
            seconds=self.seconds,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map to a file, aside and renamed; `Map.load` reads it."""
        from monofuzz.search import mapfile

        mapfile.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Map:
        """Read a map file, also one whose exploration was killed.

        Raises `StoredFileError` for anything else.
        """
        from monofuzz.search import mapfile

        return mapfile.load(path)

    def to_json(
        self, *, thrash_as: ThrashAs = "own", tolerance: float = 0.0, factor: float = 1.25
    ) -> dict[str, Any]:
        """The map as ``map --json`` prints it: only what JSON knows, infinities as null."""
        peak, rows = self.peak, self.table
        names = ("lo", "hi", "status", "overhead", "evictions", "remat_compute", "certified")
        regimes = [
            {
                "lo": lo,
                "hi": hi,
                "status": _rows.STATUSES[status],
                "overhead": overhead,
                "evictions": evictions,
                "remat_compute": remat,
                "certified": bool(certified),
            }
            for lo, hi, status, overhead, evictions, remat, certified in zip(
                *(rows[name].tolist() for name in names), strict=True
            )
        ]
        every = _verdict.holes(self, thrash_as=thrash_as)
        return {
            "trace": self.origin.trace,
            "policy": self.origin.policy,
            "peak": peak,
            "between": list(self.between),
            "certified": self.certified,
            "covered": self.covered,
            "sampled": self.sampled,
            "timeouts": self.timeouts,
            "runs": self.runs,
            "limit": self.origin.limit,
            "align": self.origin.align,
            "thrash_as": thrash_as,
            "tolerance": tolerance,
            "factor": factor,
            "regimes": regimes,
            "gaps": self._gaps.tolist(),
            "holes": [hole.to_json(peak) for hole in every if not hole.open],
            "open_holes": [hole.to_json(peak) for hole in every if hole.open],
            "cliffs": [cliff.to_json() for cliff in _verdict.cliffs(self, factor=factor)],
            "verdicts": {
                claim: self.verdict(claim, thrash_as=thrash_as, tolerance=tolerance).to_json()
                for claim in _verdict.CLAIMS
            },
        }
