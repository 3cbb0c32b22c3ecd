"""Regimes as rows of one array: 144 bytes each, compared and sorted without Python objects."""

from __future__ import annotations

from math import isfinite
from numbers import Integral
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from monofuzz.errors import MonofuzzError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "INT_ROW",
    "OK",
    "OOM",
    "REAL_ROW",
    "STATUSES",
    "THRASHED",
    "TIMEOUT",
    "UNBOUNDED",
    "RowStore",
    "Rows",
    "clip",
    "joined",
    "merged",
    "row_of",
    "rows_from",
    "same_runs",
    "unknown_ranges",
]

STATUSES = ("ok", "oom", "thrashed", "timeout")
OK, OOM, THRASHED, TIMEOUT = range(4)
UNBOUNDED = 2**63 - 1
"""The ``hi`` of an interval without an upper end."""

Rows = np.ndarray[Any, np.dtype[np.void]]
"""A structured array of dtype `INT_ROW` or `REAL_ROW`."""

_COUNTERS = (
    "model_compute",
    "remat_compute",
    "evictions",
    "evictions_all",
    "distinct_evicted",
    "remats",
)


def _row_type(cost: str) -> np.dtype[np.void]:
    # lo and hi come first and the size is a multiple of 8, so that `same_runs` can compare the
    # rest of two rows as 64-bit words. The failing request is kept as `need` = budget + over_by,
    # which, unlike over_by, is the same for every budget of a regime.
    return np.dtype(
        [
            ("lo", "<i8"),
            ("hi", "<i8"),
            ("cost", cost),
            ("overhead", "<f8"),
            *((name, "<i8") for name in _COUNTERS),
            ("fingerprint", "<u8"),
            ("peak_memory", "<i8"),
            ("peak_pinned", "<i8"),
            ("fail_pinned", "<i8"),
            ("fail_request", "<i8"),
            ("fail_need", "<i8"),
            ("depth_at_peak_pinned", "<i4"),
            ("max_depth", "<i4"),
            ("fail_depth", "<i4"),
            ("status", "u1"),
            ("certified", "u1"),
            ("spare", "<u2"),
        ]
    )


INT_ROW = _row_type("<i8")
"""Rows whose costs are integers, compared exactly."""
REAL_ROW = _row_type("<f8")
"""Rows of a system with costs that are no (64-bit) integers."""
_SAMPLE_WORDS = INT_ROW.itemsize // 8
_CODES = {status: code for code, status in enumerate(STATUSES)}
_NO_FAIL = (0, 0, -1, 0)


def row_of(result: Any, budget: int, system: str) -> tuple[Any, ...]:
    """One run as the tuple of a row, its interval unclipped (`UNBOUNDED` for no upper end).

    Raises `MonofuzzError`, naming ``system``, for a result that makes no sense.
    """
    try:
        certified = bool(result.certified)
        lo, hi = result.interval if certified else (budget, budget + 1)
        status = _CODES[result.status]
        if status == TIMEOUT:
            # Wall time decided: nothing is known of any other budget.
            certified, lo, hi = False, budget, budget + 1
        lo, hi = index(lo), UNBOUNDED if hi is None else index(hi)
        if not lo <= budget < hi:
            raise ValueError(f"its interval [{lo}, {hi}) does not hold the budget")
        cost, overhead = result.cost, float(result.overhead) + 0.0
        if type(cost) is not int:
            cost = int(cost) if isinstance(cost, Integral) else float(cost) + 0.0
        if not (isfinite(cost) and isfinite(overhead)):
            if status == OK:
                raise ValueError("its cost or overhead is not finite")
            cost, overhead = 0, 0.0
        if type(cost) is int and not -(2**63) <= cost < 2**63:
            cost = float(cost)
        try:
            counters: tuple[int, ...] = (
                result.model_compute,
                result.remat_compute,
                result.evictions,
                result.evictions_all,
                result.distinct_evicted,
                result.remats,
                result.fingerprint & 0xFFFFFFFFFFFFFFFF,
                result.peak_memory,
                result.peak_pinned,
            )
            depths = (result.depth_at_peak_pinned, result.max_depth)
            fail = result.fail
        except AttributeError:
            counters, depths, fail = _what_there_is(result)
        if fail is None:
            pinned, request, need, depth = _NO_FAIL
        else:
            pinned, request, depth = fail.pinned_bytes, fail.request, fail.depth
            need = fail.over_by + getattr(result, "budget", budget)
    except KeyError:
        raise MonofuzzError(
            f"{system} gave status {result.status!r} at budget {budget}; it must be one of "
            + ", ".join(STATUSES)
        ) from None
    except (AttributeError, TypeError, ValueError) as error:
        raise MonofuzzError(
            f"the result of {system} at budget {budget} is not usable: {error}"
        ) from error
    return (
        max(lo, 0),
        min(hi, UNBOUNDED),
        cost,
        overhead,
        *counters,
        pinned,
        request,
        need,
        *depths,
        depth,
        status,
        certified,
        0,
    )


