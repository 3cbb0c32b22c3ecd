"""Budgeted systems other than a policy on a trace."""

from __future__ import annotations
