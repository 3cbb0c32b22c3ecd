"""The replay of small graphs on bit masks, for the generator's compiled loop.

A second engine beside ``replay/kernel.py``, for graphs without views of at most ``MOST_TENSORS``
tensors with small numbers: a set of storages is one integer, a score one division of doubles that
hold their integers exactly. Regions are kept as the semantics say, where the kernel keeps bounds.
Nothing that it says is believed before the kernel has said the same.

Importing this module imports numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

from monofuzz.replay.kernel import (
    COMPUTE,
    NUM_COST,
    NUM_COUNT,
    NUM_E,
    NUM_EQ,
    NUM_LA,
    NUM_ONE,
    NUM_OWN,
    NUM_REV,
    OK,
    OOM,
    PENALTY_NBHD,
    PENALTY_NONE,
    PIN,
    RELEASE,
    RULE_MIN,
    RULE_RANDOM,
    RULE_TIE,
    RUNNING,
    THRASHED,
    UNBOUNDED,
    random_below,
)

F = TypeVar("F", bound=Callable[..., Any])

MOST_TENSORS = 60
MOST_ARGS = 4

# The graph and the policy: a block ``g`` of integers. First what the policy and the graph set.
FLAGS = (
    "NUM", "USE_M", "USE_T", "RULE", "PENALTY", "TOPK", "SEED_HIGH", "SEED_LOW", "REGIONS",
    "CLASSES",
)  # fmt: skip
(
    NUM, USE_M, USE_T, RULE, PENALTY, TOPK, SEED_HIGH, SEED_LOW, REGIONS,
    CLASSES,
    OPS, TENSORS, COMMANDS, LIMIT, RANDOM,
) = range(15)  # fmt: skip
# A record for each operator, each tensor, then the commands: 64 * what + operand.
OP, OP_FIELDS = 16, 16
O_COST, O_TOTAL, O_FIRST, O_OUTS, O_NARGS, O_ARG = range(6)
TENSOR, TENSOR_FIELDS = OP + 64 * OP_FIELDS, 8
T_OP, T_SIZE, T_COST, T_CHILDREN, T_PARENTS = range(5)
COMMAND = TENSOR + 64 * TENSOR_FIELDS
GRAPH_WORDS = COMMAND + 4 * 64

# The state of a run: a block ``s``. A record for each storage, the stack, registers.
FIELDS = 16
(
    LA, ENTRY, LOCKS, EVC, DOWN, DOWN_EDGE, DOWN_COST, UP, UP_EDGE, UP_COST, CLASS, CLASS_COST,
    CLASS_MEMBERS,
) = range(13)  # fmt: skip
EDGE, SUM = 1, 2  # where they stand in either direction of a region, DOWN or UP
STACK, FRAME = 64 * FIELDS, 4
F_OP, F_TENSOR, F_MISSING = range(3)
REGISTERS = STACK + 64 * FRAME
(
    R_CLOCK, R_MEMORY, R_PC, R_PHASE, R_SP, R_POOL, R_MATERIAL, R_CREATED, R_PINNED, R_COUNT,
    R_LO, R_HI, R_MODEL, R_REMAT, R_PEAK, R_EVICTIONS, R_CLASSES,
) = range(REGISTERS, REGISTERS + 17)  # fmt: skip
STATE_WORDS = REGISTERS + 32

# A row of the results.
STATUS, LO, HI, COST, PEAK, ROW = range(6)

LEVELS = 4
"""Saved states of a walk."""

SCORE = types.FunctionType(types.float64(*[types.float64] * 11))


def jit(function: F) -> F:
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(function)
    return compiled  # type: ignore[no-any-return]


def _first_of(context: Any, mask: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


def _size_of(context: Any, mask: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.int64), generate


# The place of the lowest bit of a mask that is not 0, and how many bits are set.
first_of = cast("Callable[[int], int]", intrinsic(_first_of))
size_of = cast("Callable[[int], int]", intrinsic(_size_of))


@jit
def cost_of(g: Any, mask: int) -> int:
    total = 0
    while mask:
        total += g[TENSOR + first_of(mask) * TENSOR_FIELDS + T_COST]
        mask &= mask - 1
    return total


# ---------------------------------------------------------------------------------- regions


@jit
def reach(g: Any, v: int, links: int, material: int, created: int) -> tuple[int, int]:
    """What is evicted around v in one direction, and what is resident at its edge."""
    seen = g[TENSOR + v * TENSOR_FIELDS + links] & created
    done = 0
    while True:
        todo = seen & ~material & ~done
        if todo == 0:
            break
        u = first_of(todo)
        done |= 1 << u
        seen |= g[TENSOR + u * TENSOR_FIELDS + links] & created
    return done, seen & material & ~(1 << v)


@jit
def rebuild(g: Any, s: Any, v: int, side: int, links: int, material: int, created: int) -> None:
    """One region of a storage, made anew."""
    members, edge = reach(g, v, links, material, created)
    at = v * FIELDS + side
    s[at] = members
    s[at + EDGE] = edge
    s[at + SUM] = cost_of(g, members)


@jit
def appear(g: Any, s: Any, fresh: int, material: int, created: int) -> None:
    """Storages have become material: their own regions, and those that they end."""
    above = below = 0
    while fresh:
        v = first_of(fresh)
        fresh &= fresh - 1
        rebuild(g, s, v, DOWN, T_CHILDREN, material, created)
        rebuild(g, s, v, UP, T_PARENTS, material, created)
        above |= s[v * FIELDS + UP_EDGE]
        below |= s[v * FIELDS + DOWN_EDGE]
    while above:
        rebuild(g, s, first_of(above), DOWN, T_CHILDREN, material, created)
        above &= above - 1
    while below:
        rebuild(g, s, first_of(below), UP, T_PARENTS, material, created)
        below &= below - 1


@jit
def absorb(g: Any, s: Any, v: int, side: int, other: int) -> None:
    """Storage v has been evicted: on one side, the regions that end at it take in what lies beyond.

    ``side`` is the direction of those regions, ``other`` that in which their storages lie.
    """
    at = v * FIELDS + side
    bit = 1 << v
    rest = s[v * FIELDS + other + EDGE]
    while rest:
        into = first_of(rest) * FIELDS + side
        rest &= rest - 1
        s[into + EDGE] = (s[into + EDGE] & ~bit) | s[at + EDGE]
        more = (bit | s[at]) & ~s[into]
        s[into] |= more
        s[into + SUM] += cost_of(g, more)


@jit
def vanish(g: Any, s: Any, v: int) -> None:
    """Storage v has been evicted: others absorb it, and it has no regions of its own."""
    absorb(g, s, v, DOWN, UP)
    absorb(g, s, v, UP, DOWN)
    for k in range(v * FIELDS + DOWN, v * FIELDS + UP_COST + 1):
        s[k] = 0


# ---------------------------------------------------------------------------------- classes


@jit
def neighbours(g: Any, v: int, material: int, created: int) -> int:
    """The evicted storages next to v."""
    at = TENSOR + v * TENSOR_FIELDS
    evicted: int = (g[at + T_CHILDREN] | g[at + T_PARENTS]) & created & ~material
    return evicted


@jit
def new_class(s: Any, v: int, cost: int) -> None:
    """Storage v alone in a class of that cost; there is always a free one."""
    k = first_of(~s[R_CLASSES])
    s[R_CLASSES] |= 1 << k
    s[v * FIELDS + CLASS] = k
    s[k * FIELDS + CLASS_COST] = cost
    s[k * FIELDS + CLASS_MEMBERS] = 1 << v


@jit
def join_classes(g: Any, s: Any, v: int, material: int, created: int) -> None:
    """Storage v has been evicted: its class takes in those of its evicted neighbours."""
    new_class(s, v, g[TENSOR + v * TENSOR_FIELDS + T_COST])
    k = s[v * FIELDS + CLASS]
    rest = neighbours(g, v, material, created)
    while rest:
        other = s[first_of(rest) * FIELDS + CLASS]
        rest &= rest - 1
        if other == k:
            continue
        members = s[other * FIELDS + CLASS_MEMBERS]
        s[k * FIELDS + CLASS_COST] += s[other * FIELDS + CLASS_COST]
        s[k * FIELDS + CLASS_MEMBERS] |= members
        s[R_CLASSES] &= ~(1 << other)
        while members:
            s[first_of(members) * FIELDS + CLASS] = k
            members &= members - 1


@jit
def leave_class(g: Any, s: Any, v: int) -> None:
    """Storage v is material again: its class loses its cost, but stays whole."""
    k = s[v * FIELDS + CLASS]
    s[k * FIELDS + CLASS_COST] -= g[TENSOR + v * TENSOR_FIELDS + T_COST]
    s[k * FIELDS + CLASS_MEMBERS] &= ~(1 << v)
    if s[k * FIELDS + CLASS_MEMBERS] == 0:
        s[R_CLASSES] &= ~(1 << k)


@jit
def class_costs(g: Any, s: Any, v: int, material: int, created: int) -> int:
    """The summed cost of the distinct classes among the evicted neighbours of v."""
    total = 0
    counted = 0
    rest = neighbours(g, v, material, created)
    while rest:
        k = s[first_of(rest) * FIELDS + CLASS]
        rest &= rest - 1
        if counted >> k & 1 == 0:
            counted |= 1 << k
            total += s[k * FIELDS + CLASS_COST]
    return total


# ------------------------------------------------------------------------------- the choice


@jit
def around(g: Any, s: Any, v: int, clock: int, material: int, created: int) -> tuple[int, int]:
    """dtr-unopt: the cost of v and its evicted neighbourhood, and its staleness as a whole."""
    down, _ = reach(g, v, T_CHILDREN, material, created)
    up, _ = reach(g, v, T_PARENTS, material, created)
    latest = s[v * FIELDS + LA]
    rest = down | up
    while rest:
        latest = max(latest, s[first_of(rest) * FIELDS + LA])
        rest &= rest - 1
    return cost_of(g, down | up | 1 << v), clock - latest


@jit
def own_score(g: Any, s: Any, own: Any, v: int, clock: int, material: int, created: int) -> float:
    """The score by a function of the user's."""
    at = v * FIELDS
    tensor = TENSOR + v * TENSOR_FIELDS
    classes = 0
    if g[CLASSES]:
        classes = class_costs(g, s, v, material, created)
    value: float = own(
        float(g[tensor + T_COST]),
        float(g[tensor + T_SIZE]),
        float(clock - s[at + LA]),
        float(s[at + LA]),
        float(clock),
        float(s[at + DOWN_COST]),
        float(s[at + UP_COST]),
        float(size_of(s[at + DOWN])),
        float(size_of(s[at + UP])),
        float(classes),
        float(s[at + EVC]),
    )
    return value


