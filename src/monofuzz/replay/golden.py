"""Whether an engine does what the reference simulator did, run by run and field by field."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from monofuzz.errors import MonofuzzError
from monofuzz.replay.goldenfile import GoldenCase, count_lines, plain, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from concurrent.futures import Future

    from monofuzz.trace import Trace

__all__ = [
    "Mismatch",
    "OpenSystem",
    "System",
    "Verification",
    "engine_systems",
    "verify",
    "verify_file",
]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A run that went otherwise: the differing fields, each with the golden value and ours."""

    trace: str
    policy: str
    budget: int
    differences: Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Verification:
    """How many golden runs were replayed, and those that did not match in every field."""

    runs: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)

    @property
    def matched(self) -> int:
        """How many runs agree in every field that their record has."""
        return self.runs - len(self.mismatches)

    def __add__(self, other: Verification) -> Verification:
        return Verification(self.runs + other.runs, self.mismatches + other.mismatches)


class System(Protocol):
    """A trace under a policy and a compute limit."""

    def run(self, budget: int, /) -> Any:
        """The run at a budget: an object with an attribute for each of `goldenfile.FIELDS`."""


OpenSystem = Callable[["Trace", str, int | None], System]
"""Makes a system of a trace, a policy's text and a limit in nanoseconds (None: no limit)."""


def verify(
    cases: Iterable[GoldenCase],
    open_system: OpenSystem,
    *,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Verification:
    """Replay all runs of all cases and compare every field that their records have.

    ``open_system(trace, policy, remat_limit)`` is asked once for each policy and limit of a case,
    so any engine serves. ``jobs`` threads share the cases. ``progress`` is called with the number
    of cases done. Raises `MonofuzzError`, naming file and line, when a trace cannot be had or the
    engine refuses a policy.
    """
    found = Verification()
    done = 0
    pending: deque[Future[Verification]] = deque()
    with ThreadPoolExecutor(max(1, jobs), thread_name_prefix="monofuzz-verify") as pool:

        def collect() -> None:
            nonlocal found, done
            found += pending.popleft().result()
            done += 1
            if progress is not None:
                progress(done)

        try:
            for case in cases:
                pending.append(pool.submit(_verify_case, case, open_system))
                if len(pending) >= 4 * jobs:
                    collect()
            while pending:
                collect()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return found


def verify_file(
    path: str | os.PathLike[str],
    *,
    engine: str = "compiled",
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Verification:
    """Replay a golden file with one of the engines (`compiled`, `interpreted`).

    ``jobs`` defaults to one thread a processor for the compiled engine. ``progress`` is called
    with the number of lines done and of all lines. Raises `MonofuzzError` as `read` and `verify`.
    """
    if jobs is None:
        jobs = (os.cpu_count() or 1) if engine == "compiled" else 1
    total = count_lines(path) if progress is not None else 0

    def report(done: int) -> None:
        assert progress is not None
        progress(done, total)

    return verify(
        read(path),
        engine_systems(engine),
        jobs=jobs,
        progress=report if progress is not None else None,
    )


def engine_systems(engine: str = "compiled") -> OpenSystem:
    """What `verify` needs to replay with one of the engines."""
    from monofuzz.replay.system import TraceSystem

    def open_system(trace: Trace, policy: str, remat_limit: int | None) -> System:
        system: System = TraceSystem(
            trace, policy, limit=None, remat_limit=remat_limit, engine=engine
        )
        return system

    return open_system


def _verify_case(case: GoldenCase, open_system: OpenSystem) -> Verification:
    mismatches = []
    systems: dict[tuple[str, int | None], System] = {}
    try:
        trace = case.trace()
        for run in case.runs:
            key = (run.policy, run.remat_limit)
            if key not in systems:
                systems[key] = open_system(trace, run.policy, run.remat_limit)
            differences = _differences(run.expected, systems[key].run(run.budget))
            if differences:
                mismatches.append(Mismatch(case.name, run.policy, run.budget, differences))
    except MonofuzzError as error:
        raise MonofuzzError(f"{case.place}: {error}") from error
    return Verification(len(case.runs), mismatches)


def _differences(expected: Mapping[str, Any], outcome: Any) -> dict[str, tuple[Any, Any]]:
    differences = {}
    for name, golden in expected.items():
        ours = plain(name, getattr(outcome, name))
        if golden != ours:
            differences[name] = (golden, ours)
    return differences
