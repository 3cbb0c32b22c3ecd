"""The shrinking of monofuzz beside a general reducer, Shrink Ray, on the same log.

    python -m benchmarks.shrinkray --python VENV/bin/python [--seconds 300] [TRACE...]

``--python`` is one of an environment of its own with ``pip install shrinkray``. Each is given the
same log, the same question and the same time, on one core. The question: does the file read as a
log whose trace has a hole under dtr, as `monofuzz.shrink` would ask it? For Shrink Ray it is asked
in two ways:

- *script*: a Python script that reads standard input and exits with 0 or 1, as its manual says.
  Each question costs a start of Python and of the compiled engine.
- *server*: the question goes over a socket to a process that is there already, from inside Shrink
  Ray, without any process to start: the best that can be done for it.

Writes reports/shrink-ray.md.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from monofuzz import load
from monofuzz.counterexample import load as load_example
from monofuzz.counterexample import save
from monofuzz.errors import MonofuzzError
from monofuzz.replay.system import TraceSystem
from monofuzz.shrink import Interest, reduce_trace, seek_at
from monofuzz.trace.dtrlog import parse
from monofuzz.trace.dtrwrite import format_log

if TYPE_CHECKING:
    from monofuzz.counterexample import Counterexample
    from monofuzz.trace import Trace

REPORT = Path(__file__).parent.parent / "reports" / "shrink-ray.md"
BUDGETS = {
    "dtr-unet": (3634308799, 3634308800),
    "dtr-resnet32": (1024657199, 1024657200),
}
_HEAD = struct.Struct("!Q")


@dataclass(frozen=True)
class Row:
    """What one reducer made of one log in the time it had."""

    trace: str
    how: str
    operators: int
    constants: int
    commands: int
    bytes: int
    seconds: float
    cpu: float
    asked: int
    ended: bool
    last: float
    """When its last success was, in seconds from the start."""


class Question:
    """Whether bytes are a log whose trace is still interesting; what was, guides the next one."""

    def __init__(self, example: Counterexample) -> None:
        self.interest = Interest(example)
        self.asked = 0
        self.began = time.perf_counter()
        self.busy = cpu()
        self.last = 0.0
        self.least: int | None = None

    def trace(self, trace: Trace) -> bool:
        """The question about a trace."""
        self.asked += 1
        found = self.interest(trace)
        return found is not None and self._note(found, len(trace.command))

    def log(self, data: bytes) -> bool:
        """The question about bytes."""
        self.asked += 1
        try:
            trace = parse(data)
            found = self.interest(trace)
        except (MonofuzzError, ValueError):
            return False
        return found is not None and self._note(found, len(data))

    def _note(self, found: Counterexample, size: int) -> bool:
        self.interest.adopt(found)
        if self.least is None or size < self.least:
            self.least, self.last = size, time.perf_counter() - self.began
        return True


def cpu() -> float:
    """Processor seconds of this process and of its children that ended."""
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, kinds))


def example_of(name: str) -> Counterexample:
    """The hole that is shrunk."""
    return seek_at(TraceSystem(load(name), "dtr"), "feasibility", *BUDGETS[name])


def ours(name: str, log: bytes, seconds: float) -> Row:
    """What monofuzz makes of it."""
    trace = parse(log)
    question = Question(example_of(name))
    began = time.perf_counter()
    small = reduce_trace(trace, question.trace, seconds=seconds)
    took = time.perf_counter() - began
    return row(name, "monofuzz", format_log(small), took, question, ended=took < seconds)


def theirs(name: str, log: bytes, seconds: float, python: str, *, script: bool) -> Row:
    """What Shrink Ray makes of it."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        source, target = folder / "trace.log", folder / "small.log"
        source.write_bytes(log)
        question = Question(example_of(name))
        if script:
            test = folder / "interesting"
            test.write_text(
                f"#!/bin/sh\nexport PYTHONPATH={os.pathsep.join(sys.path)}\n"
                f"exec {sys.executable} -m benchmarks.shrinkray "
                f"--ask {folder}/hole.json {folder}/asked\n"
            )
            test.chmod(0o755)
            save(question.interest.current, folder / "hole.json")
            command = [
                *(python, "-m", "shrinkray", "--parallelism", "1", "--timeout", "60"),
                *("--target", str(target), str(test), str(source)),
            ]
            (folder / "asked").touch()
        else:
            client = folder / "client.py"
            client.write_text(CLIENT)
            address = folder / "socket"
            serve(question, str(address))
            command = [python, str(client), str(address), str(source), str(target)]
        began = time.perf_counter()
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as process:
            try:
                process.wait(timeout=seconds)
                ended = True
            except subprocess.TimeoutExpired:
                ended = False
                process.terminate()
                process.wait()
        took = time.perf_counter() - began
        if script:
            question.asked = (folder / "asked").stat().st_size
            question.last = target.stat().st_mtime - (time.time() - took) if target.exists() else 0
        small = target.read_bytes() if target.exists() else log
        return row(name, f"Shrink Ray, {'script' if script else 'server'}", small, took, question,
                   ended=ended)  # fmt: skip


