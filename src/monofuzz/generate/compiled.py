"""The compiled inner loop of the hunt: draw a graph, map it, see whether it breaks a claim.

No Python object is made for a graph: only for those that break a claim, and they are replayed by
the ordinary engine before anybody believes them.

Importing this module imports numba.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import types

from monofuzz.generate import draw as drawing
from monofuzz.generate import small
from monofuzz.generate.draw import draw
from monofuzz.generate.small import (
    COST,
    HI,
    LO,
    O_ARG,
    O_NARGS,
    O_TOTAL,
    OP,
    OP_FIELDS,
    OPS,
    PEAK,
    ROW,
    SCORE,
    STATUS,
    T_SIZE,
    TENSOR,
    TENSOR_FIELDS,
    jit,
    walk,
)
from monofuzz.replay import _jit, kernel
from monofuzz.replay._jit import pointers
from monofuzz.replay.kernel import OK, OOM, UNBOUNDED

__all__ = ["CLAIM_BITS", "STATS", "load_drawing", "load_search"]

STATS = ("graphs", "runs", "skipped", "holes", "rises", "noted")
(S_GRAPHS, S_RUNS, S_SKIPPED, S_HOLES, S_RISES, S_NOTED) = range(6)
to_ints, to_doubles = pointers(__name__)
CLAIM_BITS = {"feasibility": 1, "cost": 2}


@jit
def least_budget(g: Any) -> int:
    """What some operator needs at once."""
    least = 0
    for op in range(g[OPS]):
        at = OP + op * OP_FIELDS
        need = g[at + O_TOTAL]
        for k in range(g[at + O_NARGS]):
            need += g[TENSOR + g[at + O_ARG + k] * TENSOR_FIELDS + T_SIZE]
        least = max(least, need)
    return least


@jit
def hole_in(results: Any, rows: int) -> Any:
    """The widest hole as a share of the peak; 0 if there is none."""
    widest = start = 0
    feasible = False
    for row in range(rows):
        at = row * ROW
        status = results[at + STATUS]
        if status == OOM and feasible:
            if start == 0:
                start = results[at + LO]
            widest = max(widest, results[at + HI] - start)
            continue
        start = 0
        if status == OK:
            feasible = True
    return widest / results[(rows - 1) * ROW + PEAK]


@jit
def rise_in(results: Any, rows: int) -> float:
    """The largest factor by which a run costs more than one below it; 0 if there is none."""
    worst = 0.0
    least = -1
    for row in range(rows):
        at = row * ROW
        if results[at + STATUS] != OK:
            continue
        cost = results[at + COST]
        if least > 0 and cost > least:
            worst = max(worst, cost / least)
        if least < 0 or cost < least:
            least = cost
    return worst


def _make_search(stamp: int) -> Any:
    def search(
        graph_at: int,
        weights_at: int,
        own: Any,
        state_at: int,
        parameters_at: int,
        claims: int,
        seed: Any,
        count: int,
        results_at: int,
        rows: int,
        found_at: int,
        severity_at: int,
        most: int,
        stats_at: int,
        stop_at: int,
    ) -> Any:
        """Graphs ``count`` in a row from a seed on; those that break a claim are noted.

        Returns the seed to go on with. Of at most ``most`` notes, ``found`` holds the seeds, and
        ``severity`` pairs of the width of a graph's hole and its rise in cost; behind them stand
        the least that is worth noting of each. Buffers are given by their addresses.
        """
        g, w, s = to_ints(graph_at), to_doubles(weights_at), to_ints(state_at)
        p, results, stop = to_ints(parameters_at), to_ints(results_at), to_ints(stop_at)
        found, severity = to_ints(found_at), to_doubles(severity_at)
        stats = to_ints(stats_at)
        noted = 0
        for _ in range(count):
            if noted == most or stop[0] != 0 or stamp == 0:
                break
            draw(g, p, seed)
            seed += np.uint64(1)
            stats[S_GRAPHS] += 1
            done = walk(g, w, s, own, least_budget(g), results, rows, stop)
            stats[S_RUNS] += done
            if done == 0 or results[(done - 1) * ROW + HI] != UNBOUNDED:
                stats[S_SKIPPED] += 1
                continue
            width = rise = 0.0
            if claims & 1:
                width = hole_in(results, done)
                stats[S_HOLES] += width > 0
            if claims & 2:
                rise = rise_in(results, done)
                stats[S_RISES] += rise > 0
            if (
                width + rise > 0
                and (width >= severity[2 * most] or width == 0)
                and (rise >= severity[2 * most + 1] or rise == 0)
            ):
                found[noted] = np.int64(seed - np.uint64(1))
                severity[2 * noted] = width
                severity[2 * noted + 1] = rise
                noted += 1
                stats[S_NOTED] = noted
        return seed

    return search


def load_search() -> Any:
    """The compiled search: from numba's cache on disk, or compiled in a few seconds."""
    n = types.int64
    signature = types.uint64(n, n, SCORE, n, n, n, types.uint64, n, n, n, n, n, n, n, n)
    return _compile(_make_search(_stamp()), signature)


@functools.cache
def load_drawing() -> Any:
    """`draw` for Python: the addresses of the block and of the parameters, and the seed."""
    stamp = _stamp()

    def drawn(graph_at: int, parameters_at: int, seed: Any) -> None:
        if stamp:
            draw(to_ints(graph_at), to_ints(parameters_at), seed)

    return _compile(drawn, types.void(types.int64, types.int64, types.uint64))


def _compile(function: Any, signature: Any) -> Any:
    compile_ = functools.partial(numba.njit, signature, nogil=True, error_model="numpy")
    try:
        return compile_(cache=True)(function)
    except RuntimeError:  # no folder that numba could write its cache to
        return compile_()(function)


def _stamp() -> int:
    """A hash of all files that the compiled functions come from.

    numba takes a cached function for stale when the file that it stands in has changed; these
    depend on other files, too, so the hash is part of them.
    """
    sha = hashlib.sha256()
    for module in (kernel, _jit, small, drawing):
        assert module.__file__ is not None
        sha.update(Path(module.__file__).read_bytes())
    return int.from_bytes(sha.digest()[:7], "big") | 1
