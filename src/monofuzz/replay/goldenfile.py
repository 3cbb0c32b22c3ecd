"""Reading golden files: recorded runs of the reference simulator, one JSON object a line.

Each line is either a log with the runs that were made of it (``id``, ``log``: its lines, ``runs``),
or one run of a trace that the library knows by name (``trace`` beside the fields of the run).
Files are plain or packed (.gz, .xz, .zst) and read line by line, so their length is no matter.
"""

from __future__ import annotations

import functools
import gzip
import io
import lzma
import os
import threading
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, cast

import msgspec

from monofuzz.errors import MonofuzzError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from monofuzz.trace import Trace

__all__ = ["FIELDS", "MAX_LINE_BYTES", "GoldenCase", "GoldenRun", "count_lines", "plain", "read"]

MAX_LINE_BYTES: Final = 64 * 2**20
"""Longest line of a golden file: a log with all its runs."""


class _Fail(msgspec.Struct, frozen=True):
    pinned_bytes: int
    request: int
    depth: int
    over_by: int


class _Run(msgspec.Struct, frozen=True):
    policy: str
    budget: int
    remat_limit: int | None = None
    status: str | msgspec.UnsetType = msgspec.UNSET
    model_compute: int | msgspec.UnsetType = msgspec.UNSET
    remat_compute: int | msgspec.UnsetType = msgspec.UNSET
    overhead: float | msgspec.UnsetType = msgspec.UNSET
    evictions: int | msgspec.UnsetType = msgspec.UNSET
    evictions_all: int | msgspec.UnsetType = msgspec.UNSET
    distinct_evicted: int | msgspec.UnsetType = msgspec.UNSET
    remats: int | msgspec.UnsetType = msgspec.UNSET
    victims: list[int] | msgspec.UnsetType = msgspec.UNSET
    victims_sha256: str | msgspec.UnsetType = msgspec.UNSET
    interval: tuple[int, int | None] | msgspec.UnsetType = msgspec.UNSET
    peak_memory: int | msgspec.UnsetType = msgspec.UNSET
    peak_pinned: int | msgspec.UnsetType = msgspec.UNSET
    depth_at_peak_pinned: int | msgspec.UnsetType = msgspec.UNSET
    max_depth: int | msgspec.UnsetType = msgspec.UNSET
    fail: _Fail | msgspec.UnsetType | None = msgspec.UNSET


class _NamedRun(_Run, frozen=True, kw_only=True):
    trace: str


class _LogRuns(msgspec.Struct, frozen=True):
    log: list[str]
    runs: list[_Run]
    id: str | None = None


class _Kind(msgspec.Struct, frozen=True):
    log: msgspec.Raw = msgspec.Raw()
    trace: msgspec.Raw = msgspec.Raw()


_ASKED: Final = frozenset({"policy", "budget", "remat_limit"})
FIELDS: Final = tuple(name for name in _Run.__struct_fields__ if name not in _ASKED)
"""What is compared, wherever a record has it: everything but what was asked of the run."""


@dataclass(frozen=True, slots=True)
class GoldenRun:
    """One recorded run: ``expected`` maps the fields that the record has to their values.

    ``budget`` is in bytes, ``remat_limit`` in nanoseconds of rematerialisation, None for no limit.
    """

    policy: str
    budget: int
    remat_limit: int | None
    expected: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GoldenCase:
    """The runs of one line of a golden file, and how to get at their trace.

    ``name`` is the log's id or the trace's name, ``place`` is ``FILE:LINE``.
    """

    name: str
    place: str
    trace: Callable[[], Trace]
    runs: tuple[GoldenRun, ...]


def read(path: str | os.PathLike[str]) -> Iterator[GoldenCase]:
    """The cases of a golden file, in order, one a line; empty lines are passed over.

    Raises `MonofuzzError` with file, line and field where the file is not what it should be, and
    at its end when there was no run in it.
    """
    label = os.fspath(path)
    any_run = False
    for number, line in enumerate(_lines(label), 1):
        if line.strip():
            place = f"{label}:{number}"
            case = _case(line, place)
            any_run = any_run or bool(case.runs)
            yield case
    if not any_run:
        raise MonofuzzError(f"{label}: there is no golden run in this file")


