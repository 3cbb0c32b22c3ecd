"""Map files: a snapshot, then a journal of what was found since.

Why this format: docs/notes/map-files.md. A file is a line that names format and version, then
blocks, each with its kind, length and two checksums. The first block is a header (JSON), the others
hold rows. The header says how many rows the snapshot has: those must be there. Whatever follows was
appended while exploring, and a torn last block is dropped.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import numpy as np

from monofuzz.errors import BudgetError, StoredFileError, UsageError
from monofuzz.search.regimes import Map, Origin
from monofuzz.search.rows import (
    INT_ROW,
    REAL_ROW,
    STATUSES,
    TIMEOUT,
    UNBOUNDED,
    joined,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from monofuzz.search.rows import Rows

__all__ = ["MAGIC", "Journal", "load", "save"]

VERSION = 1
MAGIC = b"monofuzz map, format "
_HEAD = struct.Struct("<IIII")  # kind, length, crc of the payload, crc of the twelve bytes before
_HEADER, _INT_ROWS, _REAL_ROWS = 1, 2, 3
_BLOCK_ROWS = 1 << 16
_MAX_HEADER = 1 << 20
_DTYPES = {_INT_ROWS: INT_ROW, _REAL_ROWS: REAL_ROW}


def save(found: Map, path: str | os.PathLike[str]) -> None:
    """Write a map in its final form: equal maps from as many runs give equal bytes."""
    target = Path(path)
    with _aside(found, target) as file:
        _put_in_place(file, target)


def load(path: str | os.PathLike[str]) -> Map:
    """The map in a file. Raises `StoredFileError` if it is missing, damaged or something else."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None
    return _decode(data, str(path))


