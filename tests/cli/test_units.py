"""Numbers as people read them."""

from __future__ import annotations

import pytest

from monofuzz.cli import units


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1.000 KiB"),
        (10_061_179_648, "9.370 GiB"),
        (2**62, "4.000 EiB"),
    ],
)
def test_size(count: int, text: str) -> None:
    assert units.size(count) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0%"), (1e-12, "0.01%"), (0.5, "50.00%"), (1 - 1e-12, "99.99%"), (1.0, "100%")],
)
def test_percent_never_rounds_to_nothing_or_all(share: float, text: str) -> None:
    assert units.percent(share) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0312, "0.031 s"),
        (9.97, "10 s"),
        (42.4, "42 s"),
        (59.7, "60 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
    ],
)
def test_seconds(value: float, text: str) -> None:
    assert units.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(28, "28 ns"), (291_905_487, "291.9 ms"), (1_500_000_000, "1.5 s")]
)
def test_nanoseconds(value: int, text: str) -> None:
    assert units.nanoseconds(value) == text


def test_ratio_has_six_digits() -> None:
    assert units.ratio(1046362683, 10061179648) == "0.104000"
    assert units.ratio(5, None) == "-"


def test_plural() -> None:
    assert units.plural(1, "hole") == "1 hole"
    assert units.plural(8522, "regime") == "8,522 regimes"
