"""Golden files for the conformance tests, and the oracle in the place of an engine."""

from __future__ import annotations

import dataclasses
import functools
import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from monofuzz.replay import goldenfile
from tests import oracle
from tests.public import public_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from monofuzz.replay.goldenfile import GoldenCase
    from monofuzz.trace import Trace

DATA = Path(__file__).parents[1] / "data"
SYNTHETIC = DATA / "synthetic.jsonl.xz"
"""500 random logs and 45,121 runs of the reference simulator on them."""
DEEP = DATA / "deep.jsonl.xz"
"""34 logs and 2,244 runs: deep recursion, and several storages that become material at once."""

PUBLIC_VARIABLE = "MONOFUZZ_PUBLIC_GOLDEN"


@functools.cache
def synthetic() -> tuple[GoldenCase, ...]:
    """All cases of the synthetic golden file."""
    return tuple(goldenfile.read(SYNTHETIC))


def named(name: str) -> GoldenCase:
    """The case of one log."""
    return next(case for case in synthetic() if case.name == name)


def public_golden() -> Iterator[GoldenCase]:
    """The runs on the public traces; skips the test where file or traces are missing."""
    path = os.environ.get(PUBLIC_VARIABLE)
    if not path or not Path(path).is_file():
        pytest.skip(f"public golden runs: {PUBLIC_VARIABLE} names no file")
    trace = functools.cache(public_trace)
    for case in goldenfile.read(path):
        yield dataclasses.replace(case, trace=functools.partial(trace, case.name))


class OracleSystem:
    """A system that the oracle replays, for `monofuzz.replay.golden.verify`."""

    replayer: type[oracle.Replay] = oracle.Replay

    def __init__(self, trace: Trace, policy: str, remat_limit: int | None) -> None:
        self.trace = trace
        self.policy = policy
        self.remat_limit = remat_limit

    def run(self, budget: int, /) -> Any:
        run = oracle.replay(
            self.trace,
            self.policy,
            budget,
            remat_limit=self.remat_limit,
            replayer=self.replayer,
        )
        fail = run.pop("fail")
        return SimpleNamespace(fail=None if fail is None else SimpleNamespace(**fail), **run)
