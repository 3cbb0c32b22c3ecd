"""The picture of a map: overhead against budget, and where it breaks.

A map may have one regime or a hundred thousand. Up to a few regimes a pixel column it is drawn as
it is, as steps; beyond that each column shows the band between the least and the greatest overhead
in it. What matters most is never lost: holes, thrashed regimes and gaps narrower than a column are
drawn as wide as one.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from monofuzz.errors import UsageError
from monofuzz.search.verdict import CLAIMS
from monofuzz.search.verdict import holes as find_holes
from monofuzz.trace.files import write_atomically

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable
    from types import ModuleType

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from monofuzz.search.regimes import Map
    from monofuzz.search.verdict import ThrashAs

    Floats = NDArray[np.float64]
    Spans = list[tuple[float, float]]

FORMATS = ("png", "svg", "pdf")

_SIZE = (7.6, 4.0)  # inches: a text column of a paper, or the width of a README
_DPI = 200
_FRAME = {"left": 0.085, "right": 0.965, "bottom": 0.225, "top": 0.775}  # of the figure
_COLUMNS = 1200
_NARROWEST = 2.0 / _COLUMNS  # of the width: what stays visible on paper
_TICK_STEPS = (1, 2, 2.5, 5, 10)
_LOGARITHMIC_FROM = 4.0  # ratio of greatest to least overhead

# Okabe and Ito's palette: told apart with any kind of colour vision, and in grey by its lightness.
_STEPS = "#0072B2"
_HOLE = "#D55E00"
_THRASHED = "#CC79A7"
_TIMEOUT = "#E69F00"
_INFEASIBLE = "#8A8A8A"
_GAP = "#CCCCCC"
_TEXT = "#222222"
_FAINT = "#666666"

_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "text.color": _TEXT,
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _TEXT,
    "axes.linewidth": 0.7,
    "xtick.color": _FAINT,
    "ytick.color": _FAINT,
    "hatch.linewidth": 0.5,
    "svg.hashsalt": "monofuzz",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "path.simplify": False,
}
# Dates would make two runs of one command differ.
_METADATA = {
    "png": {"Software": "monofuzz"},
    "svg": {"Creator": "monofuzz", "Date": None},
    "pdf": {"Creator": "monofuzz", "CreationDate": None},
}


def plot_map(
    found: Map,
    path: str | os.PathLike[str],
    *,
    thrash_as: ThrashAs = "own",
    tolerance: float = 0.0,
) -> None:
    """Draw a map into a file; the name's ending says the format: png, svg or pdf.

    ``thrash_as`` and ``tolerance`` are those of the map's verdicts, which the heading states. The
    same map gives the same bytes. Raises `UsageError` for another ending, and if matplotlib
    is not installed (it comes with the extra ``plot``).
    """
    target = Path(path)
    kind = _format_of(target)
    mpl = _load_matplotlib()
    figure = _figure(found, thrash_as, tolerance)
    drawn = io.BytesIO()
    with mpl.rc_context(_STYLE):
        figure.savefig(drawn, format=kind, dpi=_DPI, metadata=_METADATA[kind])
    write_atomically(target, drawn.getvalue())


def check_drawable(path: str | os.PathLike[str]) -> None:
    """Raise `UsageError` now for what `plot_map` would refuse after the work is done."""
    target = Path(path)
    _format_of(target)
    _load_matplotlib()
    if not target.parent.is_dir():
        raise UsageError(f"cannot draw {target}: its folder does not exist")


def _format_of(path: Path) -> str:
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        wanted = ", ".join(f".{name}" for name in FORMATS)
        raise UsageError(f"cannot draw {path.name!r}: its name must end in one of {wanted}")
    return kind


def _load_matplotlib() -> ModuleType:
    try:
        import matplotlib as mpl
    except ModuleNotFoundError as missing:
        raise UsageError(
            "drawing needs matplotlib, which is not installed: pip install 'monofuzz[plot]'"
        ) from missing
    return mpl


@dataclass(frozen=True)
class _Regimes:
    """The regimes as arrays, budgets in units of the axis."""

    lo: Floats
    hi: Floats
    overhead: Floats
    status: NDArray[np.str_]

    @classmethod
    def of(cls, found: Map, scale: int) -> _Regimes:
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
    def ok(self) -> NDArray[np.bool_]:
        ok: NDArray[np.bool_] = self.status == "ok"
        return ok


def _figure(found: Map, thrash_as: ThrashAs, tolerance: float) -> Figure:
    mpl = _load_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    scale = found.peak or 1
    left, right = (edge / scale for edge in found.between)
    regimes = _Regimes.of(found, scale)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=_SIZE)
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        figure.subplots_adjust(**_FRAME)
        axes.set_xlim(left, right)
        _draw_overhead(axes, regimes, left, right)
        _draw_spans(axes, regimes, found, scale, thrash_as)
        _label_axes(axes, found.peak)
        _draw_heading(figure, found, thrash_as, tolerance)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            loc="lower center",
            ncols=6,
            frameon=False,
            handlelength=1.5,
            columnspacing=1.4,
            fontsize=8.0,
        )
    return figure


def _draw_overhead(axes: Axes, regimes: _Regimes, left: float, right: float) -> None:
    ok = regimes.ok
    if not ok.any():
        axes.set_ylim(0.9, 2.0)
        return
    lo, hi, overhead = regimes.lo[ok], regimes.hi[ok], regimes.overhead[ok]
    least, greatest = float(overhead.min()), float(overhead.max())
    if 0 < least * _LOGARITHMIC_FROM <= greatest:
        axes.set_yscale("log")
        axes.set_ylim(least * 0.9, greatest * 1.25)
        _plain_log_ticks(axes)
    else:
        room = max(greatest - least, 0.1 * greatest)
        spare = (room - (greatest - least)) / 2
        axes.set_ylim(least - spare - 0.1 * room, greatest + spare + 0.15 * room)
    if len(lo) <= 2 * _COLUMNS:
        x, y = _steps(lo, hi, overhead)
        axes.plot(
            x, y, color=_STEPS, lw=1.3, solid_capstyle="butt", solid_joinstyle="miter", label="runs"
        )
        lonely = _lonely(lo, hi, (right - left) * _NARROWEST)
        axes.plot(lo[lonely], overhead[lonely], ".", color=_STEPS, markersize=3.0)
    else:
        edges, low, high = _columns(lo, hi, overhead, left, right)
        axes.fill_between(
            edges,
            np.append(low, low[-1]),
            np.append(high, high[-1]),
            step="post",
            facecolor=_STEPS,
            edgecolor=_STEPS,
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
    lo: Floats, hi: Floats, overhead: Floats, left: float, right: float
) -> tuple[Floats, Floats, Floats]:
    """Column edges, and the least and greatest overhead within each (nan: none)."""
    edges = np.linspace(left, right, _COLUMNS + 1)
    low, high = np.full(_COLUMNS, np.inf), np.full(_COLUMNS, -np.inf)
    first = np.clip(np.searchsorted(edges, lo, side="right") - 1, 0, _COLUMNS - 1)
    last = np.clip(np.searchsorted(edges, hi, side="left") - 1, first, _COLUMNS - 1)
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


def _draw_spans(axes: Axes, regimes: _Regimes, found: Map, scale: int, thrash_as: ThrashAs) -> None:
    left, right = axes.get_xlim()
    narrowest = (right - left) * _NARROWEST
    holes = [(hole.lo / scale, hole.hi / scale) for hole in find_holes(found, thrash_as=thrash_as)]
    gaps = [(lo / scale, hi / scale) for lo, hi in found.gaps]
    below = _below_feasible(regimes)
    _shade(axes, below, "too little memory", facecolor=_INFEASIBLE, alpha=0.28)
    _shade(
        axes, _widened(holes, narrowest), "hole: fails, less suffices", facecolor=_HOLE, alpha=0.5
    )
    _mark(axes, holes, "v", _HOLE)
    thrashed = _widened(regimes.spans("thrashed"), narrowest)
    _shade(axes, thrashed, "thrashes", facecolor=_THRASHED, alpha=0.45)
    _mark(axes, regimes.spans("thrashed"), "x", _THRASHED)
    timeouts = _widened(regimes.spans("timeout"), narrowest)
    _shade(axes, timeouts, "timeout", facecolor=_TIMEOUT, alpha=0.45)
    unexplored = _widened(gaps, narrowest)
    _shade(axes, unexplored, "unexplored", facecolor="none", edgecolor=_GAP, hatch="/////", lw=0)
    if not regimes.ok.any():
        _say(axes, "no feasible budget was found in this range")


def _below_feasible(regimes: _Regimes) -> Spans:
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


def _mark(axes: Axes, spans: Spans, marker: str, colour: str) -> None:
    """One mark over each span (or over each crowd of them), so that thin ones are found."""
    left, right = axes.get_xlim()
    crowds = _widened(spans, (right - left) * 0.008)
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
        0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=_TEXT, zorder=6
    )


def _plain_log_ticks(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    low, high = axes.get_ylim()
    crowded = high / low > 30
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if crowded else (1, 1.5, 2, 3, 5, 7)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())


def _label_axes(axes: Axes, peak: int | None) -> None:
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
    top.set_xlabel(f"budget ({name})", fontsize=8.0, color=_FAINT)
    top.tick_params(labelsize=8.0)
    top.xaxis.set_major_locator(MaxNLocator(9, steps=_TICK_STEPS))
    top.xaxis.set_major_formatter(plain)


def _unit(largest: float) -> tuple[int, str]:
    for power, name in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if largest >= 1024**power:
            return 1024**power, name
    return 1, "bytes"


def _draw_heading(figure: Figure, found: Map, thrash_as: ThrashAs, tolerance: float) -> None:
    count = len(found.table)
    facts = [
        f"{claim} {found.verdict(claim, thrash_as=thrash_as, tolerance=tolerance).verdict}"
        for claim in CLAIMS
    ]
    facts.append("certified" if found.certified else f"{_share(found.covered)} of the range known")
    facts.append(f"{count:,} regime{'' if count == 1 else 's'}")
    name, policy = found.origin.trace, found.origin.policy
    heading = f"{name} under {policy}" if policy else name
    left = _FRAME["left"]
    figure.text(left, 0.985, heading, va="top", fontsize=11.0, parse_math=False)
    second_line = " \N{MIDDLE DOT} ".join(facts)
    figure.text(left, 0.925, second_line, va="top", fontsize=8.5, color=_FAINT)


def _share(covered: float) -> str:
    # What is not all is never shown as all, nor what is something as nothing.
    return "100%" if covered == 1 else f"{min(max(covered, 0.0001), 0.9999):.2%}"
