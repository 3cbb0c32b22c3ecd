"""`monofuzz replay`: one run a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from monofuzz.cli import console, options, session, units

if TYPE_CHECKING:
    from monofuzz.replay import Outcome
    from monofuzz.replay.system import TraceSystem


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
    session.prepare(engine)
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
    fail = outcome.fail
    return {
        "trace": system.name,
        "policy": system.policy,
        "budget": outcome.budget,
        "ratio": outcome.budget / system.peak if system.peak else None,
        "status": outcome.status,
        "model_compute": outcome.model_compute,
        "remat_compute": outcome.remat_compute,
        "overhead": outcome.overhead,
        "evictions": outcome.evictions,
        "evictions_all": outcome.evictions_all,
        "distinct_evicted": outcome.distinct_evicted,
        "remats": outcome.remats,
        "victims_sha256": outcome.victims_sha256,
        "interval": list(outcome.interval),
        "certified": outcome.certified,
        "peak_memory": outcome.peak_memory,
        "peak_pinned": outcome.peak_pinned,
        "depth_at_peak_pinned": outcome.depth_at_peak_pinned,
        "max_depth": outcome.max_depth,
        "fail": None
        if fail is None
        else {
            "pinned_bytes": fail.pinned_bytes,
            "request": fail.request,
            "depth": fail.depth,
            "over_by": fail.over_by,
        },
    }


def _show(system: TraceSystem, outcomes: list[Outcome]) -> None:
    from rich.table import Table

    out = console.out()
    out.print(
        f"[bold]{system.name}[/] under [bold]{system.policy}[/], "
        f"peak {units.size(system.peak)} ({units.exact(system.peak)} bytes)\n"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("budget", "bytes", "ratio", "status", "overhead"):
        table.add_column(heading, justify="left" if heading == "status" else "right")
    for heading in ("evictions", "remats", "most pinned", "depth", "same run from", "up to"):
        table.add_column(heading, justify="right")
    for outcome in outcomes:
        lo, hi = outcome.interval
        table.add_row(
            units.size(outcome.budget),
            units.exact(outcome.budget),
            units.ratio(outcome.budget, system.peak),
            console.status(outcome.status),
            units.factor(outcome.overhead),
            units.exact(outcome.evictions),
            units.exact(outcome.remats),
            units.size(outcome.peak_pinned),
            units.exact(outcome.max_depth),
            units.exact(lo),
            "unbounded" if hi is None else units.exact(hi),
        )
    out.print(table)
    for outcome in outcomes:
        if outcome.fail is not None:
            fail = outcome.fail
            out.print(
                f"\n{units.ratio(outcome.budget, system.peak)}: out of memory at depth "
                f"{fail.depth}: a request of {units.size(fail.request)} was over by "
                f"{units.size(fail.over_by)} with {units.size(fail.pinned_bytes)} pinned "
                "and nothing left to evict"
            )
