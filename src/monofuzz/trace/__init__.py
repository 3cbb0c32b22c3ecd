"""What is replayed: traces, where they come from and how they are kept."""

from __future__ import annotations

from monofuzz.trace.builder import TraceBuilder
from monofuzz.trace.library import TraceInfo, load, save
from monofuzz.trace.model import COMPUTE, GET, PIN, RELEASE, Trace, TraceMeta

__all__ = [
    "COMPUTE",
    "GET",
    "PIN",
    "RELEASE",
    "Trace",
    "TraceBuilder",
    "TraceInfo",
    "TraceMeta",
    "load",
    "save",
]
