"""The replay kernel: one source, compiled by numba or run as plain Python.

What a run must do is fixed to the bit by the reference simulator of Dynamic Tensor
Rematerialization (Kirisame et al., ICLR 2021); this module does it fast. ``docs/notes/engine.md``
explains the design. In short:

* All state of a run lies in one block of integers. The recursion of rematerialisation lives there
  too, so that copying a part of the block saves a run: `run_batch` forks the next run of a walk
  off the present one.
* Sums over evicted regions are not kept up to date. A material storage has a lower bound of each
  of its two sums and a mark that says whether the bound is exact; a choice searches the storage
  graph from a candidate only while the candidate's bound could still win.
* A region is *canonical* when a search of the graph gives what the reference simulator holds.
  While an operator waits for its arguments, its outputs are in some regions and not in others:
  ``ver`` tells in which of the two graphs, with or without them, a region is canonical. A region
  that is canonical in neither (views with several inputs) is *held* explicitly, as a set.

Rows of the storage graph are numbered ``base + storage``: base 0 is the direction of the children,
base n (the number of storages) that of the parents. Only integers, floats and flat buffers are
used, so that the same functions run on arrays under numba and on memoryviews in plain Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, MutableSequence

from monofuzz.replay._jit import jit, pointers

Ints = MutableSequence[int]
Doubles = MutableSequence[float]
Scan = Callable[[Ints, Doubles], int]

to_ints, to_doubles = pointers(__name__)

# ----------------------------------------------------------------------------------- layout
# The integers of a run are one block ``m``: parameters, offsets of the arrays, registers, arrays.
# ``m[LA]`` is the offset of the array of last accesses, so ``m[m[LA] + s]`` is that of storage s.

# What the policy and the program set.
(
    NUM, USE_M, USE_T, RULE, PENALTY, INTEGRAL, TOPK, SEED_HIGH, SEED_LOW, REGIONS, CLASSES,
    LIMIT, RECORD, SLOTS, WORDS, N, N_CMD, POOL_CAP, UF_CAP, STATE_END, EPOCH, W_CAP, W_TOP,
    W_FREE, W_FRESH, W_LOOSE_N, OFFSETS,
) = range(27)  # fmt: skip
# Arrays, in order: of the state (copied when a run is saved), scratch, and the program.
STATE = [
    "DEFINED", "LOCKS", "REFS", "PINNED", "LA", "COST", "ICOST", "EVC", "POS", "POOL_S",
    "POOL_LA", "CNT", "LB", "CN", "EX", "VER", "HELD", "REL", "PEND", "DELTA", "STK_T", "STK_B",
    "STK_I", "STK_E", "PLIST", "UF", "UFC", "NODE", "SLOT_FREE", "SLOT",
]  # fmt: skip
SCRATCH = [
    "STAMP", "QA", "FA", "QB", "FB", "QC", "FC", "SEEN", "NEW", "W_HEAD", "W_AGE", "W_LOOSE",
    "W_ROW", "W_NEXT",
]  # fmt: skip
PROGRAM = [
    "CMD", "OPERAND", "OP_COST", "OP_TOTAL", "ARG_PTR", "ARGS", "OUT_PTR", "T_STO", "T_SIZE",
    "T_OP", "S_SIZE", "ST_PTR", "ST", "OS_PTR", "OS", "OS_NEW", "ED_PTR", "ED_U", "ED_V",
    "ED_OLD", "ADJ_PTR", "ADJ", "RANK",
]  # fmt: skip
(
    DEFINED, LOCKS, REFS, PINNED, LA, COST, ICOST, EVC, POS, POOL_S, POOL_LA, CNT, LB, CN, EX,
    VER, HELD, REL, PEND, DELTA, STK_T, STK_B, STK_I, STK_E, PLIST, UF, UFC, NODE, SLOT_FREE, SLOT,
    STAMP, QA, FA, QB, FB, QC, FC, SEEN, NEW, W_HEAD, W_AGE, W_LOOSE, W_ROW, W_NEXT,
    CMD, OPERAND, OP_COST, OP_TOTAL, ARG_PTR, ARGS, OUT_PTR, T_STO, T_SIZE, T_OP, S_SIZE, ST_PTR,
    ST, OS_PTR, OS, OS_NEW, ED_PTR, ED_U, ED_V, ED_OLD, ADJ_PTR, ADJ, RANK,
    REGISTERS,
) = range(OFFSETS, OFFSETS + 68)  # fmt: skip
# Registers, where the state begins.
(
    CLOCK, MEMORY, PC, PHASE, SP, PTOP, POOL_N, POOL_LIVE, POOL_BYTES, LO, HI, BUDGET, STATUS,
    MODEL, REMAT, EVICTIONS, EVICTIONS_ALL, DISTINCT, REMATS, PEAK, PEAK_PINNED, DEPTH_PINNED,
    MAX_DEPTH, FAIL_PINNED, FAIL_REQUEST, FAIL_DEPTH, FAIL_OVER, ERA, NPEND, GRAPH, NREL, NHELD,
    UF_N, HASH1, HASH2, NDELTA,
    ARRAYS,
) = range(REGISTERS, REGISTERS + 37)  # fmt: skip
# The doubles of a run, ``f``: weights of the policy, then the pool's keys.
WEIGHT, ALPHA, FLOOR, TOLERANCE, KEY = range(5)

NUM_ONE, NUM_COST, NUM_E, NUM_REV, NUM_EQ, NUM_LA, NUM_COUNT, NUM_UNOPT, NUM_OWN = range(9)
RULE_MIN, RULE_RANDOM, RULE_TWO_PHASE, RULE_TIE, RULE_CONTROL = range(5)
PENALTY_NONE, PENALTY_NBHD, PENALTY_THRASH = range(3)
COMPUTE, GET, PIN, RELEASE = 0, 1, 2, 3
RUNNING, OK, OOM, THRASHED, TIMEOUT, MORE_SLOTS, MORE_VICTIMS, OVERFLOW = range(8)
UNBOUNDED = 1 << 62
NEVER = -(1 << 61)  # last access of a storage that was never accessed
LATEST = 1 << 60  # the clock stays below, so that no product overflows
ZERO = 1e300  # stands for the inverse of a zero score
NEAR = 1e-12  # relative distance of inverse scores below which they are compared exactly
GAMMA, MIX1, MIX2 = (
    (0x9E377, 0x26E5FD, 0xA7C15),
    (0xBF584, 0x1DB473, 0x24E5B9),
    (0x94D04, 0x26EC4C, 0x3111EB),
)  # splitmix64, in limbs of 20, 22 and 22 bits
MANY = 96  # more unprocessed releases than this: drop all exact marks instead

# Columns of a row of ``results``, as registers.
RESULT = (
    STATUS, BUDGET, LO, HI, MODEL, REMAT, EVICTIONS, EVICTIONS_ALL, DISTINCT, REMATS, PEAK,
    PEAK_PINNED, DEPTH_PINNED, MAX_DEPTH, FAIL_PINNED, FAIL_REQUEST, FAIL_DEPTH, FAIL_OVER,
    HASH1, HASH2,
)  # fmt: skip
NRESULT = len(RESULT)


# ------------------------------------------------------------------------------- arithmetic


@jit("d(iii)", exported=True)
def quotient(n: int, a: int, b: int) -> float:
    """The double nearest to n / (a * b): what Python's ``n / (a * b)`` gives.

    ``|n|`` < 2**61, ``a`` and ``b`` positive, ``a * b`` < 2**110. Binary long division on limbs of
    60 bits, because neither int64 nor double arithmetic is exact here.
    """
    if n == 0:
        return 0.0
    mask = (1 << 60) - 1
    negative = n < 0
    if negative:
        n = -n
    a0, a1, b0, b1 = a & 0x3FFFFFFF, a >> 30, b & 0x3FFFFFFF, b >> 30
    middle = a0 * b1 + a1 * b0
    d0 = a0 * b0 + ((middle & 0x3FFFFFFF) << 30)
    d1 = a1 * b1 + (middle >> 30) + (d0 >> 60)
    d0 &= mask
    r0, r1 = n & mask, n >> 60
    exponent = 0
    while r1 > d1 or (r1 == d1 and r0 >= d0):
        d1 = (d1 << 1) | (d0 >> 59)
        d0 = (d0 << 1) & mask
        exponent += 1
    while r1 < d1 or (r1 == d1 and r0 < d0):
        r1 = (r1 << 1) | (r0 >> 59)
        r0 = (r0 << 1) & mask
        exponent -= 1
    # Now d <= r < 2 d, and the first bit of the quotient has the weight 2**exponent.
    q = 0
    for _ in range(54):
        q <<= 1
        if r1 > d1 or (r1 == d1 and r0 >= d0):
            q |= 1
            r1 -= d1
            r0 -= d0
            if r0 < 0:
                r0 += 1 << 60
                r1 -= 1
        r1 = (r1 << 1) | (r0 >> 59)
        r0 = (r0 << 1) & mask
    # 53 bits and the rounding bit; the remainder breaks a tie, else to even.
    up = (q & 1) != 0 and ((q & 2) != 0 or r1 != 0 or r0 != 0)
    q >>= 1
    if up:
        q += 1
    value = math.ldexp(float(q), exponent - 52)
    return -value if negative else value


@jit("iii(iiiiii)")
def multiply64(a2: int, a1: int, a0: int, b2: int, b1: int, b0: int) -> tuple[int, int, int]:
    """The low 64 bits of a product; numbers are limbs of 20, 22 and 22 bits, high to low."""
    c0 = a0 * b0
    c1 = a1 * b0 + a0 * b1 + (c0 >> 22)
    c2 = a2 * b0 + a1 * b1 + a0 * b2 + (c1 >> 22)
    return c2 & 0xFFFFF, c1 & 0x3FFFFF, c0 & 0x3FFFFF


@jit("iii(iiii)")
def fold64(z2: int, z1: int, z0: int, shift: int) -> tuple[int, int, int]:
    """z ^ (z >> shift) on the same limbs, 22 < shift < 44."""
    k = shift - 22
    return z2, z1 ^ (z2 >> k), z0 ^ ((z1 >> k) | ((z2 << (22 - k)) & 0x3FFFFF))


@jit("i(iiii)", exported=True)
def random_below(seed_high: int, seed_low: int, number: int, limit: int) -> int:
    """splitmix64 modulo ``limit`` (< 2**40): output ``number`` (0, 1, ...) of a seed.

    Steele, Lea and Flood, OOPSLA 2014: mix(seed + (number + 1) * golden gamma), counter
    based, on limbs, so that both engines compute it without overflow. The seed comes in halves of
    32 bits.
    """
    n = number + 1
    z2, z1, z0 = multiply64(
        GAMMA[0], GAMMA[1], GAMMA[2], n >> 44, (n >> 22) & 0x3FFFFF, n & 0x3FFFFF
    )
    z0 += seed_low & 0x3FFFFF
    z1 += ((seed_low >> 22) | ((seed_high & 0xFFF) << 10)) + (z0 >> 22)
    z2 += (seed_high >> 12) + (z1 >> 22)
    z2, z1, z0 = fold64(z2 & 0xFFFFF, z1 & 0x3FFFFF, z0 & 0x3FFFFF, 30)
    z2, z1, z0 = multiply64(z2, z1, z0, MIX1[0], MIX1[1], MIX1[2])
    z2, z1, z0 = fold64(z2, z1, z0, 27)
    z2, z1, z0 = multiply64(z2, z1, z0, MIX2[0], MIX2[1], MIX2[2])
    z2, z1, z0 = fold64(z2, z1, z0, 31)
    high = ((z2 % limit) * (1 << 22) + z1) % limit
    return (high * (1 << 22) + z0) % limit


# ------------------------------------------------------------------------------------- pool


@jit("d(mfi)")
def inverse(m: Ints, f: Doubles, s: int) -> float:
    """1 / score without the factor staleness, from the bounds at hand: at least the true one."""
    n = m[N]
    kind = m[NUM]
    if kind == NUM_E:
        number = m[m[COST] + s] + m[m[LB] + s] + m[m[LB] + n + s]
    elif kind == NUM_ONE:
        number = 1
    elif kind == NUM_REV:
        number = m[m[COST] + s] + m[m[LB] + n + s]
    elif kind == NUM_LA:
        number = m[m[LA] + s]
    elif kind == NUM_COUNT:
        number = m[m[CN] + s] + m[m[CN] + n + s]
    else:
        number = m[m[COST] + s]
    size = m[m[S_SIZE] + s] if m[USE_M] else 1
    if size == 0:
        return 0.0
    if number <= 0:
        return ZERO
    value = float(size) / float(number)
    if m[PENALTY] == PENALTY_NBHD:
        value /= 1.0 + f[WEIGHT] * float(m[m[CN] + s] + m[m[CN] + n + s])
    elif m[PENALTY] == PENALTY_THRASH:
        value /= 1.0 + f[WEIGHT] * float(m[m[EVC] + s])
    return value


@jit("v(mfi)")
def refresh(m: Ints, f: Doubles, s: int) -> None:
    """Bring a candidate's entry in the pool up to date."""
    i = m[m[POS] + s]
    if i >= 0:
        f[KEY + i] = inverse(m, f, s)


