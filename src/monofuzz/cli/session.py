"""What commands do before they can start: find the trace, make the system, wake the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monofuzz.replay.system import TraceSystem


def system(trace: str, policy: str, **how: Any) -> TraceSystem:
    """The trace of that name or path under a policy."""
    from monofuzz.replay.system import TraceSystem
    from monofuzz.trace import load

    return TraceSystem(load(trace), policy, **how)
