"""Where output goes, and what it looks like away from a terminal and on one."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.support import HOLE, Run

ESCAPE = "\x1b"
MONOFUZZ = [sys.executable, "-m", "monofuzz"]
MAP = [*MONOFUZZ, "map", HOLE, "-p", "dtr", "--engine", "interpreted"]


def slow_log(path: Path) -> Path:
    """A chain of operators, kept to the end, whose map takes a while when interpreted."""
    lines = ['{"INSTRUCTION": "CONSTANT", "NAME": "t0"}']
    lines += ['{"INSTRUCTION": "MEMORY", "NAME": "t0", "MEMORY": "1"}']
    for k in range(1, 301):
        size = 1000 + 37 * k % 211
        args = f'["t{k - 1}", "t{k // 2}"]'
        lines += [
            f'{{"INSTRUCTION": "CALL", "NAME": "f", "ARGS": {args}, "RESULT": ["t{k}"], '
            f'"TIME": "{k % 7 + 1}"}}',
            f'{{"INSTRUCTION": "MEMORY", "NAME": "t{k}", "MEMORY": "{size}"}}',
            f'{{"INSTRUCTION": "ALIAS", "NAME": "t{k}", "ALIAS": "-1"}}',
        ]
    lines += [f'{{"INSTRUCTION": "RELEASE", "NAME": "t{k}"}}' for k in range(1, 300)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_pipe_gets_no_colours_and_whole_lines() -> None:
    done = subprocess.run(
        [*MAP, "--regimes"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"COLUMNS": "40"},
    )
    assert done.returncode == 0
    assert ESCAPE not in done.stdout + done.stderr
    assert max(len(line) for line in done.stdout.splitlines()) > 80
    assert "\N{HORIZONTAL ELLIPSIS}" not in done.stdout
    assert not re.search(r"[ \t]+$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("command", [[*MAP, "--json"], MAP, [*MAP, "--help"], [*MONOFUZZ, "-h"]])
def test_nobody_reads_to_the_end(command: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", [[*MAP, "--json"], MAP, [*MONOFUZZ, "-h"]])
def test_the_disk_of_the_output_is_full(command: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
    assert done.stderr == "Error: no space left on device\n"
    assert done.returncode == 2


@pytest.mark.skipif(os.name != "posix", reason="closes streams with a POSIX shell")
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_lead_nowhere(tmp_path: Path, closed: str) -> None:
    file = tmp_path / "hole.map"
    command = f'exec "$@" {closed}'
    done = subprocess.run(
        ["sh", "-c", command, "sh", *MAP, "--out", str(file)],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert file.exists()


def test_no_character_is_too_much_for_the_output(tmp_path: Path) -> None:
    log = tmp_path / "größe \N{ROCKET}.log"
    log.write_bytes(Path(HOLE).read_bytes())
    done = subprocess.run(
        [*MONOFUZZ, "map", str(log), "-p", "dtr", "--engine", "interpreted"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(r"gr\xf6\xdfe \U0001f680 under dtr")


def test_standard_input_is_a_trace() -> None:
    command = [*MONOFUZZ, "replay", "-", "-p", "dtr", "-b", "18", "--engine", "interpreted"]
    with open(HOLE, "rb") as log:
        done = subprocess.run(
            command, stdin=log, capture_output=True, text=True, timeout=120, check=False
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("<stdin> under dtr")
    broken = subprocess.run(
        command, input="{}\n", capture_output=True, text=True, timeout=120, check=False
    )
    assert broken.returncode == 2
    assert broken.stderr.startswith("Error: <stdin>:1: ")


def on_terminal(command: list[str], **environment: str) -> str:
    """What a command shows on a terminal of 80 columns."""
    controller, terminal = pty.openpty()
    child = subprocess.Popen(
        command,
        stdout=terminal,
        stderr=terminal,
        env=os.environ | {"COLUMNS": "80", "TERM": "xterm-256color"} | environment,
    )
    os.close(terminal)
    shown = b""
    while True:
        ready, _, _ = select.select([controller], [], [], 60)
        try:
            part = os.read(controller, 65536) if ready else b""
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(controller)
    assert child.wait(timeout=60) == 0
    return shown.decode()


@pytest.mark.parametrize("columns", ["80", "40"])
def test_a_terminal_gets_colours_and_nothing_is_cut(columns: str) -> None:
    shown = on_terminal(MAP, COLUMNS=columns)
    assert ESCAPE in shown
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown


def test_no_color_is_respected() -> None:
    shown = on_terminal(MAP, NO_COLOR="1")
    assert "\x1b[3" not in shown


def test_ctrl_c_keeps_what_was_found_and_says_how_to_go_on(tmp_path: Path) -> None:
    log, file = slow_log(tmp_path / "slow.log"), tmp_path / "slow.map"
    command = [sys.executable, "-m", "monofuzz", "map", str(log), "-p", "dtr"]
    command += ["--engine", "interpreted", "--between", "0.02", "1.0", "--out", str(file)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert "Traceback" not in err
    assert "not certified" in out
    assert f"to go on: monofuzz map {log}" in err
    assert file.exists()


def test_interrupted_before_it_began(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("monofuzz.trace.load", interrupt)
    result = run("map", HOLE, "-p", "dtr")
    assert result.exit_code == 130
    assert result.stdout == ""


def test_version(run: Run) -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert re.fullmatch(r"monofuzz \d+\.\d+\.\d+\n", result.stdout)


@pytest.mark.parametrize(
    "command", [[], ["replay"], ["map"], ["check"], ["traces"], ["traces", "add"], ["verify"]]
)
def test_help(run: Run, command: list[str]) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: ")


@pytest.mark.slow
def test_compilation_is_announced_and_happens_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "monofuzz", "replay", HOLE, "-p", "dtr", "-b", "1.0"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    remarks = [
        subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=600, env=environment
        ).stderr
        for _ in range(2)
    ]
    assert remarks[0].startswith("compiling the replay engine, once")
    assert remarks[1] == ""
