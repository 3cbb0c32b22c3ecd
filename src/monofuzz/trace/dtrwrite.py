"""Writing a trace as a DTR log that reads back as the same trace.

A log keeps, at its end, every name whose tensor still has a reference, in the order in which the
names were first bound. So the names decide which tensors are kept and in which order, and writing
a trace means finding names. Those of the log that a trace was read from are tried first; then new
names for everything, then ones that in-place operators and assignments hand on. Whatever is
written was read back and compared before.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from monofuzz.errors import TraceError
from monofuzz.trace import dtrlog
from monofuzz.trace.columns import integers, small_integers
from monofuzz.trace.files import compress, write_atomically
from monofuzz.trace.model import COMPUTE, GET, PIN, RELEASE, LogNames, Trace

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

__all__ = ["format_log", "write"]

_ATTEMPTS = 100
_EFFORT = 200_000


def write(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write ``trace`` as a DTR log, packed when the path ends in .gz, .xz, .zst or .zip.

    The file is complete or not there at all. Raises `TraceError` when the trace has no log form,
    `MonofuzzError` when the file cannot be written.
    """
    text = format_log(trace)
    write_atomically(path, compress(text, Path(path)))


def format_log(trace: Trace) -> bytes:
    """The text of a DTR log that reads back as ``trace``. Raises `TraceError` if there is none."""
    end = _end_of_schedule(trace)
    kept = trace.operand[end:]
    _check_kept(trace, kept)
    for names in _candidates(trace, end, kept):
        try:
            text = b"\n".join(_Writer(trace, names).lines(end)) + b"\n"
            if dtrlog.parse(text) == trace:
                return text
        except (_Unsayable, TraceError):
            continue
    raise TraceError(
        "the tensors kept at the end are in an order, or a number, that no names in a DTR log were "
        "found for; save the trace as a .trace file instead"
    )


class _Unsayable(Exception):  # noqa: N818 - not an error: the next names are tried
    """These names cannot say this trace."""


def _end_of_schedule(trace: Trace) -> int:
    """Where the pins begin that a log implies by ending. Refuse pins that no log can imply."""
    constant_pin = np.zeros(len(trace.command), np.bool_)
    position = np.flatnonzero(trace.command == COMPUTE)
    constant_pin[position[trace.op_constant] + 1] = True
    free = np.flatnonzero((trace.command == PIN) & ~constant_pin)
    others = np.flatnonzero((trace.command != PIN) | constant_pin)
    end = int(others[-1]) + 1
    if len(free) and free[0] < end:
        raise TraceError(
            f"tensor {int(trace.operand[free[0]])} is pinned in the middle of the schedule; a DTR "
            "log pins constants at once and everything else at its end: save it as a .trace file",
            field=f"command[{int(free[0])}]",
        )
    return end


def _references(trace: Trace) -> np.ndarray[Any, np.dtype[np.int64]]:
    """References that each tensor itself has at the end."""
    gets = np.bincount(trace.operand[trace.command == GET], minlength=trace.n_tensors)
    releases = np.bincount(trace.operand[trace.command == RELEASE], minlength=trace.n_tensors)
    return 1 + gets - releases


def _check_kept(trace: Trace, kept: np.ndarray[Any, np.dtype[np.int64]]) -> None:
    times = np.bincount(kept, minlength=trace.n_tensors)
    references = _references(trace)
    lost = np.flatnonzero((references > 0) & (times < references))
    if len(lost):
        raise TraceError(
            f"tensor {int(lost[0])} ends with {int(references[lost[0]])} references but is kept "
            f"{int(times[lost[0]])} times; a DTR log keeps a tensor at least once for each: "
            "release it, or save the trace as a .trace file"
        )
    extra = np.flatnonzero((references <= 0) & (times > 0))
    if len(extra):
        raise TraceError(
            f"tensor {int(extra[0])} is kept at the end without a reference of its own; a DTR log "
            "keeps only what is referenced: save the trace as a .trace file"
        )


# -- names ----------------------------------------------------------------------------------------


