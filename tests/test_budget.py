"""Budgets: what users may say, and what it means in bytes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monofuzz.budget import LARGEST, is_ratio, parse, parse_range
from monofuzz.errors import BudgetError

PEAK = 10_061_179_648


@pytest.mark.parametrize(
    ("said", "size"),
    [
        ("123456", 123456),
        ("0", 0),
        (" 5 ", 5),
        ("+5", 5),
        ("0.104", int(PEAK * 0.104)),
        ("10.4%", int(PEAK * 0.104)),
        ("100%", PEAK),
        ("1.0", PEAK),
        ("1.", PEAK),
        (".5", PEAK // 2),
        ("1e-1", int(PEAK * 0.1)),
        ("1E0", PEAK),
        ("1e9", PEAK * 10**9 if PEAK * 10**9 <= LARGEST else None),
        ("2.5", int(PEAK * 2.5)),
        ("2.5GiB", 5 * 2**29),
        ("300MB", 300_000_000),
        ("300 mb", 300_000_000),
        ("1e3kB", 1_000_000),
        ("1KiB", 1024),
        ("0.1GB", 100_000_000),
        ("7B", 7),
        ("2TiB", 2**41),
        (0.104, int(PEAK * 0.104)),
        (1, 1),
        (1.0, PEAK),
        (np.int64(7), 7),
        (np.float64(0.5), PEAK // 2),
        (Fraction(1, 2), PEAK // 2),
        (str(2**62), 2**62),
        (2**62, 2**62),
    ],
)
def test_a_budget_is_what_it_says(said: object, size: int | None) -> None:
    if size is None:
        with pytest.raises(BudgetError, match="too large"):
            parse(said, PEAK)  # type: ignore[arg-type]
    else:
        assert parse(said, PEAK) == size  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("nan", "not understood"),
        ("inf", "not understood"),
        ("", "not understood"),
        ("lots", "not understood"),
        ("1,5", "not understood"),
        ("1_000", "not understood"),
        ("٣", "not understood"),
        ("0x10", "unknown unit|not understood"),
        ("1.2.3", "not understood"),
        ("5 apples", "unknown unit"),
        ("2.5G", "unknown unit"),
        ("-1", "negative"),
        ("-0.5", "negative"),
        ("-3%", "negative"),
        ("-2GiB", "negative"),
        ("1e999", "not a finite"),
        ("1e999%", "not a finite"),
        ("1e999GiB", "too large"),
        ("1e99999GiB", "too large"),
        ("1e999999GiB", "not understood"),
        ("9" * 5000, "too large"),
        (str(2**62 + 1), "too large"),
        ("1e300", "too large"),
        (math.nan, "not a finite"),
        (math.inf, "not a finite"),
        (-math.inf, "not a finite"),
        (-0.5, "negative"),
        (-1, "negative"),
        (10**100, "too large"),
        (1e300, "too large"),
        (True, "no number"),
        (None, "no number"),
        (1j, "no number"),
        ((1, 2), "no number"),
    ],
)
def test_what_is_no_budget_is_refused_in_words(said: object, why: str) -> None:
    with pytest.raises(BudgetError, match=why) as caught:
        parse(said, PEAK)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


@given(st.floats(0, 1), st.integers(1, 2**60))
def test_text_and_float_agree(ratio: float, peak: int) -> None:
    text = repr(ratio)
    assert parse(text, peak) == parse(ratio, peak) == int(peak * ratio)


@given(st.integers(0, 10_000))
def test_percent_and_ratio_agree(hundredths: int) -> None:
    percent = f"{hundredths / 100:.2f}%"
    assert parse(percent, PEAK) == parse(f"{hundredths / 10000:.4f}", PEAK)


def test_a_ratio_needs_a_peak() -> None:
    assert parse("5", None) == 5
    with pytest.raises(BudgetError, match="no peak"):
        parse("0.5", None)


@pytest.mark.parametrize(
    ("said", "ratio"),
    [
        ("0.5", True),
        ("5%", True),
        ("1e3", True),
        ("5", False),
        ("5GB", False),
        (5, False),
        (0.5, True),
    ],
)
def test_which_budgets_are_ratios(said: str | float, ratio: bool) -> None:
    assert is_ratio(said) is ratio


def test_a_range_is_half_open_and_not_empty() -> None:
    assert parse_range((0.5, "1.0"), 100) == (50, 100)
    for empty in [(0.5, 0.5), (1.0, 0.5), (7, 7)]:
        with pytest.raises(BudgetError, match="empty"):
            parse_range(empty, 100)
    for wrong in [5, (1, 2, 3), None]:
        with pytest.raises(BudgetError, match="pair"):
            parse_range(wrong, 100)  # type: ignore[arg-type]
