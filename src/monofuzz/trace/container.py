"""The .trace file: the arrays of a trace and where it came from, compressed and versioned.

Layout: 8 bytes of magic, the length of the header (4 bytes, little-endian), the header (JSON), and
a zstandard frame with everything that the header lists: first the arrays, in a fixed order and
little-endian, then the texts (labels and log names) as JSON. Equal traces with equal metadata
give equal bytes. The header alone tells what a list of traces shows.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from monofuzz.errors import TraceError
from monofuzz.trace import files
from monofuzz.trace.model import MAX_COMMANDS, LogNames, Trace, TraceMeta

if TYPE_CHECKING:
    import os

__all__ = ["MAGIC", "VERSION", "Header", "pack", "read_header", "save", "unpack"]

MAGIC: Final = b"\x8bMFTRACE"
VERSION: Final = 1

_MAX_HEADER: Final = 2**20
_MAX_TEXT: Final = 2**26
_MAX_BODY: Final = 2**28

_ARRAYS: Final = (
    ("op_cost", "<i8"),
    ("op_constant", "|b1"),
    ("arg_ptr", "<i8"),
    ("args", "<i8"),
    ("out_ptr", "<i8"),
    ("tensor_size", "<i8"),
    ("tensor_root", "<i8"),
    ("command", "|i1"),
    ("operand", "<i8"),
)
_NAME_ARRAYS: Final = (("of_tensor", "<i8"), ("of_command", "<i8"), ("form", "|i1"))


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """What a .trace file says before its arrays; counts exclude constants where they say so.

    ``digest`` is that of the trace. ``lengths`` are those of the arrays, ``text`` the bytes of the
    texts behind them.
    """

    version: int
    digest: str
    operators: int
    storages: int
    model_compute: int
    meta: dict[str, str | int | None]
    lengths: dict[str, int]
    text: int


def pack(trace: Trace) -> bytes:
    """The bytes of a .trace file; the same for equal traces with equal metadata."""
    import zstandard

    arrays = [(name, dtype, getattr(trace, name)) for name, dtype in _ARRAYS]
    text: dict[str, Any] = {"labels": trace.op_label}
    if trace.names is not None:
        arrays += [(name, dtype, getattr(trace.names, name)) for name, dtype in _NAME_ARRAYS]
        text["names"] = trace.names.text
    texts = msgspec.json.encode(text)
    header = Header(
        version=VERSION,
        digest=trace.digest,
        operators=trace.n_operators,
        storages=trace.n_storages,
        model_compute=trace.model_compute,
        meta=asdict(trace.meta),
        lengths={name: len(array) for name, _, array in arrays},
        text=len(texts),
    )
    head = msgspec.json.encode(header)
    body = b"".join(array.astype(dtype, copy=False).tobytes() for _, dtype, array in arrays) + texts
    packed = zstandard.ZstdCompressor(level=12, write_checksum=True).compress(body)
    return MAGIC + len(head).to_bytes(4, "little") + head + packed


def save(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write a .trace file, completely or not at all. Raises `MonofuzzError`."""
    files.write_atomically(path, pack(trace))


def read_header(data: bytes, *, file: str) -> Header:
    """The header of a .trace file, of which the first MiB is enough. Raises `TraceError`."""
    if not data.startswith(MAGIC):
        raise TraceError("this is not a .trace file", file=file)
    start = len(MAGIC) + 4
    length = int.from_bytes(data[len(MAGIC) : start], "little")
    if length > _MAX_HEADER:
        raise TraceError("the header of the .trace file is damaged", file=file)
    if len(data) < start + length:
        raise TraceError("the .trace file is truncated: copy it again", file=file)
    text = data[start : start + length]
    try:
        version = msgspec.json.decode(text, type=_Version).version
        if version != VERSION:
            raise TraceError(
                f"the .trace file has format version {version}; this monofuzz reads {VERSION}: "
                "use a newer monofuzz",
                file=file,
            )
        return msgspec.json.decode(text, type=Header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(f"the header of the .trace file is damaged: {error}", file=file) from None


class _Version(msgspec.Struct):
    version: int


def unpack(data: bytes, *, file: str) -> Trace:
    """The trace in a .trace file. Raises `TraceError` for whatever is wrong with it."""
    header = read_header(data, file=file)
    start = len(MAGIC) + 4 + int.from_bytes(data[len(MAGIC) : len(MAGIC) + 4], "little")
    layout = _layout(header, file)
    total = sum(count * np.dtype(dtype).itemsize for _, dtype, count in layout) + header.text
    if total > _MAX_BODY:
        raise TraceError(f"the .trace file unpacks to {total:,} bytes, too many", file=file)
    body = _decompress(data[start:], total, file)

    arrays: dict[str, Any] = {}
    offset = 0
    for name, dtype, count in layout:
        arrays[name] = np.frombuffer(body, dtype, count, offset)
        offset += count * np.dtype(dtype).itemsize
    if not np.isin(arrays["op_constant"].view(np.uint8), (0, 1)).all():
        raise TraceError("a truth value that is neither 0 nor 1", file=file, field="op_constant")
    try:
        text = msgspec.json.decode(body[offset:], type=_Text)
        meta = msgspec.convert(header.meta, type=TraceMeta)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(f"the texts of the .trace file are damaged: {error}", file=file) from None
    if ("of_tensor" in arrays) != (text.names is not None):
        raise TraceError("log names without their arrays, or the reverse", file=file, field="names")
    try:
        names = None
        if text.names is not None:
            parts = {name: arrays.pop(name) for name, _ in _NAME_ARRAYS}
            names = LogNames(text=text.names, **parts)
        trace = Trace(**arrays, op_label=text.labels, names=names, meta=meta)
    except TraceError as error:
        raise error.at(file) from None
    if trace.digest != header.digest:
        raise TraceError("the header names another trace than the file holds", file=file)
    if (trace.n_operators, trace.n_storages, trace.model_compute) != (
        header.operators,
        header.storages,
        header.model_compute,
    ):
        raise TraceError("the header counts something else than the file holds", file=file)
    return trace


class _Text(msgspec.Struct, forbid_unknown_fields=True):
    labels: tuple[str, ...]
    names: tuple[str, ...] | None = None


def _layout(header: Header, file: str) -> list[tuple[str, str, int]]:
    expected = list(_ARRAYS)
    if len(header.lengths) > len(_ARRAYS):
        expected += _NAME_ARRAYS
    if list(header.lengths) != [name for name, _ in expected]:
        raise TraceError("the .trace file lists other arrays than expected", file=file)
    for name, count in header.lengths.items():
        if not 0 <= count <= MAX_COMMANDS + 1:
            raise TraceError(f"{count:,} entries, not allowed", file=file, field=name)
    if not 0 <= header.text <= _MAX_TEXT:
        raise TraceError(f"{header.text:,} bytes of text, not allowed", file=file, field="text")
    return [(name, dtype, header.lengths[name]) for name, dtype in expected]


def _decompress(packed: bytes, total: int, file: str) -> bytes:
    """Exactly ``total`` bytes out of the rest of the file."""
    import zstandard

    try:
        body = files.unpack(packed, total, files.zstd_stream)
    except EOFError:
        raise TraceError("the .trace file is truncated: copy it again", file=file) from None
    except (OSError, zstandard.ZstdError, MemoryError) as error:
        raise TraceError(f"the .trace file is damaged: {error}", file=file) from None
    if len(body) != total:
        raise TraceError("the .trace file is damaged: its length is not as stated", file=file)
    return body
