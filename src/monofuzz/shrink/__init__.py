"""From a large counterexample to a minimal one."""

from __future__ import annotations