@jit
def score(
    g: Any, w: Any, s: Any, own: Any, v: int, clock: int, material: int, created: int
) -> float:
    """The score of a candidate, infinite where the policy says so."""
    kind = g[NUM]
    if kind == NUM_OWN:
        return own_score(g, s, own, v, clock, material, created)
    at = v * FIELDS
    tensor = TENSOR + v * TENSOR_FIELDS
    stale = 1
    if g[USE_T]:
        stale = clock - s[at + LA]
    if kind == NUM_E:
        number = g[tensor + T_COST] + s[at + DOWN_COST] + s[at + UP_COST]
    elif kind == NUM_ONE:
        number = 1
    elif kind == NUM_COST:
        number = g[tensor + T_COST]
    elif kind == NUM_LA:
        number = s[at + LA]
    elif kind == NUM_REV:
        number = g[tensor + T_COST] + s[at + UP_COST]
    elif kind == NUM_COUNT:
        number = size_of(s[at + DOWN]) + size_of(s[at + UP])
    elif kind == NUM_EQ:
        number = g[tensor + T_COST] + class_costs(g, s, v, material, created)
    else:
        number, stale = around(g, s, v, clock, material, created)
    below = stale
    if g[USE_M]:
        below *= g[tensor + T_SIZE]
    if below <= 0:
        return np.inf
    value = float(number)
    if below != 1:
        value /= float(below)
    if g[PENALTY] != PENALTY_NONE:
        times = s[at + EVC]
        if g[PENALTY] == PENALTY_NBHD:
            times = size_of(s[at + DOWN]) + size_of(s[at + UP])
        value *= 1.0 + w[0] * float(times)
    return value


