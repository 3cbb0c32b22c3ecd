"""What a recorder saw, before it is a trace: operators, and storages that appear, change and die.

Nothing here knows PyTorch. A *cell* stands for one storage. It holds exactly one lasting reference,
that of its newest content (its *head*); the references of its views go when the storage goes, or at
the end of the step.
"""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from monofuzz.errors import RecordError
from monofuzz.trace.builder import TraceBuilder
from monofuzz.trace.model import MAX_COMMANDS, MAX_OPERATORS

if TYPE_CHECKING:
    from monofuzz.trace.model import Trace

__all__ = ["Cell", "InPlace", "Result", "Tape", "median_costs"]

InPlace = Literal["view", "copy"]
"""How an in-place update of an activation is written: a view of the storage, or a fresh copy."""

Layout = Hashable
"""What tells two views of one storage apart: offset, shape, strides, type."""

_ROOT: Final = None


class Cell:
    """One storage: its bytes, and the tensors that show what it holds now.

    ``live`` are the handles of its tensors that still have their reference, in the order in which
    they were made. ``layouts`` knows only tensors made since the last update in place.
    """

    __slots__ = ("constant", "dead", "head", "layouts", "live", "size")

    def __init__(self, size: int, *, constant: bool) -> None:
        self.size = size
        self.constant = constant
        self.head = 0
        self.live: list[int] = []
        self.layouts: dict[Layout, int] = {}
        self.dead = False

    def tensor(self, layout: Layout) -> int:
        """The handle of the tensor that shows the present content in this layout."""
        return self.layouts.get(layout, self.head)

    def _begin(self, handle: int, layout: Layout) -> None:
        self.head = handle
        self.layouts = {layout: handle}
        self.live.append(handle)


@dataclass(frozen=True, slots=True)
class Result:
    """One output of an operator: ``fresh`` if its storage is new, else a view."""

    cell: Cell
    layout: Layout
    fresh: bool


@dataclass(frozen=True, slots=True)
class _Operator:
    label: str
    cost: int
    args: tuple[int, ...]
    sizes: tuple[int, ...]
    views: tuple[tuple[int, int], ...]


