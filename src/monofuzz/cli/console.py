"""Where output goes: results to standard output, everything else to standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

if TYPE_CHECKING:
    from rich.console import Console

# Wide enough that rich never breaks a line that no terminal asked it to break.
_UNLIMITED = 100_000


def out() -> Console:
    """The console for results."""
    return _console(stderr=False)


def err() -> Console:
    """The console for progress and remarks."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(
        stderr=stderr,
        width=None if terminal else _UNLIMITED,
        highlight=False,
        soft_wrap=not terminal,
    )


def emit(document: Any) -> None:
    """Write one JSON document on one line of standard output."""
    click.echo(msgspec.json.encode(document))


def remark(text: str) -> None:
    """Say something in passing, on standard error."""
    click.echo(text, err=True)


_STATUS = {
    "ok": "[green]ok[/]",
    "oom": "[red]out of memory[/]",
    "thrashed": "[magenta]thrashed[/]",
    "timeout": "[yellow]timeout[/]",
}
_VERDICT = {
    "monotone": "[bold green]monotone[/]",
    "refuted": "[bold red]refuted[/]",
    "undecided": "[bold yellow]undecided[/]",
}


def status(name: str) -> str:
    """A run's status, with its colour."""
    return _STATUS[name]


def verdict(name: str) -> str:
    """A verdict, with its colour."""
    return _VERDICT[name]
