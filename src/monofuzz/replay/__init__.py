"""How a trace runs under a budget: the engine, the policies, and what a run gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monofuzz.replay.outcome import Fail, Outcome, Status
from monofuzz.replay.policy import Policy
from monofuzz.replay.stop import StopFlag
from monofuzz.replay.system import TraceSystem

if TYPE_CHECKING:
    from monofuzz.trace.files import Source
    from monofuzz.trace.model import Trace

__all__ = [
    "Fail",
    "Outcome",
    "Policy",
    "Status",
    "StopFlag",
    "TraceSystem",
    "peak_memory",
    "replay",
]


def replay(
    trace: Trace | Source,
    policy: str | Policy,
    budget: str | int | float,
    *,
    limit: float | None = 60.0,
    timeout: float | None = None,
    align: int | None = None,
    engine: str = "compiled",
) -> Outcome:
    """Replay ``trace`` at one budget: bytes (int), a ratio of the peak (float), or text.

    ``trace`` may be given by its name or path; the other arguments are those of `TraceSystem`.
    Raises `BudgetError` and `PolicyError`.
    """
    from monofuzz.budget import parse as parse_budget
    from monofuzz.trace import load
    from monofuzz.trace.model import Trace

    loaded = trace if isinstance(trace, Trace) else load(trace)
    system = TraceSystem(loaded, policy, limit=limit, timeout=timeout, align=align, engine=engine)
    return system.run(parse_budget(budget, system.peak))


def peak_memory(trace: Trace, *, align: int | None = None) -> int:
    """The peak memory in bytes of a replay without a budget, the 1.0 of all ratios."""
    return TraceSystem(trace, "lru", limit=None, align=align).peak
