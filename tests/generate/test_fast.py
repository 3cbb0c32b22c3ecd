from __future__ import annotations

import pytest

from monofuzz.counterexample import inspect_runs, runs_of
from monofuzz.errors import UsageError
from monofuzz.generate.fast import CLASSES, GraphClass, Sampler, graph
from monofuzz.replay import TraceSystem
from monofuzz.replay.policy import names, parse

POLICIES = [name for name in names() if not parse(name).needs_betweenness]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("graph_class", CLASSES)
def test_the_loop_maps_as_the_engine_does(policy: str, graph_class: GraphClass) -> None:
    for operators, count in ((4, 40), (7, 40), (12, 15), (30, 2)):
        sampler = Sampler(policy, graph_class, operators)
        seed, hits = 1000, {}
        while seed < 1000 + count:
            found, seed = sampler.search(seed, 1000 + count - seed)
            hits |= {hit.seed: hit for hit in found}
        for seed in range(1000, 1000 + count):
            system = TraceSystem(sampler.trace(seed), policy)
            runs = runs_of(system)
            assert runs is not None
            for claim in ("feasibility", "cost"):
                finding = inspect_runs(runs, claim, system.peak)
                expected = finding.severity if finding else 0.0
                assert (hits[seed].severity(claim) if seed in hits else 0.0) == expected


def test_a_seed_names_a_graph() -> None:
    assert graph("free", 6, 5) == graph("free", 6, 5)
    assert len({graph("free", 6, seed) for seed in range(200)}) > 190
    assert graph("free", 6, 5) == Sampler("dtr", "free", 6).trace(5)


@pytest.mark.parametrize("graph_class", CLASSES)
def test_classes_are_what_they_say(graph_class: GraphClass) -> None:
    for seed in range(50):
        made = graph(graph_class, 8, seed)
        assert made.n_operators == 8
        if graph_class.startswith("unit"):
            assert set(made.tensor_size.tolist()) == {1}
        if graph_class == "unit":
            assert set(made.op_cost.tolist()) == {1}


def test_graphs_can_be_written_as_logs() -> None:
    from monofuzz.trace.dtrwrite import format_log

    for graph_class in CLASSES:
        for seed in range(50):
            assert format_log(graph(graph_class, 9, seed))


def test_too_many_hits_end_a_search_where_it_can_go_on() -> None:
    sampler = Sampler("dtr", "free", 12)
    first, after = sampler.search(0, 10_000)
    assert len(first) == 64
    assert after == first[-1].seed + 1
    second, _ = sampler.search(after, 10)
    assert all(hit.seed >= after for hit in second)


@pytest.mark.parametrize(
    ("graph_class", "operators"), [("fre", 4), ("free", 0), ("free", 65), ("free", True)]
)
def test_wrong_arguments_are_refused_early(graph_class: str, operators: int) -> None:
    with pytest.raises(UsageError):
        Sampler("dtr", graph_class, operators)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="cannot be sampled"):
        Sampler("t-control", "free", 4)
