"""Paging: Belady's anomaly is found, proved absent under LRU, and shrinks to the shortest one."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import monofuzz
from monofuzz.errors import BudgetError, UsageError
from monofuzz.shrink import reduce_trace
from monofuzz.systems.paging import RULES, Paging, references
from monofuzz.trace import Trace, TraceBuilder

BELADY = (1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5)
SHORTEST = 12
"""No shorter reference string has the anomaly: `test_no_shorter_string_has_the_anomaly`."""


def faults(pages: Sequence[int], rule: str = "fifo") -> list[int]:
    system = Paging(pages, rule)  # type: ignore[arg-type]
    return [system.run(frames).cost for frames in range(1, system.peak + 1)]


def rises(costs: Sequence[int]) -> bool:
    return any(above > below for below, above in itertools.pairwise(costs))


def test_the_example_of_1969() -> None:
    assert faults(BELADY) == [12, 12, 9, 10, 5]
    found = monofuzz.map_budgets(Paging(BELADY), between=(1, 6))
    assert found.certified
    verdict = found.verdict("cost")
    assert verdict.verdict == "refuted"
    assert verdict.witness is not None
    assert verdict.witness.budgets == (3, 4)
    assert found.verdict("feasibility").verdict == "monotone"


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.integers(0, 7), min_size=1, max_size=40))
def test_lru_is_proved_monotone(pages: list[int]) -> None:
    system = Paging(pages, "lru")
    found = monofuzz.map_budgets(system, between=(0, system.peak + 1))
    for claim in ("feasibility", "cost"):
        assert found.verdict(claim).verdict == "monotone"
    assert system.run(system.peak).cost == system.peak == len(set(pages))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.sampled_from(RULES))
def test_pages_may_be_called_anything(pages: list[int], rule: str) -> None:
    renamed = [f"page {page}" for page in pages]
    assert Paging(renamed, rule).identity == Paging(pages, rule).identity  # type: ignore[arg-type]
    assert faults(pages, rule) == [
        Paging(renamed, rule).run(frames).cost  # type: ignore[arg-type]
        for frames in range(1, len(set(pages)) + 1)
    ]


def as_trace(pages: Sequence[int]) -> Trace:
    """A trace with this reference string: for each reference an operator that reads the page."""
    build = TraceBuilder()
    made = {page: build.op("page", [], 1, 1)[0] for page in dict.fromkeys(pages)}
    for page in pages:
        build.op("reference", [made[page]], 1, 1)
    return build.finish(keep=[])


def has_anomaly(trace: Trace) -> bool:
    one_each = all(len(trace.arguments(op)) <= 1 for op in range(trace.n_ops))
    return one_each and len(trace.args) > 0 and rises(faults(references(trace)))


def test_any_anomaly_shrinks_to_one_of_the_shortest() -> None:
    lengths = []
    for seed in range(3):
        rng = random.Random(seed)
        pages = [rng.randrange(7) for _ in range(40)]
        while not rises(faults(pages)):
            pages = [rng.randrange(7) for _ in range(40)]
        small = references(reduce_trace(as_trace(pages), has_anomaly))
        assert rises(faults(small))
        for place in range(len(small)):
            assert not rises(faults(small[:place] + small[place + 1 :]))
        lengths.append(len(small))
    # One ends where no single reference can go, which is not always the least.
    assert sorted(lengths)[:2] == [SHORTEST] * 2


def test_no_shorter_string_has_the_anomaly() -> None:
    """All 142,418 strings of fewer than 12 references, up to names of pages and repetitions.

    A reference to the page of the one before never faults, so strings with such are left out.
    """
    count = 0

    def extend(
        last: int, pages: int, length: int, queues: list[list[int]], cost: list[int]
    ) -> None:
        nonlocal count
        count += length > 0
        assert not rises(cost[: max(pages, 1)])
        if length == SHORTEST - 1:
            return
        for page in range(pages + 1):
            if page == last:
                continue
            after, more = [], []
            for frames, (queue, faulted) in enumerate(zip(queues, cost, strict=True), start=1):
                known = page in queue
                after.append(queue if known else [*queue, page][-frames:])
                more.append(faulted + (not known))
            extend(page, max(pages, page + 1), length + 1, after, more)

    extend(-1, 0, 0, [[] for _ in range(SHORTEST)], [0] * SHORTEST)
    assert count == 142_418


def test_no_frame_is_no_memory() -> None:
    assert Paging([1, 2]).run(0).status == "oom"
    with pytest.raises(BudgetError, match="0 or more"):
        Paging([1]).run(-1)


def test_wrong_use_is_refused() -> None:
    with pytest.raises(UsageError, match="did you mean lru"):
        Paging([1], "lrru")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="at least one page"):
        Paging([])
