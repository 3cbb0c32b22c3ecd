"""Walks over graphs with many evictions: a forked run is the run that it stands for."""

from __future__ import annotations

import pytest

from monofuzz.generate.fast import graph
from monofuzz.replay import TraceSystem
from monofuzz.replay.policy import names


@pytest.mark.parametrize("policy", names())
@pytest.mark.parametrize("pause", [0, 7, 200])
def test_a_forked_run_is_the_run_alone(
    policy: str, pause: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monofuzz.replay.system._PAUSE", pause)
    for graph_class, operators, seed in (
        ("free", 30, 7543054332376560125),
        ("training", 30, 9800670934131627944),
        ("free", 24, 1),
        ("training", 24, 2),
    ):
        system = TraceSystem(graph(graph_class, operators, seed), policy, limit=5)
        walked = list(system.walk(0, 2**61))
        alone = system.run_many([run.interval[0] for run in walked])
        for one, other in zip(walked, alone, strict=True):
            assert one.same_run(other)
            assert one.interval == other.interval