class Tape:
    """Operators and releases in the order in which they happened.

    Handles name tensors: 0, 1, 2, … are outputs in the order in which they were made, -1, -2, …
    constants in the order in which they were first used. ``in_place`` says how updates of
    activations are written; updates of constants are always views, since a copy of a tensor that
    is held for good would count it twice.
    """

    def __init__(self, in_place: InPlace = "view") -> None:
        self._copies = in_place == "copy"
        self._constants: list[int] = []
        self._events: list[_Operator | int] = []
        self._operators = 0
        self._cells: dict[Cell, None] = {}
        self._made = 0

    @property
    def operators(self) -> int:
        """Operators so far, constants excluded."""
        return self._operators

    def constant(self, size: int, layout: Layout = _ROOT) -> Cell:
        """A storage that was there before the step: it stays for good."""
        cell = Cell(size, constant=True)
        self._constants.append(size)
        cell._begin(-len(self._constants), layout)
        self._cells[cell] = None
        return cell

    def fresh(self, size: int) -> Cell:
        """A storage that the operator recorded next makes."""
        return Cell(size, constant=False)

    def operator(
        self,
        label: str,
        cost: int,
        reads: Sequence[tuple[Cell, Layout]],
        results: Sequence[Result] = (),
        *,
        writes: Sequence[tuple[Cell, Layout]] = (),
        resized: Sequence[tuple[Cell, int]] = (),
    ) -> None:
        """An operator that read ``reads``, updated ``writes`` in place and made ``results``.

        ``resized`` are the written storages that have another size now. An operator without any
        output only looked at its arguments; it gets an output of 0 bytes, dropped at once.
        """
        if self._operators + len(self._constants) >= MAX_OPERATORS:
            raise RecordError(f"the step has more than {MAX_OPERATORS:,} operators: record a part")
        if len(self._events) >= MAX_COMMANDS // 2:
            raise RecordError(f"the step has more than {MAX_COMMANDS // 2:,} events: record a part")
        args = [cell.tensor(layout) for cell, layout in reads]
        position = {cell: i for i, (cell, _) in reversed(list(enumerate(reads)))}
        new_size = dict(resized)
        sizes: list[int] = []
        views: list[tuple[int, int]] = []
        begun: list[tuple[Cell, int, Layout, bool]] = []
        shown: list[tuple[Cell, int, Layout]] = []

        def view_of(cell: Cell) -> None:
            if cell not in position:
                position[cell] = len(args)
                args.append(cell.head)
            views.append((len(sizes), position[cell]))
            sizes.append(0)

        for cell, layout in dict(writes).items():
            handle = self._made + len(sizes)
            if cell in new_size or (self._copies and not cell.constant):
                sizes.append(new_size.get(cell, cell.size))
                begun.append((cell, handle, layout, True))
            else:
                view_of(cell)
                begun.append((cell, handle, layout, False))
        new: set[Cell] = set()
        for result in results:
            handle = self._made + len(sizes)
            if result.cell in new:  # A second output on a storage that this operator makes.
                shown.append((result.cell, result.cell.head, result.layout))
            elif result.fresh:
                new.add(result.cell)
                result.cell._begin(handle, result.layout)
                self._cells[result.cell] = None
                sizes.append(result.cell.size)
            else:
                view_of(result.cell)
                result.cell.live.append(handle)
                shown.append((result.cell, handle, result.layout))
        looked = not sizes
        if looked:
            sizes.append(0)
        self._events.append(_Operator(label, cost, tuple(args), tuple(sizes), tuple(views)))
        self._operators += 1
        first = self._made
        self._made += len(sizes)
        if looked:
            self._events.append(first)
        for cell, handle, layout in shown:
            cell.layouts[layout] = handle
        for cell, handle, layout, copied in begun:
            if copied:
                old, cell.live = cell.live, []
                cell.size = new_size.get(cell, cell.size)
                cell.constant = False
            else:
                old = [cell.head]
                cell.live.remove(cell.head)
            cell._begin(handle, layout)
            self._events += old

    def died(self, cell: Cell) -> None:
        """The storage was freed."""
        if not cell.dead:
            cell.dead = True
            self._events += cell.live
            del self._cells[cell]

    def close(self) -> None:
        """The step is over: views let go of the storages that outlive it."""
        for cell in self._cells:
            self._events += [handle for handle in cell.live if handle != cell.head]
            cell.live = [cell.head]

    def outline(self) -> tuple[Any, ...]:
        """Everything but costs: equal for two runs of one step that did the same."""
        plain = (e if isinstance(e, int) else replace(e, cost=0) for e in self._events)
        return (tuple(self._constants), *plain)

    def trace(self, **meta: Any) -> Trace:
        """The trace, with its peak measured; ``meta`` are fields of `TraceMeta`."""
        build = TraceBuilder(**meta)
        offset = len(self._constants)
        for size in self._constants:
            build.constant(size)
        memory = peak = sum(self._constants)
        for event in self._events:
            if isinstance(event, int):
                tensor = event + offset if event >= 0 else -1 - event
                build.release(tensor)
                if build.references(tensor) == 0 and build.storage(tensor) >= offset:
                    memory -= build.storage_size(tensor)
                continue
            args = [arg + offset if arg >= 0 else -1 - arg for arg in event.args]
            build.op(event.label, args, event.sizes, event.cost, views=dict(event.views))
            memory += sum(event.sizes)
            peak = max(peak, memory)
        return build.finish().with_meta(peak=peak)

    def costs(self) -> list[int]:
        """The cost of each operator, in order."""
        return [event.cost for event in self._events if not isinstance(event, int)]

    def with_costs(self, costs: Sequence[int]) -> None:
        """Replace the cost of each operator."""
        left = iter(costs)
        self._events = [
            event if isinstance(event, int) else replace(event, cost=next(left))
            for event in self._events
        ]


def median_costs(tapes: Sequence[Tape]) -> Tape:
    """The first of several recordings of one step, with the median cost of each operator.

    Raises `RecordError` when the recordings are not of the same operators.
    """
    first = tapes[0]
    outline = first.outline() if len(tapes) > 1 else ()
    for number, tape in enumerate(tapes[1:], start=2):
        if tape.outline() != outline:
            raise RecordError(
                f"repetition {number} of the step did not do the same as the first: "
                "make the step repeatable, or record it once (repeats=1)"
            )
    each = zip(*(tape.costs() for tape in tapes), strict=True)
    first.with_costs([statistics.median_low(costs) for costs in each])
    return first
