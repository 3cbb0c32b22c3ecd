"""Figures of maps: one map large, or several beside each other on the same scales."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monofuzz.errors import UsageError
from monofuzz.report.drawing import Regimes, draw, label_axes
from monofuzz.report.palette import LIGHT
from monofuzz.search.verdict import CLAIMS
from monofuzz.trace.files import write_atomically

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from types import ModuleType

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from monofuzz.search.regimes import Map
    from monofuzz.search.verdict import ThrashAs

__all__ = ["FORMATS", "check_drawable", "plot_map", "plot_maps"]

FORMATS = ("png", "svg", "pdf")

_SIZE = (7.6, 4.0)  # inches: a text column of a paper, or the width of a README
_DPI = 200
_FRAME = {"left": 0.085, "right": 0.965, "bottom": 0.225, "top": 0.775}  # of the figure

_WIDEST = 11.0  # inches, of a figure of several maps
_PANEL = (2.9, 1.25)  # inches, of one of them
_LONE_PANEL = (6.6, 1.1)
_MARGINS = {"left": 0.75, "right": 0.25, "bottom": 0.95, "top": 0.4, "across": 0.36, "down": 0.4}
_ROW_LABEL = 0.25
_LEGEND = ("runs", "runs (least to greatest overhead)", "too little memory")
_PANEL_COLUMNS = 450

_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "text.color": LIGHT["text"],
    "axes.edgecolor": LIGHT["faint"],
    "axes.labelcolor": LIGHT["text"],
    "axes.linewidth": 0.7,
    "xtick.color": LIGHT["faint"],
    "ytick.color": LIGHT["faint"],
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
    with load_matplotlib().rc_context(_STYLE):
        _save(_figure(found, thrash_as, tolerance), Path(path))


def plot_maps(
    maps: Sequence[Map], path: str | os.PathLike[str], *, thrash_as: ThrashAs = "own"
) -> None:
    """Draw several maps into one file: policies below each other, traces side by side.

    All have the same axes: budgets as shares of each trace's peak, one scale of overheads. With
    only one policy or only one trace the maps stand below each other, so that budgets align. Two
    maps of one trace under one policy (of other sizes, say) stand in the order given. Formats
    and errors are those of `plot_map`.
    """
    if not maps:
        raise UsageError("there is no map to draw")
    if any(found.peak is None for found in maps) and any(found.peak for found in maps):
        raise UsageError(
            "maps with and without a peak have no common scale of budgets; draw them apart"
        )
    with load_matplotlib().rc_context(_STYLE):
        _save(_several(maps, thrash_as), Path(path))


def check_drawable(path: str | os.PathLike[str]) -> None:
    """Raise `UsageError` now for what `plot_map` would refuse after the work is done."""
    target = Path(path)
    _format_of(target)
    load_matplotlib()
    if not target.parent.is_dir():
        raise UsageError(f"cannot draw {target}: its folder does not exist")


def load_matplotlib() -> ModuleType:
    """The library; `UsageError` says what to install without it."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError as missing:
        raise UsageError(
            "drawing needs matplotlib, which is not installed: pip install 'monofuzz[plot]'"
        ) from missing
    return mpl


def _format_of(path: Path) -> str:
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        wanted = ", ".join(f".{name}" for name in FORMATS)
        raise UsageError(f"cannot draw {path.name!r}: its name must end in one of {wanted}")
    return kind


def _save(figure: Figure, target: Path) -> None:
    kind = _format_of(target)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=kind, dpi=_DPI, metadata=_METADATA[kind])
    write_atomically(target, drawn.getvalue())


def _new_figure(size: tuple[float, float]) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size)
    FigureCanvasAgg(figure)
    return figure


def _figure(found: Map, thrash_as: ThrashAs, tolerance: float) -> Figure:
    figure = _new_figure(_SIZE)
    axes = figure.add_subplot()
    figure.subplots_adjust(**_FRAME)
    draw(axes, found, thrash_as=thrash_as)
    label_axes(axes, found.peak)
    _draw_heading(figure, found, thrash_as, tolerance)
    _legend(figure, [axes], columns=6)
    return figure


