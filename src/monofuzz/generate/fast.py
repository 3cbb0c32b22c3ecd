"""Millions of small graphs: seeded, mapped exactly, in one compiled loop.

A graph is named by its class, its number of operators and a seed of 64 bits; nothing else matters,
so that every policy can be asked about the same graphs.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from monofuzz.errors import UsageError, nearest
from monofuzz.trace.model import Trace, TraceMeta

if TYPE_CHECKING:
    from collections.abc import Collection

    from monofuzz.generate.block import Block
    from monofuzz.replay.policy import Policy
    from monofuzz.replay.stop import StopFlag
    from monofuzz.search.verdict import Claim

__all__ = ["CLASSES", "MOST_OPERATORS", "GraphClass", "Hit", "Sampler", "Stats", "graph"]

GraphClass = Literal["free", "unit-sizes", "unit", "training"]
"""*free*: any graph, sizes and costs from 1 to 16. *unit-sizes*: every tensor has one byte. *unit*:
and every operator costs one nanosecond. *training*: forward and back, sizes and costs free."""

CLASSES: Final = get_args(GraphClass)
MOST_OPERATORS: Final = 64
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
        from monofuzz.generate.block import make_block
        from monofuzz.generate.compiled import CLAIM_BITS, PARAMETERS, STATS
        from monofuzz.replay import kernel
        from monofuzz.replay.policy import parse

        _check(graph_class, operators)
        self.policy = parse(policy)
        if self.policy.needs_betweenness:
            raise UsageError(f"{self.policy} ranks a whole trace beforehand: it cannot be sampled")
        self.graph_class = graph_class
        self.operators = operators
        self._block = make_block(self.policy, operators)
        largest, dearest, shape = _SHAPES[graph_class]
        given = {
            "operators": operators,
            "largest_size": largest,
            "largest_cost": dearest,
            "shape": shape,
            "limit": 0 if limit is None else int(limit),
            "claims": sum(CLAIM_BITS[claim] for claim in set(claims)),
            "only_generate": 0,
        }
        self._parameters = np.array([given[name] for name in PARAMETERS], np.int64)
        self._own = _own_scan(self.policy)
        self._stats = np.zeros(len(STATS), np.int64)
        self._alive = np.zeros(4 * operators + 4, np.int64)
        self._results = np.zeros(_MOST_ROWS * kernel.NRESULT, np.int64)
        self._found = np.zeros(2 * _MOST_HITS, np.int64)
        self._severity = np.zeros(2 * _MOST_HITS + 2)
        self._idle = np.zeros(1, np.int64)

    @property
    def stats(self) -> Stats:
        """What was done so far."""
        return Stats(*self._stats.tolist())

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
        self._severity[-2:] = widest, steepest
        seeds = np.array([seed % 2**64], np.uint64)
        noted = self._run(seeds, count, self._idle if stop is None else stop.array)
        hits = [
            Hit(int(self._found[2 * i]) % 2**64, *self._severity[2 * i : 2 * i + 2].tolist())
            for i in range(noted)
        ]
        return hits, int(seeds[0])

    def trace(self, seed: int) -> Trace:
        """The graph of one seed."""
        self._parameters[-1] = 1
        try:
            self._run(np.array([seed % 2**64], np.uint64), 1, self._idle)
        finally:
            self._parameters[-1] = 0
        return _trace(self._block, f"{self.graph_class}-{self.operators}-{seed % 2**64}")

    def _run(self, seeds: Any, count: int, stop: Any) -> int:
        block = self._block
        return int(
            _search()(
                block.m, block.f, self._own, block.initial, self._parameters, seeds, count,
                self._alive, self._results, self._idle, self._found, self._severity, self._stats,
                stop,
            )
        )  # fmt: skip


def graph(graph_class: GraphClass, operators: int, seed: int) -> Trace:
    """The graph that a class, a number of operators and a seed name."""
    return _any_sampler(graph_class, operators).trace(seed)


@functools.lru_cache(maxsize=64)
def _any_sampler(graph_class: GraphClass, operators: int) -> Sampler:
    return Sampler("lru", graph_class, operators)


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


@functools.lru_cache(maxsize=64)
def _own_scan(policy: Policy) -> Any:
    """What the kernel calls for a policy of the user's own, as the ordinary engine makes it."""
    from monofuzz.replay.own import scan_of
    from monofuzz.replay.system import prepare

    return scan_of(policy, prepare("compiled"), "compiled")


def _trace(block: Block, name: str) -> Trace:
    ops = block.operators
    out_ptr = block.part("OUT_PTR", ops + 1)
    tensors = int(out_ptr[-1])
    arg_ptr = block.part("ARG_PTR", ops + 1)
    commands = block.commands
    return Trace(
        op_cost=block.part("OP_COST", ops).copy(),
        op_constant=np.zeros(ops, np.bool_),
        op_label=tuple(f"op{k}" for k in range(ops)),
        arg_ptr=arg_ptr.copy(),
        args=block.part("ARGS", int(arg_ptr[-1])).copy(),
        out_ptr=out_ptr.copy(),
        tensor_size=block.part("T_SIZE", tensors).copy(),
        tensor_root=np.arange(tensors),
        command=block.part("CMD", commands).astype(np.int8),
        operand=block.part("OPERAND", commands).copy(),
        meta=TraceMeta(name=name, recorder="monofuzz generator"),
    )
