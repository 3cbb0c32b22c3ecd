"""`monofuzz plot`: maps beside each other as one figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from monofuzz.cli import exits, options

if TYPE_CHECKING:
    from monofuzz.search.verdict import ThrashAs


@click.command("plot")
@click.argument("maps", metavar="MAP...", nargs=-1, required=True)
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    required=True,
    help="What to draw: FILE.png, FILE.svg or FILE.pdf.",
)
@options.reading_options
@click.pass_context
def command(
    ctx: click.Context, maps: tuple[str, ...], out: Path, tolerance: float, thrash_as: ThrashAs
) -> None:
    """Draw maps (of `monofuzz map --out`) as one figure.

    One map is drawn large, with its verdicts. Several are drawn on the same axes: policies below
    each other, traces side by side.
    """
    from monofuzz.report.figures import check_drawable, plot_map, plot_maps
    from monofuzz.search import Map

    check_drawable(out)
    found = [Map.load(file) for file in maps]
    if len(found) == 1:
        plot_map(found[0], out, thrash_as=thrash_as, tolerance=tolerance)
    else:
        plot_maps(found, out, thrash_as=thrash_as)
    ctx.exit(exits.DONE)
