"""`monofuzz shrink`: a smaller counterexample from a large one."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource
from rich.markup import escape

from monofuzz.cli import console, exits, options, session, units
from monofuzz.errors import MonofuzzError, TraceError, UsageError

if TYPE_CHECKING:
    from monofuzz.counterexample import Counterexample
    from monofuzz.replay.system import TraceSystem
    from monofuzz.search.verdict import Claim
    from monofuzz.shrink import Keep
    from monofuzz.trace import Trace


@click.command("shrink")
@click.argument("source", metavar="COUNTEREXAMPLE|TRACE")
@click.option(
    "-p",
    "--policy",
    type=options.policy_text,
    metavar="POLICY",
    help="For a TRACE: the policy under which to look for a counterexample first.",
)
@click.option(
    "--claim",
    type=click.Choice(options.CLAIMS),
    default="feasibility",
    show_default=True,
    help="For a TRACE: which claim it is to break.",
)
@options.between
@click.option(
    "--budgets",
    metavar="B1 B2",
    nargs=2,
    help="For a TRACE: two budgets that are known to break the claim; nothing is searched.",
)
@click.option(
    "--keep",
    type=click.Choice(["any", "severity", "signature"]),
    default="any",
    show_default=True,
    help="any: it breaks the claim. severity: and at least as badly as at first. "
    "signature: and by the same mechanism.",
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Threads that judge candidates ahead of time; the result is the same.",
)
@click.option(
    "--time", "seconds", type=options.duration, metavar="DURATION", help="Stop after this long."
)
@options.output_file("--out", "Where to write the result.  [default: beside the input, .min.json]")
@options.as_json
@click.pass_context
def command(
    ctx: click.Context,
    source: str,
    policy: str | None,
    claim: Claim,
    between: tuple[str, str],
    budgets: tuple[str, str] | None,
    keep: Keep,
    jobs: int,
    seconds: float | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Make a counterexample as small as it gets; with TRACE and --policy, find one first.

    Exits with 1 when there is one, and with 0 or 3 when TRACE has none or it is not known. Ctrl-C
    ends it with the smallest so far, which is written all the same.
    """
    session.prepare("compiled")
    from monofuzz.counterexample import load, save
    from monofuzz.shrink import seek, seek_at, shrink

    target = out or _beside(source, policy)
    if not os.access(target.parent, os.W_OK):
        raise UsageError(f"{target}: this folder does not exist, or nothing may be written there")
    example: Counterexample | None
    code = exits.REFUTED
    if policy is None:
        for name in ("claim", "between", "budgets"):
            if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
                raise click.UsageError(
                    f"--{name} is for a TRACE, with a --policy; a counterexample has its own"
                )
        example = load(source)
    else:
        system = _system(source, policy)
        if budgets is not None:
            example = seek_at(system, claim, *budgets)
        else:
            with console.search_progress(f"{system.name} under {system.policy}") as searching:
                example, found = seek(system, claim, between=between, jobs=jobs, progress=searching)
            if example is None:
                proved = found.verdict(claim).verdict == "monotone"
                code = exits.DONE if proved else exits.UNDECIDED
    if example is None:
        if as_json:
            console.emit(
                {"found": False, "counterexamples": [], "searched": 0, "seconds": 0.0, "seed": None}
            )
        else:
            console.out().print(f"no counterexample to the {claim} claim found in the range")
        ctx.exit(code)
    import time

    started = time.perf_counter()
    with console.counting("shrinking") as say:

        def progress(trace: Trace, asked: int) -> None:
            say(f"{units.plural(trace.n_operators, 'operator')}, {asked} tried")

        small = shrink(example, keep=keep, seconds=seconds, jobs=jobs, progress=progress)
    took = time.perf_counter() - started
    save(small, target)
    if as_json:
        listed = {**small.to_json(), "goal": "smallest", "file": str(target)}
        console.emit(
            {
                "found": True,
                "counterexamples": [listed],
                "searched": small.found.get("tried", 0),
                "seconds": took,
                "seed": small.found.get("graph_seed"),
                "from_operators": example.operators,
            }
        )
    else:
        screen = console.out()
        screen.print(escape(str(small)))
        if "stopped" in small.found:
            screen.print("[yellow]stopped early[/]: shrinking the result may go on from there")
        screen.print(
            f"[dim]from {units.plural(example.operators, 'operator')} in {units.seconds(took)}; "
            f"written to {escape(str(target))}[/]"
        )
    ctx.exit(exits.INTERRUPTED if small.found.get("stopped") == "interrupted" else exits.REFUTED)


def _system(source: str, policy: str) -> TraceSystem:
    """The trace under the policy; a counterexample in its place is told so."""
    from monofuzz.counterexample import load

    try:
        return session.system(source, policy, engine="compiled")
    except TraceError:
        with suppress(MonofuzzError):
            load(source)
            raise click.UsageError(
                f"{source} is a counterexample, which has its policy: leave --policy out"
            ) from None
        raise


def _beside(source: str, policy: str | None) -> Path:
    path = Path(source)
    name = path.name.removesuffix(".json").removesuffix(".log")
    if policy is not None:
        return Path(f"{name}-{policy.replace(':', '-').replace(',', '-')}.min.json")
    return path.with_name(f"{name}.min.json")
