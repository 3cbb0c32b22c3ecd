"""Analytic costs, computed by hand."""

from __future__ import annotations

import pytest

from monofuzz.errors import UsageError
from monofuzz.trace.record.devices import DEVICES, device


def test_a_roofline_is_the_slower_of_arithmetic_and_memory() -> None:
    a100 = device("A100")
    # 2 * 1024^3 operations at 19.5e12/s are 110,127.4 ns; 12 MiB at 1,555e9 B/s are 8,091.9 ns.
    assert a100.nanoseconds(2 * 1024**3, 3 * 4 * 1024**2, bits=32) == 2_000 + 110_128
    assert a100.nanoseconds(1024**2, 3 * 4 * 1024**2, bits=32) == 2_000 + 8_092
    assert a100.nanoseconds(0, 0, bits=32) == 2_000


def test_halves_run_on_the_matrix_units() -> None:
    h100 = device("h100")
    assert h100.nanoseconds(989 * 10**6, 0, bits=16) == 2_000 + 1_000
    assert h100.nanoseconds(67 * 10**6, 0, bits=8) == 2_000 + 1_000  # no figure: as 32 bits


def test_names_are_found_however_they_are_spelt() -> None:
    assert device("rtx4090") is device("RTX 4090") is DEVICES["RTX 4090"]
    with pytest.raises(UsageError, match="known are A100, H100, RTX 4090, CPU"):
        device("xyz")
