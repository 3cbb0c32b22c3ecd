"""Numbers as people read them."""

from __future__ import annotations

_BINARY = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def size(count: int) -> str:
    """Bytes in the largest binary unit that leaves at least 1: ``9.370 GiB``."""
    if count < 1024:
        return f"{count} {'byte' if count == 1 else 'bytes'}"
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_BINARY) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.3f} {_BINARY[unit]}"


def exact(count: int) -> str:
    """An integer with separators: ``10,061,179,648``."""
    return f"{count:,}"


def both(count: int) -> str:
    """A size for people and to the byte: ``9.370 GiB (10,061,179,648 bytes)``."""
    return size(count) if count < 1024 else f"{size(count)} ({exact(count)} bytes)"


def plural(count: int, noun: str) -> str:
    """A counted noun: ``1 hole``, ``8,522 regimes``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def ratio(budget: int, peak: int | None) -> str:
    """A budget as a share of the peak, six digits; a dash if the trace has no peak."""
    return f"{budget / peak:.6f}" if peak else "-"


def factor(value: float) -> str:
    """An overhead: ``2.077x``."""
    return f"{value:,.3f}x"


def percent(share: float) -> str:
    """A share, never rounded up to 100% nor down to 0%: ``99.9%``, ``100%``."""
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    digits = min(max(share * 100, 0.01), 99.99)
    return f"{digits:.2f}%"


def seconds(value: float) -> str:
    """A duration: ``0.42 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if value < 60:
        return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"
    whole = round(value)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def nanoseconds(value: int) -> str:
    """Compute time: ``291.9 ms``."""
    for unit, scale in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if value >= scale:
            return f"{value / scale:,.4g} {unit}"
    return f"{value} ns"