@jit
def last_least(
    g: Any, w: Any, s: Any, own: Any, pool: int, clock: int, material: int, created: int
) -> int:
    """The last least score in the order of the pool; the scan ends at the first zero."""
    best = zero = -1
    least = np.inf
    entered = end = UNBOUNDED
    rest = pool
    while rest:
        v = first_of(rest)
        rest &= rest - 1
        entry = s[v * FIELDS + ENTRY]
        value = score(g, w, s, own, v, clock, material, created)
        if value == 0.0:
            if entry < end:
                end, zero = entry, v
            continue
        if value != value:
            value = np.inf
        if best < 0 or value < least or (value == least and entry > entered):
            best, least, entered = v, value, entry
    if zero < 0:
        return best
    if least > 0.0 or best < 0:
        return zero
    # A negative score wins only if it stands before the first zero.
    best, least, entered = zero, 0.0, end
    rest = pool
    while rest:
        v = first_of(rest)
        rest &= rest - 1
        entry = s[v * FIELDS + ENTRY]
        if entry < end:
            value = score(g, w, s, own, v, clock, material, created)
            if value < least or (value == least and entry > entered and value < 0.0):
                best, least, entered = v, value, entry
    return best


@jit
def nth(s: Any, pool: int, index: int) -> int:
    """The storage at a place of the pool, in its order."""
    after = -1
    while True:
        first, entered = -1, UNBOUNDED
        rest = pool
        while rest:
            v = first_of(rest)
            rest &= rest - 1
            entry = s[v * FIELDS + ENTRY]
            if after < entry < entered:
                first, entered = v, entry
        if index == 0:
            return first
        index -= 1
        after = entered


