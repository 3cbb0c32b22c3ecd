"""The trace: a recorded training step as immutable arrays, and the one place that validates it.

A trace is a schedule of four commands over operators and tensors. Sizes are bytes, costs are
nanoseconds, all integers. Whatever a trace came from (a log, a file, a builder), it passes through
`validate`, so that everything downstream may rely on what is promised here.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from monofuzz.errors import TraceError

__all__ = [
    "COMPUTE",
    "GET",
    "MAX_COMMANDS",
    "MAX_COST",
    "MAX_OPERATORS",
    "MAX_SIZE",
    "MAX_TOTAL",
    "PIN",
    "RELEASE",
    "LogNames",
    "Trace",
    "TraceMeta",
    "validate",
]

COMPUTE: Final = 0
GET: Final = 1
PIN: Final = 2
RELEASE: Final = 3

MAX_SIZE: Final = 2**48
"""Largest size of one tensor, in bytes."""
MAX_COST: Final = 2**48
"""Largest cost of one operator, in nanoseconds."""
MAX_TOTAL: Final = 2**61
"""Neither the sum of all sizes nor the sum of all costs reaches this, so int64 never overflows."""
MAX_OPERATORS: Final = 2**20
"""Most operators, constants included."""
MAX_COMMANDS: Final = 2**22
"""Most commands, arguments or tensors."""

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.int8]


@dataclass(frozen=True)
class TraceMeta:
    """Where a trace came from. Nothing here influences a replay.

    ``peak`` is the unconstrained peak memory in bytes as whoever made the trace measured it, None
    when nobody did.
    """

    name: str = ""
    source: str = ""
    recorder: str = ""
    model: str = ""
    batch: int | None = None
    cost_model: str = ""
    peak: int | None = None
    note: str = ""


@dataclass(frozen=True, eq=False)
class LogNames:
    """How a log said what the trace's commands say: what a writer needs to say it again.

    ``text`` are the log's names in the order of their first binding. ``of_tensor[t]`` is the name
    that tensor t was bound to when it was created. ``of_command[c]`` is the name that command c
    used: the new name of a GET, the released name of a RELEASE, the surviving name of a PIN at the
    end; -1 for COMPUTE and for the pins of constants. ``form[c]`` is `PLAIN`, `MUTATE` (a COMPUTE
    and the releases that follow it) or `COPY_FROM` (a RELEASE and the GET behind it).
    """

    text: tuple[str, ...]
    of_tensor: IntArray
    of_command: IntArray
    form: ByteArray

    PLAIN: ClassVar = 0
    MUTATE: ClassVar = 1
    COPY_FROM: ClassVar = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", tuple(self.text))
        for name, dtype in (("of_tensor", np.int64), ("of_command", np.int64), ("form", np.int8)):
            array = _frozen_array(getattr(self, name), dtype, f"names.{name}")
            object.__setattr__(self, name, array)

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor: a pickled array comes back writable.
        return LogNames, (self.text, self.of_tensor, self.of_command, self.form)


_DETERMINING: Final = (
    ("op_cost", np.int64),
    ("op_constant", np.bool_),
    ("arg_ptr", np.int64),
    ("args", np.int64),
    ("out_ptr", np.int64),
    ("tensor_size", np.int64),
    ("tensor_root", np.int64),
    ("command", np.int8),
    ("operand", np.int64),
)


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """A recorded training step: immutable, validated on construction.

    Operators are in the order of the schedule: operator k is the k-th COMPUTE. Its arguments are
    ``args[arg_ptr[k]:arg_ptr[k + 1]]`` (tensor ids, in order, duplicates kept), its outputs the
    tensors ``out_ptr[k]`` to ``out_ptr[k + 1] - 1``. ``tensor_root[t]`` is the root tensor of t's
    storage: t itself unless t is a view, whose size is 0. ``operand`` is an operator for COMPUTE
    and a tensor for GET (one more reference), PIN and RELEASE (one fewer); a tensor has one
    reference when it is created.

    Two traces are equal when every replay of them is: names, labels and metadata do not count.

    Raises `TraceError` when the arrays do not describe a trace.
    """

    op_cost: IntArray
    op_constant: BoolArray
    op_label: tuple[str, ...]
    arg_ptr: IntArray
    args: IntArray
    out_ptr: IntArray
    tensor_size: IntArray
    tensor_root: IntArray
    command: ByteArray
    operand: IntArray
    names: LogNames | None = None
    meta: TraceMeta = field(default_factory=TraceMeta)

    def __post_init__(self) -> None:
        for name, dtype in _DETERMINING:
            object.__setattr__(self, name, _frozen_array(getattr(self, name), dtype, name))
        object.__setattr__(self, "op_label", tuple(self.op_label))
        validate(self)

    @property
    def n_ops(self) -> int:
        """Operators, constants included."""
        return len(self.op_cost)

    @functools.cached_property
    def n_operators(self) -> int:
        """Operators, constants excluded."""
        return int(self.n_ops - np.count_nonzero(self.op_constant))

    @property
    def n_tensors(self) -> int:
        """Tensors, views included."""
        return len(self.tensor_size)

    @functools.cached_property
    def n_storages(self) -> int:
        """Storages: tensors that are not views."""
        return int(np.count_nonzero(self.tensor_root == np.arange(self.n_tensors)))

    @functools.cached_property
    def model_compute(self) -> int:
        """Nanoseconds that the step takes when nothing is ever recomputed."""
        return int(self.op_cost.sum())

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 (hexadecimal) of everything that determines a replay."""
        sha = hashlib.sha256(b"monofuzz trace 1\n")
        for name, _ in _DETERMINING:
            array = getattr(self, name)
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            sha.update(f"{name} {len(array)}\n".encode())
            sha.update(little.tobytes())
        return sha.hexdigest()

    def arguments(self, op: int) -> IntArray:
        """The tensor ids that operator ``op`` reads, in order, duplicates kept."""
        return self.args[self.arg_ptr[op] : self.arg_ptr[op + 1]]

    def outputs(self, op: int) -> range:
        """The tensor ids that operator ``op`` makes."""
        return range(int(self.out_ptr[op]), int(self.out_ptr[op + 1]))

    def with_meta(self, **changes: Any) -> Trace:
        """The same trace with some fields of its metadata replaced."""
        return dataclasses.replace(self, meta=dataclasses.replace(self.meta, **changes))

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor: a pickled array comes back writable.
        return Trace, tuple(getattr(self, part.name) for part in dataclasses.fields(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name, _ in _DETERMINING
        )

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        name = f"{self.meta.name!r}, " if self.meta.name else ""
        return (
            f"<Trace {name}{self.n_operators} operators, {self.n_storages} storages, "
            f"{len(self.command)} commands, {self.digest[:12]}>"
        )


def _frozen_array(value: Any, dtype: type[np.generic], name: str) -> npt.NDArray[Any]:
    """``value`` read-only and contiguous, copied if need be; conversions that lose are refused."""
    try:
        given = np.asarray(value)
    except (ValueError, TypeError, OverflowError):
        raise TraceError("the values are not a plain array of integers", field=name) from None
    if given.ndim != 1:
        raise TraceError(f"the array has {given.ndim} dimensions, expected 1", field=name)
    if given.dtype != dtype:
        integral = given.dtype.kind in "iub" or (given.size == 0 and given.dtype.kind == "f")
        if not integral:
            raise TraceError(f"the values are {given.dtype}, expected integers", field=name)
        converted = given.astype(dtype)
        if given.size and not np.array_equal(converted, given):
            raise TraceError("a value does not fit: sizes and costs are at most 2**48", field=name)
        given = converted
    if given.flags.writeable or not given.flags.c_contiguous:
        given = np.array(given, dtype=dtype, order="C")
        given.flags.writeable = False
    return given


def _refuse_where(bad: npt.NDArray[np.bool_], field_name: str, problem: str) -> None:
    """Refuse the trace if any element is bad, naming the first."""
    if bad.any():
        raise TraceError(problem, field=f"{field_name}[{int(np.argmax(bad))}]")


def validate(trace: Trace) -> None:
    """Raise `TraceError` unless the arrays describe a trace that can be replayed.

    Checked are lengths, ranges, sums, that every tensor is computed before it is used, that views
    point at a storage of one of their operator's arguments, that constants cost nothing, read
    nothing and are pinned at once, and that no storage is released or shared once its references
    are gone.
    """
    n_ops, n_tensors, n_commands = len(trace.op_cost), len(trace.tensor_size), len(trace.command)
    _check_lengths(trace)
    _check_pointers(trace.arg_ptr, len(trace.args), "arg_ptr", 0)
    _check_pointers(trace.out_ptr, n_tensors, "out_ptr", 1)
    _check_amounts(trace.tensor_size, MAX_SIZE, "tensor_size", "size", "bytes")
    _check_amounts(trace.op_cost, MAX_COST, "op_cost", "cost", "nanoseconds")

    maker = np.repeat(np.arange(n_ops), np.diff(trace.out_ptr))
    reader = np.repeat(np.arange(n_ops), np.diff(trace.arg_ptr))
    first_output = trace.out_ptr[:-1]
    _refuse_where(
        (trace.args < 0) | (trace.args >= first_output[reader]),
        "args",
        "the operator reads a tensor that is not computed before it",
    )
    _check_roots(trace, maker, reader)

    command, operand = trace.command, trace.operand
    _refuse_where((command < COMPUTE) | (command > RELEASE), "command", "there is no such command")
    computes = command == COMPUTE
    if not np.array_equal(operand[computes], np.arange(n_ops)):
        raise TraceError(
            "each operator must be computed exactly once, in order 0, 1, 2, …", field="operand"
        )
    done = np.cumsum(computes)
    ready = trace.out_ptr[done]
    _refuse_where(
        ~computes & ((operand < 0) | (operand >= ready)),
        "operand",
        "the command names a tensor that is not computed before it",
    )
    _check_constants(trace, np.flatnonzero(computes), n_commands)
    _check_references(trace, computes)
    if trace.names is not None:
        _check_names(trace, trace.names)


def _check_lengths(trace: Trace) -> None:
    n_ops, n_tensors, n_commands = len(trace.op_cost), len(trace.tensor_size), len(trace.command)
    if n_ops == 0:
        raise TraceError("the trace is empty: it computes nothing", field="op_cost")
    for name, length, limit in (
        ("op_cost", n_ops, MAX_OPERATORS),
        ("tensor_size", n_tensors, MAX_COMMANDS),
        ("args", len(trace.args), MAX_COMMANDS),
        ("command", n_commands, MAX_COMMANDS),
    ):
        if length > limit:
            raise TraceError(f"{length:,} entries; monofuzz takes at most {limit:,}", field=name)
    for name, length in (
        ("op_constant", n_ops),
        ("op_label", n_ops),
        ("arg_ptr", n_ops + 1),
        ("out_ptr", n_ops + 1),
        ("tensor_root", n_tensors),
        ("operand", n_commands),
    ):
        found = len(getattr(trace, name))
        if found != length:
            raise TraceError(f"{found:,} entries, expected {length:,}", field=name)
    _check_texts(trace.op_label, "op_label")


def _check_texts(texts: tuple[str, ...], name: str) -> None:
    for k, text in enumerate(texts):
        try:
            if not text.isascii():
                text.encode()
        except (AttributeError, UnicodeEncodeError):
            raise TraceError("not valid text", field=f"{name}[{k}]") from None


def _check_names(trace: Trace, names: LogNames) -> None:
    """Names are only used to write a log, which is read back: their ranges are enough here."""
    _check_texts(names.text, "names.text")
    for name, values, length, low, high in (
        ("of_tensor", names.of_tensor, trace.n_tensors, 0, len(names.text)),
        ("of_command", names.of_command, len(trace.command), -1, len(names.text)),
        ("form", names.form, len(trace.command), LogNames.PLAIN, LogNames.COPY_FROM + 1),
    ):
        if len(values) != length:
            raise TraceError(f"{len(values):,} entries, expected {length:,}", field=f"names.{name}")
        _refuse_where((values < low) | (values >= high), f"names.{name}", "out of range")


def _check_pointers(pointers: IntArray, end: int, name: str, least: int) -> None:
    if pointers[0] != 0 or pointers[-1] != end:
        raise TraceError(f"the pointers must run from 0 to {end}", field=name)
    what = "an operator needs at least one output" if least else "the pointers must not decrease"
    _refuse_where((pointers[1:] < pointers[:-1] + least) | (pointers[1:] > end), name, what)


def _check_amounts(values: IntArray, limit: int, name: str, word: str, unit: str) -> None:
    _refuse_where(values < 0, name, f"a negative {word}; {word}s are {unit}, 0 or more")
    _refuse_where(values > limit, name, f"a {word} above 2**48 {unit}")
    # Each value is at most 2**48 and there are at most 2**22, so float64 sums are close enough to
    # tell whether int64 sums are safe, and int64 sums then exact.
    if float(values.sum(dtype=np.float64)) > 1.5 * MAX_TOTAL or int(values.sum()) >= MAX_TOTAL:
        raise TraceError(f"the {word}s add up to 2**61 {unit} or more", field=name)


def _check_roots(trace: Trace, maker: IntArray, reader: IntArray) -> None:
    root, own = trace.tensor_root, np.arange(trace.n_tensors)
    view = root != own
    _refuse_where((root < 0) | (root > own), "tensor_root", "a storage begins at an earlier tensor")
    _refuse_where(root[root] != root, "tensor_root", "the root of a view must not be a view")
    _refuse_where(view & (trace.tensor_size != 0), "tensor_size", "a view must have size 0")
    if view.any():
        offered = reader * trace.n_tensors + root[trace.args]
        wanted = maker * trace.n_tensors + root
        _refuse_where(
            view & ~np.isin(wanted, offered),
            "tensor_root",
            "a view must share the storage of one of its operator's arguments",
        )


def _check_constants(trace: Trace, position: IntArray, n_commands: int) -> None:
    constant = trace.op_constant
    if not constant.any():
        return
    _refuse_where(constant & (trace.op_cost != 0), "op_cost", "a constant must cost 0")
    _refuse_where(
        constant & (np.diff(trace.arg_ptr) != 0), "arg_ptr", "a constant must have no arguments"
    )
    _refuse_where(
        constant & (np.diff(trace.out_ptr) != 1), "out_ptr", "a constant must have one output"
    )
    behind = np.minimum(position + 1, n_commands - 1)
    pinned = (trace.command[behind] == PIN) & (trace.operand[behind] == trace.out_ptr[:-1])
    _refuse_where(constant & ~pinned, "op_constant", "a constant must be pinned right after it")


def _check_references(trace: Trace, computes: npt.NDArray[np.bool_]) -> None:
    """References of each storage, in the order of the schedule, must never run out."""
    root = trace.tensor_root
    birth = np.repeat(np.flatnonzero(computes), np.diff(trace.out_ptr))
    moves = np.flatnonzero((trace.command == GET) | (trace.command == RELEASE))
    release = trace.command[moves] == RELEASE
    where = np.concatenate([birth, moves])
    storage = np.concatenate([root, root[trace.operand[moves]]])
    change = np.concatenate([np.ones(len(birth), np.int64), np.where(release, -1, 1)])
    order = np.lexsort((where, storage))
    running = np.cumsum(change[order])
    starts = np.flatnonzero(np.diff(storage[order], prepend=-1))
    offset = np.repeat(running[starts] - change[order][starts], np.diff(starts, append=len(order)))
    before = running - offset - change[order]
    moving = np.zeros(len(where), np.bool_)
    moving[len(birth) :] = True
    bad = np.zeros(len(trace.command), np.bool_)
    bad[where[order][moving[order] & (before < 1)]] = True
    if bad.any():
        first = int(np.argmax(bad))
        word = "released" if trace.command[first] == RELEASE else "given another reference"
        raise TraceError(
            f"a tensor is {word} after the last reference to its storage was released",
            field=f"command[{first}]",
        )
