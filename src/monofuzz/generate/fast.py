"""Millions of small graphs: seeded, mapped exactly, in one compiled loop.

A graph is named by its class, its number of operators and a seed of 64 bits; nothing else matters,
so that every policy can be asked about the same graphs.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from monofuzz.errors import UsageError, nearest
from monofuzz.trace.model import Trace, TraceMeta

if TYPE_CHECKING:
    from collections.abc import Collection

    from monofuzz.replay.policy import Policy
    from monofuzz.replay.stop import StopFlag
    from monofuzz.search.verdict import Claim

__all__ = ["CLASSES", "MOST_OPERATORS", "GraphClass", "Hit", "Sampler", "Stats", "graph"]

IntArray = npt.NDArray[np.int64]
GraphClass = Literal["free", "unit-sizes", "unit", "training"]
"""*free*: any graph, sizes and costs from 1 to 16. *unit-sizes*: every tensor has one byte. *unit*:
and every operator costs one nanosecond. *training*: forward and back, sizes and costs free."""

CLASSES: Final = get_args(GraphClass)
MOST_OPERATORS: Final = 30
_SHAPES: Final = {
    "free": (16, 16, 0),
    "unit-sizes": (1, 16, 0),
    "unit": (1, 1, 0),
    "training": (16, 16, 1),
}
_MOST_HITS = 64
_MOST_ROWS = 2048


@dataclass(frozen=True, slots=True)
class Hit:
    """A graph that breaks a claim: its seed, the width of its hole as a share of the peak (0: it
    has none), and the largest rise in cost as a factor (0: none)."""

    seed: int
    width: float
    rise: float

    def severity(self, claim: Claim) -> float:
        """How badly it breaks a claim; 0 when it keeps it."""
        return self.width if claim == "feasibility" else self.rise


@dataclass(frozen=True, slots=True)
class Stats:
    """How many graphs were made and runs replayed; how many graphs have a hole, or a rise in cost.

    ``skipped`` graphs needed more runs, or more of something else, than there is room for.
    """

    graphs: int
    runs: int
    skipped: int
    holes: int
    rises: int


class Sampler:
    """Graphs of one class and size, mapped under one policy.

    ``limit`` is the compute limit as a multiple of the model's compute, rounded down to a whole
    number here; None lifts it. A hit is a candidate: `monofuzz.counterexample.examine` decides.
    """

    def __init__(
        self,
        policy: str | Policy,
        graph_class: GraphClass,
        operators: int,
        *,
        claims: Collection[Claim] = ("feasibility", "cost"),
        limit: float | None = 60.0,
    ) -> None:
        from monofuzz.generate import small
        from monofuzz.generate.compiled import CLAIM_BITS, STATS
        from monofuzz.generate.draw import PARAMETERS
        from monofuzz.replay.own import score_of
        from monofuzz.replay.policy import parse

        _check(graph_class, operators)
        self.policy = parse(policy)
        if self.policy.needs_betweenness:
            raise UsageError(f"{self.policy} ranks a whole trace beforehand: it cannot be sampled")
        self.graph_class = graph_class
        self.operators = operators
        self._own = score_of(self.policy, small.SCORE)
        flags, weights = self.policy.flags()
        graph = np.zeros(small.GRAPH_WORDS, np.int64)
        for name in small.FLAGS:
            graph[getattr(small, name)] = flags.get(name, 0)
        largest, dearest, training = _SHAPES[graph_class]
        given = {
            "operators": operators,
            "largest_size": largest,
            "largest_cost": dearest,
            "training": training,
            "limit": 0 if limit is None else int(limit),
        }
        self._claims = sum(CLAIM_BITS[claim] for claim in set(claims))
        self._graph = graph
        self._weights = np.array(weights)
        self._state = np.zeros((1 + small.LEVELS) * small.STATE_WORDS, np.int64)
        self._parameters = np.array([given[name] for name in PARAMETERS], np.int64)
        self._results = np.zeros(_MOST_ROWS * small.ROW, np.int64)
        self._found = np.zeros(_MOST_HITS, np.int64)
        self._severity = np.zeros(2 * _MOST_HITS + 2)
        self._stats = np.zeros(len(STATS), np.int64)
        self._idle = np.zeros(1, np.int64)

    @property
    def stats(self) -> Stats:
        """What was done so far."""
        return Stats(*self._stats[:-1].tolist())

    def search(
        self,
        seed: int,
        count: int,
        *,
        widest: float = 0.0,
        steepest: float = 0.0,
        stop: StopFlag | None = None,
    ) -> tuple[list[Hit], int]:
        """Map the graphs of ``count`` seeds in a row; the hits, and the seed to go on with.

        Ends early when the hits are too many to be kept, or when ``stop`` is set. Hits below the
        severities ``widest`` and ``steepest`` are not kept.
        """
        self._stats[-1] = 0
        self._severity[-2:] = widest, steepest
        reached = _search()(
            self._graph.ctypes.data, self._weights.ctypes.data, self._own, self._state.ctypes.data,
            self._parameters.ctypes.data, self._claims, np.uint64(seed % 2**64), count,
            self._results.ctypes.data, _MOST_ROWS, self._found.ctypes.data,
            self._severity.ctypes.data, _MOST_HITS, self._stats.ctypes.data,
            (self._idle if stop is None else stop.array).ctypes.data,
        )  # fmt: skip
        hits = [
            Hit(int(self._found[i]) % 2**64, *self._severity[2 * i : 2 * i + 2].tolist())
            for i in range(self._stats[-1])
        ]
        return hits, int(reached)

    def runs(self, seed: int) -> IntArray:
        """The runs of one graph, upwards: status, lo, hi, cost and peak, as the loop sees them."""
        from monofuzz.generate import small

        before = self.stats.runs
        self.search(seed, 1)
        return self._results.reshape(-1, small.ROW)[: self.stats.runs - before].copy()

    def trace(self, seed: int) -> Trace:
        """The graph of one seed."""
        return graph(self.graph_class, self.operators, seed)


def graph(graph_class: GraphClass, operators: int, seed: int) -> Trace:
    """The graph that a class, a number of operators and a seed name."""
    from monofuzz.generate import small
    from monofuzz.generate.compiled import load_drawing

    _check(graph_class, operators)
    block = np.zeros(small.GRAPH_WORDS, np.int64)
    parameters = np.array([operators, *_SHAPES[graph_class], 0], np.int64)
    load_drawing()(block.ctypes.data, parameters.ctypes.data, np.uint64(seed % 2**64))
    return _trace(block, f"{graph_class}-{operators}-{seed % 2**64}")


def _check(graph_class: str, operators: int) -> None:
    if graph_class not in CLASSES:
        raise UsageError(
            f"unknown class of graphs {graph_class!r}{nearest(graph_class, CLASSES)} "
            f"(the classes are {', '.join(CLASSES)})"
        )
    if isinstance(operators, bool) or not isinstance(operators, int):
        raise UsageError(f"a number of operators is a whole number, not {operators!r}")
    if not 1 <= operators <= MOST_OPERATORS:
        raise UsageError(f"graphs have 1 to {MOST_OPERATORS} operators here, not {operators}")


@functools.cache
def _search() -> Any:
    from monofuzz.generate.compiled import load_search

    return load_search()


def _trace(block: IntArray, name: str) -> Trace:
    from monofuzz.generate import small

    ops, tensors = int(block[small.OPS]), int(block[small.TENSORS])
    operators = block[small.OP : small.TENSOR].reshape(-1, small.OP_FIELDS)[:ops]
    sizes = block[small.TENSOR : small.COMMAND].reshape(-1, small.TENSOR_FIELDS)[:tensors]
    commands = block[small.COMMAND :][: int(block[small.COMMANDS])]
    arguments = [row[small.O_ARG :][: row[small.O_NARGS]] for row in operators]
    return Trace(
        op_cost=operators[:, small.O_COST].copy(),
        op_constant=np.zeros(ops, np.bool_),
        op_label=tuple(f"op{k}" for k in range(ops)),
        arg_ptr=np.cumsum([0, *map(len, arguments)]),
        args=np.concatenate(arguments),
        out_ptr=np.append(operators[:, small.O_FIRST], tensors),
        tensor_size=sizes[:, small.T_SIZE].copy(),
        tensor_root=np.arange(tensors),
        command=(commands >> 6).astype(np.int8),
        operand=commands & 63,
        meta=TraceMeta(name=name, recorder="monofuzz generator"),
    )