@jit
def larger(g: Any, v: int, best: int) -> bool:
    """Whether v goes before another by size, then by the smaller id."""
    if best < 0:
        return True
    a, b = g[TENSOR + v * TENSOR_FIELDS + T_SIZE], g[TENSOR + best * TENSOR_FIELDS + T_SIZE]
    return a > b or (a == b and v < best)


@jit
def two_phase(
    g: Any, w: Any, s: Any, own: Any, pool: int, clock: int, material: int, created: int,
    need: int, budget: int,
) -> int:  # fmt: skip
    """Of those that free enough, or of the k largest: the least e-stale score, then the largest."""
    enough = 0
    rest = pool
    while rest:
        v = first_of(rest)
        rest &= rest - 1
        threshold = need - g[TENSOR + v * TENSOR_FIELDS + T_SIZE]
        if budget >= threshold:
            s[R_LO] = max(s[R_LO], threshold)
            enough |= 1 << v
        else:
            s[R_HI] = min(s[R_HI], threshold)
    if enough == 0:
        for _ in range(min(g[TOPK], size_of(pool))):
            top = -1
            rest = pool & ~enough
            while rest:
                v = first_of(rest)
                rest &= rest - 1
                if larger(g, v, top):
                    top = v
            enough |= 1 << top
    best = -1
    least = np.inf
    while enough:
        v = first_of(enough)
        enough &= enough - 1
        value = score(g, w, s, own, v, clock, material, created)
        if best < 0 or value < least or (value == least and larger(g, v, best)):
            best, least = v, value
    return best


@jit
def tie_aware(
    g: Any, w: Any, s: Any, own: Any, pool: int, clock: int, material: int, created: int
) -> int:
    """Among scores within a relative tolerance of the least: the largest, then the smaller id."""
    least = np.inf
    rest = pool
    while rest:
        least = min(least, score(g, w, s, own, first_of(rest), clock, material, created))
        rest &= rest - 1
    limit = least * (1.0 + w[3])
    best = -1
    rest = pool
    while rest:
        v = first_of(rest)
        rest &= rest - 1
        if score(g, w, s, own, v, clock, material, created) <= limit and larger(g, v, best):
            best = v
    return best


