"""Writing a trace as a DTR log that reads back as the same trace.

A log keeps, at its end, every name whose tensor still has a reference, in the order in which the
names were first bound. So the names decide which tensors are kept and in which order, and writing
a trace means finding names. Those of the log that a trace was read from are tried first; then new
names for everything, then ones that in-place operators and assignments hand on. Whatever is
written was read back and compared before.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

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
    wanted = kept.tolist()
    for assign in (False, True):
        for carry in ("none", "last", "first"):
            namer = _Namer(trace, end, carry, assign)
            namer.run()
            if namer.kept() == wanted:
                yield namer.names()


@dataclass
class _Namer:
    """Finds names for a trace that has none.

    ``carry`` says which of an argument's names an in-place operator takes for its output, none of
    them making it an ordinary operator; ``assign`` whether a release with a get behind it moves a
    name.
    """

    trace: Trace
    end: int
    carry: Literal["none", "last", "first"]
    assign: bool

    def __post_init__(self) -> None:
        trace = self.trace
        self.command = trace.command[: self.end].tolist()
        self.operand = trace.operand[: self.end].tolist()
        self.arg_ptr = trace.arg_ptr.tolist()
        self.out_ptr = trace.out_ptr.tolist()
        self.args = trace.args.tolist()
        self.root = trace.tensor_root.tolist()
        self.size = trace.tensor_size.tolist()
        self.bound: list[dict[int, None]] = [{} for _ in self.root]  # names now bound to a tensor
        self.tensor_of: list[int] = []  # the tensor that a name is now bound to
        self.of_tensor = [-1] * len(self.root)
        self.of_command = [-1] * len(trace.command)
        self.form = [LogNames.PLAIN] * len(trace.command)
        self.last_use = self.uses()

    def uses(self) -> list[int]:
        """The last command that needs a name for a tensor."""
        last = [-1] * len(self.root)
        for c, (command, operand) in enumerate(zip(self.command, self.operand, strict=True)):
            if command == COMPUTE:
                for tensor in self.args[self.arg_ptr[operand] : self.arg_ptr[operand + 1]]:
                    last[tensor] = c
            elif command != PIN:
                last[operand] = c
        return last

    def run(self) -> None:
        c = 0
        while c < self.end:
            command, operand = self.command[c], self.operand[c]
            if command == COMPUTE:
                c = self.compute(c, operand)
            elif command == RELEASE:
                c = self.release(c, operand)
            else:
                if command == GET:
                    self.of_command[c] = self.fresh(operand)
                c += 1

    def kept(self) -> list[int]:
        """What a log with these names keeps at its end."""
        references = _references(self.trace)
        return [tensor for tensor in self.tensor_of if references[tensor] > 0]

    def names(self) -> LogNames:
        place = self.end
        references = _references(self.trace)
        for name, tensor in enumerate(self.tensor_of):
            if references[tensor] > 0:
                self.of_command[place] = name
                place += 1
        return LogNames(
            text=tuple(f"x{name}" for name in range(len(self.tensor_of))),
            of_tensor=integers(self.of_tensor),
            of_command=integers(self.of_command),
            form=small_integers(self.form),
        )

    def fresh(self, tensor: int) -> int:
        name = len(self.tensor_of)
        self.tensor_of.append(tensor)
        self.bound[tensor][name] = None
        return name

    def move(self, old: int, new: int) -> int:
        name = next(reversed(self.bound[old]) if self.carry == "last" else iter(self.bound[old]))
        del self.bound[old][name]
        self.bound[new][name] = None
        self.tensor_of[name] = new
        return name

    def may_move(self, tensor: int, until: int) -> bool:
        """Whether a tensor can give a name away: it has two, or needs none after ``until``."""
        count = len(self.bound[tensor])
        return count > 1 or (count == 1 and self.last_use[tensor] <= until)

    def compute(self, c: int, op: int) -> int:
        outputs = range(self.out_ptr[op], self.out_ptr[op + 1])
        if self.carry == "none" or not self.in_place(c, op, outputs):
            for tensor in outputs:
                self.of_tensor[tensor] = self.fresh(tensor)
            return c + 1
        self.form[c] = LogNames.MUTATE
        for i, tensor in enumerate(outputs, start=c + 1):
            name = self.move(self.operand[i], tensor)
            self.of_tensor[tensor] = self.of_command[i] = name
            self.form[i] = LogNames.MUTATE
        return c + 1 + len(outputs)

    def in_place(self, c: int, op: int, outputs: range) -> bool:
        """Whether an operator and the releases behind it can be one in-place operator."""
        after = c + 1 + len(outputs)
        old = self.operand[c + 1 : after]
        arguments = self.args[self.arg_ptr[op] : self.arg_ptr[op + 1]]
        return (
            after <= self.end
            and all(command == RELEASE for command in self.command[c + 1 : after])
            and len(set(old)) == len(old)
            and all(
                a in arguments
                and self.root[t] == t
                and self.size[t] == self.size[self.root[a]]
                and self.may_move(a, after - 1)
                for a, t in zip(old, outputs, strict=True)
            )
        )

    def release(self, c: int, tensor: int) -> int:
        following = c + 1 < self.end and self.command[c + 1] == GET
        if self.assign and following:
            new = self.operand[c + 1]
            if new != tensor and self.may_move(tensor, c):
                name = self.move(tensor, new)
                self.of_command[c] = self.of_command[c + 1] = name
                self.form[c] = self.form[c + 1] = LogNames.COPY_FROM
                return c + 2
        self.of_command[c] = next(reversed(self.bound[tensor]), -1)
        return c + 1


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
