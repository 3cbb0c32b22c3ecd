"""The picture of a counterexample: its graph, and both runs below it on the same axis.

The axis is the schedule. Each step of it (an operator, a tensor released or kept) has as many
columns as either run has events in it, so that what stands in one column in both runs happened in
the same step. Memory is drawn as what is in it: one block a storage, as high as it is large.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from monofuzz.report.scene import POINT, Curve, Polygon, Rect, Scene, Text, text_width
from monofuzz.trace.model import COMPUTE, GET, PIN

if TYPE_CHECKING:
    from monofuzz.explain.timeline import Event, Timeline
    from monofuzz.report.story import Story

__all__ = ["DEFAULT_WIDTH", "draw", "shortened"]

DEFAULT_WIDTH: Final = 120.0
"""Millimetres: the text width of an article, to which a figure is also scaled down if need be."""

# Okabe and Ito's palette; in grey the fills are told apart by lightness, the marks by shape.
_INK = "#000000"
_FAINT = "#767676"
_HAIR = "#DADADA"
_LOCKED = "#0072B2"
_EVICTABLE = "#CFE8F8"
_EDGE = "#0072B2"
_AGAIN = "#F5C04A"
_AGAIN_EDGE = "#9A6700"
_GONE = "#D55E00"
_CONSTANT = "#E6E6E6"

_WIDEST, _NARROWEST = 8.0, 2.4  # of a column
_SIZES = (7, 6, 5)  # of letters in it; sizes that every TeX has
_NODE = 4.8  # height of an operator
_TITLE = 4.7
_PLOT = 21.0
_STRIP = 4.6
_LEGEND = 4.2
_ROW = 3.3


@dataclass
class _Step:
    """One step of the schedule, with the events of both runs in it.

    Of an event its index is kept, and that of the last one that is shown in the same column.
    ``operands``: an operator, or the tensors released together, or the one kept.
    """

    kind: str
    operands: list[int]
    least: float = 0.0
    events: tuple[list[tuple[int, int]], list[tuple[int, int]]] = field(
        default_factory=lambda: ([], [])
    )
    x: float = 0.0
    width: float = 0.0

    @property
    def columns(self) -> int:
        return max(len(self.events[0]), len(self.events[1]))

    @property
    def column(self) -> float:
        """The width of a column; that of the diagram, or more where there is room."""
        return self.width / max(self.columns, 1)

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


@dataclass
class _Column:
    """Where an event is drawn, and the event after which memory is shown."""

    x: float
    width: float
    mark: float
    event: int
    state: int


def draw(story: Story, *, width: float = DEFAULT_WIDTH, heading: bool = False) -> Scene:
    """The picture, ``width`` millimetres wide or less; more if its steps do not fit.

    ``heading``: with a line that says what it shows, for where no caption does.
    """
    return _Diagram(story, width, heading).scene


class _Diagram:
    def __init__(self, story: Story, width: float, heading: bool) -> None:
        self.story = story
        self.names = story.names
        self.size_unit = _unit([*story.sizes, *story.example.witness], _BYTES)
        self.cost_unit = _unit(story.trace.op_cost.tolist(), _TIMES)
        self.steps = _steps(story)
        for step in self.steps:
            step.least = self._least(step)
        self.left = self._margin()
        self._spread(width)
        right = self.steps[-1].x + self.steps[-1].width
        titles = max(self._title_width(run) for run in (story.low, story.high))
        if heading:
            titles = max(titles, text_width(story.summary, 8))
        self.scene = Scene(
            width=max(right, titles) + 0.6,
            height=0.0,
            title=f"Counterexample {story.example.id}",
            description=story.summary,
        )
        y = self._heading(0.0) if heading else 0.0
        y = self._graph(y)
        for side, run in enumerate((story.low, story.high)):
            y = self._run(y, side, run)
        y = self._legend(y + 0.4)
        self.scene.height = y
        self.scene.shapes.sort(key=lambda shape: isinstance(shape, Text))

    # Widths

    def _least(self, step: _Step) -> float:
        """How wide a step must be for what the graph shows of it."""
        if step.kind != "op":
            return max(self._mark_width(step) * len(_stacks(step.operands)) + 0.6, 3.2)
        cells = sum(self._cell(t) for t in self.story.trace.outputs(step.operands[0]))
        cost = text_width(self._cost_text(step.operands[0]), 7) + 1.0
        return max(cells, cost) + 1.4

    def _mark_width(self, step: _Step) -> float:
        return max(text_width(self.names.tensor(t), 7) for t in step.operands) + 0.9

    def _cell(self, tensor: int) -> float:
        name = text_width(self.names.tensor(tensor), 8) + 1.8
        return max(name, text_width(self._size_text(tensor), 7) + 1.0, 4.0)

    def _size_text(self, tensor: int) -> str:
        root = int(self.story.trace.tensor_root[tensor])
        if root != tensor:
            return f"={self.names.tensor(root)}"
        return _number(self.story.sizes[tensor], self.size_unit)

    def _cost_text(self, op: int) -> str:
        if self.story.trace.op_constant[op]:
            return "–"
        return _number(int(self.story.trace.op_cost[op]), self.cost_unit)

    def _margin(self) -> float:
        labels = [f"size ({self.size_unit[1]})", f"cost ({self.cost_unit[1]})"]
        ticks = [_number(run.outcome.budget, self.size_unit) for run in self._runs]
        wide = [text_width(label, 7) for label in labels]
        return max([*wide, *(text_width(tick, 7) + 1.2 for tick in ticks)]) + 1.6

    @functools.cached_property
    def _runs(self) -> tuple[Timeline, Timeline]:
        return self.story.low, self.story.high

    def _spread(self, width: float) -> None:
        """Give each step its place: columns as wide as the sheet allows, within reason."""
        room, trace = width - self.left - 0.6, self.story.trace

        def total(column: float) -> float:
            return sum(max(s.columns * column, s.least) for s in self.steps)

        letters = max(text_width(self.names.tensor(t), _SIZES[-1]) for t in range(trace.n_tensors))
        low, high = max(_NARROWEST, letters + 0.6), _WIDEST
        if total(high) <= room:
            low = high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if total(middle) <= room else (low, middle)
        self.column = low
        x = self.left
        for step in self.steps:
            step.x, step.width = x, max(step.columns * low, step.least)
            x += step.width

    # The graph

    def _heading(self, y: float) -> float:
        self.scene.add(Text(0, y + 3.2, self.story.summary, 8))
        return y + 6.0

    def _graph(self, y: float) -> float:
        trace, scene = self.story.trace, self.scene
        place: dict[int, float] = {}
        nodes: dict[int, tuple[float, float]] = {}
        for step in self.steps:
            if step.kind == "op":
                cells = [self._cell(t) for t in trace.outputs(step.operands[0])]
                x = step.middle - sum(cells) / 2
                nodes[step.operands[0]] = (x, sum(cells))
                for tensor, cell in zip(trace.outputs(step.operands[0]), cells, strict=True):
                    place[tensor] = x + cell / 2
                    x += cell
        arcs = self._arcs(nodes, place)
        highest = max((arc[2] for arc in arcs), default=0.0)
        line = y + highest + 0.8
        for start, end, height in arcs:
            self._arc(start, end, line, height)
        for step in self.steps:
            if step.kind == "op":
                self._node(step, nodes[step.operands[0]], place, line)
            else:
                self._mark(step, line)
        below = line + _NODE
        for label, row in ((f"size ({self.size_unit[1]})", 1), (f"cost ({self.cost_unit[1]})", 2)):
            scene.add(Text(0, below + row * _ROW - 0.5, label, 7, fill=_FAINT))
        return below + 2 * _ROW + 2.2

    def _arcs(
        self, nodes: dict[int, tuple[float, float]], place: dict[int, float]
    ) -> list[tuple[float, float, float]]:
        """Start, end and height of the arc of each argument."""
        trace = self.story.trace
        arcs = []
        for op, (x, wide) in nodes.items():
            # The nearest ends leftmost, so that arcs to one operator do not cross.
            arguments = sorted(trace.arguments(op).tolist(), key=lambda t: -place[t])
            apart = min(1.5, (wide - 1.0) / max(len(arguments), 1))
            for number, tensor in enumerate(arguments):
                end = x + wide / 2 + (number - (len(arguments) - 1) / 2) * apart
                start = place[tensor]
                height = min(1.6 + 0.16 * (end - start), 11.0)
                arcs.append((start, end, height))
        return arcs

    def _arc(self, start: float, end: float, y: float, height: float) -> None:
        rise = height * 4 / 3
        lean = min((end - start) * 0.22, 6.0)
        tip = y - 1.3
        self.scene.add(
            Curve(
                ((start, y), (start + lean, y - rise), (end - lean * 0.35, y - rise), (end, tip)),
                stroke=_FAINT,
                line=0.22,
            ),
            Polygon(((end - 0.5, y - 1.4), (end + 0.5, y - 1.4), (end, y - 0.15)), fill=_FAINT),
        )

    def _node(
        self, step: _Step, node: tuple[float, float], place: dict[int, float], y: float
    ) -> None:
        trace, scene = self.story.trace, self.scene
        x, wide = node
        fill = _CONSTANT if trace.op_constant[step.operands[0]] else "#FFFFFF"
        scene.add(Rect(x, y, wide, _NODE, fill, _INK, 0.25, radius=0.7))
        outputs = trace.outputs(step.operands[0])
        for tensor in outputs:
            middle = place[tensor]
            cell = self._cell(tensor)
            if tensor != outputs[-1]:
                edge = middle + cell / 2
                scene.add(Polygon(((edge, y), (edge, y + _NODE)), None, _INK, 0.15, closed=False))
            scene.add(
                Text(middle, y + 3.25, self.names.tensor(tensor), 8, "middle"),
                Text(middle, y + _NODE + _ROW - 0.5, self._size_text(tensor), 7, "middle"),
            )
        cost = self._cost_text(step.operands[0])
        scene.add(Text(x + wide / 2, y + _NODE + 2 * _ROW - 0.5, cost, 7, "middle"))

    def _mark(self, step: _Step, y: float) -> None:
        """Tensors that the step releases, crossed out, or keeps, underlined; stacked if many."""
        colour = _FAINT if step.kind == "release" else _INK
        stacks = _stacks(step.operands)
        wide = self._mark_width(step)
        for number, stack in enumerate(stacks):
            x = step.middle + (number - (len(stacks) - 1) / 2) * wide
            for row, tensor in enumerate(stack):
                name = self.names.tensor(tensor)
                self._named_mark(step.kind, name, x, y + 3.25 + row * _ROW, 7, colour)

    def _named_mark(self, kind: str, name: str, x: float, y: float, size: int, colour: str) -> None:
        half = text_width(name, size) / 2 + 0.25
        em = size * POINT
        self.scene.add(Text(x, y, name, size, "middle", colour))
        if kind == "release":
            ends = ((x - half, y + 0.04 * em), (x + half, y - 0.62 * em))
            self.scene.add(Polygon(ends, None, colour, 0.2, closed=False))
        elif kind == "keep":
            for below in (0.28, 0.46):
                ends = ((x - half, y + below * em), (x + half, y + below * em))
                self.scene.add(Polygon(ends, None, colour, 0.2, closed=False))

    # A run

    def _title(self, run: Timeline) -> tuple[str, str]:
        return f"{run.outcome.budget:,} bytes:", f" {self.story.told(run)}"

    def _title_width(self, run: Timeline) -> float:
        bold, plain = self._title(run)
        return text_width(bold, 8) * 1.08 + text_width(plain, 8)

    def _run(self, y: float, side: int, run: Timeline) -> float:
        bold, plain = self._title(run)
        self.scene.add(Text(0, y + 2.8, plain, 8, bold=bold))
        top, base = y + _TITLE, y + _TITLE + _PLOT
        columns = self._columns(side, run)
        for step in self.steps[1:]:
            edge = ((step.x, top), (step.x, base + _STRIP))
            self.scene.add(Polygon(edge, None, _HAIR, 0.12, closed=False))
        self._blocks(run, columns, base)
        last = run.events[-1]
        if last.kind == "fail":
            self._overflow(run, columns[-1], base)
        self._axes(run, top, base)
        for column in columns:
            event = run.events[column.event]
            if event.kind not in ("pin", "release"):
                self._glyph(event, column.mark, base + 0.55)
        self._parting(top, base + _STRIP)
        return base + _STRIP + 2.0

    @functools.cached_property
    def _scale(self) -> float:
        """Millimetres a byte."""
        most = [run.outcome.budget for run in self._runs]
        most += [
            run.events[-1].memory + run.outcome.fail.request
            for run in self._runs
            if run.outcome.fail is not None
        ]
        return _PLOT / (max(*most, 1) * 1.04)

    def _columns(self, side: int, run: Timeline) -> list[_Column]:
        """Nothing happens from the last event of a step to its end; what fails ends there."""
        starts = [
            (step.x + k * step.column, step.column, event, state)
            for step in self.steps
            for k, (event, state) in enumerate(step.events[side])
        ]
        ends = [x for x, _, _, _ in starts[1:]] + [self._right]
        columns = [
            _Column(x, end - x, x + wide / 2, event, state)
            for (x, wide, event, state), end in zip(starts, ends, strict=True)
        ]
        if run.events[-1].kind == "fail":
            columns[-1].width = starts[-1][1]
        return columns

    @property
    def _right(self) -> float:
        return self.steps[-1].x + self.steps[-1].width

    def _blocks(self, run: Timeline, columns: list[_Column], base: float) -> None:
        """What is in memory, one on the other in the order of coming; the same side by side is
        one block."""
        open_blocks: dict[int, tuple[float, float, bool]] = {}
        order: list[int] = []

        def close(storage: int, end: float) -> None:
            x, level, locked = open_blocks.pop(storage)
            self._block(storage, x, end, base - level * self._scale, locked)

        for column in columns:
            there, locked = run.resident(column.state + 1), run.locked(column.state)
            come = [s for e in run.events[: column.state + 1] for s in e.storages if s in there]
            order = [s for s in order if s in there]
            order += [s for s in dict.fromkeys(come) if s not in order]
            level = 0
            now: dict[int, tuple[float, bool]] = {}
            for storage in order:
                now[storage] = level, storage in locked
                level += self.story.sizes[storage]
            for storage, (_, *look) in list(open_blocks.items()):
                if storage not in now or list(now[storage]) != look:
                    close(storage, column.x)
            for storage, (level_of, is_locked) in now.items():
                open_blocks.setdefault(storage, (column.x, level_of, is_locked))
        for storage in list(open_blocks):
            close(storage, columns[-1].x + columns[-1].width)

    def _block(self, storage: int, x: float, end: float, bottom: float, locked: bool) -> None:
        height = self.story.sizes[storage] * self._scale
        if height <= 0:
            return
        fill, ink = (_LOCKED, "#FFFFFF") if locked else (_EVICTABLE, _INK)
        edge = "#FFFFFF" if locked else _EDGE
        wide = end - x
        self.scene.add(Rect(x, bottom - height, wide, height, fill, edge, min(0.15, height / 4)))
        name = self.names.tensor(storage)
        size = _size(name, wide - 0.3, height)
        if size:
            middle = bottom - height / 2 + 0.34 * size * POINT
            self.scene.add(Text(self._beside(x, end, name), middle, name, size, "middle", ink))

    def _beside(self, x: float, end: float, name: str) -> float:
        """The middle of a block, or of the larger part of it where the runs part."""
        middle, half = (x + end) / 2, text_width(name, 7) / 2 + 0.4
        if abs(middle - self._part) >= half:
            return middle
        left = (x + self._part) / 2
        return left if self._part - x >= end - self._part else (self._part + end) / 2

    def _overflow(self, run: Timeline, column: _Column, base: float) -> None:
        """What the operator that failed would have needed on top."""
        fail, event = run.outcome.fail, run.events[-1]
        assert fail is not None
        assert event.operator is not None
        height = fail.request * self._scale
        top = base - event.memory * self._scale - height
        self.scene.add(
            Rect(column.x, top, column.width, height, "#FFFFFF", _GONE, 0.3, dashed=True)
        )
        name = self.names.operator(event.operator)
        size = _size(name, column.width - 0.3, height)
        if size:
            middle = top + height / 2
            budget = base - run.outcome.budget * self._scale
            if abs(middle - budget) < 0.45 * size * POINT:
                # Beside the line, not under it, if there is room.
                above = (top + budget) / 2
                middle = above if budget - top >= size * POINT else (budget + top + height) / 2
            x = column.x + column.width / 2
            self.scene.add(Text(x, middle + 0.34 * size * POINT, name, size, "middle", _GONE))

    def _axes(self, run: Timeline, top: float, base: float) -> None:
        scene, left, right = self.scene, self.left, self._right
        scene.add(
            Polygon(((left, top), (left, base)), None, _INK, 0.2, closed=False),
            Polygon(((left, base), (right, base)), None, _INK, 0.2, closed=False),
        )
        y = base - run.outcome.budget * self._scale
        tick = _number(run.outcome.budget, self.size_unit)
        if base - y > 2.4:
            scene.add(Text(left - 1.2, base + 0.8, "0", 7, "end"))
        scene.add(
            Polygon(((left - 0.8, y), (right, y)), None, _INK, 0.32, dashed=True, closed=False),
            Text(left - 1.2, y + 0.8, tick, 7, "end"),
        )

    def _glyph(self, event: Event, x: float, y: float) -> None:
        """The mark of an event below its column: what it is, and of what."""
        if event.kind == "evict":
            name = self.names.tensors(event.storages)
        else:
            assert event.operator is not None
            name = self.names.operator(event.operator)
        size = _size(name, self.column - 0.6) or _SIZES[-1]
        self._kind_mark(event.kind, name, x, y, min(self.column * 0.9, 4.2), size)

    def _kind_mark(self, kind: str, name: str, x: float, y: float, wide: float, size: int) -> None:
        half, high = wide / 2, 3.1
        if kind == "compute":
            self.scene.add(Rect(x - half, y, wide, high, "#FFFFFF", _FAINT, 0.15))
        elif kind == "recompute":
            self.scene.add(
                Rect(x - half, y, wide, high, _AGAIN, _AGAIN_EDGE, 0.2, radius=min(half, 1.3))
            )
        elif kind == "evict":
            left, right = x - half, x + half
            tip = ((left, y), (right, y), (right, y + high * 0.8), (x, y + high + 0.55))
            self.scene.add(Polygon((*tip, (left, y + high * 0.8)), "#FFFFFF", _GONE, 0.3))
        elif kind == "fail":
            for ends in (
                ((x - half, y), (x + half, y + high)),
                ((x - half, y + high), (x + half, y)),
            ):
                self.scene.add(Polygon(ends, None, _GONE, 0.5, closed=False))
            return
        self.scene.add(Text(x, y + high / 2 + 0.34 * size * POINT, name, size, "middle"))

    # What the marks mean

    @functools.cached_property
    def _part(self) -> float:
        """Where the first event differs."""
        index = self.story.parting
        columns = [c for side, run in enumerate(self._runs) for c in self._columns(side, run)]
        return min((c.x for c in columns if c.event <= index <= c.state), default=-1.0)

    def _parting(self, top: float, bottom: float) -> None:
        x = self._part
        ends = ((x, top), (x, bottom))
        self.scene.add(
            Polygon(ends, None, _INK, 0.4, closed=False),
            Polygon(((x - 0.9, top - 1.1), (x + 0.9, top - 1.1), (x, top)), _INK),
        )

    def _legend(self, y: float) -> float:
        scene, trace = self.scene, self.story.trace
        kinds = {event.kind for run in self._runs for event in run.events}
        items: list[tuple[str, str]] = [("evictable", "in memory"), ("locked", "locked")]
        items += [("compute", "computed")]
        items += [("recompute", "recomputed")] * ("recompute" in kinds)
        items += [("evict", "evicted")] * ("evict" in kinds)
        items += [("release", "released")] * any(s.kind == "release" for s in self.steps)
        items += [("keep", "kept to the end")] * any(s.kind == "keep" for s in self.steps)
        items += [("fail", "no room")] * ("fail" in kinds)
        items += [("budget", "budget"), ("part", "the runs part")]
        items += [("constant", "constant")] * bool(trace.op_constant.any())
        views = trace.tensor_root.tolist() != list(range(trace.n_tensors))
        items += [("view", "shares the memory of x")] * views
        x, row = 0.0, y
        for kind, words in items:
            mark = 5.6 if kind in ("view", "budget") else 4.2
            wide = mark + text_width(words, 7) + 2.6
            if x + wide - 2.6 > scene.width and x > 0:
                x, row = 0.0, row + _LEGEND
            self._legend_mark(kind, x, row)
            scene.add(Text(x + mark, row + 2.4, words, 7))
            x += wide
        row += _LEGEND
        for line in self._key_lines():
            scene.add(Text(0, row + 2.4, line, 7))
            row += _ROW
        return row

    def _legend_mark(self, kind: str, x: float, y: float) -> None:
        scene, middle = self.scene, x + 1.8
        if kind in ("compute", "recompute", "evict", "fail"):
            self._kind_mark(kind, "", middle, y, 3.0, 7)
        elif kind in ("keep", "release"):
            self._named_mark(kind, "x", middle, y + 2.3, 7, _INK if kind == "keep" else _FAINT)
        elif kind in ("evictable", "locked"):
            fill = _LOCKED if kind == "locked" else _EVICTABLE
            scene.add(Rect(x + 0.3, y, 3.0, 3.1, fill, _EDGE))
        elif kind == "constant":
            scene.add(Rect(x + 0.3, y, 3.0, 3.1, _CONSTANT, _INK, 0.25, radius=0.7))
        elif kind == "budget":
            ends = ((x, y + 1.6), (x + 4.6, y + 1.6))
            scene.add(Polygon(ends, None, _INK, 0.32, dashed=True, closed=False))
        elif kind == "part":
            scene.add(
                Polygon(((middle, y + 1.0), (middle, y + 3.2)), None, _INK, 0.4, closed=False),
                Polygon(((middle - 0.9, y), (middle + 0.9, y), (middle, y + 1.1)), _INK),
            )
        else:
            scene.add(Text(middle + 0.6, y + 2.3, "=x", 7, "middle"))

    def _key_lines(self) -> list[str]:
        """What the letters stand for, broken into lines."""
        called: dict[str, list[str]] = {}
        for short, label in self.names.key:
            called.setdefault(shortened(label), []).append(short)
        lines = [""]
        for label, letters in called.items():
            entry = f"{', '.join(letters)}: {label}"
            joined = f"{lines[-1]}; {entry}" if lines[-1] else entry
            if lines[-1] and text_width(joined, 7) > self.scene.width:
                lines[-1] += ";"
                lines.append(entry)
            else:
                lines[-1] = joined
        return [line for line in lines if line]


def shortened(label: str, most: int = 28) -> str:
    """A label without its middle, if it is long, and without what cannot be printed."""
    clean = "".join(c if c.isprintable() else "?" for c in label)
    if len(clean) <= most:
        return clean
    half = (most - 1) // 2
    return f"{clean[:half]}…{clean[-half:]}"


def _stacks(operands: list[int]) -> list[list[int]]:
    """Evenly into as few columns as it takes, of at most three."""
    count = -(-len(operands) // 3)
    high = -(-len(operands) // count)
    return [operands[k : k + high] for k in range(0, len(operands), high)]


def _size(text: str, wide: float, high: float = 10.0) -> int:
    """The largest size in points at which a text fits; 0 if none does."""
    fitting = (n for n in _SIZES if text_width(text, n) <= wide and n * POINT * 1.05 <= high)
    return next(fitting, 0)


def _steps(story: Story) -> list[_Step]:
    """The steps of the schedule that change anything, with the events of both runs."""
    trace = story.trace
    steps: list[_Step] = []
    by_command: dict[int, _Step] = {}
    references: dict[int, int] = {}
    pinned: set[int] = set()
    root = trace.tensor_root.tolist()
    eventful = {event.command for run in (story.low, story.high) for event in run.events}
    for index, (what, operand) in enumerate(
        zip(trace.command.tolist(), trace.operand.tolist(), strict=True)
    ):
        if what == COMPUTE:
            for tensor in trace.outputs(operand):
                references[root[tensor]] = references.get(root[tensor], 0) + 1
            step = _Step("op", [operand])
        elif what == GET:
            references[root[operand]] += 1
            continue
        elif what == PIN:
            fresh = root[operand] not in pinned
            pinned.add(root[operand])
            before = steps[-1]
            if before.kind == "op" and trace.op_constant[before.operands[0]] and fresh:
                by_command[index] = before
                continue
            if not fresh and index not in eventful:
                continue
            step = _Step("keep", [operand])
        else:
            references[root[operand]] -= 1
            if references[root[operand]] or root[operand] in pinned:
                continue
            if steps and steps[-1].kind == "release":
                steps[-1].operands.append(root[operand])
                by_command[index] = steps[-1]
                continue
            step = _Step("release", [root[operand]])
        steps.append(step)
        by_command[index] = step
    for side, run in enumerate((story.low, story.high)):
        for index, event in enumerate(run.events):
            shown = by_command[event.command].events[side]
            if shown and event.kind in ("pin", "release"):
                # Pins lock what the event before brought; releases are one.
                shown[-1] = shown[-1][0], index
            else:
                shown.append((index, index))
    return steps


_BYTES = ((1, "B"), (2**10, "KiB"), (2**20, "MiB"), (2**30, "GiB"), (2**40, "TiB"))
_TIMES = ((1, "ns"), (10**3, "µs"), (10**6, "ms"), (10**9, "s"))


def _unit(values: list[int], units: tuple[tuple[int, str], ...]) -> tuple[int, str]:
    """The unit in which the largest of the values has at most three or, exactly, four digits."""
    largest = max(values, default=0)
    if largest < 10_000:
        return units[0]
    return next((unit for unit in units if largest < 1_000 * unit[0]), units[-1])


def _number(value: int, unit: tuple[int, str]) -> str:
    """A value in a unit, three digits of it; what is too small to be seen is not shown as 0."""
    if unit[0] == 1 or value == 0:
        return f"{value:,}"
    share = value / unit[0]
    if share < 0.005:
        return "<0.01"
    text = f"{share:,.{0 if share >= 100 else 1 if share >= 10 else 2}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
