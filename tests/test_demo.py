"""The trace that comes with the package is what its tool makes, and shows what it is there for."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import monofuzz

TOOL = Path(__file__).parents[1] / "tools" / "demo_trace.py"


def test_the_tool_makes_it() -> None:
    tool = runpy.run_path(str(TOOL))
    assert tool["trace_of"](tool["residual_network"]()).digest == monofuzz.load("demo").digest


@pytest.mark.parametrize(
    ("budget", "status"),
    [(35_129_215, "ok"), (35_129_216, "oom"), (35_305_603, "oom"), (35_305_604, "ok")],
)
def test_it_has_a_hole(budget: int, status: str) -> None:
    run = monofuzz.replay(monofuzz.load("demo"), "dtr", budget, engine="interpreted")
    assert run.status == status
