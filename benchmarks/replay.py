"""How much faster one run is than in the reference simulator, at the same budgets.

    python -m benchmarks.replay [--slow] [--json FILE] [--reuse FILE]

What is measured: process CPU time of one replay under ``dtr`` with the compute limit of 60x, from
the first command to the outcome. Reading the log, building the schedule (here: making the system)
and compiling are excluded on both sides; how long a system takes to make is shown beside. The
reference simulator runs each point once, in one process a trace, with Python's garbage collector
on, as it would; monofuzz runs each point often enough for a stable median. Both must give the same
run: status, compute, peak, evictions and every victim.

A trace's ratio is the median over its points, the result the median over the traces. It passes at
1,000 or more with no point below 100; below 700 it fails.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.public import RATIOS, SLOW, TRACES_VARIABLE, extract_log, public_library
from benchmarks.simrd import SIMRD_VARIABLE, Simrd, SimrdError, find_simrd
from monofuzz.errors import MonofuzzError
from monofuzz.replay import TraceSystem
from monofuzz.trace import Trace, load
from monofuzz.trace.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator

AIM, FAILURE, LEAST = 1000, 700, 100
COMPARED = (
    "status", "model_compute", "remat_compute", "peak_memory", "evictions", "victims_sha256",
)  # fmt: skip


@dataclass
class Point:
    """One budget, measured on both sides; ``differs`` names the fields in which they disagree."""

    trace: str
    ratio: float
    budget: int
    status: str
    evictions: int
    overhead: float
    simrd_seconds: float | None
    simrd_reused: bool
    seconds: float
    repeats: int
    system_seconds: float
    differs: list[str]

    @property
    def times_faster(self) -> float | None:
        return None if self.simrd_seconds is None else self.simrd_seconds / self.seconds


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the table, and return the exit status: 1 for a failure, 2 for misuse."""
    options = _options(arguments)
    try:
        simrd = find_simrd()
        if simrd is None:
            print(f"no comparison: {SIMRD_VARIABLE} does not name a checkout of simrd")
        elif simrd.remark:
            print(f"careful: simrd is {simrd.remark}")
        if simrd is not None and TRACES_VARIABLE not in os.environ:
            print(f"no comparison: {TRACES_VARIABLE} does not name logs.zip, which simrd reads")
            simrd = None
        reused = json.loads(Path(options.reuse).read_text())["simrd"] if options.reuse else []
        with public_library():
            points = _measure_all(options, simrd, reused)
    except (MonofuzzError, SimrdError, OSError, ValueError, KeyError) as error:
        print(error, file=sys.stderr)
        return 2
    return _conclude(points)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--slow", action="store_true", help="also the points of many minutes")
    parser.add_argument("--only", nargs="+", metavar="TRACE", choices=list(RATIOS))
    parser.add_argument("--json", metavar="FILE", help="write all results there")
    parser.add_argument(
        "--reuse", metavar="FILE", help="take simrd's timings from an earlier --json FILE"
    )
    return parser.parse_args(arguments)


def _measure_all(
    options: argparse.Namespace, simrd: Simrd | None, reused: list[dict[str, Any]]
) -> list[Point]:
    points: list[Point] = []
    measured: list[dict[str, Any]] = []
    print(
        f"{'trace':<18}{'ratio':>7}  {'outcome':<18}{'evictions':>10}{'simrd s':>12}"
        f"{'monofuzz s':>13}{'times':>10}"
    )
    for name, ratios in RATIOS.items():
        if options.only and name not in options.only:
            continue
        trace = load(name)
        begin = time.process_time()
        system = TraceSystem(trace, "dtr", limit=60.0)
        peak = system.peak
        made = time.process_time() - begin
        chosen = [r for r in ratios if options.slow or (name, r) not in SLOW]
        budgets = {int(peak * ratio): ratio for ratio in chosen}
        limit = 59 * trace.model_compute
        known = {r["budget"]: r for r in reused if r["trace"] == name and r["remat_limit"] == limit}
        with tempfile.TemporaryDirectory(prefix="monofuzz-bench-") as folder:
            missing = [budget for budget in budgets if budget not in known]
            fresh = _simrd_runs(simrd, trace, missing, limit, Path(folder))
            for budget, ratio in budgets.items():
                theirs = known.get(budget) or next(fresh, None)
                if theirs is not None:
                    measured.append({**theirs, "trace": name, "remat_limit": limit})
                point = _measure(system, budget, ratio, theirs, budget in known, made)
                points.append(point)
                print(_row(point), flush=True)
                if options.json:
                    _write(options.json, points, measured)
    return points


