"""Measurements against the reference simulator and against the project's own limits."""