def count_lines(path: str | os.PathLike[str]) -> int:
    """How many lines a golden file has, for a progress bar. Raises `MonofuzzError`."""
    return sum(1 for _ in _lines(os.fspath(path)))


def plain(name: str, value: Any) -> Any:
    """A field of an outcome or a record as JSON has it, so that the two compare."""
    if name in ("interval", "victims") and value is not None:
        return list(value)
    if name == "fail" and value is not None:
        return {key: getattr(value, key) for key in _Fail.__struct_fields__}
    return value


def _case(line: bytes, place: str) -> GoldenCase:
    with _decoding(place):
        kind = msgspec.json.decode(line, type=_Kind)
    if len(memoryview(kind.log)):
        with _decoding(place):
            record = msgspec.json.decode(line, type=_LogRuns)
        name = record.id or place
        return GoldenCase(
            name,
            place,
            functools.partial(_parsed, tuple(record.log), name),
            tuple(_run(run, place, f"runs[{k}].") for k, run in enumerate(record.runs)),
        )
    if len(memoryview(kind.trace)):
        with _decoding(place):
            single = msgspec.json.decode(line, type=_NamedRun)
        return GoldenCase(
            single.trace,
            place,
            functools.partial(_named, single.trace),
            (_run(single, place, ""),),
        )
    raise MonofuzzError(
        f"{place}: not a golden record: it has neither `log` and `runs` nor `trace`"
    )


def _run(run: _Run, place: str, path: str) -> GoldenRun:
    for name in ("budget", "remat_limit"):
        value = getattr(run, name)
        if value is not None and not 0 <= value < 2**63:
            raise MonofuzzError(
                f"{place}: not a golden record: {value} is no number of bytes or nanoseconds "
                f"(field {path}{name})"
            )
    expected = {
        name: plain(name, value)
        for name in FIELDS
        if (value := getattr(run, name)) is not msgspec.UNSET
    }
    if not expected:
        raise MonofuzzError(
            f"{place}: not a golden record: it says nothing of what the run did "
            f"(field {path}status, for one)"
        )
    return GoldenRun(run.policy, run.budget, run.remat_limit, expected)


@contextmanager
def _decoding(place: str) -> Iterator[None]:
    try:
        yield
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `$")
        at = where.rstrip("`").lstrip(".")
        suffix = f" (field {at})" if at else ""
        raise MonofuzzError(f"{place}: not a golden record: {problem}{suffix}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MonofuzzError(f"{place}: not JSON: {error}") from None


def _parsed(log: tuple[str, ...], name: str) -> Trace:
    from monofuzz.trace import dtrlog

    return dtrlog.parse("\n".join(log).encode("utf-8", "surrogatepass"), file=name, name=name)


_LOADING = threading.Lock()


def _named(name: str) -> Trace:
    with _LOADING:
        return _load(name)


@functools.lru_cache(maxsize=16)
def _load(name: str) -> Trace:
    from monofuzz.trace import load

    return load(name)


def _lines(label: str) -> Iterator[bytes]:
    import zstandard

    number = 0
    try:
        with open(label, "rb") as raw, _unpacked(raw) as stream:
            while line := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    raise MonofuzzError(
                        f"{label}:{number}: the line is longer than {MAX_LINE_BYTES // 2**20} MiB; "
                        "a golden file has one record a line"
                    )
                yield line
    except FileNotFoundError:
        raise MonofuzzError(f"{label}: there is no such file") from None
    except EOFError:
        raise MonofuzzError(
            f"{label}: the compressed file is truncated after line {number}: "
            "copy or download it again"
        ) from None
    except (OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise MonofuzzError(f"{label}: cannot be read after line {number}: {reason}") from None


def _unpacked(raw: IO[bytes]) -> IO[bytes]:
    """The stream behind the compression that the first bytes tell of."""
    magic = raw.read(6)
    raw.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
    if magic == b"\xfd7zXZ\x00":
        return cast("IO[bytes]", lzma.LZMAFile(raw))
    if magic.startswith(b"\x28\xb5\x2f\xfd"):
        import zstandard

        reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(
            raw, read_across_frames=True
        )
        return io.BufferedReader(reader)
    return raw
