"""`monofuzz replay`: one run a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape
from rich.table import Table

from monofuzz.cli import console, options, session, units, views

if TYPE_CHECKING:
    from rich.console import Console

    from monofuzz.replay import Outcome
    from monofuzz.replay.system import TraceSystem


_ROOMY = 112


@click.command("replay")
@options.trace
@click.argument("more_budgets", metavar="", nargs=-1)
@options.policy
@click.option(
    "-b",
    "--budget",
    "budgets",
    metavar="BUDGET...",
    multiple=True,
    required=True,
    help="Memory to run in: 0.1 or 10% of the peak, 2.5GiB, or plain bytes; as many as you like.",
)
@options.run_options
@options.engine
@options.as_json
def command(
    trace: str,
    more_budgets: tuple[str, ...],
    policy: str,
    budgets: tuple[str, ...],
    limit: float | None,
    timeout: float | None,
    align: int | None,
    engine: str,
    as_json: bool,
) -> None:
    """Run TRACE under one budget or several, and say what happened.

    With --json: one object a line for each budget.
    """
    from monofuzz import budget as budget_text

    system = session.system(trace, policy, limit=limit, timeout=timeout, align=align, engine=engine)
    wanted = [budget_text.parse(text, system.peak) for text in (*budgets, *more_budgets)]
    outcomes = []
    for budget in wanted:
        outcome = system.run(budget)
        if as_json:
            console.emit(document(system, outcome))
        outcomes.append(outcome)
    if not as_json:
        _show(system, outcomes)


def document(system: TraceSystem, outcome: Outcome) -> dict[str, Any]:
    """One run as JSON."""
    return {
        "trace": system.name,
        "policy": system.policy,
        "budget": outcome.budget,
        "ratio": outcome.budget / system.peak if system.peak else None,
        **outcome.to_json(),
    }


def _show(system: TraceSystem, outcomes: list[Outcome]) -> None:
    out = console.out()
    out.print(
        f"[bold]{escape(system.name)}[/] under [bold]{escape(system.policy)}[/], "
        f"peak {units.both(system.peak)}\n"
    )
    if len(outcomes) == 1:
        _show_one(out, system, outcomes[0])
    else:
        _show_all(out, system, outcomes)


def _show_one(out: Console, system: TraceSystem, outcome: Outcome) -> None:
    rows = {
        "budget": f"{units.ratio(outcome.budget, system.peak)}, {units.both(outcome.budget)}",
        "status": console.status(outcome.status),
        "overhead": _overhead(system, outcome),
        "recomputed": f"{units.nanoseconds(outcome.remat_compute)} beside "
        f"{units.nanoseconds(outcome.model_compute)} of the model",
        "evictions": f"{units.exact(outcome.evictions)} chosen, "
        f"{units.exact(outcome.evictions_all)} with releases, "
        f"of {units.plural(outcome.distinct_evicted, 'storage')}",
        "rematerialised": units.plural(outcome.remats, "operator"),
        "peak memory": units.both(outcome.peak_memory),
        "most pinned": f"{units.both(outcome.peak_pinned)} at depth {outcome.depth_at_peak_pinned}",
        "deepest": f"{units.exact(outcome.max_depth)} nested operators",
        "the same run": _same_run(outcome),
    }
    grid = Table.grid(padding=(0, 2, 0, 0))
    for name, value in rows.items():
        grid.add_row(name, value)
    out.print(grid)
    _explain_failure(out, system, outcome)


def _same_run(outcome: Outcome) -> str:
    lo, hi = outcome.interval
    if not outcome.certified:
        return "is known for this budget only"
    if hi is None:
        return f"from {units.exact(lo)} bytes on"
    if hi == lo + 1:
        return "at no other budget"
    return f"from {units.exact(lo)} to {units.exact(hi - 1)} bytes"


def _show_all(out: Console, system: TraceSystem, outcomes: list[Outcome]) -> None:
    roomy = out.width >= _ROOMY
    columns = ("budget", "bytes", "", "<status", "overhead", "evictions", "remats")
    rows = views.table(*columns, *(("same run from", "below") if roomy else ()))
    for outcome in outcomes:
        lo, hi = outcome.interval
        ends = (units.exact(lo), "unbounded" if hi is None else units.exact(hi))
        rows.add_row(
            *views.cells(outcome.budget, system.peak),
            units.size(outcome.budget),
            console.status(outcome.status),
            _overhead(system, outcome),
            units.exact(outcome.evictions),
            units.exact(outcome.remats),
            *(ends if roomy else ()),
        )
    out.print(rows)
    for outcome in outcomes:
        _explain_failure(out, system, outcome)


def _overhead(system: TraceSystem, outcome: Outcome) -> str:
    return views.overhead(outcome.status, outcome.overhead, system.limit)


def _explain_failure(out: Console, system: TraceSystem, outcome: Outcome) -> None:
    fail = outcome.fail
    if fail is None:
        return
    out.print(
        f"\n{units.ratio(outcome.budget, system.peak)}: out of memory: at depth {fail.depth} a "
        f"request of {units.both(fail.request)} was {units.both(fail.over_by)} too much, with "
        f"{units.both(fail.pinned_bytes)} pinned and nothing left to evict"
    )