def _simrd_runs(
    simrd: Simrd | None, trace: Trace, budgets: list[int], limit: int, folder: Path
) -> Iterator[dict[str, Any]]:
    if simrd is None or not budgets:
        return iter(())
    return simrd.measure(extract_log(trace, folder), budgets, limit)


def _measure(
    system: TraceSystem,
    budget: int,
    ratio: float,
    theirs: dict[str, Any] | None,
    reused: bool,
    made: float,
) -> Point:
    ours = system.run(budget)
    if theirs is not None and theirs["budget"] != budget:
        raise SimrdError(f"simrd answered for {theirs['budget']} bytes instead of {budget}")
    differs = [] if theirs is None else [f for f in COMPARED if getattr(ours, f) != theirs[f]]
    times = _times(system, budget)
    return Point(
        trace=system.name,
        ratio=ratio,
        budget=budget,
        status=ours.status,
        evictions=ours.evictions,
        overhead=ours.overhead,
        simrd_seconds=None if theirs is None else theirs["seconds"],
        simrd_reused=reused,
        seconds=statistics.median(times),
        repeats=len(times),
        system_seconds=made,
        differs=differs,
    )


def _times(system: TraceSystem, budget: int) -> list[float]:
    """CPU seconds of single runs: at least 9 of them, and at least half a second's worth."""
    times: list[float] = []
    gc.collect()
    while len(times) < 9 or (sum(times) < 0.5 and len(times) < 2000):
        begin = time.process_time()
        system.run(budget)
        times.append(time.process_time() - begin)
    return times


def _row(point: Point) -> str:
    outcome = f"ok {point.overhead:.3f}x" if point.status == "ok" else point.status
    theirs = "-" if point.simrd_seconds is None else f"{point.simrd_seconds:.2f}"
    times = "-" if point.times_faster is None else f"{point.times_faster:,.0f}"
    return (
        f"{point.trace:<18}{point.ratio:>7}  {outcome:<18}{point.evictions:>10,}{theirs:>12}"
        f"{point.seconds:>13.5f}{times:>10}"
        + (" (simrd reused)" if point.simrd_reused else "")
        + (f"  DIFFERS: {', '.join(point.differs)}" if point.differs else "")
    )


def _summary(points: list[Point]) -> dict[str, Any]:
    by_trace: dict[str, list[float]] = {}
    for point in points:
        if point.times_faster is not None:
            by_trace.setdefault(point.trace, []).append(point.times_faster)
    medians = {name: statistics.median(ratios) for name, ratios in by_trace.items()}
    if not medians:
        return {"by_trace": {}, "median": None, "least": None, "verdict": "not compared"}
    median = statistics.median(medians.values())
    least = min(ratio for ratios in by_trace.values() for ratio in ratios)
    complete = medians.keys() == RATIOS.keys()
    if any(point.differs for point in points) or least < LEAST or (complete and median < FAILURE):
        verdict = "FAIL"
    elif not complete:
        verdict = "INCOMPLETE"
    else:
        verdict = "PASS" if median >= AIM else "BELOW AIM"
    return {"by_trace": medians, "median": median, "least": least, "verdict": verdict}


def _write(file: str, points: list[Point], measured: list[dict[str, Any]]) -> None:
    document = {
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "points": [{**asdict(p), "times_faster": p.times_faster} for p in points],
        "summary": _summary(points),
        "simrd": measured,
    }
    write_atomically(file, json.dumps(document, indent=1).encode() + b"\n")


def _conclude(points: list[Point]) -> int:
    summary = _summary(points)
    print()
    for name, median in summary["by_trace"].items():
        print(f"{name:<18}{median:>10,.0f} times faster")
    if summary["median"] is not None:
        print(
            f"{'median':<18}{summary['median']:>10,.0f} times faster over "
            f"{len(summary['by_trace'])} traces; least of all points {summary['least']:,.0f}"
        )
        print(
            f"{summary['verdict']}: over all traces the aim is {AIM:,}, below {FAILURE} is a "
            f"failure, and so is any point below {LEAST}"
        )
    return 1 if summary["verdict"] == "FAIL" else 0


if __name__ == "__main__":
    sys.exit(main())
