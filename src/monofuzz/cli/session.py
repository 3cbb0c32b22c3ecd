"""What commands do before they can start: wake the engine, find the trace, make the system."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from monofuzz.cli import console

if TYPE_CHECKING:
    from typing import IO

    from monofuzz.replay.system import TraceSystem
    from monofuzz.trace import Trace


def load(trace: str | IO[bytes]) -> Trace:
    """The trace of that name or path, or in an open file; ``-`` is standard input."""
    from monofuzz.trace import load

    return load(sys.stdin.buffer if trace == "-" else trace)


def system(trace: str | IO[bytes], policy: str, *, engine: str, **how: Any) -> TraceSystem:
    """The trace of that name or path under a policy, ready to run."""
    loaded = load(trace)
    prepare(engine)
    from monofuzz.replay.system import TraceSystem

    return TraceSystem(loaded, policy, engine=engine, **how)


def prepare(engine: str) -> None:
    """Load the engine, and say so on standard error if it has to be compiled first."""
    from monofuzz.replay.system import prepare as prepare_engine

    prepare_engine(engine, _announce)


def _announce() -> None:
    console.remark("compiling the replay engine, once; this takes about half a minute")
