"""A flag that other threads set and compiled code polls."""

from __future__ import annotations

import numpy as np

__all__ = ["StopFlag"]


class StopFlag:
    """Set it from any thread, and runs that were given it end within microseconds, unfinished."""

    def __init__(self) -> None:
        self.array = np.zeros(1, np.int64)

    def set(self) -> None:
        self.array[0] = 1

    def clear(self) -> None:
        self.array[0] = 0

    def is_set(self) -> bool:
        return bool(self.array[0])
