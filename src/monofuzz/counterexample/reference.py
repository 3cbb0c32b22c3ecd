"""A counterexample in the reference simulator: an unmodified checkout that the user names.

Nothing of that simulator is part of this project. It is imported in a process of its own, from the
folder given; it needs the package ``attrs``. Only a recorder of victims is wrapped around the
heuristic: its decisions are untouched.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monofuzz.errors import MonofuzzError, UsageError
from monofuzz.replay.policy import parse

if TYPE_CHECKING:
    import os

    from monofuzz.counterexample.model import Counterexample

__all__ = ["HEURISTICS", "Agreement", "compare", "find_checkout"]

HEURISTICS = {
    "dtr": "DTR",
    "dtr-eq": "DTREqClass",
    "dtr-local": "DTRLocal",
    "dtr-unopt": "DTRUnopt",
    "msps": "MSPS",
    "lru": "LRU",
    "size": "LargestStorage",
    "e-size": "AbESize",
    "e-stale": "AbEStale",
    "cost-stale": "AbEStale",
    "e": "AbE",
    "eq-size": "AbEqSize",
    "eq-stale": "AbEqStale",
    "eq": "AbEq",
    "local-size": "AbLocalSize",
    "local-stale": "AbLocalStale",
    "local": "AbLocal",
    "size-stale": "AbSizeStale",
    "stale": "AbStale",
}
"""The policies that the reference simulator has, too, and the classes that it calls them."""

COMPARED = (
    "status", "model_compute", "remat_compute", "evictions", "victims_sha256", "peak_memory",
)  # fmt: skip
_SECONDS = 600.0


@dataclass(frozen=True)
class Agreement:
    """The two runs in the reference simulator, beside ours. ``differences`` are sentences."""

    runs: int
    agree: int
    folder: Path
    differences: tuple[str, ...]


def find_checkout(folder: str | os.PathLike[str]) -> Path:
    """The folder that holds the simulator's package, in a checkout or in a part of it."""
    given = Path(folder)
    for place in (given, given / "simrd"):
        if (place / "simrd" / "runtime" / "v2.py").is_file():
            return place.resolve()
    raise UsageError(
        f"{given}: there is no simrd package here; name a checkout of uwsampl/dtr-prototype"
    )


def compare(example: Counterexample, folder: str | os.PathLike[str]) -> Agreement:
    """Replay both budgets of a counterexample there, and compare victims, clock and outcome.

    Raises `UsageError` for a policy that the reference simulator does not have, and for a folder
    without one; `TraceError` for a trace that cannot be written as a log; `MonofuzzError` when the
    reference simulator itself fails.
    """
    from monofuzz.trace.dtrwrite import format_log

    checkout = find_checkout(folder)
    policy = parse(example.policy)
    if policy.name not in HEURISTICS or example.align is not None:
        reason = "sizes are aligned" if policy.name in HEURISTICS else f"it has no {policy.name}"
        raise UsageError(
            f"the reference simulator cannot replay this: {reason} "
            f"(policies that it has: {', '.join(HEURISTICS)})"
        )
    system = example.system()
    ours = [system.run(budget) for budget in example.witness]
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "trace.log"
        log.write_bytes(format_log(example.trace))
        request = {
            "simrd": str(checkout),
            "log": str(log),
            "heuristic": HEURISTICS[policy.name],
            "budgets": list(example.witness),
            "remat_limit": system.remat_limit,
        }
        theirs = _run(request)
    listed = []
    agree = 0
    for own, other in zip(ours, theirs, strict=True):
        differing = [
            f"{name} at {own.budget} bytes is {other[name]} there and {getattr(own, name)} here"
            for name in COMPARED
            if other[name] != getattr(own, name)
        ]
        listed += differing
        agree += not differing
    return Agreement(len(ours), agree, checkout, tuple(listed))


def _run(request: dict[str, Any]) -> list[dict[str, Any]]:
    script = Path(__file__).with_name("reference_process.py")
    try:
        done = subprocess.run(
            [sys.executable, str(script)],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise MonofuzzError(
            f"the reference simulator did not finish within {_SECONDS:.0f} s"
        ) from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise MonofuzzError(f"the reference simulator failed: {last}")
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers
