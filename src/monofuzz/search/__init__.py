"""Where monotonicity breaks: maps of budget ranges, and what they prove."""

from __future__ import annotations

from monofuzz.search.blackbox import BlackBox, Run, as_system
from monofuzz.search.explorer import SAMPLED_RUNS, Progress
from monofuzz.search.mapping import (
    Check,
    MonotonicityUndecided,
    MonotonicityViolation,
    assert_monotone,
    check,
    map_budgets,
)
from monofuzz.search.regimes import Map, Regime
from monofuzz.search.system import Result, System
from monofuzz.search.verdict import Cliff, Hole, Verdict, Witness, cliffs, holes

__all__ = [
    "SAMPLED_RUNS",
    "BlackBox",
    "Check",
    "Cliff",
    "Hole",
    "Map",
    "MonotonicityUndecided",
    "MonotonicityViolation",
    "Progress",
    "Regime",
    "Result",
    "Run",
    "System",
    "Verdict",
    "Witness",
    "as_system",
    "assert_monotone",
    "check",
    "cliffs",
    "holes",
    "map_budgets",
]
