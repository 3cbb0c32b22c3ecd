"""The `monofuzz` command: which commands there are, and what happens when one goes wrong."""

from __future__ import annotations

import errno
import importlib
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

import click

from monofuzz import __version__
from monofuzz.cli import exits, streams
from monofuzz.errors import MonofuzzError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

# Each command lives in the module of its name. The text stands here, so that --help imports none.
_COMMANDS = {
    "replay": "Run a trace under budgets, one run a budget.",
    "map": "Find every regime of a budget range, its holes and its cliffs.",
    "check": "Say whether more memory ever hurts; for scripts and CI.",
    "hunt": "Generate graphs until more memory makes one fail, or slower.",
    "shrink": "Make a counterexample as small as it gets.",
    "export": "Write a counterexample as a figure, a graph, a log, a script or a report.",
    "traces": "List, describe, add and fetch traces.",
    "record": "Record a PyTorch training step as a trace.",
    "report": "Make one HTML page of maps and counterexamples.",
    "plot": "Draw maps beside each other as one figure.",
    "verify": "Replay golden records of the reference simulator and count the matches.",
}


class Commands(click.Group):
    """A group that imports a command when it is called and turns failures into one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            if ctx.resilient_parsing or cmd_name.startswith("-"):
                return None
            ctx.fail(f"there is no command {cmd_name!r}{nearest(cmd_name, list(_COMMANDS))}")
        module = importlib.import_module(f"monofuzz.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _one_sentence():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with _one_sentence():
            return super().invoke(ctx)


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Turn a failure into a sentence and an exit code; so is one to write what was printed."""
    try:
        try:
            yield
        except click.exceptions.Exit:
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except MonofuzzError as error:
        _complain(str(error))
    except KeyboardInterrupt:
        raise click.exceptions.Exit(exits.INTERRUPTED) from None
    except MemoryError:
        _complain("this does not fit into the memory there is; try a smaller trace or --jobs 1")
    except OSError as error:
        if error.errno != errno.EPIPE:
            _complain(_describe(error))
        streams.abandon()
        raise click.exceptions.Exit(exits.PIPE_CLOSED) from None


def _describe(error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    return f"{error.filename}: {reason}" if error.filename else reason


def _complain(sentence: str) -> NoReturn:
    with suppress(OSError):
        click.echo(f"Error: {sentence}", err=True)
    streams.abandon()
    raise click.exceptions.Exit(exits.WRONG)


@click.command(
    "monofuzz",
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done (and monotone, where that was the question), 1 refuted, 2 wrong use "
    "or bad input, 3 undecided: a limit was reached first, 130 interrupted.",
)
@click.version_option(__version__, "-V", "--version", message="monofuzz %(version)s")
def cli() -> None:
    """Find the memory budgets at which more memory makes a training step fail or slow down.

    TRACE is a name from `monofuzz traces list`, the path of a log, or - for standard input.
    """


def main() -> None:
    """Run the command line and exit with its code."""
    streams.prepare()
    try:
        cli(prog_name="monofuzz")
    except KeyboardInterrupt:
        sys.exit(exits.INTERRUPTED)
    except OSError:
        # Not even standard error takes the sentence.
        sys.exit(exits.WRONG)
    finally:
        streams.abandon()
