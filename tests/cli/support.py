"""What the tests of the commands share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result

Run = Callable[..., Result]

HOLE = str(Path(__file__).parent / "hole.log")
"""Eight operators that run with 18 bytes, fail with 19 and run with 20 (policy dtr, peak 35)."""


def document(result: Result) -> Any:
    """The one JSON document that is all of standard output."""
    assert result.stdout.endswith("\n")
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)