@jit("d(mfi)")
def value_at(m: Ints, f: Doubles, i: int) -> float:
    """1 / score of the i-th entry of the pool, from the bounds; 0 when infinite or empty."""
    value = f[KEY + i]
    if m[USE_T]:
        value *= float(m[CLOCK] - m[m[POOL_LA] + i])
    if value > ZERO:
        return ZERO
    if value > 0.0:
        return value
    return 0.0


@jit("v(mf)")
def compact(m: Ints, f: Doubles) -> None:
    """Close the gaps that departed storages left in the pool."""
    k = 0
    for i in range(m[POOL_N]):
        s = m[m[POOL_S] + i]
        if s >= 0:
            m[m[POOL_S] + k] = s
            m[m[POOL_LA] + k] = m[m[POOL_LA] + i]
            f[KEY + k] = f[KEY + i]
            m[m[POS] + s] = k
            k += 1
    m[POOL_N] = k


@jit("v(mfi)")
def enter(m: Ints, f: Doubles, s: int) -> None:
    """Storage s joins the end of the pool."""
    if m[POOL_N] == m[POOL_CAP]:
        compact(m, f)
    i = m[POOL_N]
    m[m[POOL_S] + i] = s
    m[m[POOL_LA] + i] = m[m[LA] + s]
    f[KEY + i] = inverse(m, f, s)
    m[m[POS] + s] = i
    m[POOL_N] = i + 1
    m[POOL_LIVE] += 1
    m[POOL_BYTES] += m[m[S_SIZE] + s]


@jit("v(mfi)")
def leave(m: Ints, f: Doubles, s: int) -> None:
    """Storage s leaves the pool; the others keep their order."""
    i = m[m[POS] + s]
    m[m[POS] + s] = -1
    m[m[POOL_S] + i] = -1
    m[m[POOL_LA] + i] = UNBOUNDED
    f[KEY + i] = 0.0
    if i == m[POOL_N] - 1:
        m[POOL_N] = i
    m[POOL_LIVE] -= 1
    m[POOL_BYTES] -= m[m[S_SIZE] + s]


@jit("v(mfi)")
def lock(m: Ints, f: Doubles, s: int) -> None:
    if m[m[LOCKS] + s] == 0 and m[m[POS] + s] >= 0:
        leave(m, f, s)
    m[m[LOCKS] + s] += 1


@jit("v(mfi)")
def unlock(m: Ints, f: Doubles, s: int) -> None:
    m[m[LOCKS] + s] -= 1
    if m[m[LOCKS] + s] == 0 and m[m[ICOST] + s] < 0:
        enter(m, f, s)


@jit("v(mfi)")
def touch(m: Ints, f: Doubles, s: int) -> None:
    """Storage s is accessed now."""
    m[m[LA] + s] = m[CLOCK]
    i = m[m[POS] + s]
    if i >= 0:
        m[m[POOL_LA] + i] = m[CLOCK]
        if m[NUM] == NUM_LA:
            f[KEY + i] = inverse(m, f, s)


# ---------------------------------------------------------------------------------- regions


@jit("iiibb(miibiii)")
def explore(
    m: Ints, s: int, base: int, old: bool, bound: int, queue: int, front: int
) -> tuple[int, int, int, bool, bool]:
    """The region of storage s in direction ``base``, by a search of the storage graph.

    The array at ``queue`` receives the members, that at ``front`` the material storages at the
    edge. With ``old`` the pending operator is left out. Gives up once the sum exceeds ``bound``.
    Returns the sum, the numbers of members and of storages at the edge, whether the pending
    operator was met, and whether the search is complete.
    """
    stamp, icost, adj, cnt = m[STAMP], m[ICOST], m[ADJ], m[CNT] + base
    adj_ptr = m[ADJ_PTR] + base
    transit = m[NPEND] > 0
    epoch = m[EPOCH] + 1
    m[EPOCH] = epoch
    m[stamp + s] = epoch
    total = 0
    members = 0
    edge = 0
    met = False
    done = 0
    u = s
    while True:
        first = adj + m[adj_ptr + u]
        for k in range(first, first + m[cnt + u]):
            v = m[k]
            if m[stamp + v] != epoch:
                m[stamp + v] = epoch
                cost = m[icost + v]
                if cost < 0:
                    m[front + edge] = v
                    edge += 1
                else:
                    if transit and (m[m[PEND] + v] != 0 or m[m[DELTA] + v] != 0):
                        met = True
                        if old:
                            if m[m[PEND] + v] != 0:
                                continue
                            cost -= m[m[DELTA] + v]
                    m[queue + members] = v
                    members += 1
                    total += cost
        if done == members:
            return total, members, edge, met, True
        if total > bound:
            return total, members, edge, met, False
        u = m[queue + done]
        done += 1


@jit("b(mi)")
def sees_old(m: Ints, row: int) -> bool:
    """Whether the region of a row is canonical in the graph without the pending operator."""
    return m[NPEND] > 0 and m[m[VER] + row] != m[GRAPH]


@jit("v(mf)")
def forget_watches(m: Ints, f: Doubles) -> None:
    """Empty the watch lists: no lower bound over parents is known any more."""
    n = m[N]
    for s in range(n):
        m[m[W_HEAD] + s] = -1
        m[m[W_AGE] + s] += 1
        if m[m[HELD] + n + s] < 0:
            m[m[LB] + n + s] = 0
            m[m[CN] + n + s] = 0
            m[m[EX] + n + s] = 0
    m[W_TOP] = 0
    m[W_FREE] = -1
    m[W_LOOSE_N] = 0
    m[W_FRESH] = 0
    for i in range(m[POOL_N]):
        if m[m[POOL_S] + i] >= 0:
            refresh(m, f, m[m[POOL_S] + i])
        else:
            # The keys are not part of a saved state: a place may have had another's since.
            f[KEY + i] = 0.0


@jit("b(mi)")
def outdated(m: Ints, entry: int) -> bool:
    """Whether who left this entry has searched anew since, or is gone."""
    return entry >> 24 != m[m[W_AGE] + (entry & 0xFFFFFF)]


@jit("v(m)")
def drop_outdated(m: Ints) -> None:
    """Free the entries of all watch lists that no longer mean anything."""
    for s in range(m[N]):
        kept = -1
        k = m[m[W_HEAD] + s]
        while k >= 0:
            after = m[m[W_NEXT] + k]
            if outdated(m, m[m[W_ROW] + k]):
                m[m[W_NEXT] + k] = m[W_FREE]
                m[W_FREE] = k
            else:
                m[m[W_NEXT] + k] = kept
                kept = k
            k = after
        m[m[W_HEAD] + s] = kept
    m[W_FRESH] = 0


@jit("b(mii)")
def watch(m: Ints, s: int, c: int) -> bool:
    """Storage c counts the evicted s in its bound over parents: tell it when s reappears.

    False when there is no room: then c must be `loosen`ed.
    """
    if m[W_FREE] < 0 and m[W_TOP] == m[W_CAP]:
        if 4 * m[W_FRESH] < m[W_CAP]:
            return False
        drop_outdated(m)
        if m[W_FREE] < 0:
            return False
    k = m[W_FREE]
    if k >= 0:
        m[W_FREE] = m[m[W_NEXT] + k]
    else:
        k = m[W_TOP]
        m[W_TOP] = k + 1
    m[W_FRESH] += 1
    m[m[W_ROW] + k] = (m[m[W_AGE] + c] << 24) | c
    m[m[W_NEXT] + k] = m[m[W_HEAD] + s]
    m[m[W_HEAD] + s] = k
    return True


@jit("v(mi)")
def loosen(m: Ints, c: int) -> None:
    """Nobody will tell c what reappears: count everything that does against its bound."""
    m[m[W_AGE] + c] += 1
    if m[W_LOOSE_N] == m[N]:
        still_loose(m)
    m[m[W_LOOSE] + m[W_LOOSE_N]] = (m[m[W_AGE] + c] << 24) | c
    m[W_LOOSE_N] += 1


@jit("v(m)")
def still_loose(m: Ints) -> None:
    """Forget the loose storages that have searched anew since."""
    kept = 0
    for k in range(m[W_LOOSE_N]):
        entry = m[m[W_LOOSE] + k]
        if not outdated(m, entry):
            m[m[W_LOOSE] + kept] = entry
            kept += 1
    m[W_LOOSE_N] = kept


@jit("v(mfii)")
def discount(m: Ints, f: Doubles, c: int, s: int) -> None:
    """Take the reappeared s out of the bound of c over parents."""
    row = m[N] + c
    m[m[LB] + row] = max(m[m[LB] + row] - m[m[COST] + s], 0)
    m[m[CN] + row] = max(m[m[CN] + row] - 1, 0)
    refresh(m, f, c)


@jit("v(mfib)")
def notify(m: Ints, f: Doubles, s: int, count: bool) -> None:
    """Storage s has reappeared: take it out of the bounds that ``count`` it; nobody watches it."""
    k = m[m[W_HEAD] + s]
    while k >= 0:
        entry = m[m[W_ROW] + k]
        if count and not outdated(m, entry):
            discount(m, f, entry & 0xFFFFFF, s)
        after = m[m[W_NEXT] + k]
        m[m[W_NEXT] + k] = m[W_FREE]
        m[W_FREE] = k
        k = after
    m[m[W_HEAD] + s] = -1
    if count and m[W_LOOSE_N] > 0:
        still_loose(m)
        for k in range(m[W_LOOSE_N]):
            c = m[m[W_LOOSE] + k] & 0xFFFFFF
            m[m[EX] + m[N] + c] = 0
            discount(m, f, c, s)


@jit("v(mii)")
def watch_all(m: Ints, c: int, members: int) -> None:
    """Storage c has just searched its parents: watch the members found, in ``qc``."""
    m[m[W_AGE] + c] += 1
    for k in range(members):
        if not watch(m, m[m[QC] + k], c):
            loosen(m, c)
            return


@jit("v(mfii)")
def settle(m: Ints, f: Doubles, s: int, bound: int) -> None:
    """Make the sums of s exact, or raise a lower bound so that all three terms exceed ``bound``."""
    n = m[N]
    era = m[ERA]
    regions = m[REGIONS]
    for d in range(2):
        row = d * n + s
        if (regions >> d) & 1 and m[m[EX] + row] != era:
            if m[m[HELD] + row] >= 0:
                m[m[EX] + row] = era
                continue
            rest = m[m[COST] + s]
            if (regions >> (1 - d)) & 1:
                rest += m[m[LB] + n - d * n + s]
            total, members, _, _, complete = explore(
                m, s, d * n, sees_old(m, row), bound - rest, m[QC], m[FC]
            )
            if not complete and total <= m[m[LB] + row]:
                break
            m[m[LB] + row] = total
            m[m[CN] + row] = members
            if d == 1:
                watch_all(m, s, members)
            if not complete:
                break
            m[m[EX] + row] = era
    refresh(m, f, s)


@jit("v(m)")
def flush_releases(m: Ints) -> None:
    """Let the storages that released ones lie behind know that their sums are no longer exact."""
    released = m[NREL]
    m[NREL] = 0
    if released == 0:
        return
    if released > MANY:
        m[ERA] += 1
        return
    n = m[N]
    for d in range(2):
        if not (m[REGIONS] >> d) & 1:
            continue
        base = n - d * n
        m[EPOCH] += 1
        epoch = m[EPOCH]
        members = 0
        for k in range(released):
            s = m[m[REL] + k]
            if m[m[ICOST] + s] >= 0 and m[m[STAMP] + s] != epoch:
                m[m[STAMP] + s] = epoch
                m[m[QC] + members] = s
                members += 1
        done = 0
        while done < members:
            u = m[m[QC] + done]
            done += 1
            first = m[m[ADJ_PTR] + base + u]
            for k in range(first, first + m[m[CNT] + base + u]):
                v = m[m[ADJ] + k]
                if m[m[STAMP] + v] != epoch:
                    m[m[STAMP] + v] = epoch
                    if m[m[ICOST] + v] < 0:
                        m[m[EX] + d * n + v] = 0
                    else:
                        m[m[QC] + members] = v
                        members += 1


@jit("v(mfi)")
def hold(m: Ints, f: Doubles, row: int) -> None:
    """Keep the region of a row as an explicit set from now on: it stops being canonical."""
    n = m[N]
    base = n if row >= n else 0
    s = row - base
    if m[m[HELD] + row] >= 0 or m[m[PINNED] + s]:
        return
    if m[NHELD] == m[SLOTS]:
        m[STATUS] = MORE_SLOTS
        return
    total, members, edge, _, _ = explore(m, s, base, sees_old(m, row), UNBOUNDED, m[QC], m[FC])
    slot = m[m[SLOT_FREE] + m[NHELD]]
    m[NHELD] += 1
    words = m[WORDS]
    inner = slot * 2 * words
    for k in range(inner, inner + 2 * words):
        m[m[SLOT] + k] = 0
    for k in range(members):
        v = m[m[QC] + k]
        m[m[SLOT] + inner + (v >> 5)] |= 1 << (v & 31)
    for k in range(edge):
        v = m[m[FC] + k]
        m[m[SLOT] + inner + words + (v >> 5)] |= 1 << (v & 31)
    if base == n:
        m[m[W_AGE] + s] += 1
    m[m[HELD] + row] = slot
    m[m[LB] + row] = total
    m[m[CN] + row] = members
    m[m[EX] + row] = m[ERA]
    refresh(m, f, s)


@jit("v(mi)")
def drop(m: Ints, row: int) -> None:
    """The region of a row is canonical again, or gone."""
    if m[m[HELD] + row] >= 0:
        m[NHELD] -= 1
        m[m[SLOT_FREE] + m[NHELD]] = m[m[HELD] + row]
        m[m[HELD] + row] = -1
        m[m[EX] + row] = 0
        if row >= m[N]:
            # Nothing is watched for a held region, so that nothing of its sum is known any more.
            m[m[LB] + row] = 0
            m[m[CN] + row] = 0


@jit("v(mii)")
def join(m: Ints, row: int, v: int) -> None:
    """Storage v becomes a member of a held region, at its present cost."""
    k = m[m[HELD] + row] * 2 * m[WORDS] + (v >> 5)
    bit = 1 << (v & 31)
    if not m[m[SLOT] + k] & bit:
        m[m[SLOT] + k] |= bit
        m[m[LB] + row] += m[m[COST] + v]
        m[m[CN] + row] += 1


@jit("v(mfiiii)")
def absorb(m: Ints, f: Doubles, row: int, s: int, total: int, members: int) -> None:
    """A canonical region takes in s, about to be evicted, and the region of s."""
    n = m[N]
    if members > 0 or m[m[EX] + row] != m[ERA]:
        m[m[EX] + row] = 0
        if row < n:
            m[m[LB] + row] = max(m[m[LB] + row], total)
            m[m[CN] + row] = max(m[m[CN] + row], members)
    m[m[LB] + row] += m[m[COST] + s]
    m[m[CN] + row] += 1
    if row >= n and not watch(m, s, row - n):
        loosen(m, row - n)
    refresh(m, f, row % n)


@jit("v(mfiiiiibiiii)")
def absorb_all(
    m: Ints,
    f: Doubles,
    s: int,
    base: int,
    total: int,
    members: int,
    edge: int,
    met: bool,
    queue: int,
    front: int,
    holders: int,
    count: int,
) -> None:
    """All regions of one direction that reach s, about to be evicted, take in s and its region.

    ``total`` to ``front`` describe the region of s as `explore` found it, ``holders`` the
    ``count`` storages that reach s: those at the edge of its region in the other direction.
    """  # fmt: skip
    n = m[N]
    other = n - base
    own = base + s
    if m[NHELD] == 0 and not met:
        for k in range(count):
            absorb(m, f, base + m[holders + k], s, total, members)
        return
    words = m[WORDS]
    explicit = m[m[HELD] + own] >= 0
    for k in range(count):
        p = m[holders + k]
        if m[m[PINNED] + p]:
            continue
        row = base + p
        if m[m[HELD] + other + s] >= 0:
            known = m[m[HELD] + other + s] * 2 * words + words
            if not m[m[SLOT] + known + (p >> 5)] & (1 << (p & 31)):
                hold(m, f, row)
                continue
        # A member with a pending view is taken in at its present cost, which the old graph lacks.
        mixed = met and (
            sees_old(m, row) != sees_old(m, own) or (m[NDELTA] > 0 and sees_old(m, row))
        )
        if m[m[HELD] + row] < 0 and not explicit and not mixed:
            absorb(m, f, row, s, total, members)
            continue
        hold(m, f, row)
        if m[m[HELD] + row] < 0:
            return
        inner = m[m[HELD] + row] * 2 * words
        m[m[SLOT] + inner + words + (s >> 5)] &= ~(1 << (s & 31))
        join(m, row, s)
        if explicit:
            mine = m[m[HELD] + own] * 2 * words
            for i in range(words):
                fresh = m[m[SLOT] + mine + i] & ~m[m[SLOT] + inner + i]
                for j in range(32):
                    if (fresh >> j) & 1:
                        join(m, row, i * 32 + j)
                m[m[SLOT] + inner + words + i] |= m[m[SLOT] + mine + words + i]
        else:
            for i in range(members):
                join(m, row, m[queue + i])
            for i in range(edge):
                v = m[front + i]
                m[m[SLOT] + inner + words + (v >> 5)] |= 1 << (v & 31)
        refresh(m, f, p)


@jit("v(mfiiib)")
def rebuild(m: Ints, f: Doubles, row: int, lost: int, members: int, alone: bool) -> None:
    """A region is made anew, because ``members`` worth at most ``lost`` may have left it."""
    known = m[m[EX] + row] == m[ERA] and m[m[HELD] + row] < 0 and not sees_old(m, row)
    drop(m, row)
    m[m[LB] + row] = max(m[m[LB] + row] - lost, 0)
    m[m[CN] + row] = 0 if lost == UNBOUNDED else max(m[m[CN] + row] - members, 0)
    if not (known and alone):
        m[m[EX] + row] = 0
    m[m[VER] + row] = m[GRAPH]
    refresh(m, f, row % m[N])


@jit("b(miii)")
def among_new(m: Ints, count: int, front: int, edge: int) -> bool:
    """Whether one of the storages ``new[:count]`` lies at an edge."""
    for i in range(edge):
        for j in range(count):
            if m[front + i] == m[m[NEW] + j]:
                return True
    return False


@jit("v(mfi)")
def appear_apart(m: Ints, f: Doubles, count: int) -> None:
    """As `appear`, for any graph: the regions around are found by searches."""
    n = m[N]
    for k in range(count):
        s = m[m[NEW] + k]
        down = explore(m, s, 0, False, UNBOUNDED, m[QA], m[FA])
        up = explore(m, s, n, False, UNBOUNDED, m[QC], m[FB])
        for row in (s, n + s):
            m[m[VER] + row] = m[GRAPH]
            m[m[EX] + row] = m[ERA]
        m[m[LB] + s], m[m[CN] + s] = down[0], down[1]
        m[m[LB] + n + s], m[m[CN] + n + s] = up[0], up[1]
        watch_all(m, s, up[1])
        lost_down, lost_up = down[0] + m[m[COST] + s], up[0] + m[m[COST] + s]
        down_alone, up_alone = down[1] == 0, up[1] == 0
        if count > 1 and (among_new(m, count, m[FA], down[2]) or among_new(m, count, m[FB], up[2])):
            # What lay behind another new storage is lost as well, and was not counted here.
            lost_down, lost_up = UNBOUNDED, UNBOUNDED
            down_alone, up_alone = False, False
        notify(m, f, s, False)
        for i in range(up[2]):
            rebuild(m, f, m[m[FB] + i], lost_down, down[1] + 1, down_alone)
        for i in range(down[2]):
            rebuild(m, f, n + m[m[FA] + i], lost_up, up[1] + 1, up_alone)


@jit("v(mii)")
def near(m: Ints, row: int, s: int) -> None:
    """Bound the sum of a row by the evicted neighbours of its storage s."""
    total = 0
    members = 0
    first = m[ADJ] + m[m[ADJ_PTR] + row]
    for k in range(first, first + m[m[CNT] + row]):
        cost = m[m[ICOST] + m[k]]
        if cost >= 0:
            total += cost
            members += 1
    m[m[LB] + row] = total
    m[m[CN] + row] = members
    m[m[EX] + row] = m[ERA] if members == 0 else 0
    m[m[VER] + row] = m[GRAPH]


@jit("v(mfi)")
def appear(m: Ints, f: Doubles, count: int) -> None:
    """The storages ``new[:count]`` are rematerialised: the regions around them are rebuilt.

    Usually all their parents are there: behind the new storages then lies nothing evicted, so that
    who reaches them from below loses just them, and who reaches them from above is a parent.
    """
    n = m[N]
    plain = m[NHELD] == 0 and m[NDELTA] == 0
    for k in range(count):
        row = n + m[m[NEW] + k]
        first = m[ADJ] + m[m[ADJ_PTR] + row]
        for j in range(first, first + m[m[CNT] + row]):
            if m[m[ICOST] + m[j]] >= 0:
                plain = False
    if not plain:
        appear_apart(m, f, count)
        return
    for k in range(count):
        s = m[m[NEW] + k]
        notify(m, f, s, True)
        near(m, s, s)
        near(m, n + s, s)
        first = m[ADJ] + m[m[ADJ_PTR] + n + s]
        for j in range(first, first + m[m[CNT] + n + s]):
            near(m, m[j], m[j])
            refresh(m, f, m[j])


# ---------------------------------------------------------------------------------- classes


@jit("i(mi)")
def find(m: Ints, x: int) -> int:
    uf = m[UF]
    while m[uf + x] != x:
        m[uf + x] = m[uf + m[uf + x]]
        x = m[uf + x]
    return x


@jit("v(m)")
def renumber(m: Ints) -> None:
    """Forget the nodes of the union-find structure that no storage needs."""
    for k in range(m[UF_N]):
        m[m[SEEN] + k] = 0
    for s in range(m[N]):
        if m[m[NODE] + s] >= 0:
            m[m[NODE] + s] = find(m, m[m[NODE] + s])
            m[m[SEEN] + m[m[NODE] + s]] = 1
    last = 0
    for k in range(m[UF_N]):
        if m[m[SEEN] + k]:
            m[m[UFC] + last] = m[m[UFC] + k]
            m[m[SEEN] + k] = last
            last += 1
    for s in range(m[N]):
        if m[m[NODE] + s] >= 0:
            m[m[NODE] + s] = m[m[SEEN] + m[m[NODE] + s]]
    for k in range(m[UF_N]):
        m[m[SEEN] + k] = 0
        m[m[UF] + k] = k
    m[UF_N] = last


@jit("v(mii)")
def new_node(m: Ints, s: int, cost: int) -> None:
    if m[UF_N] == m[UF_CAP]:
        renumber(m)
    k = m[UF_N]
    m[UF_N] = k + 1
    m[m[UF] + k] = k
    m[m[UFC] + k] = cost
    m[m[NODE] + s] = k


@jit("v(mi)")
def merge_classes(m: Ints, s: int) -> None:
    """Storage s has been evicted: its node joins the classes of its evicted neighbours."""
    n = m[N]
    new_node(m, s, m[m[COST] + s])
    for d in range(2):
        first = m[m[ADJ_PTR] + d * n + s]
        for k in range(first, first + m[m[CNT] + d * n + s]):
            v = m[m[ADJ] + k]
            if m[m[ICOST] + v] >= 0:
                a = find(m, m[m[NODE] + s])
                b = find(m, m[m[NODE] + v])
                if a != b:
                    m[m[UF] + b] = a
                    m[m[UFC] + a] += m[m[UFC] + b]


@jit("v(mi)")
def leave_class(m: Ints, s: int) -> None:
    m[m[UFC] + find(m, m[m[NODE] + s])] -= m[m[COST] + s]
    m[m[NODE] + s] = -1


@jit("i(mi)")
def class_costs(m: Ints, s: int) -> int:
    """The summed cost of the distinct classes among the evicted neighbours of s."""
    n = m[N]
    m[EPOCH] += 1
    epoch = m[EPOCH]
    total = 0
    for d in range(2):
        first = m[m[ADJ_PTR] + d * n + s]
        for k in range(first, first + m[m[CNT] + d * n + s]):
            v = m[m[ADJ] + k]
            if m[m[ICOST] + v] >= 0:
                a = find(m, m[m[NODE] + v])
                if m[m[SEEN] + a] != epoch:
                    m[m[SEEN] + a] = epoch
                    total += m[m[UFC] + a]
    return total


# ------------------------------------------------------------------------------- the choice


@jit("i(mi)")
def staleness(m: Ints, s: int) -> int:
    return m[CLOCK] - m[m[LA] + s]


@jit("i(mi)")
def numerator(m: Ints, s: int) -> int:
    """The exact numerator of a score, once s is settled."""
    n = m[N]
    kind = m[NUM]
    if kind == NUM_E:
        return m[m[COST] + s] + m[m[LB] + s] + m[m[LB] + n + s]
    if kind == NUM_ONE:
        return 1
    if kind == NUM_REV:
        return m[m[COST] + s] + m[m[LB] + n + s]
    if kind == NUM_LA:
        return m[m[LA] + s]
    if kind == NUM_COUNT:
        return m[m[CN] + s] + m[m[CN] + n + s]
    if kind == NUM_EQ:
        return m[m[COST] + s] + class_costs(m, s)
    return m[m[COST] + s]


@jit("d(mfi)")
def score(m: Ints, f: Doubles, s: int) -> float:
    """The score of a settled candidate with a finite score, rounded as Python rounds it."""
    n = m[N]
    value = quotient(
        numerator(m, s),
        m[m[S_SIZE] + s] if m[USE_M] else 1,
        staleness(m, s) if m[USE_T] else 1,
    )
    if m[PENALTY] == PENALTY_NBHD:
        value *= 1.0 + f[WEIGHT] * float(m[m[CN] + s] + m[m[CN] + n + s])
    elif m[PENALTY] == PENALTY_THRASH:
        value *= 1.0 + f[WEIGHT] * float(m[m[EVC] + s])
    return value


@jit("i(mfii)")
def compare(m: Ints, f: Doubles, a: int, b: int) -> int:
    """-1, 0 or 1: how the exact scores of two settled candidates stand to each other."""
    if m[INTEGRAL]:
        x, y = numerator(m, a), numerator(m, b)
        return -1 if x < y else (1 if x > y else 0)
    p, q = score(m, f, a), score(m, f, b)
    return -1 if p < q else (1 if p > q else 0)


@jit("b(miiii)")
def allowed(m: Ints, i: int, least: int, last: int, below: int) -> bool:
    """Whether an entry of the pool may be chosen.

    Its size is above ``least``, or equal and its id at most ``last``; its rank at least ``below``.
    """
    s = m[m[POOL_S] + i]
    return (
        s >= 0
        and (m[m[S_SIZE] + s] > least or (m[m[S_SIZE] + s] == least and s <= last))
        and m[m[RANK] + s] >= below
    )


@jit("b(mii)")
def larger(m: Ints, i: int, best: int) -> bool:
    """Whether an entry of the pool goes before another by size, then by the smaller id."""
    if best < 0:
        return True
    s, b = m[m[POOL_S] + i], m[m[POOL_S] + best]
    if m[m[S_SIZE] + s] == m[m[S_SIZE] + b]:
        return s < b
    return m[m[S_SIZE] + s] > m[m[S_SIZE] + b]


@jit("i(miiib)")
def without_score(m: Ints, least: int, last: int, below: int, by_size: bool) -> int:
    """The choice when all scores are infinite: the last allowed entry, or the largest."""
    best = -1
    for i in range(m[POOL_N]):
        if allowed(m, i, least, last, below) and (not by_size or larger(m, i, best)):
            best = i
    return best


@jit("i(miid)")
def ceiling(m: Ints, s: int, last_access: int, inverse: float) -> int:
    """How far to sum for a candidate that must reach an inverse score to matter.

    Four times the numerator at which it no longer does: the same candidate comes up again and
    again while the least score slowly grows, and a search that goes on for a while saves many.
    """
    if m[NUM] == NUM_COUNT:
        return UNBOUNDED
    factor = float(m[m[S_SIZE] + s]) if m[USE_M] else 1.0
    if m[USE_T]:
        factor *= float(m[CLOCK] - last_access)
    limit = factor / inverse
    return 4 * int(limit) + 1 if limit < 1e18 else UNBOUNDED


