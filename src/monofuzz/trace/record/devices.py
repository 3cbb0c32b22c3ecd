"""The machines whose speed an analytic cost assumes, and the roofline that turns work into time.

An operator takes ``launch + max(operations / rate, bytes / bandwidth)``, rounded up to whole
nanoseconds. Rates and bandwidths are the vendors' peak figures (dense, no sparsity); nothing is
fitted. All arithmetic is on integers, so the same work costs the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from monofuzz.errors import UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEVICES", "Device", "device"]

_G: Final = 10**9
_T: Final = 10**12


@dataclass(frozen=True)
class Device:
    """A machine: bytes and operations a second, and nanoseconds to start an operator.

    ``rates`` are by the bits of a number: matrix products of 32-bit numbers run at full 32-bit
    precision, 16-bit ones on the matrix units.
    """

    name: str
    bandwidth: int
    launch: int
    rates: Mapping[int, int]

    def nanoseconds(self, operations: int, moved: int, *, bits: int) -> int:
        """The time of an operator that does so many operations and moves so many bytes."""
        rate = self.rates.get(bits, self.rates[32])
        return self.launch + max(_ceil(operations * _G, rate), _ceil(moved * _G, self.bandwidth))

    def describe(self) -> str:
        """The assumptions, for a trace's metadata."""
        rates = ", ".join(
            f"{rate / _T:g}e12 op/s on {bits} bit" for bits, rate in self.rates.items()
        )
        return (
            f"roofline {self.name}: {self.bandwidth / _G:g} GB/s, {rates}, "
            f"{self.launch} ns an operator"
        )


def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


DEVICES: Final[dict[str, Device]] = {
    device.name: device
    for device in (
        Device("A100", 1_555 * _G, 2_000, {16: 312 * _T, 32: 19_500 * _G, 64: 9_700 * _G}),
        Device("H100", 3_350 * _G, 2_000, {16: 989 * _T, 32: 67 * _T, 64: 34 * _T}),
        Device("RTX 4090", 1_008 * _G, 2_000, {16: 165 * _T, 32: 82_600 * _G, 64: 1_290 * _G}),
        Device("CPU", 100 * _G, 1_000, {16: 1_500 * _G, 32: 1_500 * _G, 64: 750 * _G}),
    )
}
"""The devices by name; the CPU is a server of 16 cores."""


def device(name: str) -> Device:
    """The device of that name, however it is spelt (``rtx4090``). Raises `UsageError`."""
    plain = _plain(name)
    for known in DEVICES.values():
        if _plain(known.name) == plain:
            return known
    hint = nearest(name, list(DEVICES))
    raise UsageError(
        f"no speeds are known for a device {name!r}{hint or '; '}"
        f"{' ' if hint else ''}known are {', '.join(DEVICES)}"
    )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