def _what_there_is(result: Any) -> tuple[tuple[int, ...], tuple[int, int], Any]:
    def number(field: str) -> int:
        return int(getattr(result, field, 0))

    counters = (
        *(number(name) for name in _COUNTERS),
        number("fingerprint") & 0xFFFFFFFFFFFFFFFF,
        number("peak_memory"),
        number("peak_pinned"),
    )
    depths = (number("depth_at_peak_pinned"), number("max_depth"))
    return counters, depths, getattr(result, "fail", None)


def rows_from(tuples: Sequence[tuple[Any, ...]]) -> Rows:
    """An array of the rows, of the dtype that their costs need."""
    exact = all(type(row[2]) is int for row in tuples)
    try:
        return np.array(tuples, dtype=INT_ROW if exact else REAL_ROW)
    except OverflowError as error:
        raise MonofuzzError(f"a counter of a run does not fit 64 bits: {error}") from error


def joined(parts: Sequence[Rows]) -> Rows:
    """One array of all parts, with real costs if any part has them."""
    if not parts:
        return np.empty(0, INT_ROW)
    kind = INT_ROW if all(part.dtype == INT_ROW for part in parts) else REAL_ROW
    return np.concatenate([part.astype(kind, copy=False) for part in parts])


def same_runs(left: Rows, right: Rows) -> NDArray[np.bool_]:
    """Row by row, whether everything but the interval agrees."""
    ours = np.ascontiguousarray(left).view(np.uint64).reshape(-1, _SAMPLE_WORDS)
    theirs = np.ascontiguousarray(right).view(np.uint64).reshape(-1, _SAMPLE_WORDS)
    same: NDArray[np.bool_] = (ours[:, 2:] == theirs[:, 2:]).all(axis=1)
    return same


def merged(rows: Rows) -> Rows:
    """A new array, sorted by budget, with touching neighbours that are the same run made one."""
    if len(rows) < 2:
        return rows.copy()
    starts = rows["lo"]
    ordered = rows if (starts[:-1] < starts[1:]).all() else rows[np.argsort(starts, kind="stable")]
    joins = (ordered["hi"][:-1] == ordered["lo"][1:]) & same_runs(ordered[:-1], ordered[1:])
    starts = np.flatnonzero(np.concatenate(([True], ~joins)))
    result = ordered[starts]
    result["hi"] = ordered["hi"][np.append(starts[1:], len(ordered)) - 1]
    return result


def clip(rows: Rows, lo: int, hi: int) -> Rows:
    """The parts of the rows inside ``[lo, hi)``; the same array if that is all of them."""
    if not len(rows) or (rows["lo"].min() >= lo and rows["hi"].max() <= hi):
        return rows
    inside = rows[(rows["hi"] > lo) & (rows["lo"] < hi)]
    inside["lo"] = np.maximum(inside["lo"], lo)
    inside["hi"] = np.minimum(inside["hi"], hi)
    return inside


def unknown_ranges(rows: Rows, lo: int, hi: int) -> NDArray[np.int64]:
    """The ranges of ``[lo, hi)`` that no row covers, as an array of pairs; rows are sorted."""
    starts = np.concatenate(([lo], rows["hi"])).astype(np.int64)
    ends = np.concatenate((rows["lo"], [hi])).astype(np.int64)
    return np.stack((starts, ends), axis=1)[starts < ends]


class RowStore:
    """Rows in the order in which they became known, growing at the end."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows.copy()
        self._count = len(rows)

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> Rows:
        """All rows (a view: do not write)."""
        return self._rows[: self._count]

    def extend(self, rows: Rows) -> None:
        if rows.dtype != self._rows.dtype:
            kept = joined([self.rows, rows])
            self._rows, self._count = kept, len(kept)
            return
        count = self._count + len(rows)
        if count > len(self._rows):
            grown = np.empty(max(count, 2 * len(self._rows), 64), self._rows.dtype)
            grown[: self._count] = self.rows
            self._rows = grown
        self._rows[self._count : count] = rows
        self._count = count
