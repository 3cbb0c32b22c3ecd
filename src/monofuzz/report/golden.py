"""Golden records: what another simulator did, line by line, against what this engine does.

A golden file is JSON lines, compressed or not. A line is either a log with the runs made of it
(``id``, ``log``: its lines, ``runs``), or one run of a named trace (``trace`` beside the fields of
the run).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from monofuzz.errors import MonofuzzError, TraceError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from monofuzz.replay import Outcome
    from monofuzz.trace import Trace


class _Fail(msgspec.Struct, frozen=True):
    pinned_bytes: int
    request: int
    depth: int
    over_by: int


class _Run(msgspec.Struct, frozen=True):
    policy: str
    budget: int
    remat_limit: int | None
    status: str
    model_compute: int
    remat_compute: int
    evictions: int
    evictions_all: int
    distinct_evicted: int
    remats: int
    victims_sha256: str
    interval: tuple[int, int | None]
    peak_memory: int
    peak_pinned: int
    depth_at_peak_pinned: int
    max_depth: int
    fail: _Fail | None


class _Line(msgspec.Struct, frozen=True):
    id: str | None = None
    log: list[str] | None = None
    runs: list[_Run] | None = None
    trace: str | None = None


_GIVEN = frozenset({"policy", "budget", "remat_limit"})
FIELDS = tuple(name for name in _Run.__struct_fields__ if name not in _GIVEN)
"""What is compared: everything that a golden run says, apart from what was asked of it."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A run that went otherwise: the differing fields, each with the golden value and ours."""

    trace: str
    policy: str
    budget: int
    differences: dict[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Verification:
    """How many golden runs were replayed, and those that did not match in every field."""

    runs: int
    mismatches: list[Mismatch]

    @property
    def matched(self) -> int:
        return self.runs - len(self.mismatches)


def verify(
    path: str | os.PathLike[str],
    *,
    engine: str = "compiled",
    progress: Callable[[int, int], None] | None = None,
) -> Verification:
    """Replay every run of a golden file and compare every field.

    ``progress`` is called after each line with the number of lines done and of all lines. Raises
    `MonofuzzError` with the line for a malformed file, and for a named trace that is not there.
    """
    from monofuzz.trace.files import read_content

    content = read_content(path)
    lines = content.data.splitlines()
    runs, mismatches, replays = 0, [], _Replays(engine)
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                for trace, expected in _records(line, f"{content.label}:{number}", replays):
                    runs += 1
                    outcome = replays.run(expected)
                    differences = _differences(expected, outcome)
                    if differences:
                        mismatches.append(
                            Mismatch(trace, expected.policy, expected.budget, differences)
                        )
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise TraceError(
                    f"not a golden record: {error}", file=content.label, line=number
                ) from None
        if progress is not None:
            progress(number, len(lines))
    if not runs:
        raise MonofuzzError(f"{content.label}: there is no golden run in this file")
    return Verification(runs, mismatches)


def _records(line: bytes, place: str, replays: _Replays) -> Iterator[tuple[str, _Run]]:
    head = msgspec.json.decode(line, type=_Line)
    if head.log is not None and head.runs is not None:
        name = head.id or place
        replays.of_log(name, head.log)
        for run in head.runs:
            yield name, run
    elif head.trace is not None:
        replays.of_name(head.trace)
        yield head.trace, msgspec.json.decode(line, type=_Run)
    else:
        raise msgspec.ValidationError("it has neither `log` and `runs` nor `trace`")


class _Replays:
    """The present trace and its systems, kept from one run to the next."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._name: str | None = None
        self._trace: Trace | None = None
        self._systems: dict[tuple[str, int | None], Any] = {}

    def of_log(self, name: str, log: list[str]) -> None:
        from monofuzz.trace import dtrlog

        self._become(name, dtrlog.parse("\n".join(log).encode(), file=name, name=name))

    def of_name(self, name: str) -> None:
        if name != self._name:
            from monofuzz.trace import load

            self._become(name, load(name))

    def _become(self, name: str, trace: Trace) -> None:
        self._name, self._trace, self._systems = name, trace, {}

    def run(self, expected: _Run) -> Outcome:
        from monofuzz.replay.system import TraceSystem

        assert self._trace is not None
        key = (expected.policy, expected.remat_limit)
        system = self._systems.get(key)
        if system is None:
            limit = _as_factor(expected.remat_limit, self._trace.model_compute)
            system = TraceSystem(self._trace, expected.policy, limit=limit, engine=self._engine)
            self._systems[key] = system
        outcome: Outcome = system.run(expected.budget)
        return outcome


def _as_factor(remat_limit: int | None, model_compute: int) -> float | None:
    """The compute limit that is passed exactly when more than ``remat_limit`` is recomputed."""
    if remat_limit is None or model_compute == 0:
        return None
    # Recomputed time is an integer: half a nanosecond more absorbs the rounding of the quotient.
    return 1 + (remat_limit + 0.5) / model_compute


def _differences(expected: _Run, outcome: Outcome) -> dict[str, tuple[Any, Any]]:
    differences = {}
    for field in FIELDS:
        golden, ours = getattr(expected, field), getattr(outcome, field)
        if field == "fail":
            golden, ours = _as_dict(golden), _as_dict(ours)
        elif field == "interval":
            ours = tuple(ours)
        if golden != ours:
            differences[field] = (golden, ours)
    return differences


def _as_dict(fail: Any) -> dict[str, int] | None:
    return None if fail is None else {f: getattr(fail, f) for f in _Fail.__struct_fields__}
