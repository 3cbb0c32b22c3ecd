"""CPU time of a run by policy, and what a score function of your own costs beside built-in ones.

One run is one replay at a fixed budget, compiled; parsing and compiling are excluded. The median of
several repeats, in milliseconds, at a ratio of the trace's peak.
"""

from __future__ import annotations

import argparse
import statistics
import time

import monofuzz
from monofuzz.replay import Policy, TraceSystem
from monofuzz.replay.policy import names


@monofuzz.policy
def own_local(cost: float, size: float, staleness: float) -> float:
    """The score of dtr-local."""
    worth = size * staleness
    return cost / worth if worth > 0 else float("inf")


@monofuzz.policy
def own_dtr(
    cost: float, size: float, staleness: float, region_cost: float, region_rev_cost: float
) -> float:
    """The score of dtr, without its lazy bounds."""
    worth = size * staleness
    return (cost + region_cost + region_rev_cost) / worth if worth > 0 else float("inf")


def seconds(system: TraceSystem, budget: int) -> float:
    """The median CPU seconds of a run, over at least 0.2 s of runs."""
    system.run_many([budget])
    found = []
    while sum(found) < 0.2 or len(found) < 5:
        start = time.process_time()
        system.run_many([budget])
        found.append(time.process_time() - start)
    return statistics.median(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", nargs="?", default="demo")
    parser.add_argument("--ratio", type=float, default=0.45)
    options = parser.parse_args()
    trace = monofuzz.load(options.trace)
    print(f"{options.trace} at {options.ratio} of the peak")
    policies: list[str | Policy] = [*names(), own_local, own_dtr]
    for policy in policies:
        system = TraceSystem(trace, policy)
        budget = int(options.ratio * system.peak)
        (outcome,) = system.run_many([budget])
        took = seconds(system, budget)
        each = took / max(outcome.evictions, 1)
        print(
            f"{policy!s:<16} {outcome.status:<9} {took * 1e3:9.3f} ms"
            f" {outcome.evictions:9,} evictions {each * 1e6:9.2f} µs each"
        )


if __name__ == "__main__":
    main()
