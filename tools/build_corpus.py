"""Hunts for counterexamples to every policy, claim and class, and keeps what is better than before.

    python -m tools.build_corpus --seconds 6 --seed 1

For each policy, class of graphs and claim, ``corpus/counterexamples/POLICY/`` holds the smallest
known counterexample and the worst known one. ``reports/counterexamples.md`` is their table.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from monofuzz.counterexample import Counterexample, load, save
from monofuzz.generate.fast import CLASSES
from monofuzz.hunt import GOALS, Goal, hunt_all, within_class
from monofuzz.replay.policy import names
from monofuzz.search.verdict import CLAIMS
from monofuzz.shrink import complexity, shrink

if TYPE_CHECKING:
    from monofuzz.generate.fast import GraphClass
    from monofuzz.search.verdict import Claim

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "corpus" / "counterexamples"
TABLE = ROOT / "reports" / "counterexamples.md"
POLICIES = [name for name in names() if name != "random"]


def main() -> None:
    """Hunt, and write what is better."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policy", action="append")
    parser.add_argument("--class", dest="graph_class", action="append", choices=CLASSES)
    parser.add_argument("--table-only", action="store_true")
    given = parser.parse_args()
    searched: dict[tuple[str, str], dict[int, int]] = {}
    if not given.table_only:
        for graph_class in given.graph_class or CLASSES:
            for policy in given.policy or POLICIES:
                searched[policy, graph_class] = improve(
                    policy, graph_class, given.seed, given.seconds
                )
    write_table()
    for (policy, graph_class), sizes in searched.items():
        print(policy, graph_class, sizes)  # noqa: T201


def path_of(policy: str, graph_class: str, claim: str, goal: str) -> Path:
    """Where a counterexample lies."""
    return CORPUS / policy / f"{graph_class}-{claim}-{goal}.json"


def improve(policy: str, graph_class: GraphClass, seed: int, seconds: float) -> dict[int, int]:
    """One hunt; how many graphs it searched, by operators."""
    (result,) = hunt_all([policy], graph_class=graph_class, seed=seed, time=seconds)
    for claim in CLAIMS:
        for goal in GOALS:
            example = result.found(claim, goal)
            if example is not None:
                keep(example, policy, graph_class, claim, goal)
    return result.searched


def keep(
    example: Counterexample, policy: str, graph_class: GraphClass, claim: Claim, goal: Goal
) -> None:
    """Write an example unless the corpus has one as good."""
    path = path_of(policy, graph_class, claim, goal)
    if goal == "worst":
        within = within_class(graph_class, example.trace)
        example = shrink(example, keep="severity", within=within, seconds=10.0)
    known = load(path) if path.exists() else None
    if known is None or is_better(example, known, goal):
        path.parent.mkdir(parents=True, exist_ok=True)
        save(example, path)


def is_better(example: Counterexample, known: Counterexample, goal: Goal) -> bool:
    """Smaller, or worse."""
    if goal == "smallest":
        return complexity(example.trace) < complexity(known.trace)
    return (-example.severity, complexity(example.trace)) < (
        -known.severity,
        complexity(known.trace),
    )


def write_table() -> None:
    """The table of all that the corpus holds."""
    heads = [f"{claim} {graph_class}" for claim in CLAIMS for graph_class in CLASSES]
    lines = [
        "# The smallest counterexamples known",
        "",
        "Operators of the smallest known counterexample to each claim, by policy and class of",
        "graphs, and behind the stroke how bad the worst known one is: the widest hole as a share",
        "of the peak, the largest factor of cost. A dash: none was found so far. The files are",
        "in `corpus/counterexamples/`; `python -m tools.build_corpus` hunts on and writes this.",
        "",
        "| policy | " + " | ".join(heads) + " |",
        "|---|" + "---|" * len(heads),
    ]
    for policy in POLICIES:
        cells = [cell(policy, graph_class, claim) for claim in CLAIMS for graph_class in CLASSES]
        lines.append(f"| `{policy}` | " + " | ".join(cells) + " |")
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def cell(policy: str, graph_class: str, claim: str) -> str:
    """One entry of the table."""
    smallest = path_of(policy, graph_class, claim, "smallest")
    worst = path_of(policy, graph_class, claim, "worst")
    if not smallest.exists():
        return "–"
    severity = load(worst if worst.exists() else smallest).severity
    shown = f"{severity:.0%}" if claim == "feasibility" else f"{severity:.2f}×"
    return f"{load(smallest).operators} / {shown}"


if __name__ == "__main__":
    main()