def _several(maps: Sequence[Map], thrash_as: ThrashAs) -> Figure:
    traces = list(dict.fromkeys(found.origin.trace for found in maps))
    policies = list(dict.fromkeys(found.origin.policy for found in maps))
    places = {(found.origin.trace, found.origin.policy) for found in maps}
    grid = len(traces) > 1 and len(policies) > 1 and len(places) == len(maps)
    rows, columns = (len(policies), len(traces)) if grid else (len(maps), 1)
    label = _ROW_LABEL if grid else 0.0
    frame = _MARGINS
    wide, high = _PANEL if grid else _LONE_PANEL
    room = _WIDEST - frame["left"] - frame["right"] - label - (columns - 1) * frame["across"]
    wide = min(wide, room / columns)
    down = frame["down"] if not grid else frame["across"]
    width = frame["left"] + label + columns * wide + (columns - 1) * frame["across"]
    width += frame["right"]
    height = frame["top"] + rows * high + (rows - 1) * down + frame["bottom"]
    figure = _new_figure((width, height))
    window, costs = _common(maps)
    drawn = []
    for number, found in enumerate(maps):
        row = policies.index(found.origin.policy) if grid else number
        column = traces.index(found.origin.trace) if grid else 0
        left = (frame["left"] + label + column * (wide + frame["across"])) / width
        top = height - frame["top"] - row * (high + down)
        axes = figure.add_axes((left, (top - high) / height, wide / width, high / height))
        draw(
            axes,
            found,
            window=window,
            costs=costs,
            thrash_as=thrash_as,
            columns=round(_PANEL_COLUMNS * wide / _PANEL[0]),
        )
        _dress(axes, found, bottom=row == rows - 1, left=column == 0, titled=not grid)
        drawn.append(axes)
    if grid:
        for column, trace in enumerate(traces):
            x = (frame["left"] + label + column * (wide + frame["across"])) / width
            y = 1 - (frame["top"] - 0.18) / height
            figure.text(x, y, trace, fontsize=9.5, va="bottom", parse_math=False)
        for row, policy in enumerate(policies):
            middle = height - frame["top"] - row * (high + down) - high / 2
            figure.text(
                0.42 / width,
                middle / height,
                policy,
                fontsize=9.5,
                rotation=90,
                va="center",
                ha="center",
                parse_math=False,
            )
    shares = "budget, as a share of the peak" if maps[0].peak else "budget"
    middle = (frame["left"] + label + width - frame["right"]) / 2 / width
    figure.text(middle, 0.55 / height, shares, ha="center", va="center")
    middle = (height - frame["top"] + frame["bottom"]) / 2 / height
    cost = "overhead (\N{MULTIPLICATION SIGN} model compute)"
    figure.text(0.15 / width, middle, cost, rotation=90, ha="center", va="center")
    _legend(figure, drawn, columns=int(width / 1.9))
    return figure


def _common(maps: Sequence[Map]) -> tuple[tuple[float, float], tuple[float, float] | None]:
    """The range of budgets and of overheads that holds all maps."""
    scales = [found.peak or 1 for found in maps]
    left = min(found.between[0] / scale for found, scale in zip(maps, scales, strict=True))
    right = max(found.between[1] / scale for found, scale in zip(maps, scales, strict=True))
    costs = [Regimes.of(found, 1).costs for found in maps]
    known = [pair for pair in costs if pair is not None]
    if not known:
        return (left, right), None
    return (left, right), (min(low for low, _ in known), max(high for _, high in known))


def _dress(axes: Axes, found: Map, *, bottom: bool, left: bool, titled: bool) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.grid(axis="y", color=LIGHT["grid"], lw=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["right", "top"]].set_visible(False)
    axes.tick_params(labelsize=8.0, labelbottom=bottom, labelleft=left)
    axes.xaxis.set_major_locator(MaxNLocator(5 if not titled else 11, steps=(1, 2, 2.5, 5, 10)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.10g}"))
    if titled:
        axes.set_title(_name(found), loc="left", fontsize=9.0, pad=7.0, parse_math=False)


def _legend(figure: Figure, drawn: Sequence[Axes], *, columns: int) -> None:
    entries: dict[str, Any] = {}
    for axes in drawn:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if len(drawn) > 1 and _LEGEND[1] in entries:
        entries.pop(_LEGEND[0], None)
    order = sorted(entries, key=lambda label: (label not in _LEGEND, label))
    if len(drawn) > 1:
        entries = {label: entries[label] for label in order}
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="lower center",
        ncols=columns,
        frameon=False,
        handlelength=1.5,
        columnspacing=1.4,
        fontsize=8.0,
    )


def _name(found: Map) -> str:
    name, policy = found.origin.trace, found.origin.policy
    return f"{name} under {policy}" if policy else name


def _draw_heading(figure: Figure, found: Map, thrash_as: ThrashAs, tolerance: float) -> None:
    count = len(found.table)
    facts = [
        f"{claim} {found.verdict(claim, thrash_as=thrash_as, tolerance=tolerance).verdict}"
        for claim in CLAIMS
    ]
    facts.append("certified" if found.certified else f"{_share(found.covered)} of the range known")
    facts.append(f"{count:,} regime{'' if count == 1 else 's'}")
    left = _FRAME["left"]
    figure.text(left, 0.985, _name(found), va="top", fontsize=11.0, parse_math=False)
    second_line = " \N{MIDDLE DOT} ".join(facts)
    figure.text(left, 0.925, second_line, va="top", fontsize=8.5, color=LIGHT["faint"])


def _share(covered: float) -> str:
    # What is not all is never shown as all, nor what is something as nothing.
    return "100%" if covered == 1 else f"{min(max(covered, 0.0001), 0.9999):.2%}"
