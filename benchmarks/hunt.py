"""Throughput of the hunt: graphs generated and mapped exactly, a second of processor time.

    python -m benchmarks.hunt [--policy dtr] [--seconds 2]

A graph counts once all its budgets are mapped, from the least that could do to its peak.
Compilation is not counted.
"""

from __future__ import annotations

import argparse
import time

from monofuzz.generate.fast import CLASSES, GraphClass, Sampler

SIZES = (4, 6, 12, 24)
_CHUNK = 2000


def measure(policy: str, graph_class: GraphClass, operators: int, seconds: float) -> None:
    """Map graphs for so long, and print one line."""
    sampler = Sampler(policy, graph_class, operators)
    sampler.search(0, 10)
    before = sampler.stats
    seed = 10
    started = time.process_time()
    while (spent := time.process_time() - started) < seconds:
        # Severities that nothing has: hits are counted, not kept.
        _, seed = sampler.search(seed, _CHUNK, widest=2.0, steepest=1e9)
    stats = sampler.stats
    graphs, runs = stats.graphs - before.graphs, stats.runs - before.runs
    holes, rises = stats.holes / stats.graphs, stats.rises / stats.graphs
    print(
        f"{policy:<14} {graph_class:<11} {operators:>3} operators {graphs / spent:>10,.0f} graphs/s"
        f" {runs / spent:>10,.0f} runs/s {runs / graphs:>6.1f} runs a graph"
        f" {holes:>7.3%} have a hole {rises:>7.3%} a rise {stats.skipped} skipped"
    )


def main() -> None:
    """All classes and sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", default="dtr")
    parser.add_argument("--seconds", type=float, default=2.0)
    given = parser.parse_args()
    for graph_class in CLASSES:
        for operators in SIZES:
            measure(given.policy, graph_class, operators, given.seconds)


if __name__ == "__main__":
    main()
