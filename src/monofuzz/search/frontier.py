"""Where to run next: the gaps between known regimes, the most telling first.

Nothing here knows of threads, files or clocks. A gap is handed out once and comes back settled, so
that no two runs in progress are ever in the same gap: since a regime is an interval, two runs in
different gaps are never in the same regime, and no run is wasted.
"""

from __future__ import annotations

from array import array
from heapq import heapify, heappop, heappush
from math import sqrt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from monofuzz.errors import MonofuzzError
from monofuzz.search.rows import (
    OK,
    STATUSES,
    TIMEOUT,
    RowStore,
    clip,
    row_of,
    rows_from,
    same_runs,
    unknown_ranges,
)
from monofuzz.search.verdict import CLIFF_FACTOR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from monofuzz.search.rows import Rows

__all__ = ["Direction", "Frontier", "Gap"]

Direction = Literal["adaptive", "up", "down"]
"""In which order a range is explored. The map is the same; *adaptive* learns most early."""

# The classes of gaps, in the order in which they are explored.
_STATUS_CHANGES, _OVERHEAD_CHANGES, _ALIKE, _BY_TIMEOUT, _IN_TIMEOUTS = range(5)

# Gaps are walked from these sizes on: expected runs, and parts of the whole range.
_WALK_RUNS = 64.0
_WALK_PARTS = 256


class Gap(NamedTuple):
    """An unexplored range ``[lo, hi)`` between two known rows (-1: none, it is at an end).

    Gaps compare by class, then ``rank``: the order in which they are explored. ``guess`` says how
    many runs it may take.
    """

    kind: int
    rank: int
    lo: int
    hi: int
    below: int
    above: int
    guess: float

    @property
    def urgent(self) -> bool:
        """Something changes inside, or nothing is known on one side."""
        return self.kind <= _OVERHEAD_CHANGES

    @property
    def quiet(self) -> bool:
        """The runs on both sides are much alike."""
        return self.kind == _ALIKE

    @property
    def hopeless(self) -> bool:
        """The runs on both sides timed out."""
        return self.kind == _IN_TIMEOUTS


