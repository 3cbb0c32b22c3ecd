"""Finding traces by name, path or file object."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from monofuzz.trace import dtrlog

if TYPE_CHECKING:
    from monofuzz.trace.files import Source
    from monofuzz.trace.model import Trace

__all__ = ["load"]


def load(source: Source) -> Trace:
    """The trace that a path or a file object holds; ``logs.zip:MEMBER`` names one log of several.

    Raises `TraceError`.
    """
    member = None
    if isinstance(source, str) and not os.path.exists(source) and ":" in source:
        path, _, rest = source.rpartition(":")
        if os.path.exists(path):
            source, member = path, rest
    return dtrlog.read(source, member=member)
