"""Counterexamples: a trace, a policy, and two budgets of which the larger does worse."""

from __future__ import annotations

from monofuzz.counterexample.finding import Finding, inspect_runs, least_budget, runs_of
from monofuzz.counterexample.model import Counterexample, examine
from monofuzz.counterexample.storage import load, save

__all__ = [
    "Counterexample",
    "Finding",
    "examine",
    "inspect_runs",
    "least_budget",
    "load",
    "runs_of",
    "save",
]
