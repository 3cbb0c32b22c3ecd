"""The same graphs for policies that the compiled loop cannot map: one by one, in the engine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from monofuzz.counterexample import inspect_runs, runs_of
from monofuzz.generate.fast import Hit, Stats, graph
from monofuzz.replay.policy import parse
from monofuzz.replay.system import TraceSystem

if TYPE_CHECKING:
    from collections.abc import Collection

    from monofuzz.generate.fast import GraphClass
    from monofuzz.replay.policy import Policy
    from monofuzz.search.verdict import Claim
    from monofuzz.trace import Trace

__all__ = ["EngineSampler"]

_AT_A_TIME = 50


class EngineSampler:
    """A `Sampler` for any policy, some hundred graphs a second."""

    def __init__(
        self,
        policy: str | Policy,
        graph_class: GraphClass,
        operators: int,
        *,
        claims: Collection[Claim] = ("feasibility", "cost"),
        limit: float | None = 60.0,
    ) -> None:
        self.policy = parse(policy)
        self.graph_class = graph_class
        self.operators = operators
        self.stats = Stats(0, 0, 0, 0, 0)
        self._claims = tuple(claims)
        self._limit = limit

    def search(
        self, seed: int, count: int, *, widest: float = 0.0, steepest: float = 0.0
    ) -> tuple[list[Hit], int]:
        """As `Sampler.search`, but never more than 50 graphs in one call."""
        hits = []
        count = min(count, _AT_A_TIME)
        for one in range(seed, seed + count):
            hit, runs = self._map(one)
            known = self.stats
            self.stats = replace(
                known,
                graphs=known.graphs + 1,
                runs=known.runs + runs,
                holes=known.holes + (hit.width > 0),
                rises=known.rises + (hit.rise > 0),
            )
            if max(hit.width, hit.rise) > 0 and hit.width >= widest and hit.rise >= steepest:
                hits.append(hit)
        return hits, seed + count

    def trace(self, seed: int) -> Trace:
        """The graph of one seed."""
        return graph(self.graph_class, self.operators, seed)

    def _map(self, seed: int) -> tuple[Hit, int]:
        system = TraceSystem(self.trace(seed), self.policy, limit=self._limit)
        runs = runs_of(system) or []
        severity = dict.fromkeys(("feasibility", "cost"), 0.0)
        for claim in self._claims:
            finding = inspect_runs(runs, claim, system.peak)
            if finding is not None:
                severity[claim] = finding.severity
        return Hit(seed, severity["feasibility"], severity["cost"]), len(runs)
