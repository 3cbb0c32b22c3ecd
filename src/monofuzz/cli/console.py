"""Where output goes: results to standard output, everything else to standard error."""

from __future__ import annotations

import errno
import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

import click
import msgspec

from monofuzz.cli import units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from monofuzz.search.explorer import Progress

# Wide enough that rich never breaks a line that no terminal asked it to break.
_UNLIMITED = 100_000
_NARROWEST = 80
_TRAILING = re.compile(r"[ \t]+(?=\n)")


def out() -> Console:
    """The console for results."""
    return _console(stderr=False)


def err() -> Console:
    """The console for progress and remarks."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console as Rich

    class Console(Rich):
        def on_broken_pipe(self) -> None:
            # Rich would exit with 1, which means refuted here.
            raise BrokenPipeError(errno.EPIPE, "nobody reads the output")

    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        console = Console(file=stream, highlight=False)
        # Too narrow a terminal breaks lines itself; cells cut to fit it would say nothing.
        console.width = max(console.width, _NARROWEST)
        return console
    return Console(
        file=cast("TextIO", _Trimmed(stream)), width=_UNLIMITED, highlight=False, soft_wrap=True
    )


class _Trimmed:
    """A stream without the spaces that tables leave at the ends of lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(_TRAILING.sub("", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


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


@contextmanager
def search_progress(what: str) -> Iterator[Callable[[Progress], None] | None]:
    """A bar for a search, if standard error is a terminal: the share known, and the time left."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.markup import escape
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[known]}"),
        TextColumn("[dim]{task.fields[work]}[/]"),
        TextColumn("{task.fields[left]}"),
    )
    with Bars(*columns, console=err(), transient=True) as bars:
        task = bars.add_task(escape(what), total=1.0, known="", work="", left="")

        def show(progress: Progress) -> None:
            left = progress.seconds_left
            bars.update(
                task,
                completed=progress.covered,
                known=units.percent(progress.covered),
                work=f"{units.plural(progress.regimes, 'regime')}, "
                f"{units.plural(progress.gaps, 'gap')}",
                left="" if left is None else f"{units.seconds(left)} left",
            )

        yield show


@contextmanager
def counting(what: str) -> Iterator[Callable[[str], None]]:
    """A line on standard error, if that is a terminal, for work of which nobody knows the end."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.markup import escape

    with err().status(what) as status:
        yield lambda text: status.update(f"{what}, {escape(text)}")


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
