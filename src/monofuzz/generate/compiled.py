"""The compiled inner loop of the hunt: make a graph, map it, see whether it breaks a claim.

A graph is written straight into the program arrays of the kernel's block (laid out by
``block.py``), then the kernel walks through all its budgets, and the rows that it gives are looked
at here. No Python object is made for a graph: only for those that break a claim, and they are
replayed by the ordinary engine before anybody believes them.

Importing this module imports numba.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numba
import numpy as np

from monofuzz.replay import _jit, kernel
from monofuzz.replay.kernel import (
    ADJ,
    ADJ_PTR,
    ARG_PTR,
    ARGS,
    CMD,
    COMPUTE,
    ED_OLD,
    ED_PTR,
    ED_U,
    ED_V,
    LIMIT,
    N_CMD,
    NRESULT,
    OK,
    OOM,
    OP_COST,
    OP_TOTAL,
    OPERAND,
    OS,
    OS_NEW,
    OS_PTR,
    OUT_PTR,
    PIN,
    RELEASE,
    S_SIZE,
    ST,
    ST_PTR,
    T_OP,
    T_SIZE,
    T_STO,
    THRASHED,
    UNBOUNDED,
    N,
    run_batch,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CLAIM_BITS", "PARAMETERS", "STATS", "load_search"]

F = TypeVar("F", bound="Callable[..., Any]")

PARAMETERS = (
    "operators", "largest_size", "largest_cost", "shape", "limit", "claims", "only_generate",
)  # fmt: skip
(P_OPS, P_SIZE, P_COST, P_SHAPE, P_LIMIT, P_CLAIMS, P_ONLY) = range(7)
STATS = ("graphs", "runs", "skipped", "holes", "rises")
(S_GRAPHS, S_RUNS, S_SKIPPED, S_HOLES, S_RISES) = range(5)
CLAIM_BITS = {"feasibility": 1, "cost": 2}
MOST_ARGS = 3
# Columns of a row of the kernel's results.
STATUS, LO, HI, MODEL, REMAT, PEAK = 0, 2, 3, 4, 5, 10
GAMMA = np.uint64(0x9E3779B97F4A7C15)
MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)


def jit(function: F) -> F:
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(function)
    return compiled  # type: ignore[no-any-return]


@jit
def below(state: Any, bound: int) -> Any:
    """A number from 0 to bound - 1: splitmix64, scaled."""
    state[0] += GAMMA
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * MIX1
    z = (z ^ (z >> np.uint64(27))) * MIX2
    z ^= z >> np.uint64(31)
    return np.int64(((z >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@jit
def amount(state: Any, largest: int, few: int) -> Any:
    """A size or a cost from 1 on; with ``few``, one of two, so that ties are likely."""
    if largest == 1:
        return 1
    if few:
        return 1 + (largest - 1) * below(state, 2)
    return 1 + below(state, largest)


@jit
def add_tensor(m: Any, tensor: int, op: int, size: int) -> None:
    m[m[T_STO] + tensor] = tensor
    m[m[T_SIZE] + tensor] = size
    m[m[T_OP] + tensor] = op
    m[m[S_SIZE] + tensor] = size
    m[m[ST_PTR] + tensor + 1] = tensor + 1
    m[m[ST] + tensor] = tensor
    m[m[OS] + tensor] = tensor
    m[m[OS_NEW] + tensor] = 1
    m[m[OP_TOTAL] + op] += size


@jit
def add_command(m: Any, count: int, what: int, operand: int) -> int:
    m[m[CMD] + count] = what
    m[m[OPERAND] + count] = operand
    return count + 1


@jit
def add_argument(m: Any, op: int, tensor: int) -> bool:
    """Operator ``op``, the last one, reads a tensor; not twice."""
    end = m[m[ARG_PTR] + op + 1]
    for k in range(m[m[ARG_PTR] + op], end):
        if m[m[ARGS] + k] == tensor:
            return False
    m[m[ARGS] + end] = tensor
    m[m[ARG_PTR] + op + 1] = end + 1
    return True


@jit
def begin_op(m: Any, op: int, cost: int) -> None:
    m[m[OP_COST] + op] = cost
    m[m[OP_TOTAL] + op] = 0
    m[m[ARG_PTR] + op + 1] = m[m[ARG_PTR] + op]


@jit
def end_op(m: Any, op: int, tensors: int) -> None:
    m[m[OUT_PTR] + op + 1] = tensors
    m[m[OS_PTR] + op + 1] = tensors


@jit
def free_graph(m: Any, p: Any, state: Any, alive: Any) -> tuple[int, int]:
    """Any graph: operators read one to three tensors, mostly young ones. Tensors and commands."""
    ops, largest, dearest = p[P_OPS], p[P_SIZE], p[P_COST]
    few = below(state, 4) == 0
    tuples = below(state, 3) == 0
    dropping = below(state, 4)
    deep = below(state, 2)
    tensors = count = 0
    for op in range(ops):
        begin_op(m, op, amount(state, dearest, few))
        if tensors > 0 and below(state, 16) > 0:
            wanted = 1 + (below(state, 8) + 3) // 5
            for _ in range(wanted):
                back = below(state, tensors)
                if deep:
                    back = min(back, below(state, tensors))
                add_argument(m, op, tensors - 1 - back)
        made = 1
        if tuples and below(state, 4) == 0:
            made = 2
        for _ in range(made):
            add_tensor(m, tensors, op, amount(state, largest, few))
            alive[tensors] = 1
            tensors += 1
        end_op(m, op, tensors)
        count = add_command(m, count, COMPUTE, op)
        if dropping and below(state, 4) < dropping:
            tensor = below(state, tensors)
            if alive[tensor]:
                alive[tensor] = 0
                count = add_command(m, count, RELEASE, tensor)
    return tensors, count


@jit
def training_graph(m: Any, p: Any, state: Any, alive: Any) -> tuple[int, int]:
    """A training step: a chain forward, maybe with skips, and back. Tensors and commands.

    With F = ceil(operators / 2) forward operators, backward operator k reads the gradient that came
    from behind and what its forward operator read, or made, or both.
    """
    ops, largest, dearest = p[P_OPS], p[P_SIZE], p[P_COST]
    few = below(state, 3) == 0
    skips, both, wide = below(state, 3), below(state, 3), below(state, 3) == 0
    drops = below(state, 3)
    forward = (ops + 1) // 2
    tensors = count = 0
    for op in range(forward):
        begin_op(m, op, amount(state, dearest, few))
        if op > 0:
            add_argument(m, op, op - 1)
            if op > 1 and below(state, 4) < skips:
                add_argument(m, op, below(state, op - 1))
        add_tensor(m, tensors, op, amount(state, largest, few))
        alive[tensors] = 1
        tensors += 1
        end_op(m, op, tensors)
        count = add_command(m, count, COMPUTE, op)
    gradient = forward - 1
    for op in range(forward, ops):
        k = max(2 * forward - 1 - op, 0)
        begin_op(m, op, amount(state, dearest, few))
        add_argument(m, op, gradient)
        if k > 0 and (both != 1 or below(state, 2) > 0):
            add_argument(m, op, k - 1)
        if both:
            add_argument(m, op, k)
        made = 1
        if wide:
            made = 2
        for _ in range(made):
            add_tensor(m, tensors, op, amount(state, largest, few))
            alive[tensors] = 1
            tensors += 1
        end_op(m, op, tensors)
        count = add_command(m, count, COMPUTE, op)
        if op > forward and below(state, 3) <= drops and alive[gradient]:
            alive[gradient] = 0
            count = add_command(m, count, RELEASE, gradient)
        if below(state, 3) <= drops and alive[k]:
            alive[k] = 0
            count = add_command(m, count, RELEASE, k)
        gradient = tensors - made
    return tensors, count


@jit
def finish_graph(m: Any, p: Any, state: Any, alive: Any, tensors: int, count: int) -> None:
    """Drop some of what is left, keep the rest, and link storages that are read with what reads."""
    dropping = below(state, 5)
    for tensor in range(tensors):
        if alive[tensor] and below(state, 4) < dropping:
            alive[tensor] = 0
            count = add_command(m, count, RELEASE, tensor)
    for tensor in range(tensors):
        if alive[tensor]:
            count = add_command(m, count, PIN, tensor)
    m[N] = tensors
    m[N_CMD] = count
    ops = p[P_OPS]
    adjacent, first_edge, u, v, old = m[ADJ_PTR], m[ED_PTR], m[ED_U], m[ED_V], m[ED_OLD]
    for row in range(2 * tensors + 1):
        m[adjacent + row] = 0
    edges = 0
    for op in range(ops):
        for k in range(m[m[ARG_PTR] + op], m[m[ARG_PTR] + op + 1]):
            tensor = m[m[ARGS] + k]
            for made in range(m[m[OUT_PTR] + op], m[m[OUT_PTR] + op + 1]):
                m[u + edges] = tensor
                m[v + edges] = made
                m[old + edges] = 0
                m[adjacent + tensor + 1] += 1
                m[adjacent + tensors + made + 1] += 1
                edges += 1
        m[first_edge + op + 1] = edges
    for row in range(2 * tensors):
        m[adjacent + row + 1] += m[adjacent + row]
    # ``alive`` has room for the ends of all rows.
    for row in range(2 * tensors):
        alive[row] = m[adjacent + row]
    for e in range(edges):
        a, b = m[u + e], m[v + e]
        m[m[ADJ] + alive[a]] = b
        alive[a] += 1
        m[m[ADJ] + alive[tensors + b]] = a
        alive[tensors + b] += 1


@jit
def generate(m: Any, p: Any, state: Any, alive: Any) -> None:
    """The graph that a seed names, as a program in the block."""
    if p[P_SHAPE] == 0:
        tensors, count = free_graph(m, p, state, alive)
    else:
        tensors, count = training_graph(m, p, state, alive)
    finish_graph(m, p, state, alive, tensors, count)
    total = 0
    for op in range(p[P_OPS]):
        total += m[m[OP_COST] + op]
    m[LIMIT] = -1
    if p[P_LIMIT] > 0:
        m[LIMIT] = (p[P_LIMIT] - 1) * total


@jit
def least_budget(m: Any, ops: int) -> int:
    """What some operator needs at once."""
    least = 0
    for op in range(ops):
        need = m[m[OP_TOTAL] + op]
        for k in range(m[m[ARG_PTR] + op], m[m[ARG_PTR] + op + 1]):
            need += m[m[T_SIZE] + m[m[ARGS] + k]]
        least = max(least, need)
    return least


@jit
def hole_in(results: Any, rows: int) -> Any:
    """The widest hole as a share of the peak; 0 if there is none."""
    widest = start = 0
    feasible = False
    for row in range(rows):
        at = row * NRESULT
        status = results[at + STATUS]
        if status == OOM and feasible:
            if start == 0:
                start = results[at + LO]
            widest = max(widest, results[at + HI] - start)
            continue
        start = 0
        if status == OK:
            feasible = True
    return widest / results[(rows - 1) * NRESULT + PEAK]


@jit
def rise_in(results: Any, rows: int) -> float:
    """The largest factor by which a run costs more than one below it; 0 if there is none."""
    worst = 0.0
    least = -1
    for row in range(rows):
        at = row * NRESULT
        if results[at + STATUS] != OK:
            continue
        cost = results[at + MODEL] + results[at + REMAT]
        if least > 0 and cost > least:
            worst = max(worst, cost / least)
        if least < 0 or cost < least:
            least = cost
    return worst


def _make_search(stamp: int) -> Any:
    def search(
        m: Any,
        f: Any,
        own: Any,
        initial: Any,
        p: Any,
        seeds: Any,
        count: int,
        alive: Any,
        results: Any,
        idle: Any,
        found: Any,
        severity: Any,
        stats: Any,
        stop: Any,
    ) -> int:
        """Graphs ``count`` in a row from the seed on; those that break a claim are noted.

        ``seeds[0]`` is the seed, and afterwards that of the next graph. Returns how many were
        noted: ``found`` holds pairs of a seed and the bits of the claims that it breaks,
        ``severity`` pairs of the width of its hole and its rise in cost.
        """
        state = np.zeros(1, np.uint64)
        budgets = np.zeros(1, np.int64)
        rows = len(results) // NRESULT
        noted = 0
        for _ in range(count):
            if noted == len(found) // 2 or stop[0] != 0 or stamp == 0:
                break
            seed = seeds[0]
            seeds[0] = seed + np.uint64(1)
            # Seeds in a row must not give streams that overlap.
            state[0] = (seed ^ (seed >> np.uint64(29))) * MIX1
            generate(m, p, state, alive)
            if p[P_ONLY]:
                break
            stats[S_GRAPHS] += 1
            budgets[0] = least_budget(m, p[P_OPS])
            done = run_batch(
                m.ctypes.data, f.ctypes.data, own, initial.ctypes.data, idle.ctypes.data,
                0, 0, budgets.ctypes.data, 1, UNBOUNDED, results.ctypes.data,
                rows, idle.ctypes.data, stop.ctypes.data,
            )  # fmt: skip
            stats[S_RUNS] += done
            last = results[(done - 1) * NRESULT + STATUS]
            if (last != OK and last != OOM and last != THRASHED) or (
                results[(done - 1) * NRESULT + HI] != UNBOUNDED
            ):
                stats[S_SKIPPED] += 1
                continue
            bits = 0
            width = rise = 0.0
            if p[P_CLAIMS] & 1:
                width = hole_in(results, done)
                if width > 0:
                    bits |= 1
                    stats[S_HOLES] += 1
            if p[P_CLAIMS] & 2:
                rise = rise_in(results, done)
                if rise > 0:
                    bits |= 2
                    stats[S_RISES] += 1
            if (
                bits
                and (width >= severity[len(severity) - 2] or not bits & 1)
                and (rise >= severity[len(severity) - 1] or not bits & 2)
            ):
                found[2 * noted] = np.int64(seed)
                found[2 * noted + 1] = bits
                severity[2 * noted] = width
                severity[2 * noted + 1] = rise
                noted += 1
        return noted

    return search


def load_search() -> Any:
    """The compiled search: from numba's cache on disk, or compiled in a few seconds.

    numba knows that a cached function is stale from the file that it stands in; this one depends on
    the kernel's files, too, so their hash is part of it.
    """
    sha = hashlib.sha256()
    for module in (kernel, _jit):
        assert module.__file__ is not None
        sha.update(Path(module.__file__).read_bytes())
    stamp = int.from_bytes(sha.digest()[:7], "big") | 1
    types = numba.types
    entry: Any = run_batch
    own = entry.nopython_signatures[0].args[2]
    ints, doubles = types.int64[::1], types.float64[::1]
    signature = types.int64(
        ints, doubles, own, ints, ints, types.uint64[::1], types.int64, ints, ints, ints, ints,
        doubles, ints, ints,
    )  # fmt: skip
    return numba.njit(signature, nogil=True, error_model="numpy", cache=True)(_make_search(stamp))