@jit("i(mfiiib)")
def least_score(m: Ints, f: Doubles, least: int, last: int, below: int, by_size: bool) -> int:
    """The entry of the pool with the least score among the allowed ones; -1 if there are none.

    Ties: the last one, but the first one among zero scores; with ``by_size`` the largest, then the
    one with the smaller id. First the most promising candidate is settled, then only those whose
    bounds could still beat it.
    """
    filtered = least >= 0 or below > 0
    ages, end = m[POOL_LA], m[POOL_N]
    clock = m[CLOCK]
    timed = m[USE_T] != 0
    best = -1
    value = 0.0
    for i in range(end):
        v = f[KEY + i]
        if timed:
            v *= float(clock - m[ages + i])
        if v > value and (not filtered or allowed(m, i, least, last, below)):
            best = i
            value = v
    if best < 0:
        return without_score(m, least, last, below, by_size)
    lazy = m[REGIONS] != 0
    start = best
    if lazy:
        settle(m, f, m[m[POOL_S] + best], UNBOUNDED)
    value = value_at(m, f, best)
    threshold = value * (1.0 - NEAR)
    for i in range(end):
        v = f[KEY + i]
        if timed:
            v *= float(clock - m[ages + i])
        if v < threshold or i == start or (filtered and not allowed(m, i, least, last, below)):
            continue
        s = m[m[POOL_S] + i]
        if s < 0:
            continue
        if lazy:
            settle(m, f, s, ceiling(m, s, m[ages + i], threshold))
        v = value_at(m, f, i)
        if v < threshold:
            continue
        if v * (1.0 - NEAR) <= value:
            order = compare(m, f, s, m[m[POOL_S] + best])
            if order > 0:
                continue
            if order == 0:
                if by_size:
                    if not larger(m, i, best):
                        continue
                elif (value >= ZERO) == (i > best):
                    continue
        best = i
        value = v
        threshold = value * (1.0 - NEAR)
    return best


@jit("i(m)")
def first_in_order(m: Ints) -> int:
    """The choice by a scan in pool order, for scores that have no useful bounds.

    The last least score wins; the scan ends at the first zero score.
    """
    kind = m[NUM]
    best = -1
    best_value = math.inf
    best_a, best_b, best_c = 0, 1, 1
    for i in range(m[POOL_N]):
        s = m[m[POOL_S] + i]
        if s < 0:
            continue
        a, b, c = m[m[COST] + s], 1, 1
        if m[USE_M]:
            b = m[m[S_SIZE] + s]
        if m[USE_T]:
            c = staleness(m, s)
        if kind == NUM_EQ:
            a += class_costs(m, s)
        elif (
            b > 0
            and c > 0
            and best >= 0
            and float(a) / (float(b) * float(c)) > best_value * (1.0 + NEAR)
        ):
            continue
        if kind == NUM_UNOPT:
            a, c = neighbourhood(m, s)
        value = math.inf
        if b > 0 and c > 0:
            value = float(a) / (float(b) * float(c))
        if value == math.inf:
            if best_value == math.inf:
                best = i
            continue
        if a == 0:
            if best_value >= 0.0:
                best = i
            break
        if best_value < math.inf and abs(value - best_value) <= NEAR * abs(best_value):
            if m[INTEGRAL]:
                if a > best_a:
                    continue
            elif quotient(a, b, c) > quotient(best_a, best_b, best_c):
                continue
        elif value > best_value:
            continue
        best, best_value = i, value
        best_a, best_b, best_c = a, b, c
    return best


@jit("ii(mi)")
def neighbourhood(m: Ints, s: int) -> tuple[int, int]:
    """dtr-unopt: the cost of s and its evicted neighbourhood, and its staleness as a whole."""
    n = m[N]
    down = explore(m, s, 0, False, UNBOUNDED, m[QA], m[FA])
    up = explore(m, s, n, False, UNBOUNDED, m[QB], m[FB])
    m[EPOCH] += 1
    epoch = m[EPOCH]
    total = m[m[COST] + s] + down[0]
    latest = m[m[LA] + s]
    for k in range(down[1]):
        v = m[m[QA] + k]
        m[m[STAMP] + v] = epoch
        latest = max(latest, m[m[LA] + v])
    for k in range(up[1]):
        v = m[m[QB] + k]
        if m[m[STAMP] + v] != epoch:
            total += m[m[ICOST] + v]
            latest = max(latest, m[m[LA] + v])
    return total, m[CLOCK] - latest


@jit("i(mfo)")
def own_choice(m: Ints, f: Doubles, own: Scan) -> int:
    """The choice by a score function of the user's: what it reads is made exact, then it scans."""
    if m[REGIONS]:
        for i in range(m[POOL_N]):
            if m[m[POOL_S] + i] >= 0:
                settle(m, f, m[m[POOL_S] + i], UNBOUNDED)
    if m[CLASSES]:
        for i in range(m[POOL_N]):
            s = m[m[POOL_S] + i]
            if s >= 0:
                m[m[QC] + s] = class_costs(m, s)
    return own(m, f)


@jit("i(mfi)")
def two_phase(m: Ints, f: Doubles, need: int) -> int:
    """Of the candidates as large as the shortfall, else of the k largest: the least e-stale score.

    Each candidate's size is compared with the shortfall, and so with the budget: the interval
    narrows by ``need`` less each size.
    """
    budget = m[BUDGET]
    large = False
    for i in range(m[POOL_N]):
        s = m[m[POOL_S] + i]
        if s >= 0:
            threshold = need - m[m[S_SIZE] + s]
            if budget >= threshold:
                m[LO] = max(m[LO], threshold)
                large = True
            else:
                m[HI] = min(m[HI], threshold)
    least, last = need - budget, UNBOUNDED
    if not large:
        least, last = UNBOUNDED, UNBOUNDED
        for _ in range(min(m[TOPK], m[POOL_LIVE])):
            size, number = -1, -1
            for i in range(m[POOL_N]):
                s = m[m[POOL_S] + i]
                if s >= 0:
                    here = m[m[S_SIZE] + s]
                    beyond = here < least or (here == least and s > last)
                    if beyond and (here > size or (here == size and s < number)):
                        size, number = here, s
            least, last = size, number
    return least_score(m, f, least, last, 0, True)


@jit("i(mf)")
def tie_aware(m: Ints, f: Doubles) -> int:
    """Among scores within a relative tolerance of the least: the largest, then the smaller id."""
    best = least_score(m, f, -1, 0, 0, True)
    b = m[m[POOL_S] + best]
    value = value_at(m, f, best)
    if value == 0.0:
        return best
    limit = score(m, f, b) * (1.0 + f[TOLERANCE])
    threshold = value / (1.0 + f[TOLERANCE]) * (1.0 - NEAR)
    for i in range(m[POOL_N]):
        if value_at(m, f, i) >= threshold and m[m[POOL_S] + i] >= 0:
            s = m[m[POOL_S] + i]
            if not larger(m, i, best):
                continue
            settle(m, f, s, UNBOUNDED)
            if value_at(m, f, i) >= threshold and score(m, f, s) <= limit:
                best = i
    return best


@jit("i(mfi)")
def locked_share(m: Ints, f: Doubles, budget: int) -> int:
    """t-control: how many of the highest-ranked storages are locked at a budget."""
    free = budget - m[MEMORY]
    share = quotient(free, budget, 1) if free > 0 else 0.0
    count = math.ceil((f[ALPHA] * share + f[FLOOR]) * float(m[N]))
    return min(int(count), m[N])


@jit("i(mf)")
def t_control(m: Ints, f: Doubles) -> int:
    """The least dtr score among the storages that are not locked, or among all of them.

    The number of locked storages grows with the budget; the interval is narrowed to the budgets
    with the same number, found by bisection.
    """
    budget = m[BUDGET]
    count = locked_share(m, f, budget)
    low, high = m[LO], budget
    while low < high:
        middle = low + (high - low) // 2
        if locked_share(m, f, middle) == count:
            high = middle
        else:
            low = middle + 1
    m[LO] = low
    low, high = budget + 1, m[HI]
    while low < high:
        middle = low + (high - low) // 2
        if locked_share(m, f, middle) == count:
            low = middle + 1
        else:
            high = middle
    m[HI] = low
    best = least_score(m, f, -1, 0, count, False)
    if best < 0:
        best = least_score(m, f, -1, 0, 0, False)
    return best


@jit("i(mi)")
def nth(m: Ints, index: int) -> int:
    """The entry at a place of the pool, departed storages not counted."""
    for i in range(m[POOL_N]):
        if m[m[POOL_S] + i] >= 0:
            if index == 0:
                return i
            index -= 1
    return -1


