"""Witnesses of systems that only sample: made as close as they get, and seen again."""

from __future__ import annotations

import time as _time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from monofuzz.errors import FlakyError
from monofuzz.search.verdict import Side, Witness

if TYPE_CHECKING:
    from monofuzz.search.system import Runner
    from monofuzz.search.verdict import ThrashAs

__all__ = ["confirmed", "narrowed"]

_REPEATS = 2


def confirmed(
    runner: Runner, witness: Witness, *, thrash_as: ThrashAs = "own", tolerance: float = 0.0
) -> Witness:
    """The witness, if it breaks its claim again each time that both budgets are run again.

    Raises `FlakyError` if it does not: then the system is not determined by the budget, and
    nothing is known.
    """
    low, high = witness.budgets
    for _ in range(_REPEATS):
        again = Witness(witness.claim, side(runner, low), side(runner, high))
        if not breaks(again, thrash_as=thrash_as, tolerance=tolerance):
            hint = (
                "; costs that vary need a tolerance, or repeated measurements"
                if witness.claim == "cost"
                else ""
            )
            raise FlakyError(
                f"{runner.name}{f' under {runner.policy}' if runner.policy else ''} is flaky: "
                f"{witness}; run again, {again}: the same budget must always give the same "
                f"run{hint}"
            )
    return witness


def narrowed(
    runner: Runner,
    witness: Witness,
    *,
    thrash_as: ThrashAs = "own",
    tolerance: float = 0.0,
    until: float | None = None,
) -> Witness:
    """A witness to the same claim with its budgets closer together, found by bisection.

    ``until``: the `time.perf_counter` at which to stop with what there is.
    """
    while witness.above.budget - witness.below.budget > 1:
        if until is not None and _time.perf_counter() >= until:
            break
        middle = side(runner, sum(witness.budgets) // 2)
        closer = (replace(witness, above=middle), replace(witness, below=middle))
        for one in closer:
            if breaks(one, thrash_as=thrash_as, tolerance=tolerance):
                witness = one
                break
        else:
            break
    return witness


def side(runner: Runner, budget: int) -> Side:
    """A new run at a budget."""
    result: Any = runner.system.run(budget)
    return Side(budget, result.status, result.cost, result.overhead)


def breaks(witness: Witness, *, thrash_as: ThrashAs = "own", tolerance: float = 0.0) -> bool:
    """Whether two runs break the claim that they are said to break."""
    low, high = witness.below, witness.above
    if low.status != "ok":
        return False
    if witness.claim == "feasibility":
        return high.status == "oom" or (high.status == "thrashed" and thrash_as == "infeasible")
    allowed = low.cost * (1.0 + tolerance) if tolerance else low.cost
    return high.status == "ok" and high.cost > allowed
