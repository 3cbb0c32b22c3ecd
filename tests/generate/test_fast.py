from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import monofuzz
from monofuzz.counterexample import inspect_runs, runs_of
from monofuzz.errors import UsageError
from monofuzz.generate import small
from monofuzz.generate.fast import CLASSES, MOST_OPERATORS, GraphClass, Sampler, graph
from monofuzz.replay import TraceSystem, kernel
from monofuzz.replay.outcome import Status
from monofuzz.replay.policy import Policy, names, parse
from monofuzz.trace import Trace

POLICIES = [name for name in names() if not parse(name).needs_betweenness]


STATUS: dict[Status, int] = {
    "ok": kernel.OK,
    "oom": kernel.OOM,
    "thrashed": kernel.THRASHED,
}


@monofuzz.policy
def reads_everything(
    cost: float,
    size: float,
    staleness: float,
    last_access: float,
    clock: float,
    region_cost: float,
    region_rev_cost: float,
    region_count: float,
    region_rev_count: float,
    class_cost: float,
    evictions: float,
) -> float:
    around = region_cost + 2 * region_rev_cost + 3 * class_cost + region_count - region_rev_count
    return (cost + around) * (1 + evictions) / (size * staleness) + last_access / clock


def rows_of_the_engine(
    trace: Trace, policy: str | Policy, first: int, limit: int | None
) -> list[tuple[int, int, int, int]]:
    """Status, interval and cost of all runs from a budget upwards."""
    rows = []
    for run in TraceSystem(trace, policy, limit=limit).walk(first, kernel.UNBOUNDED):
        lo, hi = run.interval
        rows.append((STATUS[run.status], lo, kernel.UNBOUNDED if hi is None else hi, run.cost))
    return rows


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(
        [
            *POLICIES,
            reads_everything,
            "random:seed=7",
            "two-phase:k=2",
            "tie-aware:tolerance=0.3",
            "nbhd-penalty:b=2.0",
            "thrash-penalty:a=0.5",
        ]
    ),
    st.sampled_from(CLASSES),
    st.sampled_from([2, 3, 4, 5, 6, 8, 12, 16, 24, MOST_OPERATORS]),
    st.sampled_from([None, 2, 5, 60]),
    st.integers(0, 2**64 - 1),
)
def test_the_loop_replays_as_the_engine_does(
    policy: str | Policy, graph_class: GraphClass, operators: int, limit: int | None, seed: int
) -> None:
    sampler = Sampler(policy, graph_class, operators, limit=limit)
    for one in range(seed, seed + 5):
        rows = sampler.runs(one)
        expected = rows_of_the_engine(sampler.trace(one), policy, int(rows[0, small.LO]), limit)
        assert [tuple(row) for row in rows[:, : small.PEAK].tolist()] == expected


@pytest.mark.parametrize("policy", ["dtr", "lru", "two-phase"])
@pytest.mark.parametrize("graph_class", CLASSES)
def test_hits_are_the_graphs_that_break_a_claim(policy: str, graph_class: GraphClass) -> None:
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
    ("graph_class", "operators"),
    [("fre", 4), ("free", 0), ("free", MOST_OPERATORS + 1), ("free", True)],
)
def test_wrong_arguments_are_refused_early(graph_class: str, operators: int) -> None:
    with pytest.raises(UsageError):
        Sampler("dtr", graph_class, operators)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="cannot be sampled"):
        Sampler("t-control", "free", 4)
