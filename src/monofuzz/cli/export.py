"""`monofuzz export`: a counterexample for a paper, a bug report or another tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from monofuzz.cli import exits, options

if TYPE_CHECKING:
    from pathlib import Path

# The names of `monofuzz.report.export.FORMATS`, so that --help imports nothing; tests compare.
_FORMATS = ("latex", "tikz", "svg", "dot", "dtrlog", "python", "markdown")


@click.command("export")
@click.argument("counterexample", metavar="COUNTEREXAMPLE")
@click.option(
    "-f",
    "--format",
    "kind",
    type=click.Choice(_FORMATS),
    required=True,
    help="latex: a figure and a table of the decisions. tikz, svg: the figure. dot: the graph. "
    "dtrlog: the graph, for the reference simulator. python: a script that reproduces it. "
    "markdown: a bug report.",
)
@options.output_file("--out", "Where to write it.  [default: standard output]")
@click.option(
    "--width",
    type=click.FloatRange(60, 400),
    metavar="MM",
    default=120,
    show_default=True,
    help="How wide a figure may be: 84 for one of two columns, 175 for both.",
)
@click.pass_context
def command(
    ctx: click.Context, counterexample: str, kind: str, out: Path | None, width: float
) -> None:
    """Write a counterexample as a figure, a graph, a log, a script or a bug report.

    The figure shows the graph and, below it, what is in memory at both budgets, event by event.
    """
    from monofuzz.counterexample import load
    from monofuzz.report.export import check_target, export, write

    if out is not None:
        check_target(kind, out)
    example = load(counterexample)
    if out is None:
        click.echo(export(example, kind, width=width), nl=False)
    else:
        write(example, kind, out, width=width)
    ctx.exit(exits.DONE)
