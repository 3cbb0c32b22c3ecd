"""`monofuzz check`: the verdict, for scripts and CI."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.markup import escape

from monofuzz.cli import console, exits, options, session, tables, units, views

if TYPE_CHECKING:
    from monofuzz.search import Check
    from monofuzz.search.verdict import Claim, ThrashAs
    from monofuzz.systems.curve import Measured


@click.command("check")
@options.traces
@options.policies
@options.claims
@options.between
@options.search_options
@options.run_options
@options.engine
@tables.table_options
@options.as_json
@click.pass_context
def command(
    ctx: click.Context,
    traces: tuple[str, ...],
    policies: tuple[str, ...],
    claim: str,
    between: tuple[str, str],
    jobs: int | None,
    max_runs: int | None,
    seconds: float | None,
    tolerance: float,
    thrash_as: ThrashAs,
    limit: float | None,
    timeout: float | None,
    align: int | None,
    engine: str,
    alpha: float,
    noise: float | None,
    column: str | None,
    rising: bool,
    peak: str | None,
    as_json: bool,
) -> None:
    """Say whether more memory ever hurts, for each TRACE under each policy.

    A TRACE may also be a table of measurements from a real system: CSV or JSON with the columns
    budget, outcome and time, a row a run; it needs no policy. Noise is told from repeats, and a
    table proves nothing: it refutes a claim, or leaves it undecided and says what to measure next.

    Exits with 1 if any claim is refuted, else with 3 if any is undecided, else with 0: proved for
    every budget of the range. --max-runs and --time are for each trace and policy.
    """
    from monofuzz.search import check

    claims: tuple[Claim, ...] = options.CLAIMS if claim == "both" else (claim,)  # type: ignore[assignment]
    measured, replayed = tables.split(traces)
    if not replayed:
        tables.refuse_given(ctx, _ONLY_TRACES, "means nothing for a table of measurements")
    elif not policies:
        tables.refuse_for_lack_of_a_policy(replayed[0])
    if not measured:
        tables.refuse_given(ctx, _ONLY_TABLES, "is for tables of measurements; this is a trace")
    results: list[Check | Measured] = []
    how = tables.HowMeasured(alpha, noise, column, rising, peak)
    for table in measured:
        judged = tables.check(table, claims, how, tolerance=tolerance, thrash_as=thrash_as)
        results += judged
        if not as_json:
            tables.show(judged)
    systems = [
        session.system(trace, policy, limit=limit, timeout=timeout, align=align, engine=engine)
        for trace in replayed
        for policy in policies
    ]
    undone = len(systems)
    interrupted = False
    for system in systems:
        with console.search_progress(f"{system.name} under {system.policy}") as progress:
            found = check(
                system,
                claims=claims,
                between=between,
                jobs=jobs,
                max_runs=max_runs,
                time=seconds,
                tolerance=tolerance,
                thrash_as=thrash_as,
                progress=progress,
            )
        results += found
        undone -= 1
        if not as_json:
            _show(found)
        if found[0].map.stopped == "interrupted":
            interrupted = True
            break
    if as_json:
        console.emit({"results": [one.to_json() for one in results]})
    if interrupted:
        left = units.plural(undone, "pair")
        console.remark(f"interrupted; {left} of trace and policy not checked")
        ctx.exit(exits.INTERRUPTED)
    ctx.exit(_exit_code(results))


_ONLY_TRACES = (
    "policies",
    "between",
    "jobs",
    "max_runs",
    "seconds",
    "limit",
    "timeout",
    "align",
    "engine",
)
_ONLY_TABLES = ("alpha", "noise", "column", "rising", "peak")


def _exit_code(results: list[Check | Measured]) -> int:
    verdicts = {
        one.verdict if isinstance(one.verdict, str) else one.verdict.verdict for one in results
    }
    if "refuted" in verdicts:
        return exits.REFUTED
    return exits.UNDECIDED if "undecided" in verdicts else exits.DONE


def _show(checks: list[Check]) -> None:
    out = console.out()
    found = checks[0].map
    name, policy = found.origin.trace, found.origin.policy
    out.print(
        f"[bold]{escape(name)}[/] under [bold]{escape(policy)}[/]"
        f"[dim], {units.percent(found.covered)} of the range known from "
        f"{units.plural(found.runs, 'run')} in {units.seconds(found.seconds)}[/]"
    )
    for one in checks:
        out.print(f"  {one.verdict.claim:<11}  {views.sentence(one.verdict, found.peak)}")
