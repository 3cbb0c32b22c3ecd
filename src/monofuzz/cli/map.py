"""`monofuzz map`: every regime of a budget range."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import click

from monofuzz.cli import console, exits, options, session, units, views

if TYPE_CHECKING:
    from pathlib import Path

    from monofuzz.search.regimes import Map
    from monofuzz.search.verdict import ThrashAs


@click.command("map")
@options.trace
@options.policy
@options.between
@options.output_file(
    "--out", "Keep the map in FILE while it grows; an unfinished map in it is continued."
)
@options.output_file("--plot", "Draw the map: FILE.png, FILE.svg or FILE.pdf.")
@click.option("--regimes", is_flag=True, help="List every regime, not only what breaks.")
@options.search_options
@options.cliff_factor
@options.run_options
@options.engine
@options.as_json
@click.pass_context
def command(
    ctx: click.Context,
    trace: str,
    policy: str,
    between: tuple[str, str],
    out: Path | None,
    plot: Path | None,
    regimes: bool,
    jobs: int | None,
    max_runs: int | None,
    seconds: float | None,
    tolerance: float,
    thrash_as: ThrashAs,
    factor: float,
    limit: float | None,
    timeout: float | None,
    align: int | None,
    engine: str,
    as_json: bool,
) -> None:
    """Find every budget at which TRACE behaves differently under a policy.

    The map is exact to the byte, and certified once nothing in the range is unexplored. What
    matters is searched first, so a map that is stopped early has seen most of it; with --out, the
    same command goes on later.
    """
    if plot is not None:
        from monofuzz.report.figures import check_drawable

        check_drawable(plot)
    system = session.system(trace, policy, limit=limit, timeout=timeout, align=align, engine=engine)
    from monofuzz.search import map_budgets

    with console.search_progress(system.name) as progress:
        found = map_budgets(
            system,
            between=between,
            jobs=jobs,
            max_runs=max_runs,
            time=seconds,
            out=out,
            progress=progress,
        )
    if as_json:
        console.emit(found.to_json(thrash_as=thrash_as, tolerance=tolerance, factor=factor))
    else:
        reading = views.Reading(thrash_as, tolerance, factor)
        views.show_map(console.out(), found, reading, regimes=regimes)
    if plot is not None:
        from monofuzz.report.figures import plot_map

        plot_map(found, plot, thrash_as=thrash_as, tolerance=tolerance)
    ctx.exit(_conclude(found, out))


def _conclude(found: Map, out: Path | None) -> int:
    """Say how to go on, if there is more to do; the exit code."""
    if found.covered == 1:
        return exits.DONE
    if found.stopped in ("max-runs", "time", "interrupted", "sampled"):
        console.remark(f"{_WHY[found.stopped]}; {_how_to_go_on(out)}")
    elif found.stopped == "timeouts":
        budgets = units.plural(found.timeouts, "budget")
        console.remark(f"runs at {budgets} timed out; a longer --timeout may decide them")
    return exits.INTERRUPTED if found.stopped == "interrupted" else exits.UNDECIDED


_WHY = {
    "max-runs": "stopped after the runs that --max-runs allows",
    "time": "stopped when --time was over",
    "interrupted": "interrupted",
    "sampled": "stopped: this policy gives no intervals, so its map can only be sampled",
}


def _how_to_go_on(out: Path | None) -> str:
    if out is None:
        return "given --out FILE, the same command goes on where it stopped"
    return f"to go on: {shlex.join(['monofuzz', *sys.argv[1:]])}"
