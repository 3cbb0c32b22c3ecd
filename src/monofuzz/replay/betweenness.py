"""The ranking that `t-control` locks storages by: betweenness in the storage graph of a trace."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from monofuzz.trace.files import write_atomically
from monofuzz.trace.library import cache_folder

if TYPE_CHECKING:
    from monofuzz.trace.model import Trace

__all__ = ["EXACT", "ranks"]

EXACT = 6000
"""Up to so many storages the betweenness is exact; above it is sampled, with a fixed seed."""
_PIVOTS = 500


def ranks(trace: Trace) -> npt.NDArray[np.int64]:
    """The rank of each storage, 0 for the highest betweenness, ties by the smaller id.

    Unnormalised betweenness over the edges from an argument's storage to an output's storage (views
    excluded), weighted with the summed cost of the operators that make the output's storage, at
    least 1e-9. It takes seconds for thousands of storages and is kept in the cache folder.
    """
    path = cache_folder() / "betweenness" / f"{trace.digest}.i8"
    with contextlib.suppress(OSError):
        known = np.frombuffer(path.read_bytes(), "<i8").astype(np.int64)
        if np.array_equal(np.sort(known), np.arange(trace.n_storages)):
            return known
    order = np.array(_by_betweenness(trace), np.int64)
    result = np.empty(len(order), np.int64)
    result[order] = np.arange(len(order))
    with contextlib.suppress(OSError):
        os.makedirs(path.parent, exist_ok=True)
        write_atomically(path, result.astype("<i8").tobytes())
    return result


def _by_betweenness(trace: Trace) -> list[int]:
    import networkx

    roots = np.flatnonzero(trace.tensor_root == np.arange(trace.n_tensors))
    storage = np.searchsorted(roots, trace.tensor_root).tolist()
    is_root = (trace.tensor_root == np.arange(trace.n_tensors)).tolist()
    compute = [0] * len(roots)
    edges = set()
    for op, cost in enumerate(trace.op_cost.tolist()):
        outputs = trace.outputs(op)
        for s in {storage[t] for t in outputs}:
            compute[s] += cost
        for argument in trace.arguments(op).tolist():
            edges |= {(storage[argument], storage[t]) for t in outputs if is_root[t]}
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(len(roots)))
    graph.add_weighted_edges_from((a, b, max(compute[b], 1e-9)) for a, b in sorted(edges) if a != b)
    sampled = {"k": _PIVOTS, "seed": 0} if len(roots) > EXACT else {}
    central = networkx.betweenness_centrality(graph, normalized=False, weight="weight", **sampled)
    return sorted(range(len(roots)), key=lambda s: (-central[s], s))
