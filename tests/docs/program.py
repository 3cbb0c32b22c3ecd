"""The code of a page as one program: its blocks are run in order, and what they print is compared.

- ``python`` is run; all blocks of a page share their names. With ``title="FILE"`` it is written to
  that file instead, as are all other languages.
- ``sh`` is run line by line: ``monofuzz …`` and ``python FILE`` in this process, ``pytest …`` in
  one of its own. ``# exits with N`` behind a line says so; without it, anything but 2 will do.
- ``text`` is what the block before it printed, and so is ``json`` behind a block with ``--json``.
  ``…`` stands for anything in a line, and alone on a line for any lines.
- ``<!-- not run: why -->`` above a block leaves it out; its options must exist nevertheless.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import click
from click.testing import CliRunner

import monofuzz
from monofuzz.cli.main import cli
from tests.docs.markdown import Block

FILES = {"csv", "ini", "json", "py", "python", "toml", "yaml"}
_EXITS = re.compile(r"#.*\bexits with (\d+)")


@dataclass
class Program:
    """What a page's code has done so far, in the folder ``here``."""

    page: str
    here: Path
    scope: dict[str, object] = field(default_factory=lambda: {"__name__": "__main__"})
    printed: str | None = None
    json_asked: bool = False

    def run(self, block: Block) -> None:
        where = f"{self.page}:{block.line}"
        if block.title is not None:
            assert block.language in FILES, f"{where}: a file in the language {block.language!r}"
            (self.here / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            if block.run:
                self.python(block, where)
        elif block.language == "sh":
            self.shell(block, where)
        elif block.language == "text" or (block.language == "json" and self.json_asked):
            if block.run:
                assert self.printed is not None, f"{where}: the output of nothing"
                compare(block.text, self.printed, where)
        elif block.language == "json" and block.run:
            json.loads(block.text)

    def python(self, block: Block, where: str) -> None:
        output = io.StringIO()
        padding = "\n" * block.line
        with contextlib.redirect_stdout(output):
            exec(compile(padding + block.text, where, "exec"), self.scope)
        self.printed, self.json_asked = output.getvalue(), False

    def shell(self, block: Block, where: str) -> None:
        printed = ""
        for line in block.text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if not words:
                continue
            if not block.run:
                if words[0] == "monofuzz":
                    parse(words[1:], f"{where}: {line}")
                continue
            code, output = self.command(words, f"{where}: {line}")
            said = _EXITS.search(line)
            if said:
                assert code == int(said[1]), f"{where}: {line}: exits with {code}\n{output}"
            else:
                assert code != 2, f"{where}: {line}: exits with {code}\n{output}"
            printed += output
        if block.run:
            self.printed, self.json_asked = printed, "--json" in block.text

    def command(self, words: list[str], where: str) -> tuple[int, str]:
        if words[0] == "monofuzz":
            result = CliRunner().invoke(cli, words[1:], prog_name="monofuzz")
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                raise result.exception
            return result.exit_code, result.stdout + (
                result.stderr if result.exit_code == 2 else ""
            )
        if words[0] == "python" and len(words) == 2:
            return 0, self.script(words[1])
        if words[0] == "pytest":
            return pytest_in_a_process(words[1:], self.here)
        raise AssertionError(f"{where}: this command is not run by the tests; mark the block")

    def script(self, name: str) -> str:
        output = io.StringIO()
        known = set(sys.modules)
        sys.path.insert(0, str(self.here))
        try:
            with contextlib.redirect_stdout(output):
                runpy.run_path(str(self.here / name), run_name="__main__")
        finally:
            sys.path.remove(str(self.here))
            for module in set(sys.modules) - known:
                file = getattr(sys.modules[module], "__file__", None)
                if file and Path(file).parent == self.here:
                    del sys.modules[module]
        return output.getvalue()


def pytest_in_a_process(words: list[str], here: Path) -> tuple[int, str]:
    """A test run as the reader makes it, apart from the one that this is a part of."""
    installed = importlib.metadata.entry_points(group="pytest11", name="monofuzz")
    plugin = [] if installed else ["-p", "monofuzz.pytest_plugin"]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))}
    source = str(Path(monofuzz.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, "--rootdir=.", "--color=no", *words],
        cwd=here,
        env=inherited | {"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )
    # 2 to 5: interrupted, internal error, wrong use, no tests.
    return (2 if done.returncode > 1 else done.returncode), done.stdout + done.stderr


def parse(words: list[str], where: str) -> None:
    """Check that a command line could be meant: its command and its options exist."""
    context = click.Context(cli, info_name="monofuzz")
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        known = command.list_commands(context)
        assert words[0] in known, f"{where}: there is no command {words[0]}"
        found = command.get_command(context, words[0])
        assert found is not None
        command, words = found, words[1:]
        context = click.Context(command, info_name=command.name, parent=context)
    try:
        command.make_parser(context).parse_args(list(words))
    except click.UsageError as error:
        raise AssertionError(f"{where}: {error.format_message()}") from None


def compare(shown: str, printed: str, where: str) -> None:
    """Fail unless ``printed`` is what is shown; ``…`` stands for what is left out."""
    pattern = ""
    for line in _lines(shown):
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.split("…")) + r"\n"
    actual = "".join(line + "\n" for line in _lines(printed))
    message = f"{where}: the page shows\n{shown}\nand what is printed is\n{printed}"
    assert re.fullmatch(pattern, actual), message


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    return lines if any(lines) else []
