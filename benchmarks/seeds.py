"""How soon a hunt finds a small hole, from nothing, on each of ten seeds.

    python -m benchmarks.seeds [--policy dtr] [--out reports/hunt-seeds.md]

For each class of graphs: a size that the hole must not exceed, and how long the hunt may take. The
time until such a hole was found and shrunk is wall time; compilation is not counted. The hunt then
goes on to its end, and the smallest that it found is given, too.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from monofuzz.hunt import HuntProgress, hunt_all

if TYPE_CHECKING:
    from monofuzz.generate.fast import GraphClass

SEEDS = range(10)
GOALS: dict[GraphClass, tuple[int, float]] = {
    "free": (4, 10.0),
    "unit-sizes": (6, 60.0),
    "unit": (7, 60.0),
}


def one(policy: str, graph_class: GraphClass, seed: int) -> str:
    """A line of the table."""
    most, seconds = GOALS[graph_class]
    reached: list[float] = []

    def progress(so_far: HuntProgress) -> None:
        if not reached and any(example.operators <= most for example in so_far.best):
            reached.append(so_far.seconds)

    (result,) = hunt_all(
        [policy],
        claims=("feasibility",),
        graph_class=graph_class,
        seed=seed,
        time=seconds,
        progress=progress,
    )
    smallest = result.found("feasibility", "smallest")
    return (
        f"| {graph_class} | {seed} | {f'{reached[0]:.1f} s' if reached else 'not reached'} "
        f"| {smallest.operators if smallest else '-'} | {result.graphs:,} |"
    )


def main() -> None:
    """All classes, ten seeds each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", default="dtr")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    hunt_all([given.policy], claims=("feasibility",), max_examples=100)
    goals = "; ".join(
        f"{graph_class}: at most {most} operators within {seconds:.0f} s"
        for graph_class, (most, seconds) in GOALS.items()
    )
    lines = [
        "# Holes from nothing, seed by seed",
        "",
        f"`python -m benchmarks.seeds --policy {given.policy}`: {goals}.",
        "",
        "| graphs | seed | until then | smallest at the end | graphs searched |",
        "|---|---|---|---|---|",
    ]
    for graph_class in GOALS:
        for seed in SEEDS:
            lines.append(one(given.policy, graph_class, seed))
            print(lines[-1], flush=True)
    if given.out is not None:
        given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
