"""Maps, as people read them: what breaks first, then what that means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from rich.markup import escape
from rich.table import Table

from monofuzz.cli import console, units
from monofuzz.search import verdict as verdicts

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from monofuzz.search.regimes import Map
    from monofuzz.search.verdict import Cliff, Hole, ThrashAs, Verdict

_Item = TypeVar("_Item", "Hole", "Cliff")

_SHOWN = 12


@dataclass(frozen=True)
class Reading:
    """The options that decide what a map is read as."""

    thrash_as: ThrashAs = "own"
    tolerance: float = 0.0
    factor: float = verdicts.CLIFF_FACTOR


def show_map(out: Console, found: Map, reading: Reading, *, regimes: bool = False) -> None:
    """Holes and cliffs, then the proof and the verdicts; every regime only if asked for."""
    _show_what(out, found)
    _show_holes(out, found, verdicts.holes(found, thrash_as=reading.thrash_as))
    _show_cliffs(out, found, verdicts.cliffs(found, factor=reading.factor), reading.factor)
    if regimes:
        _show_regimes(out, found)
    _show_summary(out, found, reading)


def table(*columns: str) -> Table:
    """A table without lines; columns are right-aligned unless their name starts with ``<``."""
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        left = column.startswith("<")
        made.add_column(column.removeprefix("<"), justify="left" if left else "right", no_wrap=True)
    return made


def cells(budget: int, peak: int | None) -> tuple[str, str]:
    """A budget as a share of the peak, and to the byte."""
    return units.ratio(budget, peak), units.exact(budget)


def overhead(status: str, value: float, limit: float | None) -> str:
    """An overhead, as far as a run that ended so has one."""
    if status == "ok":
        return units.factor(value)
    return f"> {limit:g}x" if status == "thrashed" and limit is not None else "-"


def sentence(verdict: Verdict, peak: int | None) -> str:
    """A verdict in words, with its two budgets if it has a witness."""
    name = console.verdict(verdict.verdict)
    witness = verdict.witness
    if witness is None:
        return f"{name}, {escape(verdict.reason)}"
    low, high = witness.below, witness.above
    more = f"{units.size(high.budget - low.budget)} more"
    if verdict.claim == "feasibility":
        fails = "out of memory" if high.status == "oom" else "thrashes"
        return f"{name}: runs with {_exactly(low.budget, peak)}, {fails} with {more}"
    return (
        f"{name}: {units.factor(low.overhead)} with {_exactly(low.budget, peak)}, "
        f"{units.factor(high.overhead)} with {more}"
    )


def _exactly(budget: int, peak: int | None) -> str:
    share = f" ({units.ratio(budget, peak)})" if peak else ""
    return f"{units.exact(budget)} bytes{share}"


def _show_what(out: Console, found: Map) -> None:
    origin, (lo, hi) = found.origin, found.between
    under = f" under [bold]{escape(origin.policy)}[/]" if origin.policy else ""
    out.print(f"[bold]{escape(origin.trace)}[/]{under}")
    facts = []
    if found.peak:
        facts.append(f"peak {units.both(found.peak)}")
    shares = f" ({lo / found.peak:.6g} to {hi / found.peak:.6g})" if found.peak else ""
    facts.append(f"budgets {units.size(lo)} to {units.size(hi)}{shares}")
    if origin.limit is not None:
        facts.append(f"compute limit {origin.limit:g}x")
    if origin.align is not None:
        facts.append(f"sizes rounded up to {units.size(origin.align)}")
    out.print("[dim]" + ", ".join(facts) + "[/]")


def _show_holes(out: Console, found: Map, holes: list[Hole]) -> None:
    out.print()
    if not holes:
        out.print("[bold]No holes[/]: no failing budget is known above a feasible one")
        return
    shown = _largest(holes, lambda hole: hole.bytes)
    out.print(
        f"[bold red]{units.plural(len(holes), 'hole')}[/]: the step fails "
        f"with more memory than it can run in{_selection(len(shown), len(holes), 'widest')}"
    )
    rows = table("from", "bytes", "", "to", "below bytes", "width", "<")
    for hole in shown:
        rows.add_row(
            *cells(hole.lo, found.peak),
            units.size(hole.lo),
            *cells(hole.hi, found.peak),
            units.size(hole.hi - hole.lo),
            _hole_remark(hole),
        )
    out.print(rows)


def _hole_remark(hole: Hole) -> str:
    remarks = []
    if hole.open:
        remarks.append("no feasible budget known above")
    if not hole.exact_lo or not hole.exact_hi:
        remarks.append("may reach further")
    if hole.unknown:
        remarks.append(f"{units.size(hole.unknown)} of it unexplored")
    return f"[dim]{', '.join(remarks)}[/]" if remarks else ""


def _show_cliffs(out: Console, found: Map, cliffs: list[Cliff], factor: float) -> None:
    out.print()
    if not cliffs:
        out.print(
            f"[bold]No cliffs[/]: the overhead never rises by more than {factor:g}x in one step"
        )
        return
    shown = _largest(cliffs, lambda cliff: cliff.factor)
    out.print(
        f"[bold red]{units.plural(len(cliffs), 'cliff')}[/]: one byte more makes the step more "
        f"than {factor:g}x slower{_selection(len(shown), len(cliffs), 'steepest')}"
    )
    rows = table("at", "bytes", "", "overhead", "rises to", "factor", "<")
    for cliff in shown:
        rows.add_row(
            *cells(cliff.at, found.peak),
            units.size(cliff.at),
            units.factor(cliff.below),
            units.factor(cliff.above),
            units.factor(cliff.factor),
            "" if cliff.exact else f"[dim]somewhere in the {units.size(cliff.gap)} below[/]",
        )
    out.print(rows)


def _show_regimes(out: Console, found: Map) -> None:
    out.print()
    out.print("[bold]All regimes[/]")
    rows = table("from", "bytes", "below bytes", "<status", "overhead", "evictions", "remats")
    for regime in found.regimes:
        rows.add_row(
            *cells(regime.lo, found.peak),
            units.exact(regime.hi),
            console.status(regime.status),
            overhead(regime.status, regime.overhead, found.origin.limit),
            units.exact(regime.evictions),
            units.exact(regime.remats),
        )
    out.print(rows)


def _show_summary(out: Console, found: Map, reading: Reading) -> None:
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_column(no_wrap=True)
    rows.add_column()
    first = _first_feasible(found)
    rows.add_row(
        "feasible from",
        _exactly(first, found.peak) if first is not None else "no budget in this range",
    )
    for claim in verdicts.CLAIMS:
        verdict = found.verdict(claim, thrash_as=reading.thrash_as, tolerance=reading.tolerance)
        rows.add_row(claim, sentence(verdict, found.peak))
    rows.add_row("proof", _proof(found))
    out.print()
    out.print(rows)


def _proof(found: Map) -> str:
    count, runs = units.plural(len(found.table), "regime"), units.plural(found.runs, "run")
    work = f"{count} from {runs}"
    if found.seconds:
        work += f" in {units.seconds(found.seconds)}"
    if found.certified:
        budgets = units.exact(found.between[1] - found.between[0])
        return f"[bold green]certified[/]: exact for each of the {budgets} budgets; {work}"
    known = f"{units.percent(found.covered)} of the range is known"
    if found.sampled:
        return f"[bold yellow]sampled[/]: each run speaks for one budget only; {known}; {work}"
    gaps = units.plural(len(found.gaps), "gap")
    return f"[bold yellow]not certified[/]: {known}, {gaps} left; {work}"


def _first_feasible(found: Map) -> int | None:
    feasible = found.table["lo"][found.table["status"] == found.STATUSES.index("ok")]
    return int(feasible[0]) if len(feasible) else None


def _largest(items: list[_Item], size: Callable[[_Item], float]) -> list[_Item]:
    """The largest items that are shown, still in the order of their budgets."""
    kept = sorted(range(len(items)), key=lambda i: size(items[i]), reverse=True)[:_SHOWN]
    return [items[i] for i in sorted(kept)]


def _selection(shown: int, there_are: int, which: str) -> str:
    return f" [dim](the {shown} {which}; --json has all)[/]" if shown < there_are else ""
