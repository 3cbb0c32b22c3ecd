"""Maps and a counterexample made by hand, for the tests of figures and pages."""

from __future__ import annotations

from monofuzz.counterexample import Counterexample, examine
from monofuzz.search.regimes import Map, Origin
from monofuzz.search.rows import STATUSES, rows_from
from tests.examples import five_operators

PEAK = 10**9


def map_of(
    *regimes: tuple[int, int, str, float],
    between: tuple[int, int] | None = None,
    trace: str = "some-trace",
    policy: str = "dtr",
    peak: int | None = PEAK,
) -> Map:
    """A map of (lo, hi, status, overhead); what lies between two of them is a gap."""
    counters = (0,) * 6
    nothing = (0, 0, 0, 0, -1, 0, 0, 0)
    rows = []
    for number, (lo, hi, status, overhead) in enumerate(regimes):
        told = (STATUSES.index(status), status != "timeout", 0)
        rows.append((lo, hi, overhead, overhead, *counters, number, *nothing, *told))
    ends = between or (regimes[0][0], regimes[-1][1])
    return Map(Origin("test", trace, policy, peak, 60.0), ends, rows_from(rows))


def all_kinds(trace: str = "some-trace", policy: str = "dtr") -> Map:
    """A map with all that a map can hold: a hole of five bytes, cliffs, a gap, an open hole."""
    return map_of(
        (10**8, 2 * 10**8, "oom", 1.0),
        (2 * 10**8, 3 * 10**8, "ok", 40.0),
        (3 * 10**8, 3 * 10**8 + 5, "oom", 1.0),
        (3 * 10**8 + 5, 3 * 10**8 + 6, "ok", 30.0),
        (3 * 10**8 + 6, 4 * 10**8, "ok", 39.0),
        (4 * 10**8, 5 * 10**8, "thrashed", 60.0),
        (5 * 10**8, 6 * 10**8, "ok", 2.0),
        (6 * 10**8, 6 * 10**8 + 1, "timeout", 1.0),
        (7 * 10**8, PEAK, "oom", 1.0),
        trace=trace,
        policy=policy,
    )


def counterexample() -> Counterexample:
    """Five operators that run with 16 bytes, and not with 17."""
    found = examine(five_operators(), "dtr", "feasibility", engine="interpreted")
    assert found is not None
    return found
