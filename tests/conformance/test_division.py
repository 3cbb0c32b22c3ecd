"""Scores are Python's ``int / int``: correctly rounded, whatever the size of the integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from monofuzz.replay._jit import load_kernel

if TYPE_CHECKING:
    from collections.abc import Callable

VECTORS = [
    (1, 9007199254740993, 1, "0x1.fffffffffffffp-54"),
    (9007199254740993, 3, 1, "0x1.5555555555556p+51"),
    (980401256522, 19 * 41 * 67 * 331 * 30161, 22559489, "0x1.66380882a246ep-24"),
    (478018465858, 8 * 3 * 19 * 211 * 461717, 1207793087, "0x1.321c6519d8093p-27"),
]


@pytest.fixture(params=["interpreted", "compiled"], scope="module")
def quotient(request: pytest.FixtureRequest) -> Callable[[int, int, int], float]:
    """The engine's ``n / (a * b)``."""
    function: Callable[[int, int, int], float] = load_kernel(request.param).quotient
    return function


@pytest.mark.parametrize(("n", "a", "b", "expected"), VECTORS)
def test_known_quotients(
    quotient: Callable[[int, int, int], float], n: int, a: int, b: int, expected: str
) -> None:
    assert n / (a * b) == float.fromhex(expected)
    assert quotient(n, a, b) == float.fromhex(expected)
    assert quotient(-n, a, b) == -float.fromhex(expected)


def factors(bits: int) -> st.SearchStrategy[int]:
    """Positive integers below 2**bits, of every length, powers of two and their neighbours."""
    powers = st.builds(
        lambda k, d: max(1, (1 << k) + d), st.integers(0, bits - 1), st.integers(-2, 2)
    )
    lengths = st.integers(1, bits).flatmap(lambda k: st.integers(1, (1 << k) - 1))
    return st.one_of(powers, lengths)


@given(n=factors(60), a=factors(50), b=factors(59), sign=st.sampled_from([1, -1]))
@example(n=1, a=1, b=1, sign=1)
@example(n=(1 << 60) - 1, a=(1 << 50) - 1, b=(1 << 59) - 1, sign=-1)
def test_any_quotient(
    quotient: Callable[[int, int, int], float], n: int, a: int, b: int, sign: int
) -> None:
    assert quotient(sign * n, a, b) == sign * n / (a * b)


@given(q=st.integers(1 << 53, (1 << 54) - 1), a=factors(3), b=factors(3), off=st.integers(-1, 1))
def test_ties_and_their_neighbours(
    quotient: Callable[[int, int, int], float], q: int, a: int, b: int, off: int
) -> None:
    """Quotients half way between two doubles, where a remainder decides."""
    n = (q | 1) * a * b + off
    assert quotient(n, a, b) == n / (a * b)


def test_zero(quotient: Callable[[int, int, int], float]) -> None:
    assert quotient(0, 3, 5) == 0.0
