"""Reading files from anywhere within bounds, through compression, and writing them whole or not.

What a file is, its first bytes decide; its name never does. A file is read completely, but never
more of it than a stated limit, however small it is on disk.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import os
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, Final, Protocol, cast

from monofuzz.errors import MonofuzzError, TraceError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "MAX_FILE_BYTES",
    "MAX_TEXT_BYTES",
    "Content",
    "compress",
    "read_content",
    "read_file",
    "unpack",
    "unzip",
    "write_atomically",
    "zstd_stream",
]

MAX_FILE_BYTES: Final = 64 * 2**20
"""Most bytes of a file on disk (the largest public log has 2.8 MB)."""
MAX_TEXT_BYTES: Final = 64 * 2**20
"""Most bytes that a compressed file may unpack to."""

_UNNAMED: Final = "<file object>"
_MAX_ZIP_DIRECTORY: Final = 2**20
_MAX_NAME: Final = 1000
_XZ_MEMORY: Final = 256 * 2**20
_ZSTD_WINDOW: Final = 2**27
_PIECE: Final = 1024
_MAX_STREAMS: Final = 10_000

Source = str | os.PathLike[str] | IO[bytes] | IO[str]


@dataclass(frozen=True)
class Content:
    """The unpacked bytes of a file.

    ``label`` is what messages call it, ``source`` what metadata remembers of it (no folders of the
    machine it was read on), ``stem`` its name without endings.
    """

    data: bytes
    label: str
    source: str
    stem: str


def read_content(source: Source, *, member: str | None = None) -> Content:
    """The bytes of a path or file object, unpacked from zip, gzip, xz or zstandard.

    ``member`` names one file in a zip with several. Raises `TraceError` for anything unreadable,
    truncated or too large.
    """
    if isinstance(source, str | os.PathLike):
        label = os.fspath(source)
        packed = read_file(Path(label))
    else:
        label = str(getattr(source, "name", "") or _UNNAMED)
        packed = _read_object(source, label)
    if not packed:
        raise TraceError("the file is empty", file=label)
    stem, source_name = ("", "") if label == _UNNAMED else (_stem(label), _base(label))
    if packed.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        name, data = _unzip_one(packed, label, member)
        return Content(data, f"{label}:{name}", f"{source_name}:{name}", _stem(name))
    if member is not None:
        raise TraceError(f"not a zip file, so it has no member {member!r}", file=label)
    for magic, begin in _STREAMS.items():
        if packed.startswith(magic):
            return Content(_unpacked(packed, begin, label), label, source_name, stem)
    return Content(packed, label, source_name, stem)


def _base(label: str) -> str:
    return label.replace("\\", "/").rpartition("/")[2]


def _stem(label: str) -> str:
    name = _base(label)
    for ending in (".zst", ".xz", ".gz", ".zip"):
        name = name.removesuffix(ending)
    for ending in (".log", ".jsonl", ".json", ".trace", ".txt"):
        name = name.removesuffix(ending)
    return name


def _too_large(label: str, size: str, limit: int) -> TraceError:
    return TraceError(
        f"{size}, more than the {limit // 2**20} MiB that monofuzz reads; "
        "record a shorter step, or cut the file",
        file=label,
    )


def read_file(path: Path) -> bytes:
    """The bytes of a file of bearable size. Raises `TraceError`."""
    label = str(path)
    try:
        if path.is_dir():
            raise TraceError("this is a folder, not a trace", file=label)
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > MAX_FILE_BYTES:
                raise _too_large(label, f"the file has {size / 2**20:,.0f} MiB", MAX_FILE_BYTES)
            data = stream.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise TraceError("there is no such file", file=label) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TraceError(f"cannot be read: {reason}", file=label) from None
    if len(data) > MAX_FILE_BYTES:
        raise _too_large(label, "the file has no end in sight", MAX_FILE_BYTES)
    return data


def _read_object(source: IO[bytes] | IO[str], label: str) -> bytes:
    try:
        data = source.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise TraceError(f"cannot be read: {error}", file=label) from None
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    if len(data) > MAX_FILE_BYTES:
        raise _too_large(label, "the file object goes on", MAX_FILE_BYTES)
    return bytes(data)


def _unpacked(packed: bytes, begin: Callable[[], _Decompressor], label: str) -> bytes:
    import zstandard

    try:
        data = unpack(packed, MAX_TEXT_BYTES, begin)
    except EOFError:
        raise TraceError(
            "the compressed file is truncated: copy or download it again", file=label
        ) from None
    except (OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError, MemoryError) as error:
        raise TraceError(f"the compressed file is damaged: {error}", file=label) from None
    if len(data) > MAX_TEXT_BYTES:
        raise _too_large(label, "the compressed file unpacks to too much", MAX_TEXT_BYTES)
    if not data:
        raise TraceError("the compressed file holds nothing", file=label)
    return data


class _Decompressor(Protocol):
    """One stream, as zlib, lzma and zstandard take it in pieces."""

    eof: bool
    unused_data: bytes

    def decompress(self, data: memoryview, /) -> bytes: ...


def _gzip_stream() -> _Decompressor:
    return cast("_Decompressor", zlib.decompressobj(wbits=31))


def _xz_stream() -> _Decompressor:
    return cast("_Decompressor", lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY))


def zstd_stream() -> _Decompressor:
    """A zstandard frame that is to be read."""
    import zstandard

    whole = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    return cast("_Decompressor", whole.decompressobj())


def unpack(packed: bytes, limit: int, begin: Callable[[], _Decompressor]) -> bytes:
    """What compressed streams, one behind another, hold; stops soon after ``limit`` bytes.

    Raises `EOFError` when the last one is cut off, and what its library raises, or `OSError`, when
    one is damaged.
    """
    out = bytearray()
    rest = memoryview(packed)
    for _ in range(_MAX_STREAMS):
        stream = begin()
        # Fed in small pieces: one piece cannot grow by much, and the end of a stream is seen.
        while rest and not stream.eof:
            piece = rest[:_PIECE]
            out += stream.decompress(piece)
            rest = rest[len(piece) - len(stream.unused_data) :]
            if len(out) > limit:
                return bytes(out)
        if not stream.eof:
            raise EOFError
        while rest and rest[0] == 0:  # Padding.
            rest = rest[len(rest[:_PIECE]) - len(bytes(rest[:_PIECE]).lstrip(b"\0")) :]
        if not rest:
            return bytes(out)
    raise OSError(f"it consists of more than {_MAX_STREAMS:,} streams")


_STREAMS: dict[bytes, Callable[[], _Decompressor]] = {
    b"\x1f\x8b": _gzip_stream,
    b"\xfd7zXZ\x00": _xz_stream,
    b"\x28\xb5\x2f\xfd": zstd_stream,
}


def _open_zip(packed: bytes, label: str) -> zipfile.ZipFile:
    end = packed.rfind(b"PK\x05\x06", max(0, len(packed) - 65557))
    if end < 0 or end + 22 > len(packed):
        raise TraceError("the zip file is truncated: copy or download it again", file=label)
    directory = int.from_bytes(packed[end + 12 : end + 16], "little")
    if directory > _MAX_ZIP_DIRECTORY or packed[max(0, end - 20) : end].startswith(b"PK\x06\x07"):
        raise TraceError("the zip file lists too many files to be a collection of logs", file=label)
    try:
        archive = zipfile.ZipFile(io.BytesIO(packed))
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise TraceError(f"the zip file is damaged: {error}", file=label) from None
    for name in archive.namelist():
        if len(name) > _MAX_NAME or not name.isprintable():
            raise TraceError(f"the zip file has a member with a name like {name!r:.80}", file=label)
    return archive


def unzip(packed: bytes, label: str) -> dict[str, bytes]:
    """All logs in a zip, and its ``manifest.json`` if it has one, by their full names."""
    with _open_zip(packed, label) as archive:
        names = _candidates(archive)
        if not names:
            raise TraceError("the zip file holds no log", file=label)
        manifests = [name for name in archive.namelist() if _base(name) == "manifest.json"]
        unpacked: dict[str, bytes] = {}
        room = MAX_TEXT_BYTES
        for name in manifests[:1] + names:
            unpacked[name] = _zip_data(archive, name, label)
            room -= len(unpacked[name])
            if room < 0:
                raise _too_large(label, "the zip file unpacks to too much", MAX_TEXT_BYTES)
        return unpacked


def _candidates(archive: zipfile.ZipFile) -> list[str]:
    return [
        info.filename
        for info in archive.infolist()
        if not info.is_dir()
        and not info.filename.startswith("__MACOSX/")
        and not _base(info.filename).startswith(".")
        and _base(info.filename) != "manifest.json"
    ]


def _unzip_one(packed: bytes, label: str, member: str | None) -> tuple[str, bytes]:
    with _open_zip(packed, label) as archive:
        names = _candidates(archive)
        listed = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
        if member is not None:
            chosen = [n for n in archive.namelist() if n == member]
            chosen = chosen or [n for n in names if _base(n) == member]
            if not chosen:
                hint = nearest(member, names) or f"; it has {listed}"
                raise TraceError(f"the zip file has no member {member!r}{hint}", file=label)
            return chosen[0], _zip_data(archive, chosen[0], label)
        if not names:
            raise TraceError("the zip file holds no log", file=label)
        if len(names) > 1:
            raise TraceError(
                f"the zip file holds {len(names)} logs; name one as {label}:MEMBER: {listed}",
                file=label,
            )
        return names[0], _zip_data(archive, names[0], label)


def _zip_data(archive: zipfile.ZipFile, name: str, label: str) -> bytes:
    where = f"{label}:{name}"
    info = archive.getinfo(name)
    if info.flag_bits & 1:
        raise TraceError("the member is encrypted: unpack it first", file=where)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise TraceError("the member is compressed in a way other than deflate", file=where)
    try:
        with archive.open(info) as stream:
            data = stream.read(MAX_TEXT_BYTES + 1)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        ValueError,
        RuntimeError,
    ) as error:
        raise TraceError(f"the zip file is damaged or truncated: {error}", file=where) from None
    if len(data) > MAX_TEXT_BYTES:
        raise _too_large(where, "the member unpacks to too much", MAX_TEXT_BYTES)
    if not data:
        raise TraceError("the file is empty", file=where)
    return data


def compress(data: bytes, path: Path) -> bytes:
    """``data`` packed as the ending of ``path`` says (.gz, .xz, .zst, .zip), the same each time."""
    ending = path.suffix.lower()
    if ending == ".gz":
        return gzip.compress(data, 9, mtime=0)
    if ending == ".xz":
        return lzma.compress(data)
    if ending == ".zst":
        import zstandard

        return zstandard.ZstdCompressor(level=12, write_checksum=True).compress(data)
    if ending == ".zip":
        stem = _stem(path.name)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            archive.writestr(
                zipfile.ZipInfo(f"{stem}.log", (1980, 1, 1, 0, 0, 0)),
                data,
                compress_type=zipfile.ZIP_DEFLATED,
                compresslevel=9,
            )
        return packed.getvalue()
    return data


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` to ``path`` completely or not at all.

    It is written beside the target, flushed to disk and renamed over it. Raises `MonofuzzError`
    when the folder is missing, full or not writable, or when the name is ``-``, by which most
    people mean standard output.
    """
    target = Path(path)
    if str(target) == "-":
        raise MonofuzzError("'-' does not stand for standard output here: name a file")
    try:
        handle, temporary = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}.", suffix=".tmp"
        )
        try:
            with os.fdopen(handle, "wb") as stream:
                _as_usual(stream, target)
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            Path(temporary).replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise
    except OSError as error:
        raise MonofuzzError(f"{target}: cannot be written: {error.strerror or error}") from None


def _as_usual(stream: BinaryIO, target: Path) -> None:
    """Give the temporary file the permissions that a plain ``open`` would have given it."""
    if not hasattr(os, "fchmod"):
        return
    try:
        mode = target.stat().st_mode & 0o7777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    os.fchmod(stream.fileno(), mode)
