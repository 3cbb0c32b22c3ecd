"""`monofuzz check` on tables of measurements: their options, and what people read."""

from __future__ import annotations

import io
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource
from rich.markup import escape

from monofuzz.cli import console, options, units
from monofuzz.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

    from monofuzz.search.verdict import Claim, ThrashAs
    from monofuzz.systems.curve import Measured

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class HowMeasured:
    """The options that only tables have."""

    alpha: float
    noise: float | None
    column: str | None
    rising: bool
    peak: str | None


_alpha = click.option(
    "--alpha",
    type=click.FloatRange(0, 0.5, min_open=True),
    metavar="P",
    default=0.05,
    show_default=True,
    help="Tables: how probable it may be that noise refutes a claim that holds.",
)
_noise = click.option(
    "--noise",
    type=options.share,
    metavar="SHARE",
    help="Tables: the relative noise of a run, if known (0: none).  [default: told from repeats]",
)
_column = click.option(
    "--column",
    metavar="NAME",
    help="Tables: the column of costs, if its name does not say that it holds times.",
)
_rising = click.option(
    "--rising",
    is_flag=True,
    help="Tables: more of the costs is better, as of a throughput; they should rise.",
)
_peak = click.option(
    "--peak",
    metavar="SIZE",
    help="Tables: what ratios refer to, where some budgets are ratios and others bytes.",
)


def table_options(command: Any) -> Any:
    """Adds the options that only tables have."""
    for option in (_peak, _rising, _column, _noise, _alpha):
        command = option(command)
    return command


class _StandardInput(io.BytesIO):
    name = "<stdin>"


def split(sources: Sequence[str]) -> tuple[list[str | IO[bytes]], list[str | IO[bytes]]]:
    """The tables among the arguments, and the others; standard input becomes an open file."""
    from monofuzz.systems.measured import recognises

    tables: list[str | IO[bytes]] = []
    others: list[str | IO[bytes]] = []
    for source in sources:
        if source == "-":
            data = sys.stdin.buffer.read()
            (tables if recognises(data) else others).append(_StandardInput(data))
        else:
            (tables if os.path.isfile(source) and recognises(source) else others).append(source)
    return tables, others


def refuse_given(ctx: click.Context, names: Sequence[str], why: str) -> None:
    """Raise `UsageError` if any of the options was given, since it would do nothing."""
    for parameter in ctx.command.params:
        if (
            parameter.name in names
            and ctx.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
        ):
            raise UsageError(f"{parameter.opts[-1]} {why}")


def refuse_for_lack_of_a_policy(source: str | IO[bytes]) -> NoReturn:
    """Raise `UsageError`: this is no table, and a trace needs a policy."""
    name = source if isinstance(source, str) else source.name
    why = "its first line names no column 'budget'"
    if isinstance(source, str) and not os.path.isfile(source):
        why = "there is no such file"
    elif isinstance(source, str) and not os.path.getsize(source):
        why = "it is empty"
    raise UsageError(
        f"{name} is no table of measurements ({why}), and a trace needs a policy: --policy"
    )


def check(
    table: str | IO[bytes],
    claims: tuple[Claim, ...],
    how: HowMeasured,
    *,
    tolerance: float,
    thrash_as: ThrashAs,
) -> list[Measured]:
    """The verdicts on a table."""
    from monofuzz.systems.curve import check_measured

    return check_measured(
        table,
        claims=claims,
        alpha=how.alpha,
        tolerance=tolerance,
        thrash_as=thrash_as,
        noise=how.noise,
        column=how.column,
        rising=how.rising,
        peak=how.peak,
    )


def show(found: list[Measured]) -> None:
    """Verdicts, what else was found, and what to measure next."""
    out = console.out()
    first = found[0]
    work = f"{units.plural(first.runs, 'run')} at {units.plural(first.budgets, 'budget')}"
    out.print(f"[bold]{escape(first.table)}[/][dim], {work}[/]")
    for one in found:
        out.print(f"  {one.claim:<11}  {console.verdict(one.verdict)}: {escape(one.reason)}")
        more = one.found - 1
        for inversion in one.inversions[1 : 1 + _SHOWN]:
            out.print(f"  {'':<11}  [dim]also[/] {escape(str(inversion))}")
        if more > _SHOWN:
            left = units.plural(more - _SHOWN, "further pair")
            out.print(f"  {'':<11}  [dim]and {left} of budgets[/]")
        for repeat in one.repeats:
            out.print(f"  {'':<11}  [dim]next:[/] {escape(str(repeat))}")
    if first.flaky:
        shown = ", ".join(str(point) for point in first.flaky[:_SHOWN])
        more = len(first.flaky) - _SHOWN
        left = f" and {units.plural(more, 'budget')} more" if more > 0 else ""
        out.print(f"  {'flaky':<11}  {escape(shown)}{left}")
