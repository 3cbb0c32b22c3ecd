"""How near the runs of a trace come to an inversion: a number that a search can drive up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monofuzz.counterexample import inspect_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from monofuzz.replay.outcome import Outcome
    from monofuzz.search.verdict import Claim

__all__ = ["nearness"]


def nearness(runs: Sequence[Outcome], claim: Claim, peak: int) -> float:
    """How near the runs of a trace, without gaps and upwards, come to breaking a claim.

    Up to 1 they keep it; above they break it, and the more, the worse: by the width of the hole as
    a share of the peak, or as the factor of the rise in cost.

    For *feasibility*: a run needs the memory that it cannot evict at its worst moment, and fails
    when that is more than it has. A hole is a run that needs more than its budget above one that
    did not, so it begins with a run that needs more than a smaller budget did: by how much, as a
    share of the peak, is the measure. For *cost*: the largest cost as a share of the least below.
    """
    finding = inspect_runs(runs, claim, peak)
    if finding is not None:
        return finding.severity + (1.0 if claim == "feasibility" else 0.0)
    return _rise_of_need(runs) / max(peak, 1) if claim == "feasibility" else _share_of_cost(runs)


def _rise_of_need(runs: Sequence[Outcome]) -> int:
    """The most bytes that a run needs beyond what a feasible one below it did."""
    rise, least = 0, None
    for run in runs:
        need = run.peak_pinned if run.fail is None else run.budget + run.fail.over_by
        if least is not None:
            rise = max(rise, need - least)
        if run.status == "ok":
            least = need if least is None else min(least, need)
    return rise


def _share_of_cost(runs: Sequence[Outcome]) -> float:
    """The cost of a feasible run as a share of the cheapest below it, where that is largest."""
    share, least = 0.0, None
    for run in runs:
        if run.status == "ok":
            if least:
                share = max(share, run.cost / least)
            least = run.cost if least is None else min(least, run.cost)
    return min(share, 1.0)
