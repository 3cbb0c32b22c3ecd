"""`monofuzz verify`: the engine against what another simulator did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.markup import escape

from monofuzz.cli import console, exits, options, session, units

if TYPE_CHECKING:
    from monofuzz.replay.golden import Verification

_SHOWN = 20


@click.command("verify")
@click.option(
    "--golden",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    required=True,
    help="JSON lines of golden runs, also compressed.",
)
@options.engine
@options.as_json
@click.pass_context
def command(ctx: click.Context, golden: str, engine: str, as_json: bool) -> None:
    """Replay golden records of the reference simulator, and count the runs that match.

    A run matches when all its fields are equal, to the last eviction. Exits with 0 only if all do.
    """
    session.prepare(engine)
    from monofuzz.replay.golden import verify_file

    with console.progress("replaying golden runs") as bar:
        verification = verify_file(golden, engine=engine, progress=bar)
    if as_json:
        console.emit(document(verification))
    else:
        _show(verification, engine)
    ctx.exit(exits.REFUTED if verification.mismatches else exits.DONE)


def document(verification: Verification) -> dict[str, object]:
    """The result as JSON."""
    return {
        "runs": verification.runs,
        "matched": verification.matched,
        "mismatches": [
            {
                "trace": mismatch.trace,
                "policy": mismatch.policy,
                "budget": mismatch.budget,
                "fields": list(mismatch.differences),
                "expected": {name: pair[0] for name, pair in mismatch.differences.items()},
                "got": {name: pair[1] for name, pair in mismatch.differences.items()},
            }
            for mismatch in verification.mismatches
        ],
    }


def _show(verification: Verification, engine: str) -> None:
    out = console.out()
    for mismatch in verification.mismatches[:_SHOWN]:
        out.print(
            f"[red]differs[/] {escape(mismatch.trace)} under {escape(mismatch.policy)} "
            f"at {units.exact(mismatch.budget)} bytes"
        )
        for name, (expected, got) in mismatch.differences.items():
            out.print(f"    {name}: {expected} expected, {got} found", markup=False)
    hidden = len(verification.mismatches) - _SHOWN
    if hidden > 0:
        out.print(f"... and {units.plural(hidden, 'run')} more; --json lists them all")
    colour = "red" if verification.mismatches else "green"
    out.print(
        f"[bold {colour}]{verification.matched:,} of {units.plural(verification.runs, 'run')} "
        f"match in every field[/] ({engine} engine)"
    )
