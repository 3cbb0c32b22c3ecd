"""A trace as the kernel reads it: flat arrays over storages, and the storage graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from monofuzz.errors import ResourceError, TraceError, UsageError
from monofuzz.trace.model import COMPUTE, PIN, Trace

__all__ = ["MAX_ALIGN", "Program", "compile_program"]

MAX_ALIGN = 2**32
MAX_EDGES = 2**26
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Program:
    """The arrays of ``kernel.PROGRAM`` by name, and what a state needs to be allocated."""

    arrays: dict[str, IntArray]
    storages: int
    tensors: int
    ops: int
    roots: IntArray
    most_outputs: int
    late_edges: bool
    model_compute: int


def _ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """The concatenation of ``arange(start, start + count)``."""
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - ends + counts, counts)


def compile_program(trace: Trace, align: int | None = None) -> Program:
    """Lay a trace out for the kernel; sizes rounded up to multiples of ``align`` bytes.

    Raises `TraceError` when the numbers are too large to be added safely, `ResourceError` when the
    storage graph does not fit.
    """
    root, n_ops, n_tensors = trace.tensor_root, trace.n_ops, trace.n_tensors
    roots = np.flatnonzero(root == np.arange(n_tensors))
    n = len(roots)
    storage = np.searchsorted(roots, root)
    size = trace.tensor_size
    if align is not None:
        given: object = align
        if type(given) is not int or not 1 <= align <= MAX_ALIGN:
            raise UsageError(f"align must be a whole number from 1 to 2**32 bytes, not {align!r}")
        size = -(-size // align) * align
        if float(size.sum(dtype=np.float64)) >= 2.0**61:
            raise TraceError(f"sizes rounded up to {align} bytes add up to more than 2**61 bytes")
    maker = np.repeat(np.arange(n_ops), np.diff(trace.out_ptr))
    total = np.zeros(n_ops, np.int64)
    np.add.at(total, maker, size)

    # The distinct storages of each operator's outputs, in order.
    _, first = np.unique(maker * n + storage, return_index=True)
    first.sort()
    os, os_op = storage[first], maker[first]
    os_new = (maker[roots[os]] == os_op).astype(np.int64)
    charged = trace.op_cost[os_op].astype(np.float64).sum()
    if charged >= 2.0**60:
        raise TraceError("the costs of all storages add up to 2**60 nanoseconds or more")

    position = np.flatnonzero(trace.command == COMPUTE)
    pins = np.flatnonzero(trace.command == PIN)
    pinned_at = np.full(n, len(trace.command), np.int64)
    np.minimum.at(pinned_at, storage[trace.operand[pins]], pins)

    # Edges: each pair (storage of an argument, storage of an output), from its first operator on.
    # Storages pinned by then never move, and nobody reads their regions: no edge is needed.
    n_args, n_os = np.diff(trace.arg_ptr), np.bincount(os_op, minlength=n_ops)
    if float((n_args.astype(np.float64) * n_os).sum()) > MAX_EDGES:
        raise ResourceError(
            "the storage graph has more than 2**26 edges: operators with very many arguments and "
            "outputs cannot be replayed"
        )
    os_ptr = np.concatenate([[0], np.cumsum(n_os)])
    op_of_arg = np.repeat(np.arange(n_ops), n_args)
    fan = n_os[op_of_arg]
    u = np.repeat(storage[trace.args], fan)
    v = os[_ranges(os_ptr[op_of_arg], fan)]
    op = np.repeat(op_of_arg, fan)
    wanted = (u != v) & (pinned_at[u] > position[op]) & (pinned_at[v] > position[op])
    u, v, op = u[wanted], v[wanted], op[wanted]
    _, first = np.unique(u * n + v, return_index=True)
    first.sort()
    u, v, op = u[first], v[first], op[first]
    late = (maker[roots[v]] != op).astype(np.int64)
    rows = np.concatenate([u, n + v])
    order = np.argsort(rows, kind="stable")
    by_storage = np.argsort(storage, kind="stable")

    arrays = {
        "CMD": trace.command.astype(np.int64),
        "OPERAND": trace.operand,
        "OP_COST": trace.op_cost,
        "OP_TOTAL": total,
        "ARG_PTR": trace.arg_ptr,
        "ARGS": trace.args,
        "OUT_PTR": trace.out_ptr,
        "T_STO": storage,
        "T_SIZE": size,
        "T_OP": maker,
        "S_SIZE": size[roots],
        "ST_PTR": np.concatenate([[0], np.cumsum(np.bincount(storage, minlength=n))]),
        "ST": by_storage,
        "OS_PTR": os_ptr,
        "OS": os,
        "OS_NEW": os_new,
        "ED_PTR": np.concatenate([[0], np.cumsum(np.bincount(op, minlength=n_ops))]),
        "ED_U": u,
        "ED_V": v,
        "ED_OLD": late,
        "ADJ_PTR": np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=2 * n))]),
        "ADJ": np.concatenate([v, u])[order],
        "RANK": np.zeros(n, np.int64),
    }
    return Program(
        arrays={name: np.array(array, np.int64, order="C") for name, array in arrays.items()},
        storages=n,
        tensors=n_tensors,
        ops=n_ops,
        roots=roots,
        most_outputs=int(np.diff(trace.out_ptr).max()),
        late_edges=bool(late.any()),
        model_compute=trace.model_compute,
    )
