"""Counterexamples: a trace, a policy, and two budgets of which the larger does worse."""

from __future__ import annotations

from monofuzz.counterexample.finding import (
    Finding,
    closest,
    findings,
    inspect_runs,
    least_budget,
    runs_of,
)
from monofuzz.counterexample.model import Counterexample, breaks, examine
from monofuzz.counterexample.signature import Signature, signature_of
from monofuzz.counterexample.storage import load, save

__all__ = [
    "Counterexample",
    "Finding",
    "Signature",
    "breaks",
    "closest",
    "examine",
    "findings",
    "inspect_runs",
    "least_budget",
    "load",
    "runs_of",
    "save",
    "signature_of",
]