def _candidates(
    trace: Trace, end: int, kept: np.ndarray[Any, np.dtype[np.int64]]
) -> Iterator[LogNames]:
    """Names to try: the trace's own, then new ones, handed on in ever more ways."""
    if trace.names is not None:
        yield trace.names
    references = _references(trace).tolist()
    attempts = max(2, min(_ATTEMPTS, _EFFORT // len(trace.command)))
    for attempt in range(attempts):
        try:
            yield _Namer(trace, end, kept.tolist(), references, attempt).names()
        except _Unsayable:
            continue


class _Name:
    """A name to be; ``rank`` is its place among the kept tensors, -1 if it is not kept."""

    __slots__ = ("rank",)

    def __init__(self, rank: int) -> None:
        self.rank = rank


class _Namer:
    """Finds names for a trace that has none, from its end to its beginning.

    Backwards in time, every kept tensor begins with a name for each time that it is kept, and every
    other tensor gets names as it needs them. A tensor gives a name up where it gained a reference:
    the name was first bound there, or, where an in-place operator or a release stands before,
    it may have come from the tensor released. Names that are kept must be first bound in the order
    in which they are kept, so the last one that is not yet bound goes first.

    At attempt 0 names come from elsewhere only where they have to, at attempt 1 wherever they can,
    later at random, but the same at each attempt of one number. Not every trace that has names is
    given some; raises `_Unsayable` where none were found.
    """

    def __init__(
        self, trace: Trace, end: int, kept: list[int], references: list[int], attempt: int
    ) -> None:
        self.end = end
        self.attempt = attempt
        self.random = random.Random(attempt)
        self.live = [count > 0 for count in references]
        self.command = trace.command[:end].tolist()
        self.operand = trace.operand[:end].tolist()
        self.args = [trace.arguments(op).tolist() for op in range(trace.n_ops)]
        self.outputs = [trace.outputs(op) for op in range(trace.n_ops)]
        self.root = trace.tensor_root.tolist()
        self.size = trace.tensor_size.tolist()
        self.held: list[list[_Name]] = [[] for _ in self.root]
        self.kept = [_Name(rank) for rank in range(len(kept))]
        for tensor, name in zip(kept, self.kept, strict=True):
            self.held[tensor].append(name)
        self.last = len(kept) - 1  # the last kept name that is not yet bound
        self.arrivals: list[list[int]] = [[] for _ in self.root]  # where references were gained
        for c, (command, operand) in enumerate(zip(self.command, self.operand, strict=True)):
            for tensor in self.outputs[operand] if command == COMPUTE else ():
                self.arrivals[tensor].append(c)
            if command == GET:
                self.arrivals[operand].append(c)
        self.bound: list[_Name] = []  # in the order of binding, backwards
        self.of_tensor: dict[int, _Name] = {}
        self.of_command: dict[int, _Name] = {}
        self.form = [LogNames.PLAIN] * len(trace.command)

    def names(self) -> LogNames:
        c = self.end - 1
        while c >= 0:
            command, operand = self.command[c], self.operand[c]
            if command == GET:
                c -= self.get(c, operand)
            elif command == RELEASE:
                c -= self.release(c, operand)
            else:
                if command == COMPUTE:
                    self.compute(operand)
                c -= 1
        if self.last >= 0:
            raise _Unsayable
        number = {id(name): i for i, name in enumerate(reversed(self.bound))}
        of_command = [-1] * len(self.form)
        for c, name in [*self.of_command.items(), *enumerate(self.kept, start=self.end)]:
            of_command[c] = number[id(name)]
        return LogNames(
            text=tuple(f"x{i}" for i in range(len(number))),
            of_tensor=integers([number[id(self.of_tensor[t])] for t in range(len(self.root))]),
            of_command=integers(of_command),
            form=small_integers(self.form),
        )

    def room(self, tensor: int) -> int:
        """How many more names a tensor can hold, here, as it must give all of them up."""
        return len(self.arrivals[tensor]) - len(self.held[tensor])

    def need(self, tensor: int) -> _Name:
        """A name of a tensor that is used here; a new one if it has none and is not kept."""
        held = self.held[tensor]
        if not held:
            if self.live[tensor] or self.room(tensor) < 1:
                raise _Unsayable
            held.append(_Name(-1))
        return held[-1]

    def bindable(self, tensor: int, last: int) -> _Name | None:
        """The name that may be first bound here, if ``last`` is the last kept one to be bound."""
        for wanted in (last, -1):
            for name in self.held[tensor]:
                if name.rank == wanted:
                    return name
        return None if self.held[tensor] or self.live[tensor] else _Name(-1)

    def bind(self, tensor: int) -> _Name:
        """A tensor gives up a name that is first bound where it gains a reference."""
        name = self.bindable(tensor, self.last)
        if name is None:
            raise _Unsayable
        if name.rank >= 0:
            self.last -= 1
        self.bound.append(name)
        self.arrive(tensor, name)
        return name

    def arrive(self, tensor: int, name: _Name) -> None:
        self.arrivals[tensor].pop()
        if name in self.held[tensor]:
            self.held[tensor].remove(name)
        if self.room(tensor) < 0:
            raise _Unsayable

    def hand_over(self, old: int, new: int) -> _Name:
        """``new`` gives up a name that came from ``old``."""
        held = self.held[new] or ([] if self.live[new] else [_Name(-1)])
        if not held:
            raise _Unsayable
        # The name that goes where a reference was gained later is bound later.
        later = self.arrivals[old][-1:] > self.arrivals[new][-2:-1]
        if self.attempt > 1:
            later = self.random.random() < 0.5
        name = (max if later else min)(held, key=lambda name: name.rank)
        self.arrive(new, name)
        self.held[old].append(name)
        return name

    def may_come_from(self, old: int) -> bool:
        return self.room(old) > 0

    def should_come_from(self, old: int) -> bool:
        if self.room(old) < 1:
            return False
        if self.attempt > 1:
            return self.random.random() < 0.5
        return self.attempt == 1 or self.live[old]

    def get(self, c: int, tensor: int) -> int:
        """Undo a GET, and a RELEASE before it if the name came from there. How many commands."""
        old = self.operand[c - 1] if c and self.command[c - 1] == RELEASE else tensor
        plain = self.bindable(tensor, self.last) is not None
        if old != tensor and (
            self.should_come_from(old) or (not plain and self.may_come_from(old))
        ):
            name = self.hand_over(old, tensor)
            self.of_command[c] = self.of_command[c - 1] = name
            self.form[c] = self.form[c - 1] = LogNames.COPY_FROM
            self.need(tensor)
            return 2
        self.of_command[c] = self.bind(tensor)
        self.need(tensor)
        return 1

    def release(self, c: int, tensor: int) -> int:
        """Undo a RELEASE, or the whole in-place operator that ends with it. How many commands."""
        first = self.in_place(c)
        if first < 0 or not self.replaces(first, c):
            self.of_command[c] = self.need(tensor)
            return 1
        op = self.operand[first]
        self.form[first] = LogNames.MUTATE
        for i, new in reversed(list(enumerate(self.outputs[op], start=first + 1))):
            name = self.hand_over(self.operand[i], new)
            self.of_tensor[new] = self.of_command[i] = name
            self.form[i] = LogNames.MUTATE
        for argument in self.args[op]:
            self.need(argument)
        return c - first + 1

    def in_place(self, c: int) -> int:
        """Where the operator stands that could be in-place and end with the RELEASE at c, or -1."""
        first = c
        while first >= 0 and self.command[first] == RELEASE:
            first -= 1
        if first < 0 or self.command[first] != COMPUTE:
            return -1
        outputs = self.outputs[self.operand[first]]
        old = self.operand[first + 1 : c + 1]
        if len(old) != len(outputs) or len(set(old)) < len(old):
            return -1
        fits = all(
            a in self.args[self.operand[first]]
            and self.root[t] == t
            and self.size[t] == self.size[self.root[a]]
            for a, t in zip(old, outputs, strict=True)
        )
        return first if fits else -1

    def replaces(self, first: int, c: int) -> bool:
        """Whether the names of an operator's outputs shall come from the tensors released."""
        old = self.operand[first + 1 : c + 1]
        if not all(self.may_come_from(tensor) for tensor in old):
            return False
        last, plain = self.last, True
        for tensor in reversed(self.outputs[self.operand[first]]):
            name = self.bindable(tensor, last)
            plain = plain and name is not None
            last -= name is not None and name.rank >= 0
        return not plain or any(self.should_come_from(tensor) for tensor in old)

    def compute(self, op: int) -> None:
        for tensor in reversed(self.outputs[op]):
            self.of_tensor[tensor] = self.bind(tensor)
        for argument in self.args[op]:
            self.need(argument)


# -- text -----------------------------------------------------------------------------------------


class _Writer:
    """The lines of a log that says a trace with given names."""

    def __init__(self, trace: Trace, names: LogNames) -> None:
        self.trace = trace
        self.text = names.text
        self.of_tensor = names.of_tensor.tolist()
        self.of_command = names.of_command.tolist()
        self.form = names.form.tolist()
        self.tensor_of: dict[int, int] = {}
        self.bound: list[dict[int, None]] = [{} for _ in range(trace.n_tensors)]
        if not (
            len(self.of_tensor) == trace.n_tensors
            and len(self.of_command) == len(self.form) == len(trace.command)
        ):
            raise _Unsayable

    def lines(self, end: int) -> Iterator[bytes]:
        yield _line(INSTRUCTION="ANNOTATE", ANNOTATION="START")
        command = self.trace.command.tolist()
        operand = self.trace.operand.tolist()
        c = 0
        while c < end:
            if command[c] == COMPUTE:
                count = len(self.trace.outputs(operand[c]))
                if self.trace.op_constant[operand[c]]:
                    yield from self.constant(operand[c])
                elif self.form[c] == LogNames.MUTATE:
                    old = operand[c + 1 : c + 1 + count]
                    yield self.mutate(operand[c], old, self.of_command[c + 1 : c + 1 + count])
                    c += count
                else:
                    yield from self.call(operand[c])
            elif command[c] == GET:
                source = self.name(operand[c])
                yield _line(
                    INSTRUCTION="COPY", DST=self.bind(self.of_command[c], operand[c]), SRC=source
                )
            elif command[c] == RELEASE:
                name = self.of_command[c]
                if self.tensor_of.get(name) != operand[c]:
                    raise _Unsayable
                if self.form[c] == LogNames.COPY_FROM:
                    c += 1
                    source = self.name(operand[c])
                    self.move(name, operand[c])
                    yield _line(INSTRUCTION="COPY_FROM", DST=self.text[name], SRC=source)
                else:
                    yield _line(INSTRUCTION="RELEASE", NAME=self.text[name])
            c += 1

    def name(self, tensor: int) -> str:
        """Any name that is now bound to a tensor."""
        for name in reversed(self.bound[tensor]):
            return self.text[name]
        raise _Unsayable

    def bind(self, name: int, tensor: int) -> str:
        if name in self.tensor_of or not 0 <= name < len(self.text):
            raise _Unsayable
        self.tensor_of[name] = tensor
        self.bound[tensor][name] = None
        return self.text[name]

    def move(self, name: int, tensor: int) -> None:
        del self.bound[self.tensor_of[name]][name]
        self.tensor_of[name] = tensor
        self.bound[tensor][name] = None

    def constant(self, op: int) -> Iterator[bytes]:
        tensor = int(self.trace.out_ptr[op])
        name = self.bind(self.of_tensor[tensor], tensor)
        yield _line(INSTRUCTION="CONSTANT", NAME=name)
        yield _line(INSTRUCTION="MEMORY", NAME=name, MEMORY=str(self.trace.tensor_size[tensor]))

    def call(self, op: int) -> Iterator[bytes]:
        trace = self.trace
        arguments = trace.arguments(op).tolist()
        texts = [self.name(tensor) for tensor in arguments]
        results = [self.bind(self.of_tensor[tensor], tensor) for tensor in trace.outputs(op)]
        yield _line(
            INSTRUCTION="CALL",
            NAME=trace.op_label[op],
            ARGS=texts,
            RESULT=results,
            TIME=str(trace.op_cost[op]),
        )
        storages = [int(trace.tensor_root[tensor]) for tensor in arguments]
        for tensor, name in zip(trace.outputs(op), results, strict=True):
            root = int(trace.tensor_root[tensor])
            alias = -1 if root == tensor else storages.index(root)
            yield _line(INSTRUCTION="MEMORY", NAME=name, MEMORY=str(trace.tensor_size[tensor]))
            yield _line(INSTRUCTION="ALIAS", NAME=name, ALIAS=str(alias))

    def mutate(self, op: int, old: list[int], names: list[int]) -> bytes:
        trace = self.trace
        arguments = trace.arguments(op).tolist()
        texts = [self.name(tensor) for tensor in arguments]
        indices = []
        for tensor, name, new in zip(old, names, trace.outputs(op), strict=True):
            if self.tensor_of.get(name) != tensor or tensor not in arguments:
                raise _Unsayable
            index = arguments.index(tensor)
            texts[index] = self.text[name]
            indices.append(index)
            self.move(name, new)
        return _line(
            INSTRUCTION="MUTATE",
            NAME=trace.op_label[op],
            ARGS=texts,
            MUTATE=indices,
            TIME=str(trace.op_cost[op]),
        )


def _line(**instruction: Any) -> bytes:
    return msgspec.json.encode(instruction)