class Frontier:
    """The gaps of the range ``[lo, hi)``, what is known beside them, and what was found.

    ``known`` are sorted, disjoint rows to begin with. ``walks``: walking through a gap costs less
    than running at budgets of it in any order. ``name`` is the system's, for errors.
    """

    def __init__(
        self,
        lo: int,
        hi: int,
        known: Rows,
        *,
        direction: Direction = "adaptive",
        walks: bool = False,
        name: str = "the system",
    ) -> None:
        self.lo, self.hi = lo, hi
        self._direction = direction
        self._walks = walks and direction != "down"
        self._sweeping = direction != "adaptive"
        self._name = name
        inside = clip(known, lo, hi)
        self._store = RowStore(inside)
        self._status = array("b", inside["status"].astype("i1").tobytes())
        self._overhead = array("d", inside["overhead"].tobytes())
        self._width = array("q", (inside["hi"] - inside["lo"]).tobytes())
        self.covered = sum(self._width)
        self.sampled = _any_sampled(inside)
        self._expected = 0.0
        self._heap: list[Gap] = []
        starts = {int(start): i for i, start in enumerate(inside["lo"].tolist())}
        ends = {int(end): i for i, end in enumerate(inside["hi"].tolist())}
        for start, end in unknown_ranges(inside, lo, hi).tolist():
            gap = self._gap(start, end, ends.get(start, -1), starts.get(end, -1))
            self._heap.append(gap)
            self._expected += gap.guess
        heapify(self._heap)

    def __len__(self) -> int:
        """The gaps that can be taken."""
        return len(self._heap)

    @property
    def rows(self) -> Rows:
        """Everything known, in the order in which it became known."""
        return self._store.rows

    @property
    def next(self) -> Gap:
        """The gap that would be taken first."""
        return self._heap[0]

    @property
    def runs_left(self) -> float:
        """A guess of how many runs are left: widths of gaps over those of the regimes beside."""
        return max(0.0, self._expected) if self._heap else 0.0

    def take(self, most: int) -> list[Gap]:
        """The first gaps, at most ``most``, of one class: what is urgent shall be back soon.

        Gaps that should be walked are left to `take_walks`.
        """
        heap, kind = self._heap, self._heap[0].kind
        taken: list[Gap] = []
        while heap and len(taken) < most and heap[0].kind == kind:
            if taken and self._walkable(heap[0]):
                break
            taken.append(self._pop())
        return taken

    def take_walks(self, most: int, runs: float) -> list[Gap]:
        """Gaps to walk through, of about ``runs`` runs together, if the first gap is one.

        At most ``most`` of them. Walked are quiet gaps that are narrow and of few expected runs:
        the others are bisected first, so that much is seen early.
        """
        heap = self._heap
        taken: list[Gap] = []
        while heap and len(taken) < most and runs > 0 and self._walkable(heap[0]):
            taken.append(self._pop())
            runs -= taken[-1].guess
        return taken

    def _walkable(self, gap: Gap) -> bool:
        if not self._walks or gap.kind != _ALIKE:
            return False
        if self._direction == "up":
            return True
        narrow = (gap.hi - gap.lo) * _WALK_PARTS <= self.hi - self.lo
        return narrow and gap.guess <= _WALK_RUNS

    def _pop(self) -> Gap:
        gap = heappop(self._heap)
        self._expected -= gap.guess
        return gap

    def give_back(self, gap: Gap) -> None:
        """A gap that was taken and not settled can be taken again."""
        heappush(self._heap, gap)
        self._expected += gap.guess

    def probe(self, gap: Gap) -> int:
        """The budget to run at to learn about a gap."""
        if self._sweeping and self._sweeps_up(gap.below):
            return gap.lo
        if self._sweeping and self._sweeps_down(gap.above):
            return gap.hi - 1
        if gap.below < 0:
            return gap.lo
        if gap.above < 0:
            return gap.hi - 1
        return (gap.lo + gap.hi) // 2

    def settle(self, outcomes: Iterable[tuple[Gap, int, Any]]) -> Rows:
        """Record runs: (gap, budget, result) of each. Returns their rows, clipped to the gaps.

        Raises `MonofuzzError` if a result contradicts what is known.
        """
        found: list[tuple[Any, ...]] = []
        overhanging: list[tuple[int, int, int]] = []
        for gap, budget, result in outcomes:
            for rest in self._place(gap, budget, result, found, overhanging):
                self.give_back(rest)
        return self._keep(found, overhanging)

    def advance(self, gap: Gap, results: Iterable[Any]) -> tuple[Rows, Gap | None]:
        """Record a walk through a gap, from ``gap.lo`` upwards, that may have ended early.

        Returns the new rows and what is left of the gap, which can be taken again.
        """
        found: list[tuple[Any, ...]] = []
        overhanging: list[tuple[int, int, int]] = []
        rest: Gap | None = gap
        for result in results:
            if rest is None:
                break
            rest = next(iter(self._place(rest, rest.lo, result, found, overhanging)), None)
        if rest is not None:
            if found and gap.quiet and self._status[rest.below] != TIMEOUT:
                # To be walked on, whatever was found: the walk may know more than it has said.
                rest = rest._replace(kind=_ALIKE, guess=min(rest.guess, gap.guess))
            self.give_back(rest)
        return self._keep(found, overhanging), rest

    def _place(
        self,
        gap: Gap,
        budget: int,
        result: Any,
        found: list[tuple[Any, ...]],
        overhanging: list[tuple[int, int, int]],
    ) -> list[Gap]:
        """Add the row of a run to ``found``; what is left of its gap on either side."""
        row = row_of(result, budget, self._name)
        lo, hi = row[0], row[1]
        _, _, gap_lo, gap_hi, below, above, _ = gap
        me = len(self._width)
        if lo < gap_lo:
            if below >= 0:
                overhanging.append((below, me, gap_lo - 1))
            lo = gap_lo
        if hi > gap_hi:
            if above >= 0:
                overhanging.append((above, me, gap_hi))
            hi = gap_hi
        found.append(row if lo == row[0] and hi == row[1] else (lo, hi, *row[2:]))
        self._status.append(row[-3])
        self._overhead.append(row[3])
        self._width.append(hi - lo)
        left = []
        if gap_lo < lo:
            left.append(self._gap(gap_lo, lo, below, me))
        if hi < gap_hi:
            left.append(self._gap(hi, gap_hi, me, above))
        return left

    def _keep(self, found: list[tuple[Any, ...]], overhanging: list[tuple[int, int, int]]) -> Rows:
        rows = rows_from(found)
        self._store.extend(rows)
        self.covered += int(np.sum(rows["hi"] - rows["lo"]))
        self.sampled = self.sampled or _any_sampled(rows)
        for known, me, budget in overhanging:
            self._check(known, me, budget)
        return rows

    def _check(self, known: int, me: int, budget: int) -> None:
        # An interval that reaches into known budgets must be of the same run as what is there.
        rows = self._store.rows
        there, here = rows[known : known + 1], rows[me : me + 1]
        if not (there["certified"][0] and here["certified"][0]) or same_runs(there, here)[0]:
            return
        raise MonofuzzError(
            f"{self._name} contradicts itself: a run says that it is the same at budget {budget}, "
            f"where another run gave {STATUSES[there['status'][0]]} with overhead "
            f"{there['overhead'][0]:.6g}, not {STATUSES[here['status'][0]]} with "
            f"{here['overhead'][0]:.6g}; its intervals cannot be trusted"
        )

    def _gap(self, lo: int, hi: int, below: int, above: int) -> Gap:
        wide = hi - lo
        guess = 1.0
        if below < 0 or above < 0:
            kind = _STATUS_CHANGES
        else:
            kind = _ALIKE
            low, high = self._status[below], self._status[above]
            if low == TIMEOUT or high == TIMEOUT:
                kind = _IN_TIMEOUTS if low == high else _BY_TIMEOUT
            elif low != high:
                kind = _STATUS_CHANGES
            elif low == OK:
                cheap, dear = self._overhead[below], self._overhead[above]
                if dear > cheap * CLIFF_FACTOR or cheap > dear * CLIFF_FACTOR:
                    kind = _OVERHEAD_CHANGES
            # The geometric mean of the widths beside: narrow regimes are common, and the guess
            # must not jump.
            guess = wide / sqrt(self._width[below] * self._width[above])
            if guess < 1.0:
                guess = 1.0
        rank = -wide
        if self._sweeping:
            if self._sweeps_up(below):
                kind, rank = _ALIKE, lo
            elif self._sweeps_down(above):
                kind, rank = _ALIKE, -hi
        return Gap(kind, rank, lo, hi, below, above, guess)

    # A sweep cannot step over budgets that time out: around them it bisects as well.
    def _sweeps_up(self, below: int) -> bool:
        return self._direction == "up" and (below < 0 or self._status[below] != TIMEOUT)

    def _sweeps_down(self, above: int) -> bool:
        return self._direction == "down" and (above < 0 or self._status[above] != TIMEOUT)


def _any_sampled(rows: Rows) -> bool:
    return bool(((rows["certified"] == 0) & (rows["status"] != TIMEOUT)).any())
