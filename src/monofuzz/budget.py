"""Budgets: bytes of tensor memory, said as a ratio of a peak, as bytes, or with a unit.

Text with ``.``, ``e`` or ``%`` is a ratio of the trace's unconstrained peak (``0.104``, ``10.4%``,
``1e-1``), a plain integer is bytes, and a number with a unit is what it says (``2.5GiB``,
``300MB``). In Python a float is a ratio and an int is bytes. A ratio stands for
``int(peak * ratio)`` bytes.
"""

from __future__ import annotations

import math
import numbers
import re
from decimal import Decimal

from monofuzz.errors import BudgetError

__all__ = ["LARGEST", "Budget", "is_ratio", "parse", "parse_range"]

Budget = str | int | float
"""What a user may say for a budget."""

LARGEST = 2**62
"""The largest budget in bytes; sums of a budget and a trace's sizes still fit 64 bits."""

_UNITS = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_NUMBER = re.compile(
    r"(?P<sign>[+-]?)(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?)"
    r"\s*(?P<unit>%|[A-Za-z]*)"
)
_FORMS = "write a ratio of the peak (0.104 or 10.4%), bytes (123456) or a size (2.5GiB, 300MB)"


def is_ratio(budget: Budget) -> bool:
    """Whether ``budget`` needs a peak to become bytes (text that is no budget at all: False)."""
    if isinstance(budget, str):
        match = _NUMBER.fullmatch(budget.strip())
        if match is None or match["unit"] not in ("", "%"):
            return False
        return match["unit"] == "%" or not match["number"].isdigit()
    return not isinstance(budget, numbers.Integral)


def parse(budget: Budget, peak: int | None) -> int:
    """The bytes that ``budget`` stands for; ratios are of ``peak`` (None: there is no peak).

    A ratio above 1 is legal. Raises `BudgetError` for anything that is not a budget: not a number,
    infinite, negative, or larger than `LARGEST`.
    """
    if isinstance(budget, str):
        return _from_text(budget, peak)
    said: object = budget
    if isinstance(said, bool) or not isinstance(said, numbers.Real):
        raise BudgetError(f"budget {_shown(said)} is no number; give a float (ratio) or int")
    if isinstance(said, numbers.Integral):
        return _checked(int(said), said)
    return _from_ratio(float(said), said, peak)


def parse_range(between: tuple[Budget, Budget], peak: int | None) -> tuple[int, int]:
    """The half-open range ``lo <= budget < hi`` in bytes. Raises `BudgetError` if it is empty."""
    try:
        first, last = between
    except (TypeError, ValueError):
        raise BudgetError(f"a range of budgets is a pair (lo, hi), not {_shown(between)}") from None
    lo, hi = parse(first, peak), parse(last, peak)
    if lo >= hi:
        raise BudgetError(
            f"the range from {_shown(first)} ({lo} bytes) to {_shown(last)} ({hi} bytes) is empty; "
            "its lower end must be below its upper end"
        )
    return lo, hi


def _from_text(text: str, peak: int | None) -> int:
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise BudgetError(f"budget {_shown(text)} is not understood; {_FORMS}")
    if match["sign"] == "-":
        raise BudgetError(f"budget {_shown(text)} is negative; {_FORMS}")
    number, unit = match["number"], match["unit"]
    if unit == "%":
        return _from_ratio(float(Decimal(number) / 100), text, peak)
    if unit:
        factor = _UNITS.get(unit.lower())
        if factor is None:
            raise BudgetError(
                f"budget {_shown(text)} has an unknown unit; use B, kB, MB, GB, TB (powers of "
                "1000) or KiB, MiB, GiB, TiB (powers of 1024)"
            )
        size = Decimal(number) * factor
        return _checked(int(size) if size <= LARGEST else LARGEST + 1, text)
    if number.isdigit():
        return _checked(int(number) if len(number) < 4000 else LARGEST + 1, text)
    return _from_ratio(float(number), text, peak)


def _from_ratio(ratio: float, said: object, peak: int | None) -> int:
    if not math.isfinite(ratio):
        raise BudgetError(f"budget {_shown(said)} is not a finite number; {_FORMS}")
    if ratio < 0:
        raise BudgetError(f"budget {_shown(said)} is negative; {_FORMS}")
    if peak is None:
        raise BudgetError(
            f"budget {_shown(said)} is a ratio, but the system has no peak; give whole bytes"
        )
    size = peak * ratio
    return _checked(int(size) if size <= LARGEST else LARGEST + 1, said)


def _checked(size: int, said: object) -> int:
    if size < 0:
        raise BudgetError(f"budget {_shown(said)} is negative; {_FORMS}")
    if size > LARGEST:
        raise BudgetError(f"budget {_shown(said)} is too large; at most 2**62 bytes are possible")
    return size


def _shown(said: object) -> str:
    # A huge int cannot even be turned into text.
    if isinstance(said, int) and abs(said) > 10**30:
        return "of more than 30 digits"
    text = repr(said)
    return text if len(text) <= 60 else text[:57] + "..."
