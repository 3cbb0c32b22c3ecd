"""The standard streams: closed, full, without a reader, or too narrow for what is written."""

from __future__ import annotations

import io
import os
import sys


def prepare() -> None:
    """Make the streams usable: a closed one leads nowhere, and no character fails on the others.

    Comes before any file is opened, since that would get the number of a closed stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def abandon() -> None:
    """Write what can still be written and drop the rest, so that nothing fails at exit."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
