"""Where output goes: results to standard output, everything else to standard error."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, if that is a terminal; the callable takes what is done, and all."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeLeft(elapsed_when_finished=True),
    )
    with Progress(*columns, console=err(), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


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
