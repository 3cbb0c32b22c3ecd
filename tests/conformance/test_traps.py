"""Rare traps, each with the golden log that knows it.

For every trap there is a replay that falls into it: the oracle with one thing done the obvious,
wrong way. It must fail on the log that guards against it, and both engines must not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from monofuzz.replay.golden import engine_systems, verify
from tests import oracle
from tests.conformance.support import OracleSystem, named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class PendingOutputsLeftOut(oracle.Replay):
    """While an operator waits for its arguments, its outputs are members of rebuilt regions."""

    def reach(
        self,
        storage: oracle.Storage,
        step: Callable[[oracle.Storage], Iterable[oracle.Storage]],
    ) -> set[oracle.Storage]:
        found = super().reach(storage, step)
        return {s for s in found if s.last_access > -oracle.INFINITY}


class FirstCostForgotten(oracle.Replay):
    """A storage's first materialisation, too, takes its cost out of its class."""

    def leave_class(self, storage: oracle.Storage) -> None:
        if storage.last_access > -oracle.INFINITY:
            super().leave_class(storage)
        else:
            storage.node = None


class BothSidesRebuilt(oracle.Replay):
    """What surrounds a storage that became material is rebuilt on the side that faces it only."""

    def rebuild_around(self, above: set[oracle.Storage], below: set[oracle.Storage]) -> None:
        super().rebuild_around(above | below, above | below)


class CountedOnce(oracle.Replay):
    """A storage that is in both regions (the graph has a cycle) counts twice."""

    def regions_cost(self, storage: oracle.Storage) -> int:
        both = storage.region.members & storage.region_rev.members
        return super().regions_cost(storage) - sum(s.compute for s in both)


class RebuiltForViews(oracle.Replay):
    """Computing a view of a storage that is material rebuilds nothing."""

    def execute(self, tensor: oracle.Tensor, remat: bool) -> None:
        before = {t.storage for t in tensor.operator.outputs if t.storage.material}
        super().execute(tensor, remat)
        for storage in before:
            storage.region = self.rebuilt(storage, lambda s: s.children)
            storage.region_rev = self.rebuilt(storage, lambda s: s.parents)
            self.rebuild_around(storage.region_rev.frontier, storage.region.frontier)


class ClassCostsClamped(oracle.Replay):
    """The cost of an equivalence class can be negative."""

    def leave_class(self, storage: oracle.Storage) -> None:
        assert storage.node is not None
        node = storage.node.find()
        super().leave_class(storage)
        node.cost = max(node.cost, 0)


class NegativeEndsTheScan(oracle.Replay):
    """A zero score ends the scan for a victim, a negative one does not."""

    def ends_scan(self, value: float) -> bool:
        return value <= 0


class ZeroGoesOn(oracle.Replay):
    """The first zero score ends the scan: a later one does not win."""

    def ends_scan(self, value: float) -> bool:
        return False


class CostsOfToday(oracle.Replay):
    """A region sums the cost that each member had when it entered, not what a view made of it."""

    def regions_cost(self, storage: oracle.Storage) -> int:
        regions = (storage.region, storage.region_rev)
        return sum(s.compute for region in regions for s in region.members)


TRAPS = [
    ("s100463", PendingOutputsLeftOut),
    ("s100463", FirstCostForgotten),
    ("s100463", BothSidesRebuilt),
    ("s100193", CountedOnce),
    ("s100199", RebuiltForViews),
    ("s100199", ClassCostsClamped),
    ("s100458", NegativeEndsTheScan),
    ("s100458", ZeroGoesOn),
    ("s100443", CostsOfToday),
]
LOGS = sorted({log for log, _ in TRAPS})


@pytest.mark.parametrize(("log", "wrong"), TRAPS, ids=lambda x: getattr(x, "__name__", x))
def test_the_log_knows_the_trap(log: str, wrong: type[oracle.Replay]) -> None:
    class Wrong(OracleSystem):
        replayer = wrong

    found = verify([named(log)], Wrong)
    assert found.runs > 0
    assert found.mismatches, f"{log} does not notice: {wrong.__doc__}"


@pytest.mark.parametrize("engine", ["oracle", "interpreted", "compiled"])
@pytest.mark.parametrize("log", LOGS)
def test_nobody_falls_into_it(log: str, engine: str) -> None:
    systems: Any = OracleSystem if engine == "oracle" else engine_systems(engine)
    assert verify([named(log)], systems).mismatches == []