@jit
def choose(
    g: Any, w: Any, s: Any, own: Any, pool: int, clock: int, material: int, created: int,
    need: int, budget: int, evictions: int,
) -> int:  # fmt: skip
    """The storage that the policy evicts; the pool is not empty."""
    rule = g[RULE]
    if rule == RULE_MIN:
        return last_least(g, w, s, own, pool, clock, material, created)
    if rule == RULE_RANDOM:
        return nth(s, pool, random_below(g[SEED_HIGH], g[SEED_LOW], evictions, size_of(pool)))
    if rule == RULE_TIE:
        return tie_aware(g, w, s, own, pool, clock, material, created)
    return two_phase(g, w, s, own, pool, clock, material, created, need, budget)


# ------------------------------------------------------------------------------- the replay


@jit
def run(g: Any, w: Any, s: Any, own: Any, depth: int, budget: int) -> tuple[int, int]:
    """Carry a run to its end from where its state stands; its status, and the new depth.

    At a check that sets a new least HI the state is saved behind the present one, on a stack of
    which ``depth`` are in use.
    """
    clock, memory, pc, phase, sp = s[R_CLOCK], s[R_MEMORY], s[R_PC], s[R_PHASE], s[R_SP]
    pool, material, created = s[R_POOL], s[R_MATERIAL], s[R_CREATED]
    pinned, count = s[R_PINNED], s[R_COUNT]
    model, remat, peak, evictions = s[R_MODEL], s[R_REMAT], s[R_PEAK], s[R_EVICTIONS]
    regions, classes, limit = g[REGIONS], g[CLASSES], g[LIMIT]
    status = RUNNING
    while status == RUNNING:
        released = -1
        wanted = -1
        if sp == 0:
            if pc == g[COMMANDS]:
                status = OK
                break
            what, x = g[COMMAND + pc] >> 6, g[COMMAND + pc] & 63
            if what == COMPUTE:
                op = OP + x * OP_FIELDS
                if phase == 0:
                    phase = 1
                    created |= g[op + O_OUTS]
                    wanted = g[op + O_FIRST]
                    if classes:
                        rest = g[op + O_OUTS]
                        while rest:
                            new_class(s, first_of(rest), 0)
                            rest &= rest - 1
                else:
                    phase = 0
                    pc += 1
                    rest = g[op + O_OUTS]
                    while rest:
                        s[first_of(rest) * FIELDS + LA] = clock
                        rest &= rest - 1
                    continue
            elif what == RELEASE:
                pc += 1
                if (material & ~pinned) >> x & 1 == 0:
                    continue
                released = x
            elif material >> x & 1 == 0:
                wanted = x
            else:
                pc += 1
                pinned |= 1 << x
                s[x * FIELDS + LOCKS] += 1
                pool &= ~(1 << x)
                continue
        else:
            frame = STACK + (sp - 1) * FRAME
            missing = s[frame + F_MISSING]
            op = OP + s[frame + F_OP] * OP_FIELDS
            if missing:
                x = g[op + O_ARG + first_of(missing)]
                if material >> x & 1:
                    s[x * FIELDS + LOCKS] += 1
                    pool &= ~(1 << x)
                    s[frame + F_MISSING] = missing & (missing - 1)
                    continue
                wanted = x
        if wanted >= 0:
            x = g[TENSOR + wanted * TENSOR_FIELDS + T_OP]
            op = OP + x * OP_FIELDS
            frame = STACK + sp * FRAME
            sp += 1
            s[frame + F_OP] = x
            s[frame + F_TENSOR] = wanted
            missing = 0
            for k in range(g[op + O_NARGS]):
                x = g[op + O_ARG + k]
                s[x * FIELDS + LA] = clock
                if material >> x & 1:
                    s[x * FIELDS + LOCKS] += 1
                    pool &= ~(1 << x)
                else:
                    missing |= 1 << k
            s[frame + F_MISSING] = missing
            continue
        request = 0
        if released < 0:
            request = g[op + O_TOTAL]
        while True:
            v = released
            if v < 0:
                need = memory + request
                if need <= budget:
                    s[R_LO] = max(s[R_LO], need)
                    break
                if need < s[R_HI]:
                    if depth == LEVELS:
                        depth -= 1
                    s[R_CLOCK], s[R_MEMORY], s[R_PC], s[R_PHASE] = clock, memory, pc, phase
                    s[R_SP], s[R_POOL], s[R_MATERIAL], s[R_CREATED] = sp, pool, material, created
                    s[R_PINNED], s[R_COUNT], s[R_MODEL], s[R_REMAT] = pinned, count, model, remat
                    s[R_PEAK], s[R_EVICTIONS] = peak, evictions
                    depth += 1
                    copy_state(g, s, 0, depth * STATE_WORDS)
                    s[R_HI] = need
                if pool == 0:
                    status = OOM
                    break
                v = choose(g, w, s, own, pool, clock, material, created, need, budget, evictions)
                evictions += 1
            bit = 1 << v
            pool &= ~bit
            material &= ~bit
            memory -= g[TENSOR + v * TENSOR_FIELDS + T_SIZE]
            s[v * FIELDS + EVC] += 1
            if regions:
                vanish(g, s, v)
            if classes:
                join_classes(g, s, v, material, created)
            if released >= 0:
                break
        if released >= 0 or status != RUNNING:
            continue
        sp -= 1
        again = sp > 0 or (g[COMMAND + pc] >> 6) == PIN
        cost = g[op + O_COST]
        clock += cost
        memory += request
        peak = max(peak, memory)
        if again:
            remat += cost
        else:
            model += cost
        t = s[STACK + sp * FRAME + F_TENSOR]
        outs = g[op + O_OUTS]
        fresh = outs & ~material
        material |= outs
        rest = outs & ~fresh
        while rest:
            memory -= g[TENSOR + first_of(rest) * TENSOR_FIELDS + T_SIZE]
            rest &= rest - 1
        if classes:
            rest = fresh
            while rest:
                leave_class(g, s, first_of(rest))
                rest &= rest - 1
        if regions:
            appear(g, s, fresh, material, created)
        pool |= fresh
        rest = fresh & ~(1 << t)
        while rest:
            s[first_of(rest) * FIELDS + ENTRY] = count
            count += 1
            rest &= rest - 1
        s[t * FIELDS + ENTRY] = count
        count += 1
        for k in range(g[op + O_NARGS]):
            x = g[op + O_ARG + k]
            left = s[x * FIELDS + LOCKS] - 1
            s[x * FIELDS + LOCKS] = left
            if left == 0:
                pool |= 1 << x
                s[x * FIELDS + ENTRY] = count
                count += 1
        if 0 <= limit < remat:
            status = THRASHED
    s[R_MODEL], s[R_REMAT], s[R_PEAK] = model, remat, peak
    return status, depth


