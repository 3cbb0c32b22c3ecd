"""`monofuzz report`: one HTML page of maps and counterexamples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from monofuzz.cli import console, exits, options, units

if TYPE_CHECKING:
    from monofuzz.search.verdict import ThrashAs


@click.command("report")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    required=True,
    help="Where to write the page.",
)
@click.option("--title", metavar="TEXT", help="The title of the page.  [default: what it shows]")
@options.reading_options
@options.cliff_factor
@click.pass_context
def command(
    ctx: click.Context,
    files: tuple[str, ...],
    out: Path,
    title: str | None,
    tolerance: float,
    thrash_as: ThrashAs,
    factor: float,
) -> None:
    """Make one HTML page of any number of maps and counterexamples.

    FILE is a map (`monofuzz map --out`) or a counterexample (`monofuzz hunt`, `monofuzz shrink`).
    The page is complete in itself: any browser shows it, without a network.
    """
    from monofuzz.report.inputs import load_item
    from monofuzz.report.page import write_page

    items = [load_item(file) for file in files]
    write_page(items, out, title=title, thrash_as=thrash_as, tolerance=tolerance, factor=factor)
    console.remark(f"{out}: {units.size(out.stat().st_size)}, {units.plural(len(items), 'item')}")
    ctx.exit(exits.DONE)
