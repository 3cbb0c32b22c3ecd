"""Exit codes: scripts depend on them."""

from __future__ import annotations

DONE = 0
"""Done; and monotone, where that was the question."""
REFUTED = 1
WRONG = 2
"""Wrong use or bad input."""
UNDECIDED = 3
"""A limit was reached first."""
INTERRUPTED = 130
PIPE_CLOSED = 141
"""Nobody reads the output any more."""
