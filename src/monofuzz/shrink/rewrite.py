"""Changing a trace: the schedule as a list that can be edited, and the trace that it then is.

An edit may leave references that nobody holds and tensors that nobody made; `Draft.trace` repairs
what has an obvious repair (commands about tensors that are gone go, references that ran out are not
dropped again) and gives None for what has none. So a pass need not know what keeps a trace valid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from monofuzz.canonical import letters
from monofuzz.errors import TraceError
from monofuzz.trace.columns import Columns
from monofuzz.trace.model import COMPUTE, PIN, RELEASE, Trace, TraceMeta

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Draft", "Step", "pins_constant", "relabelled", "reordered"]


@dataclass(frozen=True, slots=True)
class Step:
    """A command. Tensors are named by numbers that need not be in any order.

    For an operator: ``reads`` and ``makes`` are tensors, ``sizes`` their bytes, ``of`` the tensor
    whose storage each output shares, or None for one of its own. For other commands, ``tensor``.
    """

    what: int
    tensor: int = -1
    label: str = ""
    cost: int = 0
    constant: bool = False
    reads: tuple[int, ...] = ()
    makes: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    of: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Draft:
    """A schedule that can be edited.

    ``as_log``: the steps end before the pins at the end, and the trace keeps what a DTR log would:
    every tensor that still has a reference, so that it can be written as a log.
    """

    steps: tuple[Step, ...]
    as_log: bool = False

    @classmethod
    def plain(cls, trace: Trace) -> Draft:
        """The schedule of a trace, its pins at the end like all other commands."""
        steps = []
        root, size = trace.tensor_root.tolist(), trace.tensor_size.tolist()
        args, arg_ptr, out_ptr = trace.args.tolist(), trace.arg_ptr.tolist(), trace.out_ptr.tolist()
        costs, constant = trace.op_cost.tolist(), trace.op_constant.tolist()
        for what, x in zip(trace.command.tolist(), trace.operand.tolist(), strict=True):
            if what != COMPUTE:
                steps.append(Step(what, x))
                continue
            outputs = tuple(range(out_ptr[x], out_ptr[x + 1]))
            steps.append(
                Step(
                    COMPUTE,
                    label=trace.op_label[x],
                    cost=costs[x],
                    constant=constant[x],
                    reads=tuple(args[arg_ptr[x] : arg_ptr[x + 1]]),
                    makes=outputs,
                    sizes=tuple(size[t] for t in outputs),
                    of=tuple(None if root[t] == t else root[t] for t in outputs),
                )
            )
        return cls(tuple(steps))

    @classmethod
    def of(cls, trace: Trace) -> Draft:
        """The schedule of a trace, as that of a log if it can be one."""
        plain = cls.plain(trace)
        steps = plain.steps
        end = len(steps)
        while end and steps[end - 1].what == PIN and not pins_constant(steps, end - 1):
            end -= 1
        log = cls(steps[:end], as_log=True)
        return log if log.trace() == trace else plain

    def with_step(self, place: int, step: Step) -> Draft:
        """The same with one command replaced."""
        return replace(self, steps=(*self.steps[:place], step, *self.steps[place + 1 :]))

    def without(self, places: Iterable[int]) -> Draft:
        """The same without some commands."""
        gone = set(places)
        return replace(self, steps=tuple(s for i, s in enumerate(self.steps) if i not in gone))

    def trace(self, meta: TraceMeta | None = None) -> Trace | None:
        """The trace, repaired where that is possible; None if there is none left."""
        columns = Columns()
        number: dict[int, int] = {}
        arrivals: list[int] = []
        steps = self.steps
        for i, step in enumerate(steps):
            if step.what == COMPUTE:
                if step.constant and not _pinned_behind(steps, i):
                    step = replace(step, constant=False)  # noqa: PLW2901
                first = len(columns.root)
                if not _compute(columns, number, step):
                    return None
                arrivals += range(first, len(columns.root))
                continue
            tensor = number.get(step.tensor)
            if tensor is None:
                continue
            if step.what == PIN:
                # A log pins constants, and at its end.
                if not self.as_log or pins_constant(steps, i):
                    columns.pin(tensor)
                continue
            if columns.shared[columns.root[tensor]] < 1:
                continue
            if step.what == RELEASE:
                columns.release(tensor)
            else:
                columns.get(tensor)
                arrivals.append(tensor)
        if not columns.op_cost:
            return None
        if self.as_log:
            for tensor in arrivals:
                if columns.references[tensor] > 0:
                    columns.pin(tensor)
        try:
            return columns.trace(None, meta or TraceMeta())
        except TraceError:
            return None


def _pinned_behind(steps: Sequence[Step], place: int) -> bool:
    if place + 1 == len(steps):
        return False
    behind = steps[place + 1]
    return behind.what == PIN and behind.tensor == steps[place].makes[0]


def _compute(columns: Columns, number: dict[int, int], step: Step) -> bool:
    reads = [number[t] for t in step.reads if t in number]
    if not step.makes:
        return False
    offered = {columns.root[t]: t for t in reads}
    made = []
    for size, of in zip(step.sizes, step.of, strict=True):
        root = None
        if of is not None and of in number:
            root = columns.root[number[of]]
            if root not in offered:
                root = None
        made.append(columns.tensor(0 if root is not None else size, root))
    columns.compute(step.label, step.cost, reads, constant=step.constant)
    number.update(zip(step.makes, made, strict=True))
    return True


def pins_constant(steps: Sequence[Step], place: int) -> bool:
    """Whether a pin belongs to the constant in front of it."""
    before = steps[place - 1] if place else None
    return (
        before is not None
        and before.what == COMPUTE
        and before.constant
        and before.makes[0] == steps[place].tensor
    )


def reordered(trace: Trace, order: Sequence[int]) -> Trace:
    """The same trace with its commands in another order, which must respect what they need.

    What a log pins at its end stays there.
    """
    draft = Draft.of(trace)
    steps = tuple(draft.steps[c] for c in order if c < len(draft.steps))
    again = replace(draft, steps=steps).trace(trace.meta)
    assert again is not None
    return again


def relabelled(trace: Trace) -> Trace:
    """The same trace with its operators named a, b, c, … in their order."""
    labels = tuple(letters(k) for k in range(trace.n_ops))
    return replace(trace, op_label=labels, names=None)
