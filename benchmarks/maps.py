"""The project's own limits: complete maps, first use, start-up, memory.

    python -m benchmarks.maps [--json FILE] [--only WHAT ...]

`maps`: wall seconds for complete, certified maps from 0.05 to 1.0 of the peak on all processors,
compilation excluded. `compile`: wall seconds of the first replay in a fresh process with an empty
cache, and of the next process, which finds it filled. `start`: wall seconds of ``monofuzz --help``
and ``import monofuzz``, the best of several. `memory`: the greatest resident size of a process that
replays a public trace once. Exits with 1 if a limit is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from benchmarks.public import RATIOS, public_library
from monofuzz.errors import MonofuzzError
from monofuzz.trace.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAP_SECONDS = {"dtr-unet": 3.0, "dtr-resnet32": 20.0}
COMPILE_SECONDS = 40.0
HELP_SECONDS, IMPORT_SECONDS = 0.5, 0.4
MEMORY_BYTES = 1e9

FIRST_REPLAY = """
import time
begin = time.perf_counter()
from monofuzz.replay import replay
from monofuzz.trace import TraceBuilder
build = TraceBuilder()
weight, = build.op("f", [build.constant(8)], [8], 1)
build.op("g", [weight], [8], 1)
replay(build.finish(), "dtr", 24)
print(time.perf_counter() - begin)
"""
ONE_RUN = """
import re, resource, sys
from pathlib import Path
from monofuzz.replay import TraceSystem
from monofuzz.trace import load
system = TraceSystem(load(sys.argv[1]), "dtr")
system.run(int(system.peak * float(sys.argv[2])))
status = Path("/proc/self/status")
if status.exists():
    # The greatest size since the program began; getrusage still knows the process it came from.
    print(int(re.search(r"VmHWM:\\s*(\\d+) kB", status.read_text())[1]) * 1024)
else:
    unit = 1 if sys.platform == "darwin" else 1024
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
"""


@dataclass
class Row:
    """One measurement in its unit, and the limit that it must not pass (None: for information)."""

    what: str
    value: float
    limit: float | None
    unit: str
    remark: str = ""

    @property
    def passed(self) -> bool:
        return self.limit is None or self.value <= self.limit


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.maps", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", nargs="+", metavar="WHAT", choices=list(MEASUREMENTS))
    parser.add_argument("--json", metavar="FILE", help="write all results there")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    try:
        with public_library():
            for name, measure in MEASUREMENTS.items():
                if options.only and name not in options.only:
                    continue
                for row in measure():
                    rows.append(row)
                    print(_line(row), flush=True)
    except MonofuzzError as error:
        print(error, file=sys.stderr)
        return 2
    if options.json:
        document = [{**asdict(row), "passed": row.passed} for row in rows]
        write_atomically(options.json, json.dumps(document, indent=1).encode() + b"\n")
    return 0 if all(row.passed for row in rows) else 1


def maps() -> Iterator[Row]:
    """Complete maps on all processors."""
    from monofuzz.search import map_budgets
    from monofuzz.trace import load

    for name, limit in MAP_SECONDS.items():
        trace = load(name)
        map_budgets(trace, "dtr", between=(0.99, 1.0))
        begin = time.perf_counter()
        found = map_budgets(trace, "dtr", between=(0.05, 1.0))
        seconds = time.perf_counter() - begin
        if not found.certified:
            raise MonofuzzError(f"the map of {name} is not complete")
        remark = f"{len(found.regimes):,} regimes, {len(found.holes)} holes, {found.runs:,} runs"
        yield Row(f"map of {name}, 0.05 to 1.0", seconds, limit, "s", remark)


def compilation() -> Iterator[Row]:
    """The first replay in a process, without and with compiled code on disk."""
    with tempfile.TemporaryDirectory(prefix="monofuzz-bench-") as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        first = float(_python(FIRST_REPLAY, environment=environment))
        yield Row("first replay, nothing compiled", first, COMPILE_SECONDS, "s")
        again = float(_python(FIRST_REPLAY, environment=environment))
        yield Row("first replay, compiled before", again, None, "s")


def start() -> Iterator[Row]:
    """How long it takes until anything happens."""
    for what, command, limit in (
        ("monofuzz --help", ["-m", "monofuzz", "--help"], HELP_SECONDS),
        ("import monofuzz", ["-c", "import monofuzz"], IMPORT_SECONDS),
    ):
        yield Row(what, min(_wall([sys.executable, *command]) for _ in range(7)), limit, "s")


def memory() -> Iterator[Row]:
    """The greatest resident size of one run on each public trace."""
    for name, ratios in RATIOS.items():
        peak = float(_python(ONE_RUN, name, str(ratios[0])))
        yield Row(f"memory of a run of {name} at {ratios[0]}", peak / 1e6, MEMORY_BYTES / 1e6, "MB")


MEASUREMENTS: dict[str, Callable[[], Iterator[Row]]] = {
    "maps": maps,
    "compile": compilation,
    "start": start,
    "memory": memory,
}


def _python(code: str, *arguments: str, environment: dict[str, str] | None = None) -> str:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise MonofuzzError(f"a measured process ended with status {done.returncode}")
    return done.stdout


def _wall(command: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def _line(row: Row) -> str:
    limit = "" if row.limit is None else f"limit {row.limit:g} {row.unit}"
    verdict = "" if row.limit is None else ("PASS" if row.passed else "FAIL")
    value = f"{row.value:>9.2f} {row.unit}"
    return f"{row.what:<46}{value:<13}{limit:<15}{verdict:<5} {row.remark}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
