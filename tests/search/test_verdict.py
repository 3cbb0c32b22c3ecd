"""Verdicts against definitions written down naively, budget by budget and pair by pair."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monofuzz.errors import UsageError
from monofuzz.search.regimes import Map, Origin
from monofuzz.search.rows import INT_ROW, REAL_ROW, row_of, rows_from
from monofuzz.search.verdict import cliffs, holes, verdict
from tests.search.toys import STATUSES, ToyResult

if TYPE_CHECKING:
    from monofuzz.search.verdict import ThrashAs

ORIGIN = Origin("toy", "toy", "none", peak=100)


@dataclass(frozen=True)
class Piece:
    lo: int
    hi: int
    status: str | None  # None: a gap
    cost: float = 10
    certified: bool = True


def build(pieces: list[Piece], beyond: tuple[tuple[int, str], ...] = ()) -> Map:
    rows = rows_from(
        [
            row_of(ToyResult(p.status, p.cost, p.cost / 10, (p.lo, p.hi), p.certified), p.lo, "toy")
            if p.certified
            else (
                *((p.lo, p.hi)),
                *row_of(ToyResult(p.status, p.cost, p.cost / 10, (p.lo, p.hi), False), p.lo, "toy")[
                    2:
                ],
            )
            for p in pieces
            if p.status is not None
        ]
    )
    return Map(ORIGIN, (pieces[0].lo, pieces[-1].hi), rows, beyond=beyond)


@st.composite
def maps(draw: st.DrawFn) -> tuple[Map, list[Piece]]:
    """Maps of a few dozen budgets, with everything that a map can hold."""
    edges = sorted(draw(st.sets(st.integers(0, 40), min_size=2, max_size=14)))
    what = st.sampled_from([*STATUSES, "ok", "ok", "oom", None, "timeout"])
    real = draw(st.booleans())
    costs = st.sampled_from([10.5, 11.25, 13.0] if real else [10, 11, 13, 20, 0])
    pieces: list[Piece] = []
    all_known = draw(st.booleans())
    for lo, hi in itertools.pairwise(edges):
        status = draw(st.sampled_from(["ok", "ok", "oom", *STATUSES])) if all_known else draw(what)
        certified = status != "timeout" and (all_known or draw(st.integers(0, 4)) > 0)
        if status == "timeout" or not certified:
            # Uncertified rows are single budgets.
            pieces += [Piece(b, b + 1, status, draw(costs), False) for b in range(lo, hi)]
        else:
            pieces.append(Piece(lo, hi, status, draw(costs)))
    end = edges[-1]
    beyond = draw(
        st.sampled_from(
            [
                (),
                ((end, "ok"),),
                ((end, "oom"), (end + 9, "ok")),
                ((end, "thrashed"),),
                ((end, "timeout"),),
                ((end, "oom"),),
            ]
        )
    )
    return build(pieces, beyond), pieces


def budgets(pieces: list[Piece]) -> dict[int, Piece]:
    """What is known of each single budget; gaps and timeouts are not known."""
    return {b: p for p in pieces if p.status not in (None, "timeout") for b in range(p.lo, p.hi)}


def failures(thrash_as: str) -> tuple[str, ...]:
    return ("oom", "thrashed") if thrash_as == "infeasible" else ("oom",)


@given(maps(), st.sampled_from(["own", "infeasible"]))
@settings(deadline=None)
def test_holes_are_what_the_definition_says(
    drawn: tuple[Map, list[Piece]], thrash_as: ThrashAs
) -> None:
    found, pieces = drawn
    known, end = budgets(pieces), found.between[1]
    fails = {b for b, p in known.items() if p.status in failures(thrash_as)}
    rest = set(known) - fails
    good = {b for b, p in known.items() if p.status == "ok"}
    # A hole is a class of failing budgets under "no budget between them is known not to fail".
    classes: list[list[int]] = []
    for b in sorted(fails):
        if classes and not any(classes[-1][-1] < other < b for other in rest):
            classes[-1].append(b)
        else:
            classes.append([b])
    beyond = dict(found.beyond)
    at_end = beyond.get(end) not in (None, "timeout", *failures(thrash_as))
    expected = [
        (
            c[0],
            c[-1] + 1,
            c[0] - 1 in rest,
            at_end if c[-1] + 1 == end else c[-1] + 1 in rest,
            c[-1] + 1 - c[0] - len(c),
            not (any(b > c[-1] for b in good) or "ok" in beyond.values()),
        )
        for c in classes
        if any(b < c[0] for b in good)
    ]
    got = [
        (h.lo, h.hi, h.exact_lo, h.exact_hi, h.unknown, h.open)
        for h in holes(found, thrash_as=thrash_as)
    ]
    assert got == expected


@given(maps(), st.sampled_from([1.0, 1.05, 1.25, 2.0]), st.booleans())
@settings(deadline=None)
def test_cliffs_are_what_the_definition_says(
    drawn: tuple[Map, list[Piece]], factor: float, either: bool
) -> None:
    found, pieces = drawn
    known = budgets(pieces)
    expected = []
    order = sorted(known)
    for b, c in itertools.pairwise(order):
        low, high = known[b], known[c]
        if low.status == high.status == "ok":
            below, above = low.cost / 10, high.cost / 10
            if above > below * factor or (either and below > above * factor):
                expected.append((c, below, above, c - b - 1))
    got = [
        (x.at, x.below, x.above, x.gap)
        for x in cliffs(found, factor=factor, either_direction=either)
    ]
    assert got == expected


@given(maps(), st.sampled_from(["own", "infeasible"]))
@settings(deadline=None)
def test_feasibility_is_what_the_definition_says(
    drawn: tuple[Map, list[Piece]], thrash_as: ThrashAs
) -> None:
    found, pieces = drawn
    known = budgets(pieces)
    pairs = [
        (a, b)
        for a in known
        for b in known
        if a < b and known[a].status == "ok" and known[b].status in failures(thrash_as)
    ]
    got = verdict(found, "feasibility", thrash_as=thrash_as)
    if pairs:
        assert got.verdict == "refuted"
        assert got.witness is not None
        assert got.witness.budgets in pairs
        assert b_minus_a(got.witness.budgets) == min(b_minus_a(p) for p in pairs)
    else:
        assert got.witness is None
        assert got.verdict == ("monotone" if provable(found, pieces, thrash_as) else "undecided")
    assert bool(got.reason)


def b_minus_a(pair: tuple[int, int]) -> int:
    return pair[1] - pair[0]


def provable(found: Map, pieces: list[Piece], thrash_as: str) -> bool:
    known = budgets(pieces)
    complete = all(b in known and known[b].certified for b in range(*found.between))
    unclear = thrash_as == "own" and any(
        a < b and known[a].status == "ok" and known[b].status == "thrashed"
        for a in known
        for b in known
    )
    return complete and not unclear


@given(maps(), st.sampled_from(["own", "infeasible"]), st.sampled_from([0.0, 0.05, 0.1, 0.3, 2.0]))
@settings(deadline=None)
def test_cost_is_what_the_definition_says(
    drawn: tuple[Map, list[Piece]], thrash_as: ThrashAs, tolerance: float
) -> None:
    found, pieces = drawn
    known = budgets(pieces)

    def factor(pair: tuple[int, int]) -> float:
        low, high = known[pair[0]].cost, known[pair[1]].cost
        return high / low if low else float("inf")

    pairs = [
        (a, b)
        for a in known
        for b in known
        if a < b
        and known[a].status == known[b].status == "ok"
        and known[b].cost > known[a].cost * (1 + tolerance)
    ]
    got = verdict(found, "cost", thrash_as=thrash_as, tolerance=tolerance)
    if pairs:
        assert got.verdict == "refuted"
        assert got.witness is not None
        assert got.witness.budgets in pairs
        assert factor(got.witness.budgets) == max(map(factor, pairs))
        assert got.witness.factor == factor(got.witness.budgets)
    else:
        assert got.verdict == ("monotone" if provable(found, pieces, thrash_as) else "undecided")


@given(maps())
@settings(deadline=None)
def test_the_map_says_what_it_is(drawn: tuple[Map, list[Piece]]) -> None:
    found, pieces = drawn
    known = budgets(pieces)
    lo, hi = found.between
    assert found.covered == pytest.approx(len(known) / (hi - lo))
    assert (found.covered == 1.0) is (len(known) == hi - lo)
    touched = {b for p in pieces if p.status is not None for b in range(p.lo, p.hi)}
    assert [b for a, c in found.gaps for b in range(a, c)] == sorted(set(range(lo, hi)) - touched)
    assert found.certified is all(b in known and known[b].certified for b in range(lo, hi))
    assert found.sampled is any(not p.certified for p in known.values())
    assert found.timeouts == sum(p.hi - p.lo for p in pieces if p.status == "timeout")
    for b in range(lo, hi):
        regime = found.at(b)
        assert (regime is None) is (b not in touched)
        if regime is not None and b in known:
            assert (regime.status, regime.cost) == (known[b].status, known[b].cost)
    for before, after in zip(found.regimes, found.regimes[1:], strict=False):
        same = (before.status, before.cost, before.certified) == (
            after.status,
            after.cost,
            after.certified,
        )
        assert before.hi < after.lo or not same, "identical neighbours are one regime"


def test_of_all_holes_the_largest_is_the_witness() -> None:
    found = build(
        [
            Piece(0, 5, "ok"), Piece(5, 7, "oom"), Piece(7, 10, "ok"), Piece(10, 18, "oom"),
            Piece(18, 20, "ok"), Piece(20, 28, "oom"), Piece(28, 30, "ok"),
        ]
    )  # fmt: skip
    witness = found.verdict("feasibility").witness
    assert witness is not None
    assert witness.budgets == (9, 10)
    assert str(witness) == "ok at 9 bytes, oom at 10 (1 byte more)"


def test_a_failing_upper_end_refutes_but_is_no_hole_until_a_run_above_is_ok() -> None:
    pieces = [Piece(0, 5, "ok"), Piece(5, 9, "oom")]
    found = build(pieces)
    assert found.holes == []
    assert [(h.lo, h.hi) for h in found.open_holes] == [(5, 9)]
    assert found.verdict("feasibility").verdict == "refuted"
    (hole,) = build(pieces, ((9, "ok"),)).holes
    assert (hole.lo, hole.hi, hole.exact_hi, hole.bytes) == (5, 9, True, 4)
    (hole,) = build(pieces, ((9, "oom"), (100, "ok"))).holes
    assert not hole.exact_hi


def test_thrashed_above_ok_decides_nothing_by_itself() -> None:
    found = build([Piece(0, 5, "ok"), Piece(5, 9, "thrashed"), Piece(9, 12, "ok")])
    for claim in ("feasibility", "cost"):
        assert found.verdict(claim).verdict == "undecided"
    assert found.verdict("feasibility", thrash_as="infeasible").verdict == "refuted"
    assert found.verdict("cost", thrash_as="infeasible").verdict == "monotone"
    assert found.holes == []
    assert "compute limit" in found.verdict("cost").reason
    below = build([Piece(0, 5, "thrashed"), Piece(5, 9, "ok")])
    assert below.verdict("feasibility").verdict == "monotone"


def test_costs_beyond_doubles_are_compared_exactly() -> None:
    large = 2**60
    found = build([Piece(0, 5, "ok", large), Piece(5, 9, "ok", large + 1)])
    witness = found.verdict("cost").witness
    assert witness is not None
    assert (witness.below.cost, witness.above.cost) == (large, large + 1)
    assert found.verdict("cost", tolerance=1e-9).verdict == "monotone"


def test_wrong_options_are_refused() -> None:
    found = build([Piece(0, 5, "ok")])
    with pytest.raises(UsageError, match="unknown claim"):
        found.verdict("speed")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="thrash_as"):
        found.verdict("cost", thrash_as="ok")  # type: ignore[arg-type]
    for tolerance in (-0.1, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="tolerance"):
            found.verdict("cost", tolerance=tolerance)
    with pytest.raises(UsageError, match="factor"):
        cliffs(found, factor=0.5)


def test_a_million_regimes_in_a_second() -> None:
    import time

    count = 1_000_000
    rng = np.random.default_rng(1)
    status, cost = rng.integers(0, 3, count), rng.integers(10, 40, count)
    for kind in (INT_ROW, REAL_ROW):
        rows = np.zeros(count, kind)
        rows["lo"] = np.arange(count) * 10
        rows["hi"] = rows["lo"] + 10
        rows["status"] = status
        rows["cost"] = cost
        rows["overhead"] = rows["cost"] / 10
        rows["certified"] = 1
        found = Map(ORIGIN, (0, 10 * count), rows)
        started = time.process_time()
        for claim in ("feasibility", "cost"):
            assert found.verdict(claim).verdict == "refuted"
        seconds = time.process_time() - started
        assert seconds < 2, seconds
        assert found.table.nbytes < 200_000_000
