"""Recording: any PyTorch training step becomes a trace.

::

    with monofuzz.record() as rec:
        step()
    rec.trace

PyTorch is imported when a recording starts, never before.
"""

from __future__ import annotations

from monofuzz.trace.record.recorder import Recorder, record
from monofuzz.trace.record.step import load_step, record_step

__all__ = ["Recorder", "load_step", "record", "record_step"]
