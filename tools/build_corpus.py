"""Hunts for counterexamples to every policy, claim and class, and keeps what is better than before.

    python -m tools.build_corpus --seconds 6 --seed 1

For each policy, class of graphs and claim, ``corpus/counterexamples/POLICY/`` holds the smallest
known counterexample and the worst known one. ``reports/counterexamples.md`` is their table. What
was searched in vain is added up in ``reports/searched.json``. ``--share`` hunts for nothing, but
tries every graph that the corpus holds under every policy, and in every class that it belongs to.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from monofuzz.counterexample import Counterexample, examine, load, save
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
SEARCHED = ROOT / "reports" / "searched.json"
POLICIES = [name for name in names() if name != "random"]


def main() -> None:
    """Hunt, and write what is better."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policy", action="append")
    parser.add_argument("--class", dest="graph_class", action="append", choices=CLASSES)
    parser.add_argument("--most", type=int, default=8, metavar="OPERATORS")
    parser.add_argument("--share", action="store_true")
    parser.add_argument("--table-only", action="store_true")
    given = parser.parse_args()
    policies, classes = given.policy or POLICIES, given.graph_class or CLASSES
    if given.share:
        for policy in policies:
            share(policy)
    elif not given.table_only:
        for graph_class in classes:
            for policy in policies:
                improve(policy, graph_class, given.seed, given.seconds, given.most)
    write_table()


def path_of(policy: str, graph_class: str, claim: str, goal: str) -> Path:
    """Where a counterexample lies."""
    return CORPUS / policy / f"{graph_class}-{claim}-{goal}.json"


def improve(policy: str, graph_class: GraphClass, seed: int, seconds: float, most: int) -> None:
    """One hunt."""
    (result,) = hunt_all(
        [policy], graph_class=graph_class, seed=seed, time=seconds, max_operators=most
    )
    for claim in CLAIMS:
        for goal in GOALS:
            example = result.found(claim, goal)
            if example is not None:
                keep(example, policy, graph_class, claim, goal)
        if claim not in result.smallest:
            note(policy, graph_class, claim, result.searched)


def note(policy: str, graph_class: str, claim: str, sizes: dict[int, int]) -> None:
    """Add to what was searched in vain."""
    known = json.loads(SEARCHED.read_text()) if SEARCHED.exists() else {}
    cell = known.setdefault(f"{policy} {graph_class} {claim}", {})
    for operators, count in sizes.items():
        cell[str(operators)] = cell.get(str(operators), 0) + count
    SEARCHED.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def share(policy: str) -> None:
    """Try the graphs of all counterexamples under one policy, in all classes they belong to."""
    seen = set()
    for path in sorted(CORPUS.glob("*/*.json")):
        trace = load(path).trace
        classes = [
            graph_class
            for graph_class in CLASSES
            if path.name.startswith("training-" if graph_class == "training" else "")
            and ((within := within_class(graph_class, trace)) is None or within(trace))
        ]
        if (trace.digest, *classes) in seen:
            continue
        seen.add((trace.digest, *classes))
        for claim in CLAIMS:
            example = examine(trace, policy, claim)
            if example is not None:
                for graph_class in classes:
                    offer(example, policy, graph_class, claim)


def offer(example: Counterexample, policy: str, graph_class: GraphClass, claim: Claim) -> None:
    """Keep an example if it is worse than what is known, or promises to be smaller."""
    worst = known(policy, graph_class, claim, "worst")
    if worst is None or example.severity > worst.severity:
        keep(example, policy, graph_class, claim, "worst")
    smallest = known(policy, graph_class, claim, "smallest")
    if smallest is None or complexity(example.trace) < complexity(smallest.trace):
        within = within_class(graph_class, example.trace)
        small = shrink(example, within=within, seconds=10.0)
        keep(small, policy, graph_class, claim, "smallest")


def known(policy: str, graph_class: str, claim: str, goal: str) -> Counterexample | None:
    """What the corpus holds."""
    path = path_of(policy, graph_class, claim, goal)
    return load(path) if path.exists() else None


def keep(
    example: Counterexample, policy: str, graph_class: GraphClass, claim: Claim, goal: Goal
) -> None:
    """Write an example unless the corpus has one as good."""
    path = path_of(policy, graph_class, claim, goal)
    if goal == "worst":
        within = within_class(graph_class, example.trace)
        example = shrink(example, keep="severity", within=within, seconds=10.0)
    best = known(policy, graph_class, claim, goal)
    if best is None or is_better(example, best, goal):
        path.parent.mkdir(parents=True, exist_ok=True)
        save(example, path)


def is_better(example: Counterexample, best: Counterexample, goal: Goal) -> bool:
    """Smaller, or worse."""
    if goal == "smallest":
        return complexity(example.trace) < complexity(best.trace)
    return (-example.severity, complexity(example.trace)) < (-best.severity, complexity(best.trace))


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
        "What was searched where there is a dash stands below the table.",
        "",
        "| policy | " + " | ".join(heads) + " |",
        "|---|" + "---|" * len(heads),
    ]
    for policy in POLICIES:
        cells = [cell(policy, graph_class, claim) for claim in CLAIMS for graph_class in CLASSES]
        lines.append(f"| `{policy}` | " + " | ".join(cells) + " |")
    vain = json.loads(SEARCHED.read_text()) if SEARCHED.exists() else {}
    for policy in POLICIES:
        for claim in CLAIMS:
            for graph_class in CLASSES:
                if known(policy, graph_class, claim, "smallest") is None:
                    sizes = vain.get(f"{policy} {graph_class} {claim}", {})
                    told = ", ".join(
                        f"{count:,} of {operators}"
                        for operators, count in sorted(sizes.items(), key=lambda item: int(item[0]))
                    )
                    lines += [
                        "",
                        f"`{policy}` {claim} {graph_class}: none among {told or 0} operators.",
                    ]
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