CLIENT = """
import socket, struct, sys
from shrinkray.reducer import Reducer

address, source, target = sys.argv[1:]
line = socket.socket(socket.AF_UNIX)
line.connect(address)


def interesting(data):
    line.sendall(struct.pack("!Q", len(data)) + data)
    return line.recv(1) == b"y"


with open(source, "rb") as file:
    reducer = Reducer(file.read(), interesting)


@reducer.on_improve
def _(data):
    with open(target, "wb") as file:
        file.write(data)


reducer.run()
"""


def serve(question: Question, address: str) -> None:
    """Answer questions over a socket, in a thread, until the other side goes."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(1)

    def answer() -> None:
        line, _ = listening.accept()
        question.began = time.perf_counter()
        with contextlib.suppress(ConnectionError), line, line.makefile("rb") as coming:
            while head := coming.read(_HEAD.size):
                data = coming.read(_HEAD.unpack(head)[0])
                line.sendall(b"y" if question.log(data) else b"n")
        listening.close()

    threading.Thread(target=answer, daemon=True).start()


def row(name: str, how: str, small: bytes, took: float, question: Question, *, ended: bool) -> Row:
    """What came out, measured."""
    trace = parse(small)
    return Row(
        trace=name,
        how=how,
        operators=trace.n_operators,
        constants=trace.n_ops - trace.n_operators,
        commands=len(trace.command),
        bytes=len(small),
        seconds=took,
        cpu=cpu() - question.busy,
        asked=question.asked,
        ended=ended,
        last=question.last,
    )


def ask(hole: str, count: str) -> int:
    """The script: the question about standard input, by exit code."""
    with open(count, "ab") as file:
        file.write(b".")
    return 0 if Question(load_example(hole)).log(sys.stdin.buffer.read()) else 1


def table(rows: list[Row], sizes: dict[str, int], seconds: float) -> str:
    """The report."""
    lines = [
        "# Shrinking beside a general reducer",
        "",
        "Made by `python -m benchmarks.shrinkray --python VENV/bin/python`, which says how. Each",
        f"had {seconds:.0f} seconds and one core for the same log, and was asked the same: is",
        "there a hole under `dtr`? Shrink Ray (0.0.2, what Python 3.11 gets from PyPI) edits bytes",
        "and knows nothing of logs. *Script*: each question starts a process, as its manual says.",
        "*Server*: a process that is there already answers. The machine had other work to do.",
        "",
        "| trace | reducer | operators + constants | commands | bytes of log | seconds | "
        "CPU seconds | last success | questions |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in rows:
        end = f"{one.seconds:.0f}" if one.ended else f"{one.seconds:.0f} (cut off)"
        lines.append(
            f"| {one.trace} ({sizes[one.trace]:,} bytes) | {one.how} | {one.operators} + "
            f"{one.constants} | {one.commands:,} | {one.bytes:,} | {end} | {one.cpu:.1f} | "
            f"{one.last:.0f} | {one.asked:,} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Let both reduce, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", help="a Python that has shrinkray")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--ask", nargs=2, metavar=("FILE", "COUNT"), help=argparse.SUPPRESS)
    parser.add_argument("traces", nargs="*", default=list(BUDGETS), metavar="TRACE")
    given = parser.parse_args()
    if given.ask:
        sys.exit(ask(*given.ask))
    if given.python is None:
        parser.error("--python names a Python that has shrinkray")
    rows: list[Row] = []
    sizes = {}
    for name in given.traces:
        log = format_log(load(name))
        sizes[name] = len(log)
        rows.append(ours(name, log, given.seconds))
        rows.append(theirs(name, log, given.seconds, given.python, script=False))
        rows.append(theirs(name, log, given.seconds, given.python, script=True))
        for one in rows[-3:]:
            print(one, flush=True)
    REPORT.write_text(table(rows, sizes, given.seconds), encoding="utf-8")


if __name__ == "__main__":
    main()
