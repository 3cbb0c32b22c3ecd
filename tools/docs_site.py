"""Hooks of MkDocs: what the site has and the pages in the repository have not.

- A link to a file outside `docs/` works in the repository. The site does not have that file, so
  there the link becomes its text and the path.
- `<!-- every command -->` becomes the help of each command.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMANDS = "<!-- every command -->"
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!\w+:|#)([^)\s]+)\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """The text of a page as the site has it."""
    docs = Path(config["docs_dir"]).resolve()
    here = Path(page.file.abs_src_path).parent

    def undone(match: re.Match[str]) -> str:
        target = (here / match[2].partition("#")[0]).resolve()
        if target.is_relative_to(docs) or not target.exists():
            return match[0]
        path = target.relative_to(docs.parent).as_posix()
        return f"{match[1]} (`{path}` in the repository)"

    markdown = _LINK.sub(undone, markdown)
    if COMMANDS in markdown:
        from monofuzz.cli.main import cli

        context = click.Context(cli, info_name="monofuzz", **cli.context_settings)
        markdown = markdown.replace(COMMANDS, "\n".join(_help(cli, context)))
    return markdown


def _help(command: click.Command, context: click.Context) -> Iterator[str]:
    """A command and those below it: what it does, its usage, its options."""
    yield f"## {context.command_path}\n"
    yield _text(inspect.cleandoc(command.help or "")) + "\n"
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"```sh\n{usage}\n```\n"
    yield "| option | |\n|---|---|"
    for option in command.get_params(context):
        record = option.get_help_record(context)
        if record is not None and isinstance(option, click.Option):
            yield f"| `{record[0]}` | {' '.join(_text(record[1]).split())} |"
    yield ""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from _help(below, click.Context(below, info_name=name, parent=context))


def _text(text: str) -> str:
    """Help as Markdown: what would be markup there is none."""
    return re.sub(r"([*_\[\]|])", r"\\\1", text.replace("\b\n", "").replace("<", "&lt;"))
