"""`monofuzz verify`: the engine against what another simulator did, or does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.markup import escape

from monofuzz.cli import console, exits, options, session, units

if TYPE_CHECKING:
    from monofuzz.replay.golden import Verification

_SHOWN = 20


@click.command("verify")
@click.argument(
    "counterexample",
    type=click.Path(exists=True, dir_okay=False),
    metavar="[COUNTEREXAMPLE]",
    required=False,
)
@click.option(
    "--golden",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="JSON lines of golden runs, also compressed.",
)
@click.option(
    "--simrd",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="An unmodified checkout of the reference simulator (uwsampl/dtr-prototype).",
)
@options.engine
@options.as_json
@click.pass_context
def command(
    ctx: click.Context,
    counterexample: str | None,
    golden: str | None,
    simrd: str | None,
    engine: str,
    as_json: bool,
) -> None:
    """Replay golden records of the reference simulator, and count the runs that match.

    With COUNTEREXAMPLE, its two runs are replayed and compared with what the file says and, given
    --simrd, with what the reference simulator does: victims, clock and outcome.

    A run matches when all its fields are equal, to the last eviction. Exits with 0 only if all do.
    """
    if (counterexample is None) == (golden is None):
        raise click.UsageError("give either a COUNTEREXAMPLE or --golden FILE")
    if golden is not None and simrd is not None:
        raise click.UsageError(
            "--simrd is for a COUNTEREXAMPLE; golden runs have been made already"
        )
    session.prepare(engine)
    if counterexample is not None:
        ctx.exit(_verify_counterexample(counterexample, simrd, engine, as_json))
    assert golden is not None
    from monofuzz.replay.golden import verify_file

    with console.progress("replaying golden runs") as bar:
        verification = verify_file(golden, engine=engine, progress=bar)
    if as_json:
        console.emit(document(verification))
    else:
        _show(verification, engine)
    ctx.exit(exits.REFUTED if verification.mismatches else exits.DONE)


def _verify_counterexample(path: str, simrd: str | None, engine: str, as_json: bool) -> int:
    from monofuzz.counterexample import load

    example = load(path)
    differences = example.differences(engine=engine)
    runs, agree = 2, sum(not any(f" at {b} " in d for d in differences) for b in example.witness)
    reference = None
    if simrd is not None and not differences:
        from monofuzz.counterexample.reference import compare

        agreement = compare(example, simrd)
        runs, agree, reference = agreement.runs, agreement.agree, str(agreement.folder)
        differences = list(agreement.differences)
    if as_json:
        console.emit(
            {
                "runs": runs,
                "agree": agree,
                "reference": reference,
                "differences": differences,
                "id": example.id,
            }
        )
        return exits.REFUTED if differences else exits.DONE
    out = console.out()
    out.print(escape(str(example)))
    for difference in differences:
        out.print(f"[red]differs[/] {escape(difference)}")
    if not differences:
        out.print(f"[bold green]both runs are as recorded[/] ({engine} engine)")
    if reference is not None and not differences:
        out.print("[bold green]the reference simulator agrees[/], to the last eviction")
    elif simrd is None:
        out.print("[dim]not compared with the reference simulator: --simrd names none[/]")
    return exits.REFUTED if differences else exits.DONE


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