class Journal:
    """A map file to which an exploration appends what it finds.

    ``known`` is what the file holds already, None if there is no file. Raises `StoredFileError` if
    it is no map, or if another process is exploring into it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._unsynced = False
        if not self._path.parent.is_dir():
            raise UsageError(f"{path}: cannot write the map there: the folder does not exist")
        self._file: BinaryIO | None = _open_locked(self._path)
        self.known: Map | None = None
        if self._file is not None:
            try:
                self.known = _decode(self._file.read(), str(path))
            except BaseException:
                self._file.close()
                raise

    def begin(self, start: Map) -> None:
        """Make ``start`` the content of the file, ready for more."""
        file = _aside(start, self._path)
        _lock(file, self._path)
        _put_in_place(file, self._path)
        self.close()
        self._file = file

    def append(self, rows: Rows) -> None:
        """Add rows that were just found. They survive a kill of this process."""
        if self._file is not None:
            try:
                self._file.write(b"".join(_row_blocks(rows)))
                self._file.flush()
            except OSError as error:
                raise self._unwritable(error) from None
            self._unsynced = True

    def sync(self) -> None:
        """Make what was appended survive a crash of the machine, too."""
        if self._file is not None and self._unsynced:
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                raise self._unwritable(error) from None
            self._unsynced = False

    def finish(self, final: Map) -> None:
        """Replace the file by the final form of the map."""
        save(final, self._path)
        self.close()

    def close(self) -> None:
        """Leave the file as it is."""
        if self._file is not None:
            with suppress(OSError):  # of what could not be written before
                self._file.close()
            self._file = None

    def _unwritable(self, error: OSError) -> StoredFileError:
        return StoredFileError(
            f"{self._path}: cannot write the map: {error.strerror or error}; what the file holds "
            "already is kept, and the same command goes on from there"
        )


def _encode(found: Map) -> Iterator[bytes]:
    header = {
        "origin": asdict(found.origin),
        "between": list(found.between),
        "runs": found.runs,
        "rows": len(found.table),
        "fields": [list(field) for field in found.table.dtype.descr],
        "beyond": [list(run) for run in found.beyond],
    }
    yield MAGIC + b"%d\n" % VERSION
    yield _block(_HEADER, json.dumps(header, sort_keys=True, separators=(",", ":")).encode())
    yield from _row_blocks(found.table)


def _row_blocks(rows: Rows) -> Iterator[bytes]:
    import zstandard

    packer = zstandard.ZstdCompressor(level=3)
    kind = _INT_ROWS if rows.dtype == INT_ROW else _REAL_ROWS
    for start in range(0, len(rows), _BLOCK_ROWS):
        part = rows[start : start + _BLOCK_ROWS]
        # Byte planes, of which most are constant, compress several times better than rows.
        planes = part.view(np.uint8).reshape(len(part), -1).T.tobytes()
        yield _block(kind, struct.pack("<I", len(part)) + packer.compress(planes))


def _block(kind: int, payload: bytes) -> bytes:
    front = struct.pack("<III", kind, len(payload), zlib.crc32(payload))
    return front + struct.pack("<I", zlib.crc32(front)) + payload


def _decode(data: bytes, path: str) -> Map:
    version, at = _version(data, path)
    if version != VERSION:
        made = "a newer monofuzz" if version > VERSION else "an unknown monofuzz"
        raise StoredFileError(
            f"{path}: this map was written by {made} (format {version}, this one reads {VERSION})"
        )
    blocks = _blocks(data, at, path)
    kind, payload = next(blocks, (0, b""))
    if kind != _HEADER:
        _damaged(path, "its header is missing")
    header = _header(payload, path)
    parts = [_rows(kind, payload, path) for kind, payload in blocks]
    rows = joined(parts)
    stored = header["rows"]
    if len(rows) < stored:
        _damaged(path, f"it is cut off: {len(rows)} of its {stored} regimes are left")
    lo, hi = header["between"]
    _check_rows(rows, lo, hi, path)
    try:
        return Map(
            Origin(**header["origin"]),
            (lo, hi),
            rows,
            beyond=tuple((budget, status) for budget, status in header["beyond"]),
            runs=header["runs"] + len(rows) - stored,
        )
    except (BudgetError, TypeError) as error:
        _damaged(path, f"its header makes no sense: {error}")


def _version(data: bytes, path: str) -> tuple[int, int]:
    end = data.find(b"\n", 0, len(MAGIC) + 12)
    digits = data[len(MAGIC) : end]
    if end < 0 or not data.startswith(MAGIC) or not digits.isdigit():
        raise StoredFileError(
            f"{path}: this is not a map file, as monofuzz map --out FILE writes them; name another"
        )
    return int(digits), end + 1


def _blocks(data: bytes, at: int, path: str) -> Iterator[tuple[int, bytes]]:
    """The blocks from ``at`` on, without a torn one at the end."""
    while at < len(data):
        head = data[at : at + _HEAD.size]
        if len(head) < _HEAD.size or not any(data[at:]):
            return
        kind, length, check, head_check = _HEAD.unpack(head)
        if zlib.crc32(head[:12]) != head_check:
            _damaged(path, f"a checksum is wrong at byte {at}")
        start, at = at + _HEAD.size, at + _HEAD.size + length
        payload = data[start:at]
        if len(payload) < length or (at == len(data) and zlib.crc32(payload) != check):
            return
        if zlib.crc32(payload) != check:
            _damaged(path, f"a checksum is wrong in the block at byte {start}")
        yield kind, payload


def _header(payload: bytes, path: str) -> dict[str, Any]:
    try:
        header = json.loads(payload)
        lo, hi = header["between"]
        numbers = [lo, hi, header["runs"], header["rows"], *(run[0] for run in header["beyond"])]
        sane = (
            all(type(number) is int and 0 <= number <= UNBOUNDED for number in numbers)
            and all(len(run) == 2 and run[1] in STATUSES for run in header["beyond"])
            and isinstance(header["origin"]["identity"], str)
        )
        fields = header["fields"]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        _damaged(path, f"its header makes no sense: {error}")
    if not sane:
        _damaged(path, "its header makes no sense")
    if fields not in ([list(field) for field in kind.descr] for kind in _DTYPES.values()):
        raise StoredFileError(
            f"{path}: this map records other counters than this monofuzz; make it again"
        )
    return dict(header)


def _rows(kind: int, payload: bytes, path: str) -> Rows:
    import zstandard

    dtype = _DTYPES.get(kind)
    if dtype is None or len(payload) < 4:
        _damaged(path, f"it has a block of an unknown kind ({kind})")
    (count,) = struct.unpack_from("<I", payload)
    if not 0 < count <= _BLOCK_ROWS:
        _damaged(path, f"a block says that it holds {count} regimes")
    size, packed = count * dtype.itemsize, payload[4:]
    try:
        if zstandard.frame_content_size(packed) != size:
            _damaged(path, "a block has the wrong size")
        planes = zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError as error:
        _damaged(path, f"a block cannot be unpacked: {error}")
    shaped = np.frombuffer(planes, np.uint8).reshape(dtype.itemsize, count)
    return np.ascontiguousarray(shaped.T).view(dtype).reshape(count)


def _check_rows(rows: Rows, lo: int, hi: int, path: str) -> None:
    ordered = rows[np.argsort(rows["lo"], kind="stable")]
    starts, ends = ordered["lo"], ordered["hi"]
    good = (
        bool((starts < ends).all())
        and bool((ends[:-1] <= starts[1:]).all())
        and (not len(rows) or (int(starts[0]) >= lo and int(ends[-1]) <= hi))
        and bool((ordered["status"] < len(STATUSES)).all())
        and bool((ordered["certified"] <= 1).all())
        and bool((ordered["certified"][ordered["status"] == TIMEOUT] == 0).all())
        and bool(np.isfinite(ordered["overhead"]).all() and np.isfinite(ordered["cost"]).all())
    )
    if not good:
        _damaged(path, "its regimes contradict each other")


def _damaged(path: str, how: str) -> NoReturn:
    raise StoredFileError(f"{path}: the map file is damaged: {how}; delete it and map again")


def _unreadable(path: str | os.PathLike[str], error: OSError) -> StoredFileError:
    return StoredFileError(f"{path}: cannot read the map: {error.strerror or error}")


def _aside(found: Map, target: Path) -> BinaryIO:
    """A new file beside ``target`` that holds the map, on disk."""
    path = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        file = path.open("wb")
        try:
            for block in _encode(found):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            file.close()
            path.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(f"{target}: cannot write the map: {error.strerror or error}") from None
    return file


def _put_in_place(file: BinaryIO, target: Path) -> None:
    Path(file.name).replace(target)
    with suppress(OSError, AttributeError):  # folders cannot be synced everywhere
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _open_locked(path: Path) -> BinaryIO | None:
    """The file at ``path``, locked; None if there is none."""
    while True:
        try:
            file = path.open("rb")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(path, error) from None
        try:
            _lock(file, path)
            # Another process may have replaced the file before the lock was had.
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def _lock(file: BinaryIO, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on this operating system
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StoredFileError(
            f"{path}: another process is writing this map; wait for it, or use another file"
        ) from None
    except OSError:  # a file system without locks
        return
