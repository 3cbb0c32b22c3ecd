from __future__ import annotations

from hypothesis import given

from monofuzz import strategies as mst
from monofuzz.canonical import canonical_hash, canonical_order
from monofuzz.trace import Trace, TraceBuilder


def two_chains(first: str, second: str, sizes: tuple[int, int]) -> Trace:
    build = TraceBuilder()
    build.op(first, [], sizes[0], 1)
    build.op(second, [], sizes[1], 1)
    return build.finish()


def test_names_and_the_order_of_independent_operators_do_not_count() -> None:
    assert canonical_hash(two_chains("x", "y", (3, 5))) == canonical_hash(
        two_chains("p", "q", (5, 3))
    )


def test_numbers_and_edges_count() -> None:
    hashes = {canonical_hash(two_chains("x", "y", sizes)) for sizes in [(3, 5), (3, 3), (5, 5)]}
    build = TraceBuilder()
    (x,) = build.op("x", [], 3, 1)
    build.op("y", [x], 5, 1)
    hashes.add(canonical_hash(build.finish()))
    assert len(hashes) == 4


def test_argument_order_and_the_place_of_a_release_count() -> None:
    def graph(swap: bool, early: bool) -> Trace:
        build = TraceBuilder()
        (x,) = build.op("x", [], 3, 1)
        (y,) = build.op("y", [], 5, 1)
        if early:
            build.release(x)
        build.op("z", [y, x] if swap else [x, y], 1, 1)
        if not early:
            build.release(x)
        return build.finish()

    made = {canonical_hash(graph(swap, early)) for swap in (False, True) for early in (False, True)}
    assert len(made) == 4


def test_a_long_chain_is_told_from_a_longer_one() -> None:
    def chain(length: int) -> Trace:
        build = TraceBuilder()
        (x,) = build.op("x", [], 1, 1)
        for _ in range(length):
            (x,) = build.op("x", [x], 1, 1)
        return build.finish()

    assert len({canonical_hash(chain(length)) for length in range(60)}) == 60


@given(mst.traces(max_ops=10))
def test_any_order_of_the_schedule_has_the_same_hash(trace: Trace) -> None:
    from monofuzz.shrink.rewrite import reordered

    again = reordered(trace, canonical_order(trace))
    assert canonical_hash(again) == canonical_hash(trace)
    assert again.n_ops == trace.n_ops
