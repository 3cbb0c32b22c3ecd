"""The arrays of a trace while it grows: what the log reader and the builder have in common."""

from __future__ import annotations

import numpy as np

from monofuzz.trace.model import (
    COMPUTE,
    GET,
    PIN,
    RELEASE,
    BoolArray,
    ByteArray,
    IntArray,
    LogNames,
    Trace,
    TraceMeta,
)

__all__ = ["Columns"]


class Columns:
    """Growing arrays, with the references of every tensor and storage as of now.

    Nothing is checked here: callers check first, with a message about their own input, and the
    finished `Trace` validates itself in any case.
    """

    def __init__(self) -> None:
        self.op_cost: list[int] = []
        self.op_constant: list[bool] = []
        self.op_label: list[str] = []
        self.arg_ptr = [0]
        self.args: list[int] = []
        self.out_ptr = [0]
        self.size: list[int] = []
        self.root: list[int] = []
        self.command: list[int] = []
        self.operand: list[int] = []
        self.references: list[int] = []
        """References of each tensor itself; below zero when a view's sibling was released more."""
        self.shared: list[int] = []
        """References of each storage, at the id of its root; 0 at the ids of views."""
        self.total_size = 0
        self.total_cost = 0

    def tensor(self, size: int, root: int | None = None) -> int:
        """A new tensor with one reference: a view of the storage ``root``, or a root itself."""
        tensor = len(self.root)
        root = tensor if root is None else root
        self.size.append(size)
        self.root.append(root)
        self.total_size += size
        self.references.append(1)
        self.shared.append(0)
        self.shared[root] += 1
        return tensor

    def compute(self, label: str, cost: int, arguments: list[int], *, constant: bool) -> None:
        """An operator whose outputs are the tensors added since the operator before it."""
        self.operand.append(len(self.op_cost))
        self.command.append(COMPUTE)
        self.op_cost.append(cost)
        self.op_constant.append(constant)
        self.op_label.append(label)
        self.args += arguments
        self.arg_ptr.append(len(self.args))
        self.out_ptr.append(len(self.root))
        self.total_cost += cost

    def get(self, tensor: int) -> None:
        """One more reference."""
        self.references[tensor] += 1
        self.shared[self.root[tensor]] += 1
        self.command.append(GET)
        self.operand.append(tensor)

    def release(self, tensor: int) -> None:
        """One reference fewer."""
        self.references[tensor] -= 1
        self.shared[self.root[tensor]] -= 1
        self.command.append(RELEASE)
        self.operand.append(tensor)

    def pin(self, tensor: int) -> None:
        """Keep the tensor's storage for good."""
        self.command.append(PIN)
        self.operand.append(tensor)

    def storage_size(self, tensor: int) -> int:
        """Bytes of the storage that the tensor lies in."""
        return self.size[self.root[tensor]]

    def trace(self, names: LogNames | None, meta: TraceMeta) -> Trace:
        """The finished trace, validated."""
        return Trace(
            op_cost=integers(self.op_cost),
            op_constant=_sealed(np.array(self.op_constant, np.bool_)),
            op_label=tuple(self.op_label),
            arg_ptr=integers(self.arg_ptr),
            args=integers(self.args),
            out_ptr=integers(self.out_ptr),
            tensor_size=integers(self.size),
            tensor_root=integers(self.root),
            command=small_integers(self.command),
            operand=integers(self.operand),
            names=names,
            meta=meta,
        )


def integers(values: list[int]) -> IntArray:
    """A read-only array of ``values``, none above 2**61."""
    array: IntArray = np.array(values, np.int64)
    array.flags.writeable = False
    return array


def small_integers(values: list[int]) -> ByteArray:
    """A read-only array of ``values``, each in a byte."""
    array: ByteArray = np.array(values, np.int8)
    array.flags.writeable = False
    return array


def _sealed(array: BoolArray) -> BoolArray:
    array.flags.writeable = False
    return array
