"""The counterexample in a trace that is to be shrunk: at two budgets, or somewhere in a range."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monofuzz import budget as _budget
from monofuzz.counterexample import Counterexample, breaks, closest
from monofuzz.errors import UsageError
from monofuzz.search import Map, check, map_budgets
from monofuzz.search.mapping import BETWEEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from monofuzz.budget import Budget
    from monofuzz.replay import TraceSystem
    from monofuzz.search import Progress
    from monofuzz.search.verdict import Claim

__all__ = ["COST_RUNS", "seek", "seek_at"]

COST_RUNS = 3000
"""How many runs the search for a large factor of cost makes, if not told otherwise."""


def seek(
    system: TraceSystem,
    claim: Claim,
    *,
    between: tuple[Budget, Budget] = BETWEEN,
    jobs: int | None = None,
    max_runs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[Counterexample | None, Map]:
    """A counterexample in a range of budgets, or None; and the map, as far as it was needed.

    For *feasibility* the first hole that is found ends the search. For *cost* it goes on until the
    map is complete or ``max_runs`` runs were made (`COST_RUNS`), and the largest factor counts.
    """
    if claim == "feasibility":
        (one,) = check(
            system,
            claims=(claim,),
            between=between,
            jobs=jobs,
            max_runs=max_runs,
            progress=progress,
        )
        found, witness = one.map, one.verdict.witness
    else:
        found = map_budgets(
            system,
            between=between,
            jobs=jobs,
            max_runs=COST_RUNS if max_runs is None else max_runs,
            progress=progress,
        )
        witness = found.verdict(claim).witness
    if witness is None:
        return None, found
    below, above = witness.budgets
    severity = witness.factor
    if severity is None:
        (hole,) = (hole for hole in found.holes if hole.lo <= above < hole.hi)
        severity = hole.bytes / max(system.peak, 1)
    return _named(Counterexample.of(system, claim, below, above, severity)), found


def seek_at(system: TraceSystem, claim: Claim, low: Budget, high: Budget) -> Counterexample:
    """The counterexample that two budgets are known to show; nothing else is searched.

    For *feasibility* the two closest budgets between them at which ok turns into out-of-memory.
    Raises `UsageError` when the two runs do not break the claim, and `BudgetError`.
    """
    budgets = [_budget.parse(text, system.peak) for text in (low, high)]
    below, above = system.run_many(budgets)
    if not breaks(claim, below, above):
        raise UsageError(
            f"{system.name}: {below.status} at {below.budget} bytes (cost {below.cost}) and "
            f"{above.status} at {above.budget} (cost {above.cost}): these two budgets do not break "
            f"the {claim} claim; give the smaller one first, or search with --between"
        )
    if claim == "cost":
        pair, severity = (below.budget, above.budget), above.cost / max(below.cost, 1)
    else:
        pair = closest(system, below, above)
        end = system.run(pair[1]).interval[1] or system.peak + 1
        severity = (end - pair[1]) / max(system.peak, 1)
    return _named(Counterexample.of(system, claim, *pair, severity))


def _named(example: Counterexample) -> Counterexample:
    meta = example.trace.meta
    return example.with_found(trace=meta.name, source=meta.source or None)
