"""Counterexamples as files: one JSON document, whose trace stands inside or is named by its hash.

A file from anywhere is hostile: everything in it is checked for type and range, the trace validates
itself, and the id must be that of the content. Whether the recorded runs are true, only a replay
tells: `Counterexample.differences`.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any, Literal

import msgspec

from monofuzz.counterexample.model import Counterexample
from monofuzz.counterexample.signature import Signature
from monofuzz.errors import MonofuzzError, StoredFileError, TraceError
from monofuzz.replay.outcome import Fail, Outcome
from monofuzz.replay.policy import parse
from monofuzz.search.mapfile import MAGIC as MAP_MAGIC
from monofuzz.trace.columns import Columns
from monofuzz.trace.files import read_file, write_atomically
from monofuzz.trace.model import COMPUTE, GET, PIN, RELEASE, Trace, TraceMeta

__all__ = ["FORMAT", "INLINE_COMMANDS", "VERSION", "load", "save", "to_text"]

FORMAT = "monofuzz counterexample"
VERSION = 1
INLINE_COMMANDS = 100_000
"""A trace with more commands than this is named by its hash instead of written out."""


class _Compute(msgspec.Struct, tag="compute", tag_field="do", omit_defaults=True):
    label: str
    cost: int
    reads: list[int]
    makes: list[int]
    storage: list[int] | None = None
    constant: bool = False


class _Get(msgspec.Struct, tag="get", tag_field="do"):
    tensor: int


class _Pin(msgspec.Struct, tag="pin", tag_field="do"):
    tensor: int


class _Release(msgspec.Struct, tag="release", tag_field="do"):
    tensor: int


class _Inline(msgspec.Struct):
    name: str
    sha256: str
    schedule: list[_Compute | _Get | _Pin | _Release] | None = None


class _Fail(msgspec.Struct):
    pinned_bytes: int
    request: int
    depth: int
    over_by: int


class _Run(msgspec.Struct):
    budget: int
    status: Literal["ok", "oom", "thrashed", "timeout"]
    interval: tuple[int, int | None]
    model_compute: int
    remat_compute: int
    evictions: int
    evictions_all: int
    distinct_evicted: int
    remats: int
    victims_sha256: str
    peak_memory: int
    peak_pinned: int
    depth_at_peak_pinned: int
    max_depth: int
    fail: _Fail | None

    def outcome(self) -> Outcome:
        given = {name: getattr(self, name) for name in self.__struct_fields__ if name != "fail"}
        fail = self.fail
        return Outcome(
            **given,
            fail=None
            if fail is None
            else Fail(fail.pinned_bytes, fail.request, fail.depth, fail.over_by),
            fingerprint=0,
        )


class _Signature(msgspec.Struct):
    depth: int
    share: float
    common: int
    evicted: int | None
    instead: int | None
    flips: bool

    def signature(self) -> Signature:
        return Signature(**{name: getattr(self, name) for name in self.__struct_fields__})


class _File(msgspec.Struct):
    format: str
    version: int
    id: str
    policy: str
    claim: Literal["feasibility", "cost"]
    limit: float | None
    align: int | None
    severity: float
    operators: int
    witness: tuple[int, int]
    below: _Run
    above: _Run
    trace: _Inline
    found: dict[str, str | int | float | bool | list[int] | None]
    signature: _Signature | None = None


class _Head(msgspec.Struct):
    format: str
    version: int


def save(example: Counterexample, path: str | os.PathLike[str]) -> None:
    """Write a counterexample, aside and renamed. Raises `MonofuzzError` when that fails.

    A counterexample to a policy of the user's own cannot be kept: the file would not hold its code.
    """
    parse(example.policy)
    write_atomically(path, to_text(example))


def load(path: str | os.PathLike[str], *, trace: Trace | None = None) -> Counterexample:
    """Read a counterexample. ``trace`` is the one that a file names by its hash only; without it
    the trace library is asked for the name in the file.

    Raises `StoredFileError` for anything that is no counterexample, with the place in the file.
    """
    label = os.fspath(path)
    try:
        data = read_file(Path(label))
    except TraceError as error:
        text = str(error).replace("not a trace", "not a counterexample")
        raise StoredFileError(text) from None
    file = _decode(data, label)
    try:
        known = _trace(file.trace, trace)
        policy = str(parse(file.policy))
    except TraceError as error:
        raise StoredFileError(f"{label}: its trace is malformed: {error}") from None
    except MonofuzzError as error:
        raise StoredFileError(f"{label}: {error}") from None
    example = Counterexample(
        trace=known,
        policy=policy,
        claim=file.claim,
        below=file.below.outcome(),
        above=file.above.outcome(),
        severity=file.severity,
        signature=None if file.signature is None else file.signature.signature(),
        limit=file.limit,
        align=file.align,
        found=file.found,
    )
    _check(example, file, label)
    return example


def _decode(data: bytes, label: str) -> _File:
    if data.startswith(MAP_MAGIC):
        raise StoredFileError(f"{label}: this is no counterexample: it is a map")
    try:
        head = msgspec.json.decode(data, type=_Head)
    except msgspec.DecodeError as error:
        raise StoredFileError(f"{label}: this is no counterexample: {_place(error)}") from None
    if head.format != FORMAT:
        raise StoredFileError(f"{label}: this is a {head.format!r} file, no {FORMAT!r}")
    if head.version != VERSION:
        raise StoredFileError(
            f"{label}: this file has version {head.version}, and this monofuzz reads version "
            f"{VERSION}: use the monofuzz that wrote it, or make it again"
        )
    try:
        return msgspec.json.decode(data, type=_File)
    except msgspec.DecodeError as error:
        raise StoredFileError(f"{label}: {_place(error)}") from None


def _place(error: msgspec.DecodeError) -> str:
    text = str(error)
    return text if text.startswith("JSON") else text[:1].lower() + text[1:]


def _check(example: Counterexample, file: _File, label: str) -> None:
    def refuse(problem: str) -> None:
        raise StoredFileError(f"{label}: {problem}")

    low, high = file.witness
    if (low, high) != example.witness:
        refuse(f"the witness {[low, high]} is not at the budgets of the two runs")
    if not 0 <= low < high <= 2**62:
        refuse(f"the witness must be two budgets, the smaller first, and is {[low, high]}")
    if not math.isfinite(file.severity) or file.severity < 0:
        refuse(f"a severity of {file.severity} makes no sense")
    if file.limit is not None and not 1 <= file.limit < math.inf:
        refuse(f"the limit is a factor of the model's compute, 1 or more, not {file.limit}")
    if file.align is not None and not 1 <= file.align <= 2**30:
        refuse(f"sizes cannot be aligned to {file.align} bytes")
    if file.operators != example.operators:
        refuse(f"the trace has {example.operators} operators, the file says {file.operators}")
    if file.id != example.id:
        refuse(
            f"the id is {file.id}, but the content has the id {example.id}: the file was changed; "
            "shrink or hunt again to get a valid one"
        )


def to_text(example: Counterexample) -> bytes:
    """The document: one line a key, a schedule one line a command."""
    trace = example.trace
    body: dict[str, Any] = {"name": trace.meta.name, "sha256": trace.digest}
    document = {
        "format": FORMAT,
        "version": VERSION,
        **example.to_json(),
        "limit": example.limit,
        "align": example.align,
        "found": dict(example.found),
    }
    lines = [f'"{key}": {_json(value)}' for key, value in document.items()]
    inside = [f'"{key}": {_json(value)}' for key, value in body.items()]
    if len(trace.command) <= INLINE_COMMANDS:
        commands = ",\n  ".join(_json(step) for step in _schedule(trace))
        inside.append(f'"schedule": [\n  {commands}\n ]')
    lines.append('"trace": {\n ' + ",\n ".join(inside) + "\n}")
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _json(value: Any) -> str:
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False, allow_nan=False)


def _schedule(trace: Trace) -> list[_Compute | _Get | _Pin | _Release]:
    steps: list[_Compute | _Get | _Pin | _Release] = []
    root = trace.tensor_root.tolist()
    plain: dict[int, Any] = {GET: _Get, PIN: _Pin, RELEASE: _Release}
    for what, x in zip(trace.command.tolist(), trace.operand.tolist(), strict=True):
        if what != COMPUTE:
            steps.append(plain[what](x))
            continue
        outputs = trace.outputs(x)
        roots = [root[t] for t in outputs]
        steps.append(
            _Compute(
                label=trace.op_label[x],
                cost=int(trace.op_cost[x]),
                reads=trace.arguments(x).tolist(),
                makes=[int(trace.tensor_size[t]) for t in outputs],
                storage=None if roots == list(outputs) else roots,
                constant=bool(trace.op_constant[x]),
            )
        )
    return steps


def _trace(inline: _Inline, given: Trace | None) -> Trace:
    if inline.schedule is None:
        if given is None:
            from monofuzz.trace import load as load_trace

            given = load_trace(inline.name)
        trace = given
    else:
        trace = _from_schedule(inline)
    if trace.digest != inline.sha256:
        raise TraceError(f"the content of the trace {inline.name!r} is not what its hash says")
    return trace


def _from_schedule(inline: _Inline) -> Trace:
    columns = Columns()
    assert inline.schedule is not None
    for place, step in enumerate(inline.schedule):
        if not isinstance(step, _Compute):
            what = {_Get: GET, _Pin: PIN, _Release: RELEASE}[type(step)]
            columns.command.append(what)
            columns.operand.append(step.tensor)
            continue
        if step.storage is not None and len(step.storage) != len(step.makes):
            raise TraceError(
                "there must be one storage for each tensor made", field=f"schedule[{place}]"
            )
        first = len(columns.root)
        # `Trace` itself checks what these numbers mean.
        columns.root += step.storage or range(first, first + len(step.makes))
        columns.size += step.makes
        columns.compute(step.label, step.cost, step.reads, constant=step.constant)
    try:
        return columns.trace(None, TraceMeta(name=inline.name, recorder="counterexample"))
    except OverflowError:
        raise TraceError("a number is above 2**63") from None
