"""A map drawn into axes: overhead against budget, and where it breaks.

A map may have one regime or a hundred thousand. Up to a few regimes a pixel column it is drawn as
it is, as steps; beyond that each column shows the band between the least and the greatest overhead
in it. What matters most is never lost: holes, thrashed regimes and gaps narrower than a column are
drawn as wide as one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from monofuzz.report.palette import LIGHT
from monofuzz.search.verdict import holes as find_holes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from monofuzz.search.regimes import Map
    from monofuzz.search.verdict import ThrashAs

    Floats = NDArray[np.float64]
    Spans = list[tuple[float, float]]

__all__ = ["COLUMNS", "Regimes", "draw", "label_axes"]

COLUMNS = 1200
_NARROWEST = 2.0  # columns: what stays visible on paper
_TICK_STEPS = (1, 2, 2.5, 5, 10)
_LOGARITHMIC_FROM = 4.0  # ratio of greatest to least overhead


@dataclass(frozen=True)
class Regimes:
    """The regimes as arrays, budgets in units of the axis."""

    lo: Floats
    hi: Floats
    overhead: Floats
    status: NDArray[np.str_]

    @classmethod
    def of(cls, found: Map, scale: int) -> Regimes:
        table = found.table
        return cls(
            lo=table["lo"] / scale,
            hi=table["hi"] / scale,
            overhead=table["overhead"].astype(np.float64),
            status=np.array(found.STATUSES)[table["status"]],
        )

    def spans(self, status: str) -> Spans:
        chosen = self.status == status
        return list(zip(self.lo[chosen].tolist(), self.hi[chosen].tolist(), strict=True))

    @property
    def costs(self) -> tuple[float, float] | None:
        """The least and the greatest overhead of what runs; None if nothing does."""
        if not self.ok.any():
            return None
        overhead = self.overhead[self.ok]
        return float(overhead.min()), float(overhead.max())

    @property
    def ok(self) -> NDArray[np.bool_]:
        ok: NDArray[np.bool_] = self.status == "ok"
        return ok


def draw(
    axes: Axes,
    found: Map,
    *,
    window: tuple[float, float] | None = None,
    costs: tuple[float, float] | None = None,
    thrash_as: ThrashAs = "own",
    columns: int = COLUMNS,
) -> None:
    """Draw a map into axes, budgets as shares of the peak (or as they are, without one).

    ``window`` is the range of budgets to show in these units, ``costs`` the least and the greatest
    overhead that the axis is for; by default those of the map. ``columns``: how many of them the
    width can tell apart.
    """
    scale = found.peak or 1
    left, right = window or (found.between[0] / scale, found.between[1] / scale)
    regimes = Regimes.of(found, scale)
    axes.set_xlim(left, right)
    _scale_overheads(axes, costs or regimes.costs)
    if regimes.ok.any():
        _draw_overhead(axes, regimes, columns)
    _draw_spans(axes, regimes, found, scale, thrash_as, columns)


def _scale_overheads(axes: Axes, costs: tuple[float, float] | None) -> None:
    if costs is None:
        axes.set_ylim(0.9, 2.0)
        return
    least, greatest = costs
    if 0 < least * _LOGARITHMIC_FROM <= greatest:
        axes.set_yscale("log")
        axes.set_ylim(least * 0.9, greatest * 1.25)
        _plain_log_ticks(axes)
    else:
        room = max(greatest - least, 0.1 * greatest)
        spare = (room - (greatest - least)) / 2
        axes.set_ylim(least - spare - 0.1 * room, greatest + spare + 0.15 * room)


def _draw_overhead(axes: Axes, regimes: Regimes, columns: int) -> None:
    left, right = axes.get_xlim()
    ok = regimes.ok
    lo, hi, overhead = regimes.lo[ok], regimes.hi[ok], regimes.overhead[ok]
    if len(lo) <= 2 * columns:
        x, y = _steps(lo, hi, overhead)
        axes.plot(
            x,
            y,
            color=LIGHT["ok"],
            lw=1.3,
            solid_capstyle="butt",
            solid_joinstyle="miter",
            label="runs",
        )
        lonely = _lonely(lo, hi, (right - left) * _NARROWEST / columns)
        axes.plot(lo[lonely], overhead[lonely], ".", color=LIGHT["ok"], markersize=3.0)
    else:
        edges, low, high = _columns(lo, hi, overhead, left, right, columns)
        axes.fill_between(
            edges,
            np.append(low, low[-1]),
            np.append(high, high[-1]),
            step="post",
            facecolor=LIGHT["ok"],
            edgecolor=LIGHT["ok"],
            linewidth=0.8,
            label="runs (least to greatest overhead)",
        )


def _steps(lo: Floats, hi: Floats, overhead: Floats) -> tuple[Floats, Floats]:
    """A line along the steps that breaks where the regimes do."""
    x = np.column_stack([lo, hi, hi]).ravel()
    y = np.column_stack([overhead, overhead, overhead]).ravel()
    # Between neighbours the third point repeats the second; elsewhere it lifts the pen.
    apart = np.append(lo[1:] != hi[:-1], False)
    y[2::3][apart] = np.nan
    return x, y


def _lonely(lo: Floats, hi: Floats, narrowest: float) -> NDArray[np.bool_]:
    """Regimes too narrow to be seen that no neighbour touches: single samples, mostly."""
    apart = np.concatenate([[True], lo[1:] != hi[:-1], [True]])
    lonely: NDArray[np.bool_] = apart[:-1] & apart[1:] & (hi - lo < narrowest)
    return lonely


def _columns(
    lo: Floats, hi: Floats, overhead: Floats, left: float, right: float, columns: int
) -> tuple[Floats, Floats, Floats]:
    """Column edges, and the least and greatest overhead within each (nan: none)."""
    edges = np.linspace(left, right, columns + 1)
    low, high = np.full(columns, np.inf), np.full(columns, -np.inf)
    first = np.clip(np.searchsorted(edges, lo, side="right") - 1, 0, columns - 1)
    last = np.clip(np.searchsorted(edges, hi, side="left") - 1, first, columns - 1)
    for column in (first, last):
        np.minimum.at(low, column, overhead)
        np.maximum.at(high, column, overhead)
    for index in np.flatnonzero(last > first + 1):
        inner = slice(first[index] + 1, last[index])
        low[inner] = np.minimum(low[inner], overhead[index])
        high[inner] = np.maximum(high[inner], overhead[index])
    empty = np.isinf(low)
    low[empty] = high[empty] = np.nan
    return edges, low, high


def _draw_spans(
    axes: Axes, regimes: Regimes, found: Map, scale: int, thrash_as: ThrashAs, columns: int
) -> None:
    left, right = axes.get_xlim()
    narrowest = (right - left) * _NARROWEST / columns
    holes = [(hole.lo / scale, hole.hi / scale) for hole in find_holes(found, thrash_as=thrash_as)]
    gaps = [(lo / scale, hi / scale) for lo, hi in found.gaps]
    below = _below_feasible(regimes)
    _shade(axes, below, "too little memory", facecolor=LIGHT["oom"], alpha=0.28)
    _shade(
        axes,
        _widened(holes, narrowest),
        "hole: fails, less suffices",
        facecolor=LIGHT["hole"],
        alpha=0.5,
    )
    _mark(axes, holes, "v", LIGHT["hole"], columns)
    thrashed = _widened(regimes.spans("thrashed"), narrowest)
    _shade(axes, thrashed, "thrashes", facecolor=LIGHT["thrashed"], alpha=0.45)
    _mark(axes, regimes.spans("thrashed"), "x", LIGHT["thrashed"], columns)
    timeouts = _widened(regimes.spans("timeout"), narrowest)
    _shade(axes, timeouts, "timeout", facecolor=LIGHT["timeout"], alpha=0.45)
    unexplored = _widened(gaps, narrowest)
    _shade(
        axes,
        unexplored,
        "unexplored",
        facecolor="none",
        edgecolor=LIGHT["gap"],
        hatch="/////",
        lw=0,
    )
    if not regimes.ok.any():
        _say(axes, "no feasible budget was found in this range")


def _below_feasible(regimes: Regimes) -> Spans:
    """Where memory runs out below the first feasible budget."""
    ok = np.flatnonzero(regimes.ok)
    first = ok[0] if len(ok) else len(regimes.lo)
    failing = np.flatnonzero(regimes.status[:first] == "oom")
    pairs = zip(regimes.lo[failing].tolist(), regimes.hi[failing].tolist(), strict=True)
    return _joined(list(pairs))


def _widened(spans: Spans, narrowest: float) -> Spans:
    wide = []
    for lo, hi in spans:
        lacking = max(narrowest - (hi - lo), 0.0) / 2
        wide.append((lo - lacking, hi + lacking))
    return _joined(wide)


def _joined(spans: Spans) -> Spans:
    joined: Spans = []
    for lo, hi in sorted(spans):
        if joined and lo <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(hi, joined[-1][1]))
        else:
            joined.append((lo, hi))
    return joined


def _shade(axes: Axes, spans: Iterable[tuple[float, float]], label: str, **look: Any) -> None:
    look.setdefault("linewidth", look.pop("lw", 0))
    for number, (lo, hi) in enumerate(spans):
        axes.axvspan(lo, hi, label=label if number == 0 else None, zorder=0.5, **look)


def _mark(axes: Axes, spans: Spans, marker: str, colour: str, columns: int) -> None:
    """One mark over each span (or over each crowd of them), so that thin ones are found."""
    left, right = axes.get_xlim()
    crowds = _widened(spans, (right - left) * 9.6 / columns)
    middles = [(lo + hi) / 2 for lo, hi in crowds]
    axes.plot(
        middles,
        [1.0] * len(middles),
        marker,
        transform=axes.get_xaxis_transform(),
        color=colour,
        markersize=4.5,
        clip_on=False,
        zorder=5,
    )


def _say(axes: Axes, text: str) -> None:
    axes.text(
        0.5,
        0.5,
        text,
        transform=axes.transAxes,
        ha="center",
        va="center",
        color=LIGHT["text"],
        zorder=6,
    )


def _plain_log_ticks(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    low, high = axes.get_ylim()
    crowded = high / low > 30
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if crowded else (1, 1.5, 2, 3, 5, 7)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())


def label_axes(axes: Axes, peak: int | None) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set_ylabel("overhead (\N{MULTIPLICATION SIGN} model compute)")
    axes.grid(axis="y", color="#E4E4E4", lw=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.spines["right"].set_visible(False)
    plain = FuncFormatter(lambda value, _: f"{value:.10g}")
    axes.xaxis.set_major_locator(MaxNLocator(11, steps=_TICK_STEPS))
    axes.xaxis.set_major_formatter(plain)
    # Systems without a peak count in units of their own.
    if not peak:
        axes.set_xlabel("budget")
        return
    axes.set_xlabel("budget, as a share of the unconstrained peak")
    unit, name = _unit(axes.get_xlim()[1] * peak)
    scale = peak / unit

    def to_bytes(share: Any) -> Any:
        return share * scale

    def to_share(size: Any) -> Any:
        return size / scale

    top = axes.secondary_xaxis("top", functions=(to_bytes, to_share))
    top.set_xlabel(f"budget ({name})", fontsize=8.0, color=LIGHT["faint"])
    top.tick_params(labelsize=8.0)
    top.xaxis.set_major_locator(MaxNLocator(9, steps=_TICK_STEPS))
    top.xaxis.set_major_formatter(plain)


def _unit(largest: float) -> tuple[int, str]:
    for power, name in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if largest >= 1024**power:
            return 1024**power, name
    return 1, "bytes"
