"""What commands do before they can start: wake the engine, find the trace, make the system."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from monofuzz.cli import console

if TYPE_CHECKING:
    from monofuzz.replay.system import TraceSystem

_QUICK = 1.5  # seconds: longer than it takes to load what was compiled before


def system(trace: str, policy: str, *, engine: str, **how: Any) -> TraceSystem:
    """The trace of that name or path under a policy, ready to run."""
    from monofuzz.trace import load

    loaded = load(trace)
    prepare(engine)
    from monofuzz.replay.system import TraceSystem

    return TraceSystem(loaded, policy, engine=engine, **how)


def prepare(engine: str) -> None:
    """Load the engine, and say so on standard error if it has to be compiled first."""
    if engine != "compiled":
        return
    notice = threading.Timer(
        _QUICK,
        console.remark,
        ["compiling the replay engine, once; this takes about half a minute"],
    )
    notice.daemon = True
    notice.start()
    try:
        _warm_up()
    finally:
        notice.cancel()


def _warm_up() -> None:
    from monofuzz.replay import peak_memory
    from monofuzz.trace import dtrlog

    peak_memory(dtrlog.parse(_SMALLEST))


_SMALLEST = b"""\
{"INSTRUCTION": "CONSTANT", "NAME": "x"}
{"INSTRUCTION": "MEMORY", "NAME": "x", "MEMORY": "1"}
"""
