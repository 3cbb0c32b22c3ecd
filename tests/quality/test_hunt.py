"""The hunt finds what is known to exist, and makes it as small as it is known to get."""

from __future__ import annotations

import pytest

from monofuzz.errors import PolicyError, UsageError
from monofuzz.generate.fast import GraphClass
from monofuzz.hunt import hunt, hunt_all
from monofuzz.search.verdict import Claim
from monofuzz.shrink import complexity


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("graph_class", "claim", "operators", "examples"),
    [
        ("free", "feasibility", 4, 100_000),
        ("free", "cost", 4, 100_000),
        ("unit-sizes", "feasibility", 6, 300_000),
        ("unit", "feasibility", 7, 300_000),
        ("unit", "cost", 6, 100_000),
        ("training", "feasibility", 5, 100_000),
    ],
)
def test_finds_and_shrinks(
    graph_class: GraphClass, claim: Claim, operators: int, examples: int, seed: int
) -> None:
    found = hunt("dtr", claim=claim, graph_class=graph_class, seed=seed, max_examples=examples)
    assert found is not None
    assert found.operators <= operators
    assert found.claim == claim
    assert found.differences() == []
    if graph_class.startswith("unit"):
        assert set(found.trace.tensor_size.tolist()) == {1}
    if graph_class == "unit":
        assert set(found.trace.op_cost.tolist()) == {1}


def test_the_same_seed_finds_the_same() -> None:
    def once() -> list[tuple[str, float]]:
        (result,) = hunt_all(["dtr"], seed=7, max_examples=20_000)
        found = [*result.smallest.values(), *result.worst.values()]
        return [(example.id, example.severity) for example in found]

    first = once()
    assert len(first) == 4
    assert once() == first


def test_the_worst_is_worse_and_the_smallest_smaller() -> None:
    (result,) = hunt_all(["dtr"], goal="worst", max_examples=50_000)
    for claim in ("feasibility", "cost"):
        worst, smallest = result.worst[claim], result.smallest[claim]
        assert worst.severity >= smallest.severity
        assert complexity(smallest.trace) <= complexity(worst.trace)


def test_no_example_is_none() -> None:
    assert hunt("dtr", max_examples=5, min_operators=2, max_operators=2) is None


def test_few_examples_are_shared_out_among_the_sizes() -> None:
    (result,) = hunt_all(["dtr"], max_examples=200, goal="worst")
    assert sorted(result.searched) == list(range(2, 9))
    assert result.graphs == 200
    assert max(result.searched.values()) == 29


def test_all_policies_see_the_same_graphs() -> None:
    results = hunt_all(["dtr", "lru"], max_examples=3000, goal="worst")
    assert [result.policy for result in results] == ["dtr", "lru"]
    assert results[0].searched == results[1].searched


@pytest.mark.parametrize(
    "options",
    [
        {"goal": "best"},
        {"graph_class": "fre"},
        {"claims": ["speed"]},
        {"claims": []},
        {"max_operators": 1},
        {"max_operators": 65},
        {"max_examples": 0},
        {"time": -1},
    ],
)
def test_wrong_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        hunt_all(["dtr"], **options)  # type: ignore[arg-type]
    with pytest.raises(PolicyError):
        hunt_all(["dtrr"])