@jit("i(mfoi)")
def choose(m: Ints, f: Doubles, own: Scan, need: int) -> int:
    """The storage that the policy evicts; the pool is not empty."""
    if 3 * m[POOL_LIVE] < 2 * m[POOL_N]:
        compact(m, f)
    flush_releases(m)
    rule = m[RULE]
    if rule == RULE_MIN:
        kind = m[NUM]
        if kind == NUM_OWN:
            i = own_choice(m, f, own)
        elif kind in (NUM_EQ, NUM_UNOPT):
            i = first_in_order(m)
        else:
            i = least_score(m, f, -1, 0, 0, False)
    elif rule == RULE_RANDOM:
        place = random_below(m[SEED_HIGH], m[SEED_LOW], m[EVICTIONS], m[POOL_LIVE])
        i = nth(m, place)
    elif rule == RULE_TWO_PHASE:
        i = two_phase(m, f, need)
    elif rule == RULE_TIE:
        i = tie_aware(m, f)
    else:
        i = t_control(m, f)
    return m[m[POOL_S] + i]


# ------------------------------------------------------------------------------- the replay


@jit("v(mfib)")
def evict(m: Ints, f: Doubles, s: int, released: bool) -> None:
    """Storage s loses its memory, by the policy's choice or because it was ``released``."""
    n = m[N]
    if m[REGIONS]:
        if released and m[NHELD] == 0:
            k = m[NREL]
            if k <= MANY:
                m[m[REL] + k] = s
                m[NREL] = k + 1
        else:
            down = explore(m, s, 0, sees_old(m, s), UNBOUNDED, m[QA], m[FA])
            up = explore(m, s, n, sees_old(m, n + s), UNBOUNDED, m[QB], m[FB])
            # Held regions are kept in both directions: each needs the edges of the other.
            if m[REGIONS] & 1 or m[NHELD] > 0:
                absorb_all(
                    m, f, s, 0, down[0], down[1], down[2], down[3], m[QA], m[FA], m[FB], up[2]
                )
            if m[REGIONS] & 2 or m[NHELD] > 0:
                absorb_all(m, f, s, n, up[0], up[1], up[2], up[3], m[QB], m[FB], m[FA], down[2])
            drop(m, s)
            drop(m, n + s)
        m[m[W_AGE] + s] += 1
    if m[m[POS] + s] >= 0:
        leave(m, f, s)
    m[m[ICOST] + s] = m[m[COST] + s]
    m[MEMORY] -= m[m[S_SIZE] + s]
    for k in range(m[m[ST_PTR] + s], m[m[ST_PTR] + s + 1]):
        m[m[DEFINED] + m[m[ST] + k]] = 0
    m[EVICTIONS_ALL] += 1
    if m[m[EVC] + s] == 0:
        m[DISTINCT] += 1
    m[m[EVC] + s] += 1
    if m[CLASSES]:
        merge_classes(m, s)


@jit("v(mfi)")
def create(m: Ints, f: Doubles, op: int) -> None:
    """The outputs of an operator come into being, not yet computed."""
    n = m[N]
    regions = m[REGIONS] != 0
    waits = False
    for k in range(m[m[ARG_PTR] + op], m[m[ARG_PTR] + op + 1]):
        if not m[m[DEFINED] + m[m[ARGS] + k]]:
            waits = True
    if regions:
        for e in range(m[m[ED_PTR] + op], m[m[ED_PTR] + op + 1]):
            if m[m[ED_OLD] + e]:
                flush_releases(m)
                new_edge(m, f, m[m[ED_U] + e], m[m[ED_V] + e])
    for e in range(m[m[ED_PTR] + op], m[m[ED_PTR] + op + 1]):
        m[m[CNT] + m[m[ED_U] + e]] += 1
        m[m[CNT] + n + m[m[ED_V] + e]] += 1
    if regions and waits:
        m[GRAPH] = op + 1
    for k in range(m[m[OS_PTR] + op], m[m[OS_PTR] + op + 1]):
        s = m[m[OS] + k]
        m[m[COST] + s] += m[m[OP_COST] + op]
        if m[m[OS_NEW] + k]:
            m[m[ICOST] + s] = m[m[COST] + s]
            m[m[LA] + s] = NEVER
            if m[CLASSES]:
                new_node(m, s, 0)
            if regions and waits:
                m[m[PEND] + s] = 1
                m[NPEND] += 1
        elif m[m[ICOST] + s] >= 0:
            m[m[ICOST] + s] = m[m[COST] + s]
            if regions and m[m[OP_COST] + op] > 0:
                m[m[DELTA] + s] = m[m[OP_COST] + op]
                m[NPEND] += 1
                m[NDELTA] += 1
        else:
            refresh(m, f, s)
    for t in range(m[m[OUT_PTR] + op], m[m[OUT_PTR] + op + 1]):
        m[m[REFS] + m[m[T_STO] + t]] += 1


@jit("v(mfii)")
def new_edge(m: Ints, f: Doubles, u: int, v: int) -> None:
    """An edge between existing storages: the regions that it would change do not learn of it."""
    n = m[N]
    if m[m[ICOST] + u] < 0:
        hold(m, f, u)
    else:
        up = explore(m, u, n, False, UNBOUNDED, m[QA], m[FA])
        for k in range(up[2]):
            hold(m, f, m[m[FA] + k])
    if m[m[ICOST] + v] < 0:
        hold(m, f, n + v)
    else:
        down = explore(m, v, 0, False, UNBOUNDED, m[QA], m[FA])
        for k in range(down[2]):
            hold(m, f, n + m[m[FA] + k])


@jit("v(mi)")
def arrive(m: Ints, op: int) -> None:
    """The outputs of a model operator are there for the first time: nothing is pending any more."""
    n = m[N]
    for k in range(m[m[OS_PTR] + op], m[m[OS_PTR] + op + 1]):
        s = m[m[OS] + k]
        if not m[m[OS_NEW] + k]:
            m[m[DELTA] + s] = 0
            continue
        m[m[LB] + s], m[m[LB] + n + s], m[m[CN] + s], m[m[CN] + n + s] = 0, 0, 0, 0
        m[m[EX] + s], m[m[EX] + n + s] = m[ERA], m[ERA]
        m[m[PEND] + s] = 0
        if m[NPEND] > 0 or m[NHELD] > 0:
            first = m[m[ADJ_PTR] + n + s]
            for j in range(first, first + m[m[CNT] + n + s]):
                u = m[m[ADJ] + j]
                if m[m[HELD] + u] >= 0:
                    # It may hold any of the outputs: nothing of its sum is known any more.
                    drop(m, u)
                    m[m[LB] + u], m[m[CN] + u] = 0, 0
                elif m[NPEND] > 0 and m[m[VER] + u] == m[GRAPH]:
                    m[m[LB] + u] = max(m[m[LB] + u] - m[m[COST] + s], 0)
                    m[m[CN] + u] = max(m[m[CN] + u] - 1, 0)
                    m[m[EX] + u] = 0
    m[NPEND] = 0
    m[NDELTA] = 0


@jit("v(mfib)")
def push(m: Ints, f: Doubles, t: int, remat: bool) -> None:
    """Begin to materialise tensor t."""
    depth = m[SP]
    m[SP] = depth + 1
    m[MAX_DEPTH] = max(m[MAX_DEPTH], depth + 1)
    if remat:
        m[REMATS] += 1
    op = m[m[T_OP] + t]
    for k in range(m[m[ARG_PTR] + op], m[m[ARG_PTR] + op + 1]):
        touch(m, f, m[m[T_STO] + m[m[ARGS] + k]])
    top = m[PTOP]
    m[m[STK_T] + depth] = t
    m[m[STK_B] + depth] = top
    m[m[STK_I] + depth] = top
    for k in range(m[m[ARG_PTR] + op], m[m[ARG_PTR] + op + 1]):
        p = m[m[ARGS] + k]
        if m[m[DEFINED] + p]:
            lock(m, f, m[m[T_STO] + p])
        else:
            m[m[PLIST] + top] = p
            top += 1
    m[m[STK_E] + depth] = top
    m[PTOP] = top