@jit
def copy_state(g: Any, s: Any, a: int, b: int) -> None:
    """The records of the graph's storages, the stack and the registers."""
    for k in range(g[TENSORS] * FIELDS):
        s[b + k] = s[a + k]
    for k in range(STACK, STACK + s[a + R_SP] * FRAME):
        s[b + k] = s[a + k]
    for k in range(REGISTERS, R_CLASSES + 1):
        s[b + k] = s[a + k]


@jit
def walk(g: Any, w: Any, s: Any, own: Any, budget: int, results: Any, rows: int, stop: Any) -> int:
    """All runs from a budget upwards, each one once; how many rows of the results they filled.

    The last run has no upper end, unless there were not rows enough or the walk was stopped.
    """
    depth = 0
    row = 0
    while row < rows and stop[0] == 0:
        while depth > 0 and s[depth * STATE_WORDS + R_HI] <= budget:
            depth -= 1
        if depth > 0:
            copy_state(g, s, depth * STATE_WORDS, 0)
        else:
            for k in range(g[TENSORS] * FIELDS):
                s[k] = 0
            for k in range(REGISTERS, R_CLASSES + 1):
                s[k] = 0
            s[R_CLOCK] = 1
            s[R_HI] = UNBOUNDED
        status, depth = run(g, w, s, own, depth, budget)
        at = row * ROW
        results[at + STATUS] = status
        results[at + LO] = s[R_LO]
        results[at + HI] = s[R_HI]
        results[at + COST] = s[R_MODEL] + s[R_REMAT]
        results[at + PEAK] = s[R_PEAK]
        row += 1
        budget = s[R_HI]
        if budget == UNBOUNDED:
            break
    return row
