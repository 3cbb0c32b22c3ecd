"""Arguments and options that several commands share, each defined once."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

Command = TypeVar("Command", bound="Callable[..., Any] | click.Command")

CLAIMS = ("feasibility", "cost")

_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|sec|min|m|h)?", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_LARGEST_ALIGNMENT = 2**30


def limit(text: str) -> float | None:
    """A compute limit as a multiple of the model's own compute; None for ``none``."""
    if text.strip().lower() == "none":
        return None
    factor = _number(text.strip().removesuffix("x"))
    if factor is None or factor < 1:
        raise click.BadParameter(f"{text!r} is neither a number from 1 on (such as 60) nor 'none'.")
    return factor


def duration(text: str) -> float:
    """A length of time in seconds: ``90``, ``90s``, ``10min``, ``1.5h``."""
    match = _DURATION.fullmatch(text.strip())
    length = float(match[1]) * _SECONDS[(match[2] or "s").lower()] if match else 0.0
    if not 0 < length < math.inf:
        raise click.BadParameter(f"{text!r} is not a length of time such as 90s, 10min or 2h.")
    return length


def share(text: str) -> float:
    """A relative tolerance: a number from 0 on, or a percentage."""
    number = _number(text)
    if text.endswith("%"):
        percentage = _number(text[:-1])
        number = None if percentage is None else percentage / 100
    if number is None or number < 0:
        raise click.BadParameter(f"{text!r} is neither a number from 0 on nor a percentage.")
    return number


def factor(text: str) -> float:
    """How many times dearer makes a cliff: a number above 1."""
    number = _number(text.removesuffix("x"))
    if number is None or number <= 1:
        raise click.BadParameter(f"{text!r} is not a number above 1, such as 1.25.")
    return number


def policy_text(text: str) -> str:
    """A policy, checked, in its canonical form."""
    from monofuzz.replay.policy import parse

    return str(parse(text))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _several(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


trace = click.argument("trace", metavar="TRACE")
traces = click.argument("traces", metavar="TRACE...", nargs=-1, required=True)

policy = click.option(
    "-p",
    "--policy",
    type=policy_text,
    metavar="POLICY",
    required=True,
    help="What to evict: name[:key=value,...], such as dtr or nbhd-penalty:b=0.5.",
)
policies = click.option(
    "-p",
    "--policy",
    "policies",
    type=policy_text,
    metavar="POLICY",
    multiple=True,
    help="What to evict: name[:key=value,...]; may be given several times.",
)
between = click.option(
    "--between",
    metavar="LO HI",
    nargs=2,
    default=("0.05", "1.0"),
    help="Budgets LO <= b < HI: 0.1 or 10% of the peak, 2.5GiB, or plain bytes."
    "  [default: 0.05 1.0]",
)
as_json = click.option(
    "--json", "as_json", is_flag=True, help="Write JSON to standard output, for scripts."
)
engine = click.option(
    "--engine",
    type=click.Choice(["compiled", "interpreted"]),
    default="compiled",
    show_default=True,
    help="Both run the same source; interpreted needs no compiler and is far slower.",
)

claims = click.option(
    "--claim",
    type=click.Choice([*CLAIMS, "both"]),
    default="both",
    show_default=True,
    help="feasibility: more memory never makes it fail. cost: more memory never makes it slower.",
)
compute_limit = click.option(
    "--limit",
    type=limit,
    metavar="FACTOR|none",
    default="60",
    show_default=True,
    help="A run thrashes when it computes more than FACTOR times the model's compute.",
)
_timeout = click.option(
    "--timeout",
    type=duration,
    metavar="DURATION",
    help="Give a run up after this long; it is then undecided.",
)
_align = click.option(
    "--align",
    type=click.IntRange(1, _LARGEST_ALIGNMENT),
    metavar="N",
    help="Round tensor sizes up to multiples of N bytes, as allocators do (often 512).",
)
run_options = _several(compute_limit, _timeout, _align)

_jobs = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Threads to run on.  [default: one a core]",
)
_max_runs = click.option(
    "--max-runs", type=click.IntRange(min=1), metavar="N", help="Stop after N runs."
)
_time = click.option(
    "--time", "seconds", type=duration, metavar="DURATION", help="Stop after this long."
)
_tolerance = click.option(
    "--tolerance",
    type=share,
    metavar="SHARE",
    default="0",
    show_default=True,
    help="How much dearer a larger budget may be before the cost claim is refuted.",
)
_thrash_as = click.option(
    "--thrash-as",
    type=click.Choice(["own", "infeasible"]),
    default="own",
    show_default=True,
    help="Whether a run over the compute limit counts as a failure or leaves the claim undecided.",
)
search_options = _several(_jobs, _max_runs, _time, _tolerance, _thrash_as)
reading_options = _several(_tolerance, _thrash_as)
cliff_factor = click.option(
    "--factor",
    type=factor,
    metavar="FACTOR",
    default="1.25",
    show_default=True,
    help="How many times dearer the next regime must be to be called a cliff.",
)


def output_file(name: str, text: str) -> Callable[[Command], Command]:
    """An option that names a file to write."""
    return click.option(
        name, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help=text
    )
