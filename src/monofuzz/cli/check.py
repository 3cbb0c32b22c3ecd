"""`monofuzz check`: the verdict, for scripts and CI."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.markup import escape

from monofuzz.cli import console, exits, options, session, units, views

if TYPE_CHECKING:
    from monofuzz.search import Check
    from monofuzz.search.verdict import Claim, ThrashAs


@click.command("check")
@options.traces
@options.policies
@click.option(
    "--claim",
    type=click.Choice([*options.CLAIMS, "both"]),
    default="both",
    show_default=True,
    help="feasibility: more memory never makes it fail. cost: more memory never makes it slower.",
)
@options.between
@options.search_options
@options.run_options
@options.engine
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
    as_json: bool,
) -> None:
    """Say whether more memory ever hurts, for each TRACE under each policy.

    Exits with 1 if any claim is refuted, else with 3 if any is undecided, else with 0: proved for
    every budget of the range. --max-runs and --time are for each trace and policy.
    """
    from monofuzz.search import check

    claims: tuple[Claim, ...] = options.CLAIMS if claim == "both" else (claim,)  # type: ignore[assignment]
    systems = [
        session.system(trace, policy, limit=limit, timeout=timeout, align=align, engine=engine)
        for trace in traces
        for policy in policies
    ]
    checks: list[Check] = []
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
        checks += found
        if not as_json:
            _show(found)
        if found[0].map.stopped == "interrupted":
            interrupted = True
            break
    if as_json:
        console.emit({"results": [one.to_json() for one in checks]})
    if interrupted:
        undone = units.plural(len(systems) - len(checks) // len(claims), "pair")
        console.remark(f"interrupted; {undone} of trace and policy not checked")
        ctx.exit(exits.INTERRUPTED)
    ctx.exit(_exit_code(checks))


def _exit_code(checks: list[Check]) -> int:
    verdicts = {one.verdict.verdict for one in checks}
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
