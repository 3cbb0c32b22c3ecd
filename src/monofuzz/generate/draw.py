"""Random small graphs, written straight into the block that ``small.py`` replays.

Importing this module imports numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from monofuzz.generate.small import (
    COMMAND,
    COMMANDS,
    LIMIT,
    O_ARG,
    O_COST,
    O_FIRST,
    O_NARGS,
    O_OUTS,
    O_TOTAL,
    OP,
    OP_FIELDS,
    OPS,
    RANDOM,
    T_CHILDREN,
    T_COST,
    T_OP,
    T_PARENTS,
    T_SIZE,
    TENSOR,
    TENSOR_FIELDS,
    TENSORS,
    first_of,
    jit,
)
from monofuzz.replay.kernel import COMPUTE, PIN, RELEASE

__all__ = ["PARAMETERS", "draw"]

PARAMETERS = ("operators", "largest_size", "largest_cost", "training", "limit")
(P_OPS, P_SIZE, P_COST, P_TRAINING, P_LIMIT) = range(5)
(CHAIN, RESIDUAL, DENSE, U_SHAPED, RECURRENT, TREE, ATTENTION, UNROLLED, SHAPES) = range(9)
GAMMA = np.uint64(0x9E3779B97F4A7C15)
MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)


@jit
def below(g: Any, bound: int) -> Any:
    """A number from 0 to bound - 1: splitmix64, scaled."""
    z = np.uint64(g[RANDOM]) + GAMMA
    g[RANDOM] = np.int64(z)
    z = (z ^ (z >> np.uint64(30))) * MIX1
    z = (z ^ (z >> np.uint64(27))) * MIX2
    z ^= z >> np.uint64(31)
    return np.int64(((z >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@jit
def amount(g: Any, largest: int, few: int) -> Any:
    """A size or a cost from 1 on; with ``few``, one of two, so that ties are likely."""
    if largest == 1:
        return 1
    if few:
        return 1 + (largest - 1) * below(g, 2)
    return 1 + below(g, largest)


@jit
def begin_op(g: Any, op: int, cost: int) -> None:
    """A new last operator."""
    at = OP + op * OP_FIELDS
    g[at + O_COST] = cost
    g[at + O_TOTAL] = 0
    g[at + O_FIRST] = g[TENSORS]
    g[at + O_OUTS] = 0
    g[at + O_NARGS] = 0
    add_command(g, COMPUTE, op)


@jit
def add_command(g: Any, what: int, operand: int) -> None:
    g[COMMAND + g[COMMANDS]] = what << 6 | operand
    g[COMMANDS] += 1


@jit
def add_argument(g: Any, op: int, tensor: int) -> None:
    """Operator ``op``, the last one, which has no outputs yet, reads a tensor; not twice."""
    at = OP + op * OP_FIELDS
    n = g[at + O_NARGS]
    for k in range(n):
        if g[at + O_ARG + k] == tensor:
            return
    g[at + O_ARG + n] = tensor
    g[at + O_NARGS] = n + 1


@jit
def add_tensor(g: Any, op: int, size: int) -> None:
    """Operator ``op``, the last one, with all its arguments, makes a tensor."""
    tensor = g[TENSORS]
    g[TENSORS] = tensor + 1
    at = OP + op * OP_FIELDS
    g[at + O_TOTAL] += size
    g[at + O_OUTS] |= 1 << tensor
    parents = 0
    for k in range(g[at + O_NARGS]):
        parent = g[at + O_ARG + k]
        parents |= 1 << parent
        g[TENSOR + parent * TENSOR_FIELDS + T_CHILDREN] |= 1 << tensor
    new = TENSOR + tensor * TENSOR_FIELDS
    g[new + T_OP] = op
    g[new + T_SIZE] = size
    g[new + T_COST] = g[at + O_COST]
    g[new + T_CHILDREN] = 0
    g[new + T_PARENTS] = parents


@jit
def release(g: Any, alive: int, tensor: int) -> int:
    """Drop the reference to a tensor, if there still is one; what is referred to afterwards."""
    if alive >> tensor & 1:
        add_command(g, RELEASE, tensor)
    return alive & ~(1 << tensor)


@jit
def free_graph(g: Any, p: Any) -> int:
    """Any graph: operators read one to three tensors, mostly young ones. What is still alive."""
    ops, largest, dearest = p[P_OPS], p[P_SIZE], p[P_COST]
    few = below(g, 4) == 0
    tuples = below(g, 3) == 0
    dropping = below(g, 4)
    deep = below(g, 2)
    alive = 0
    for op in range(ops):
        begin_op(g, op, amount(g, dearest, few))
        tensors = g[TENSORS]
        if tensors > 0 and below(g, 16) > 0:
            wanted = 1 + (below(g, 8) + 3) // 5
            for _ in range(wanted):
                back = below(g, tensors)
                if deep:
                    back = min(back, below(g, tensors))
                add_argument(g, op, tensors - 1 - back)
        made = 1
        if tuples and below(g, 4) == 0:
            made = 2
        for _ in range(made):
            add_tensor(g, op, amount(g, largest, few))
        alive |= g[OP + op * OP_FIELDS + O_OUTS]
        if dropping and below(g, 4) < dropping:
            alive = release(g, alive, below(g, g[TENSORS]))
    return alive


@jit
def forward_arguments(g: Any, shape: int, op: int, forward: int, skips: int) -> None:
    """What a forward operator reads; each of them makes the tensor of its own number."""
    if shape == TREE:
        leaves = forward // 2 + 1
        if op >= leaves:
            add_argument(g, op, 2 * (op - leaves))
            add_argument(g, op, 2 * (op - leaves) + 1)
        return
    if op == 0:
        return
    if shape == ATTENTION:
        place = (op - 1) % 4
        if place < 3:
            add_argument(g, op, op - 1 - place)
        else:
            for k in range(1, 4):
                add_argument(g, op, op - k)
        return
    add_argument(g, op, op - 1)
    if shape == RESIDUAL:
        if op > 1 and op % 2 == 0:
            add_argument(g, op, op - 2)
    elif shape == DENSE:
        for k in range(2, min(op, 3) + 1):
            add_argument(g, op, op - k)
    elif shape == U_SHAPED:
        if 2 * op > forward:
            add_argument(g, op, forward - 1 - op)
    elif shape == RECURRENT:
        add_argument(g, op, 0)
    elif shape == UNROLLED:
        if op > 2:
            add_argument(g, op, op - 3)
    elif op > 1 and below(g, 4) < skips:
        add_argument(g, op, below(g, op - 1))


@jit
def training_graph(g: Any, p: Any) -> int:
    """A training step: a forward part of some shape, and back. What is still alive.

    Of ceil(operators / 2) forward operators, the backward operator of each reads the gradients that
    come from at most two that read it, and what it read, or made, or both.
    """
    ops, largest, dearest = p[P_OPS], p[P_SIZE], p[P_COST]
    shape = below(g, SHAPES)
    few = below(g, 3) == 0
    skips, both, wide = below(g, 3), below(g, 3), below(g, 3) == 0
    drops = below(g, 3)
    forward = (ops + 1) // 2
    alive = 0
    for op in range(forward):
        begin_op(g, op, amount(g, dearest, few))
        forward_arguments(g, shape, op, forward, skips)
        add_tensor(g, op, amount(g, largest, few))
        alive |= 1 << op
    for op in range(forward, ops):
        k = 2 * forward - 1 - op
        begin_op(g, op, amount(g, dearest, few))
        readers = g[TENSOR + k * TENSOR_FIELDS + T_CHILDREN] & ((1 << forward) - 1)
        if readers == 0:
            add_argument(g, op, k)
        rest = readers
        for _ in range(2):
            if rest:
                reader = first_of(rest)
                rest &= rest - 1
                gradient = 2 * forward - 1 - reader
                add_argument(g, op, g[OP + gradient * OP_FIELDS + O_FIRST])
        if g[OP + k * OP_FIELDS + O_NARGS] > 0 and (both != 1 or below(g, 2) > 0):
            add_argument(g, op, g[OP + k * OP_FIELDS + O_ARG])
        if both:
            add_argument(g, op, k)
        for _ in range(1 + wide):
            add_tensor(g, op, amount(g, largest, few))
        alive |= g[OP + op * OP_FIELDS + O_OUTS]
        while readers:
            reader = first_of(readers)
            readers &= readers - 1
            # The last that needs the reader's gradient is the operator that it reads first of all.
            last = first_of(g[TENSOR + reader * TENSOR_FIELDS + T_PARENTS]) == k
            if last and below(g, 3) <= drops:
                gradient = 2 * forward - 1 - reader
                alive = release(g, alive, g[OP + gradient * OP_FIELDS + O_FIRST])
        if below(g, 3) <= drops:
            alive = release(g, alive, k)
    return alive


@jit
def draw(g: Any, p: Any, seed: Any) -> None:
    """The graph that a seed names; ``p`` as `PARAMETERS` says."""
    # Seeds in a row must not give streams that overlap.
    g[RANDOM] = np.int64((seed ^ (seed >> np.uint64(29))) * MIX1)
    g[OPS] = p[P_OPS]
    g[TENSORS] = g[COMMANDS] = 0
    alive = training_graph(g, p) if p[P_TRAINING] else free_graph(g, p)
    dropping = below(g, 5)
    for tensor in range(g[TENSORS]):
        if alive >> tensor & 1 and below(g, 4) < dropping:
            alive = release(g, alive, tensor)
    while alive:
        add_command(g, PIN, first_of(alive))
        alive &= alive - 1
    g[LIMIT] = -1
    if p[P_LIMIT] > 0:
        total = 0
        for op in range(p[P_OPS]):
            total += g[OP + op * OP_FIELDS + O_COST]
        g[LIMIT] = (p[P_LIMIT] - 1) * total
