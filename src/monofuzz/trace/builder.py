"""Building a trace call by call: for tests, generators and recorders."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, TypeGuard

from monofuzz.errors import TraceError
from monofuzz.trace.columns import Columns
from monofuzz.trace.model import (
    GET,
    MAX_COMMANDS,
    MAX_COST,
    MAX_OPERATORS,
    MAX_SIZE,
    MAX_TOTAL,
    RELEASE,
    Trace,
    TraceMeta,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["TraceBuilder"]


class TraceBuilder:
    """Builds a `Trace` in the order in which the step runs.

    Tensors are integers: 0, 1, 2, … in the order in which they are made. A tensor has one
    reference when it is made; `get` adds one and `release` drops one. What has no references left
    may still be read: it is then recomputed.

    ::

        build = TraceBuilder(name="two-layers")
        x = build.constant(4096)
        (h,) = build.op("linear", [x], 1024, cost=500)
        (y,) = build.op("relu", [h], 1024, cost=100)
        build.release(h)
        trace = build.finish()

    ``name``, ``model`` and the other keywords are the fields of `TraceMeta`.

    Every method raises `TraceError` at once when its arguments make no sense; the builder is then
    as it was before.
    """

    def __init__(self, name: str = "", **meta: Any) -> None:
        try:
            self._meta = TraceMeta(name=name, **{"recorder": "builder", **meta})
        except TypeError:
            known = ", ".join(TraceMeta.__dataclass_fields__)
            raise TraceError(f"unknown metadata; the fields are {known}") from None
        self._columns = Columns()
        self._arrivals: list[int] = []  # the tensor of each creation and each get, in order
        self._finished = False

    @property
    def n_tensors(self) -> int:
        """Tensors made so far; the next one gets this id."""
        return len(self._columns.root)

    def references(self, tensor: SupportsIndex) -> int:
        """References to the *storage* of a tensor: `get` and `release` need at least one."""
        return self._columns.shared[self._columns.root[self._tensor(tensor, "tensor")]]

    def storage(self, tensor: SupportsIndex) -> int:
        """The root tensor of the tensor's storage: itself unless it is a view."""
        return self._columns.root[self._tensor(tensor, "tensor")]

    def storage_size(self, tensor: SupportsIndex) -> int:
        """Bytes of the tensor's storage."""
        return self._columns.storage_size(self._tensor(tensor, "tensor"))

    def constant(self, size: SupportsIndex, *, name: str = "constant") -> int:
        """A weight or an input of ``size`` bytes: there from here on, never evicted. Its id.

        ``name`` is a label for people.
        """
        self._open()
        [checked] = self._sizes([size], "size")
        label = self._label(name)
        tensor = self._columns.tensor(checked)
        self._columns.compute(label, 0, [], constant=True)
        self._columns.pin(tensor)
        self._arrivals.append(tensor)
        return tensor

    def op(
        self,
        label: str,
        args: Iterable[SupportsIndex],
        sizes: SupportsIndex | Iterable[SupportsIndex],
        cost: SupportsIndex,
        *,
        views: Mapping[int, int] | None = None,
    ) -> tuple[int, ...]:
        """An operator that reads ``args`` and makes one tensor for each of ``sizes``. Their ids.

        ``sizes`` are bytes (a single one may stand alone), ``cost`` is nanoseconds. ``views`` maps
        the index of an output to the index of the argument whose storage it shares; the size of
        such an output must be 0.
        """
        self._open()
        label = self._label(label)
        arguments = self._tensors(args, "args")
        many = self._several(sizes, "sizes")
        if not many:
            self._refuse(f"operator {label!r} makes no tensor", "sizes")
        checked = self._sizes(many, "sizes")
        roots = self._views(views or {}, checked, arguments)
        return self._operator(label, arguments, checked, roots, self._cost(cost))

    def mutate(
        self,
        label: str,
        args: Iterable[SupportsIndex],
        replaced: SupportsIndex | Iterable[SupportsIndex],
        cost: SupportsIndex,
    ) -> tuple[int, ...]:
        """An in-place operator: reads ``args`` and replaces some of them. The new tensors' ids.

        ``replaced`` are indices into ``args``. Each makes a new tensor as large as the storage of
        the argument, which then loses a reference: use the new id from here on. A view is replaced
        together with its storage, so other views of it keep showing the old content.
        """
        self._open()
        label = self._label(label)
        arguments = self._tensors(args, "args")
        many = self._several(replaced, "replaced")
        if not many:
            self._refuse(f"in-place operator {label!r} replaces no argument", "replaced")
        old = [arguments[self._index(i, len(arguments), "replaced")] for i in many]
        if len(set(old)) < len(old):
            self._refuse(f"in-place operator {label!r} replaces a tensor twice", "replaced")
        columns = self._columns
        left: dict[int, int] = {}
        for tensor in old:
            root = columns.root[tensor]
            left[root] = left.get(root, columns.shared[root]) - 1
            if left[root] < 0:
                self._refuse(f"tensor {tensor} has no reference left to replace", "replaced")
        sizes = self._sizes([columns.storage_size(tensor) for tensor in old], "replaced")
        made = self._operator(label, arguments, sizes, [None] * len(old), self._cost(cost))
        for tensor in old:
            columns.release(tensor)
        return made

    def get(self, tensor: SupportsIndex) -> None:
        """One more reference to a tensor, whose storage must have one."""
        shared = self._movable(tensor, GET)
        self._columns.get(shared)
        self._arrivals.append(shared)

    def release(self, tensor: SupportsIndex) -> None:
        """One reference fewer; the storage must have one. The last one frees the storage."""
        self._columns.release(self._movable(tensor, RELEASE))

    def pin(self, tensor: SupportsIndex) -> None:
        """The tensor must be there from here on: it is recomputed if need be, and never evicted."""
        self._open()
        number = self._tensor(tensor, "tensor")
        if len(self._columns.command) >= MAX_COMMANDS:
            self._refuse(f"more than {MAX_COMMANDS:,} commands", None)
        self._columns.pin(number)

    def finish(self, *, keep: Iterable[SupportsIndex] | None = None) -> Trace:
        """The trace. ``keep`` are the tensors that the step must leave behind, in this order.

        They are pinned at the end, recomputed if need be. By default that is what a DTR log
        would keep: every tensor that still has a reference, in the order in which the references
        were taken. Only such a trace is certain to have the form of a log.
        """
        self._open()
        columns = self._columns
        if not columns.op_cost:
            self._refuse("the trace is empty: it computes nothing", None)
        if keep is None:
            kept = [t for t in self._arrivals if columns.references[t] > 0]
        else:
            kept = self._tensors(keep, "keep")
        for tensor in kept:
            columns.pin(tensor)
        self._finished = True
        return columns.trace(None, self._meta)

    # -- checks --------------------------------------------------------------------------------

    def _refuse(self, problem: str, field: str | None) -> NoReturn:
        raise TraceError(problem, field=field)

    def _open(self) -> None:
        if self._finished:
            self._refuse("this builder is finished: use a new one", None)
        if len(self._columns.op_cost) >= MAX_OPERATORS:
            self._refuse(f"more than {MAX_OPERATORS:,} operators", None)

    def _label(self, label: object) -> str:
        if not isinstance(label, str):
            self._refuse(f"a label is text, not {label!r}", "label")
        if not label.isascii():
            try:
                label.encode()
            except UnicodeEncodeError:
                self._refuse(f"the label {label!r} is not valid Unicode", "label")
        return label

    def _tensor(self, tensor: object, field: str) -> int:
        count = self.n_tensors
        if not _is_integer(tensor):
            self._refuse(f"a tensor is an integer, not {tensor!r}", field)
        number = operator.index(tensor)
        if not 0 <= number < count:
            self._refuse(f"there is no tensor {number}: {count} were made so far", field)
        return int(number)

    def _tensors(self, tensors: Iterable[SupportsIndex], field: str) -> list[int]:
        try:
            listed = list(tensors)
        except TypeError:
            self._refuse(f"expected a list of tensors, not {tensors!r}", field)
        if len(listed) + len(self._columns.args) > MAX_COMMANDS:
            self._refuse(f"more than {MAX_COMMANDS:,} arguments", field)
        return [self._tensor(tensor, f"{field}[{i}]") for i, tensor in enumerate(listed)]

    def _several(self, value: object, field: str) -> list[object]:
        if _is_integer(value):
            return [value]
        if not isinstance(value, Iterable) or isinstance(value, str | bytes):
            self._refuse(f"expected an integer or a list of integers, not {value!r}", field)
        return list(value)

    def _index(self, index: object, count: int, field: str) -> int:
        if not _is_integer(index):
            self._refuse(f"an index is an integer, not {index!r}", field)
        number = operator.index(index)
        if not 0 <= number < count:
            self._refuse(f"index {number} is outside the {count} there are", field)
        return int(number)

    def _amount(self, value: object, limit: int, word: str, unit: str, field: str) -> int:
        if not _is_integer(value):
            self._refuse(f"a {word} is an integer number of {unit}, not {value!r}", field)
        number = int(operator.index(value))
        if number < 0:
            self._refuse(f"a {word} of {number} {unit} is negative", field)
        if number > limit:
            self._refuse(f"a {word} of {number} {unit} is above 2**48", field)
        return number

    def _sizes(self, sizes: Sequence[object], field: str) -> list[int]:
        checked = [self._amount(size, MAX_SIZE, "size", "bytes", field) for size in sizes]
        if self._columns.total_size + sum(checked) >= MAX_TOTAL:
            self._refuse("the sizes add up to 2**61 bytes or more", field)
        return checked

    def _cost(self, cost: object) -> int:
        checked = self._amount(cost, MAX_COST, "cost", "nanoseconds", "cost")
        if self._columns.total_cost + checked >= MAX_TOTAL:
            self._refuse("the costs add up to 2**61 nanoseconds or more", "cost")
        return checked

    def _views(
        self, views: Mapping[int, int], sizes: list[int], arguments: list[int]
    ) -> list[int | None]:
        roots: list[int | None] = [None] * len(sizes)
        for output, argument in views.items():
            i = self._index(output, len(sizes), "views")
            j = self._index(argument, len(arguments), f"views[{output}]")
            if sizes[i] != 0:
                self._refuse(f"output {i} is a view, so its size must be 0", f"sizes[{i}]")
            roots[i] = self._columns.root[arguments[j]]
        return roots

    def _operator(
        self,
        label: str,
        arguments: list[int],
        sizes: list[int],
        roots: list[int | None],
        cost: int,
    ) -> tuple[int, ...]:
        columns = self._columns
        made = [columns.tensor(size, root) for size, root in zip(sizes, roots, strict=True)]
        columns.compute(label, cost, arguments, constant=False)
        self._arrivals += made
        return tuple(made)

    def _movable(self, tensor: object, command: int) -> int:
        self._open()
        number = self._tensor(tensor, "tensor")
        if len(self._columns.command) >= MAX_COMMANDS:
            self._refuse(f"more than {MAX_COMMANDS:,} commands", None)
        if self._columns.shared[self._columns.root[number]] < 1:
            word = "release" if command == RELEASE else "share"
            self._refuse(f"tensor {number} has no reference left to {word}", "tensor")
        return number


def _is_integer(value: object) -> TypeGuard[SupportsIndex]:
    """Whether ``value`` is an integer of any kind, NumPy's too, but no truth value."""
    return not isinstance(value, bool) and hasattr(value, "__index__")
