"""The public traces, as the benchmarks need them: loaded, and as the logs that they were.

``MONOFUZZ_PUBLIC_TRACES`` names DTR's ``logs.zip``; without it the traces are taken from the
library, which has no logs to give to the reference simulator.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from monofuzz.trace import Trace, library

if TYPE_CHECKING:
    from collections.abc import Iterator

TRACES_VARIABLE = "MONOFUZZ_PUBLIC_TRACES"

RATIOS: dict[str, tuple[float, ...]] = {
    "dtr-resnet32": (0.101, 0.104, 0.107),
    "dtr-unet": (0.422, 0.424, 0.426),
    "dtr-densenet121": (0.2,),
    "dtr-transformer": (0.3,),
    "dtr-treelstm": (0.3,),
    "dtr-unrolled-gan": (0.3,),
    "dtr-inceptionv4": (0.2523, 0.235),
    "dtr-lstm": (0.265, 0.264, 0.266),
}
"""The budgets at which both simulators are measured, as ratios of the unconstrained peak."""

SLOW: frozenset[tuple[str, float]] = frozenset(
    {("dtr-inceptionv4", 0.235), ("dtr-lstm", 0.264), ("dtr-lstm", 0.266)}
)
"""The points that take the reference simulator many minutes."""


@contextmanager
def public_library() -> Iterator[None]:
    """A trace library with the public traces: made of ``logs.zip``, or the user's own."""
    packed = os.environ.get(TRACES_VARIABLE)
    if packed is None:
        yield
        return
    previous = os.environ.get("MONOFUZZ_CACHE")
    with tempfile.TemporaryDirectory(prefix="monofuzz-bench-") as folder:
        os.environ["MONOFUZZ_CACHE"] = folder
        try:
            library.add(packed)
            yield
        finally:
            if previous is None:
                del os.environ["MONOFUZZ_CACHE"]
            else:
                os.environ["MONOFUZZ_CACHE"] = previous


def extract_log(trace: Trace, folder: Path) -> Path:
    """The log of a trace that came from ``logs.zip``, written into ``folder``."""
    packed = os.environ[TRACES_VARIABLE]
    member = trace.meta.source.rpartition(":")[2]
    target = folder / Path(member).name
    with zipfile.ZipFile(packed) as archive:
        target.write_bytes(archive.read(member))
    return target
