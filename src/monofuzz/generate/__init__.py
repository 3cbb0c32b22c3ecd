"""Graphs that nobody recorded: Hypothesis strategies, and a compiled generator for millions."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["strategies"]


def __getattr__(name: str) -> Any:
    # Hypothesis is imported only by those who ask for strategies.
    if name == "strategies":
        return importlib.import_module("monofuzz.generate.strategies")
    raise AttributeError(f"module 'monofuzz.generate' has no attribute {name!r}")
