"""`monofuzz hunt`: generated graphs until one breaks a claim."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from monofuzz.cli import console, exits, options, session, units

if TYPE_CHECKING:
    from monofuzz.counterexample import Counterexample
    from monofuzz.generate.fast import GraphClass
    from monofuzz.hunt import Goal, Hunt
    from monofuzz.search.verdict import Claim

_CLASSES = ("free", "unit-sizes", "unit", "training")
_GOALS = ("smallest", "worst")


@click.command("hunt")
@click.option(
    "-p",
    "--policy",
    "policies",
    metavar="POLICY[,POLICY...]|all",
    multiple=True,
    required=True,
    help="What to evict; several, divided by commas or given again, see the same graphs. all: "
    "every built-in policy but random.",
)
@options.claims
@click.option(
    "--class",
    "graph_class",
    type=click.Choice(_CLASSES),
    default="free",
    show_default=True,
    help="Which graphs: any; every tensor one byte; every cost one, too; forward and backward.",
)
@click.option(
    "--goal",
    type=click.Choice(_GOALS),
    default="smallest",
    show_default=True,
    help="What to spend the time on; the other is reported, too, as far as it was met.",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True)
@click.option(
    "--time",
    "seconds",
    type=options.duration,
    metavar="DURATION",
    help="How long, for each policy.  [default: 10s unless --max-examples is given]",
)
@click.option(
    "--max-examples", type=click.IntRange(min=1), metavar="N", help="How many graphs a policy."
)
@click.option("--min-ops", type=click.IntRange(1), default=2, show_default=True)
@click.option("--max-ops", type=click.IntRange(1), default=8, show_default=True)
@options.compute_limit
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write each counterexample to a file here, named by its id.",
)
@options.as_json
@click.pass_context
def command(
    ctx: click.Context,
    policies: tuple[str, ...],
    claim: str,
    graph_class: GraphClass,
    goal: Goal,
    seed: int,
    seconds: float | None,
    max_examples: int | None,
    min_ops: int,
    max_ops: int,
    limit: float | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Generate graphs until more memory makes one fail, or slower; then make it small.

    Exits with 1 if every claim was refuted under every policy, with 3 if not all were.
    """
    claims: tuple[Claim, ...] = options.CLAIMS if claim == "both" else (claim,)  # type: ignore[assignment]
    names = _policies(policies)
    session.prepare("compiled")
    from monofuzz.hunt import HuntProgress, hunt_all

    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    with console.counting("hunting") as say:

        def progress(now: HuntProgress) -> None:
            best = min((example.operators for example in now.best), default=None)
            found = "" if best is None else f", smallest {units.plural(best, 'operator')}"
            say(f"{now.policy}: {units.plural(now.searched, 'graph')}{found}")

        results = hunt_all(
            names,
            claims=claims,
            goal=goal,
            graph_class=graph_class,
            seed=seed,
            time=seconds,
            max_examples=max_examples,
            min_operators=min_ops,
            max_operators=max_ops,
            limit=limit,
            progress=progress,
        )
    listed = [
        (result, example, which, _write(example, out))
        for result in results
        for one in claims
        for which in _GOALS
        if (example := result.found(one, which)) is not None  # type: ignore[arg-type]
    ]
    if as_json:
        console.emit(
            {
                "found": bool(listed),
                "counterexamples": [
                    {**example.to_json(), "goal": which, "file": file}
                    for _, example, which, file in listed
                ],
                "searched": sum(result.graphs for result in results),
                "seconds": sum(result.seconds for result in results),
                "seed": seed,
                "hunts": [
                    {
                        "policy": result.policy,
                        "searched": {str(size): n for size, n in result.searched.items()},
                        "seconds": result.seconds,
                        "stopped": result.stopped,
                    }
                    for result in results
                ],
            }
        )
    else:
        for result in results:
            _show(result, claims, [item for item in listed if item[0] is result])
    if any(result.stopped == "interrupted" for result in results):
        ctx.exit(exits.INTERRUPTED)
    broken = sum(len(result.smallest) for result in results)
    ctx.exit(exits.REFUTED if broken == len(claims) * len(names) else exits.UNDECIDED)


def _policies(given: tuple[str, ...]) -> list[str]:
    from monofuzz.replay import policy

    listed: list[str] = []
    for text in given:
        if text.strip() == "all":
            listed += [name for name in policy.names() if name != "random"]
            continue
        # A comma divides policies, and parameters: what follows it and has no name is a parameter.
        for part in text.split(","):
            if listed and "=" in part and ":" not in part:
                listed[-1] += f",{part}"
            else:
                listed.append(part)
    return list(dict.fromkeys(str(policy.parse(text)) for text in listed))


def _write(example: Counterexample, folder: Path | None) -> str | None:
    if folder is None:
        return None
    from monofuzz.counterexample import save

    path = folder / f"{example.id}.json"
    save(example, path)
    return str(path)


def _show(result: Hunt, claims: tuple[Claim, ...], listed: list[Any]) -> None:
    screen = console.out()
    screen.print(
        f"[bold]{escape(result.policy)}[/][dim], {units.plural(result.graphs, 'graph')} in "
        f"{units.seconds(result.seconds)}[/]"
    )
    for _, example, which, file in listed:
        where = f"  [dim]{escape(file)}[/]" if file else ""
        text = escape(str(example).partition(": ")[2])
        screen.print(f"  {example.claim:<11}  {which:<8}  {text}{where}")
    for claim in claims:
        if claim not in result.smallest:
            sizes = ", ".join(f"{n:,} of {size}" for size, n in sorted(result.searched.items()))
            screen.print(f"  {claim:<11}  nothing found; graphs by operators: {sizes}")