@jit("v(mfib)")
def finish(m: Ints, f: Doubles, t: int, remat: bool) -> None:
    """The operator of t has room and its arguments: compute it."""
    op = m[m[T_OP] + t]
    cost = m[m[OP_COST] + op]
    m[CLOCK] += cost
    m[MEMORY] += m[m[OP_TOTAL] + op]
    m[PEAK] = max(m[PEAK], m[MEMORY])
    if remat:
        m[REMAT] += cost
    else:
        m[MODEL] += cost
    if remat and m[REGIONS]:
        flush_releases(m)
    count = 0
    for o in range(m[m[OUT_PTR] + op], m[m[OUT_PTR] + op + 1]):
        if o == t:
            continue
        if m[m[DEFINED] + o]:
            m[MEMORY] -= m[m[T_SIZE] + o]
        else:
            m[m[DEFINED] + o] = 1
            s = m[m[T_STO] + o]
            if m[m[ICOST] + s] >= 0:
                m[m[ICOST] + s] = -1
                m[m[NEW] + count] = s
                count += 1
    m[m[DEFINED] + t] = 1
    s = m[m[T_STO] + t]
    if m[m[ICOST] + s] >= 0:
        m[m[ICOST] + s] = -1
        m[m[NEW] + count] = s
        count += 1
    if m[CLASSES]:
        for k in range(count):
            leave_class(m, m[m[NEW] + k])
    if m[REGIONS]:
        if not remat:
            arrive(m, op)
        elif count > 0:
            for k in range(count):
                m[m[DELTA] + m[m[NEW] + k]] = 0
            appear(m, f, count)
    for k in range(count):
        if m[m[LOCKS] + m[m[NEW] + k]] == 0:
            enter(m, f, m[m[NEW] + k])
    for k in range(m[m[ARG_PTR] + op], m[m[ARG_PTR] + op + 1]):
        unlock(m, f, m[m[T_STO] + m[m[ARGS] + k]])


@jit("v(mf)")
def command(m: Ints, f: Doubles) -> None:
    """Carry out the next command of the schedule, or begin to."""
    pc = m[PC]
    x = m[m[OPERAND] + pc]
    what = m[m[CMD] + pc]
    if what == COMPUTE:
        if m[PHASE] == 0:
            m[PHASE] = 1
            create(m, f, x)
            push(m, f, m[m[OUT_PTR] + x], False)
            return
        m[PHASE] = 0
        for k in range(m[m[OS_PTR] + x], m[m[OS_PTR] + x + 1]):
            touch(m, f, m[m[OS] + k])
    elif what == GET:
        m[m[REFS] + m[m[T_STO] + x]] += 1
    elif what == RELEASE:
        s = m[m[T_STO] + x]
        m[m[REFS] + s] -= 1
        if m[m[REFS] + s] == 0 and m[m[ICOST] + s] < 0 and not m[m[PINNED] + s]:
            evict(m, f, s, True)
    else:
        if not m[m[DEFINED] + x]:
            push(m, f, x, True)
            return
        s = m[m[T_STO] + x]
        if not m[m[PINNED] + s]:
            m[m[PINNED] + s] = 1
            lock(m, f, s)
            drop(m, s)
            drop(m, m[N] + s)
    m[PC] = pc + 1


@jit("v(mim)")
def record(m: Ints, s: int, victims: Ints) -> None:
    """Note a choice: in two hashes, and in ``victims`` where they are wanted."""
    m[HASH1] = (m[HASH1] * 1103515245 + s + 1) % 2147483647
    m[HASH2] = (m[HASH2] * 69621 + s + 1) % 2147483629
    if m[RECORD] > 0:
        if m[EVICTIONS] == m[RECORD]:
            m[STATUS] = MORE_VICTIMS
            return
        victims[m[EVICTIONS]] = s
    m[EVICTIONS] += 1


@jit("i(mfomiiimm)")
def run(
    m: Ints,
    f: Doubles,
    own: Scan,
    saved: Ints,
    levels: int,
    depth: int,
    pause: int,
    victims: Ints,
    stop: Ints,
) -> int:
    """Carry a run to its end, from wherever its state stands.

    At a check that sets a new least HI the state is saved, on a stack of ``levels`` saved states of
    which ``depth`` are in use, unless the last one is fewer than ``pause`` steps old. Returns the
    new depth.
    """  # fmt: skip
    size = m[STATE_END] - REGISTERS
    steps = 0
    since = 0
    while m[STATUS] == RUNNING:
        steps += 1
        if steps & 255 == 0 and stop[0] != 0:
            m[STATUS] = TIMEOUT
            break
        if m[SP] == 0:
            if m[PC] == m[N_CMD]:
                m[STATUS] = OK
            else:
                command(m, f)
            continue
        top = m[SP] - 1
        i = m[m[STK_I] + top]
        if i < m[m[STK_E] + top]:
            p = m[m[PLIST] + i]
            if m[m[DEFINED] + p]:
                lock(m, f, m[m[T_STO] + p])
                m[m[STK_I] + top] = i + 1
            else:
                push(m, f, p, True)
            continue
        t = m[m[STK_T] + top]
        total = m[m[OP_TOTAL] + m[m[T_OP] + t]]
        need = m[MEMORY] + total
        pinned = m[MEMORY] - m[POOL_BYTES]
        if pinned > m[PEAK_PINNED]:
            m[PEAK_PINNED] = pinned
            m[DEPTH_PINNED] = top + 1
        while need > m[BUDGET] and m[STATUS] == RUNNING:
            if need < m[HI]:
                if levels > 0 and steps - since > pause:
                    if depth == levels:
                        depth -= 1
                    for k in range(size):
                        saved[depth * size + k] = m[REGISTERS + k]
                    depth += 1
                    since = steps
                m[HI] = need
            if m[POOL_LIVE] == 0:
                m[STATUS] = OOM
                m[FAIL_PINNED] = pinned
                m[FAIL_REQUEST] = total
                m[FAIL_DEPTH] = top + 1
                m[FAIL_OVER] = need - m[BUDGET]
                break
            s = choose(m, f, own, need)
            record(m, s, victims)
            if m[STATUS] == RUNNING:
                evict(m, f, s, False)
                need = m[MEMORY] + total
        if m[STATUS] != RUNNING:
            break
        m[LO] = max(m[LO], need)
        remat = top > 0 or m[m[CMD] + m[PC]] == PIN
        finish(m, f, t, remat)
        m[SP] = top
        m[PTOP] = m[m[STK_B] + top]
        if m[LIMIT] >= 0 and m[REMAT] > m[LIMIT]:
            m[STATUS] = THRASHED
        if m[CLOCK] >= LATEST:
            m[STATUS] = OVERFLOW
    return depth


@jit("i(iioiiiiiiiiiii)", entry=True)
def run_batch(
    block: int,
    doubles: int,
    own: Scan,
    initial_at: int,
    saved_at: int,
    levels: int,
    pause: int,
    budgets_at: int,
    count: int,
    walk_to: int,
    results_at: int,
    rows: int,
    victims_at: int,
    stop_at: int,
) -> int:
    """Runs, one after the other; returns how many rows of the results they filled.

    One at each of ``count`` budgets; or, with ``walk_to`` >= 0, a walk upwards from the first of
    them, each run at the HI of the one before, until a budget reaches ``walk_to`` or all ``rows``
    are filled. A walk resumes each run from the last saved state that it shares with the one
    before. A run that could not be finished (stopped, a buffer too small) is the last row.
    Buffers are given by their addresses.
    """  # fmt: skip
    m, f = to_ints(block), to_doubles(doubles)
    initial, saved = to_ints(initial_at), to_ints(saved_at)
    budgets, results = to_ints(budgets_at), to_ints(results_at)
    victims, stop = to_ints(victims_at), to_ints(stop_at)
    size = m[STATE_END] - REGISTERS
    depth = 0
    budget = budgets[0]
    row = 0
    while True:
        while depth > 0 and saved[(depth - 1) * size + HI - REGISTERS] <= budget:
            depth -= 1
        if depth > 0:
            for k in range(size):
                m[REGISTERS + k] = saved[(depth - 1) * size + k]
        else:
            for k in range(size):
                m[REGISTERS + k] = initial[k]
        forget_watches(m, f)
        m[BUDGET] = budget
        depth = run(m, f, own, saved, levels, depth, pause, victims, stop)
        for k in range(NRESULT):
            results[row * NRESULT + k] = m[RESULT[k]]
        row += 1
        status = m[STATUS]
        if status != OK and status != OOM and status != THRASHED:
            return row
        if walk_to < 0:
            if row == count:
                return row
            budget = budgets[row]
        else:
            budget = m[HI]
            if budget >= walk_to or row == rows:
                return row
