"""Seeing every operator of a step: PyTorch's dispatch, storages and their deaths, onto a tape.

This module imports PyTorch; import it only where recording starts.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from monofuzz.errors import RecordError
from monofuzz.trace.record.tape import Cell, Result, Tape
from monofuzz.trace.record.work import amount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from monofuzz.trace.record.devices import Device
    from monofuzz.trace.record.tape import InPlace, Layout

__all__ = ["FakeMode", "RecordingMode"]

# Questions and marks that are no work: they appear with fake tensors, or with a profiler, only.
_SILENT = frozenset({"prim", "profiler"})
# Their argument is not a tensor of the step, but what Python just made its result from.
_BIRTHS = frozenset({"aten::lift_fresh", "aten::lift_fresh_copy"})


class FakeMode(FakeTensorMode):  # type: ignore[misc]
    """Fake tensors whose modules can be copied and converted as real ones can."""

    def __init__(self) -> None:
        super().__init__()
        # What the mode remembers it has converted it refers to weakly, and `swap_tensors`, on which
        # `Module.to` relies, refuses tensors that are referred to so.
        self.fake_tensor_converter.set_tensor_memo = lambda tensor, fake: None

    def __deepcopy__(self, memo: dict[int, Any]) -> FakeMode:
        """Itself: a copied tensor belongs to the same mode."""
        return self


class RecordingMode(TorchDispatchMode):  # type: ignore[misc]
    """Records onto ``tape`` while it is entered.

    Costs are those of ``device`` if there is one, else measured.
    """

    def __init__(self, in_place: InPlace, device: Device | None) -> None:
        super().__init__()
        self.tape = Tape(in_place)
        self._device = device
        self._cells: dict[int, Cell] = {}
        self._watches: dict[int, weakref.ref[Any]] = {}
        self._written: dict[Any, tuple[str | int, ...]] = {}
        self._running = False
        self._dying: list[Cell] = []

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, operators are recorded, and storages resized without one."""
        original = torch.UntypedStorage.resize_

        def resize(storage: Any, size: int) -> Any:
            cell = self._cell(storage)
            result = original(storage, size)
            if storage.nbytes() != cell.size:
                resized = [(cell, storage.nbytes())]
                self.tape.operator("storage.resize_", 0, [], writes=[(cell, None)], resized=resized)
            return result

        torch.UntypedStorage.resize_ = resize
        try:
            with self:
                yield
        finally:
            torch.UntypedStorage.resize_ = original

    def close(self) -> None:
        """Stop watching storages; the tape is complete."""
        self._watches.clear()
        self._cells.clear()
        self.tape.close()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if any(hasattr(kind, "__tensor_flatten__") for kind in types):
            # A tensor made of others: what it does with those comes back here.
            return NotImplemented
        if func.namespace in _SILENT:
            return func(*args, **kwargs)
        self._running = True
        try:
            return self._record(func, args, kwargs)
        finally:
            # What the operator freed was an argument of it until now.
            self._running = False
            for cell in self._dying:
                self.tape.died(cell)
            self._dying.clear()

    def _record(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        label = func._schema.name
        read = [] if label in _BIRTHS else list(_tensors((*args, *kwargs.values())))
        reads = [self._look(tensor) for tensor in read]
        if self._device is None:
            out, elapsed = _timed(func, args, kwargs, read)
        else:
            out, elapsed = func(*args, **kwargs), 0
        written = list(self._written_in(func, args, kwargs))
        writes = [self._look(tensor) for tensor in written]
        resized = [
            (cell, size)
            for tensor, (cell, _) in zip(written, writes, strict=True)
            if (size := tensor.untyped_storage().nbytes()) != cell.size
        ]
        if torch.Tag.inplace_view in func.tags:
            # The tensor changed, not what its storage holds; unless it was resized.
            sizes = dict(resized)
            writes = [write for write in writes if write[0] in sizes]
        changed = {cell for cell, _ in writes}
        made = list(_tensors((out,)))
        results = [r for r in map(self._result, made) if r.cell not in changed]
        if not (reads or writes or results):
            return out
        if self._device is not None:
            elapsed = 0
            if writes or not results or any(result.fresh for result in results):
                work = amount(func, args, kwargs, out, read, written, made)
                elapsed = self._device.nanoseconds(work.operations, work.moved, bits=work.bits)
        self.tape.operator(label, elapsed, reads, results, writes=writes, resized=resized)
        return out

    def _look(self, tensor: Any) -> tuple[Cell, Layout]:
        """The cell of a tensor's storage and its layout."""
        layout = _layout(tensor)
        return self._cell(_storage(tensor), layout), layout

    def _cell(self, storage: Any, layout: Layout = None) -> Cell:
        """The cell of a storage; it is a constant if it was never seen."""
        cell = self._cells.get(storage._cdata)
        if cell is None:
            cell = self.tape.constant(storage.nbytes(), layout)
            self._watch(storage, cell)
        return cell

    def _result(self, tensor: Any) -> Result:
        storage = _storage(tensor)
        cell = self._cells.get(storage._cdata)
        if cell is not None:
            # A storage that one output began is not a view for the next: the tape knows.
            return Result(cell, _layout(tensor), fresh=False)
        cell = self.tape.fresh(storage.nbytes())
        self._watch(storage, cell)
        return Result(cell, _layout(tensor), fresh=True)

    def _watch(self, storage: Any, cell: Cell) -> None:
        key = storage._cdata

        def gone(_: Any) -> None:
            if self._watches.pop(key, None) is not None:
                del self._cells[key]
                if self._running:
                    self._dying.append(cell)
                else:
                    self.tape.died(cell)

        self._cells[key] = cell
        self._watches[key] = weakref.ref(storage, gone)

    def _written_in(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Iterator[Any]:
        """The tensors that the operator's schema says it updates in place."""
        places = self._written.get(func)
        if places is None:
            places = self._written[func] = tuple(
                argument.name if argument.kwarg_only else i
                for i, argument in enumerate(func._schema.arguments)
                if argument.alias_info is not None and argument.alias_info.is_write
            )
        for place in places:
            if isinstance(place, str):
                value = kwargs.get(place)
            else:
                name = func._schema.arguments[place].name
                value = args[place] if place < len(args) else kwargs.get(name)
            yield from _tensors((value,))


def _tensors(values: Iterable[Any]) -> Iterator[Any]:
    """All tensors in nested lists and tuples, in order."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _storage(tensor: Any) -> Any:
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        raise RecordError(
            f"the step uses a tensor without a plain storage ({tensor.layout}): only dense tensors "
            "can be recorded"
        ) from None


def _layout(tensor: Any) -> Layout:
    return (tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)


def _timed(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], read: list[Any]
) -> tuple[Any, int]:
    """The operator's result and its nanoseconds, until an accelerator is done, too."""
    asynchronous = any(tensor.device.type != "cpu" for tensor in read)
    if asynchronous:
        torch.accelerator.synchronize()
    begin = time.perf_counter_ns()
    out = func(*args, **kwargs)
    if asynchronous:
        torch.accelerator.synchronize()
    return out, time.perf_counter_ns() - begin
