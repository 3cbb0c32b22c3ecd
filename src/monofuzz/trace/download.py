"""Downloading one file of known content, resumably.

The standard library's HTTP client is used rather than pooch: pooch verifies and caches, but starts
again from the first byte after an interruption, and resuming is most of what there is to do here.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import re
import urllib.error
import urllib.request
from typing import IO, TYPE_CHECKING, Final

from monofuzz.errors import DownloadError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["download"]

_CHUNK: Final = 64 * 1024
_ATTEMPTS: Final = 3


class _InterruptedError(Exception):
    """The connection ended before the file did."""


def download(
    url: str,
    target: Path,
    *,
    sha256: str,
    limit: int,
    progress: Callable[[int, int | None], None] | None = None,
    timeout: float = 30.0,
) -> None:
    """Fetch ``url`` into ``target``, whose content must have the given SHA-256.

    What has arrived is kept in ``target`` + ``.part`` and continued by the next call, if the
    server can. A part that turns out wrong is thrown away and fetched again, once. Not more than
    ``limit`` bytes are accepted. ``progress`` is called with the bytes there are and the bytes
    there will be (None when the server does not say), ``timeout`` is in seconds of silence.

    Raises `DownloadError`; the target is complete or untouched.
    """
    if not re.match(r"https?://", url):
        raise DownloadError(f"{url}: only http and https can be downloaded from")
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _only_one(part) as stream:
            for last in (False, True):
                _complete(url, stream, limit, progress, timeout)
                found = _sha256(stream)
                if found == sha256:
                    break
                stream.truncate(0)
                if last:
                    raise DownloadError(
                        f"{url}: the content is not the released file (SHA-256 {found[:16]}…, "
                        f"expected {sha256[:16]}…), twice: check the address or mirror"
                    )
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(target)
    except OSError as error:
        raise DownloadError(f"{part}: cannot be written: {error.strerror or error}") from None


@contextlib.contextmanager
def _only_one(part: Path) -> Iterator[IO[bytes]]:
    """The part opened for reading and appending, locked against another download of it."""
    with part.open("a+b") as stream:
        try:
            import fcntl
        except ImportError:  # no such locks on this system
            yield stream
            return
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DownloadError(f"{part}: another process is downloading this now") from None
        yield stream


def _sha256(stream: IO[bytes]) -> str:
    stream.seek(0)
    return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


def _complete(
    url: str,
    stream: IO[bytes],
    limit: int,
    progress: Callable[[int, int | None], None] | None,
    timeout: float,
) -> None:
    """Bring the part to its full length, over several connections if need be."""
    attempts = _ATTEMPTS
    while True:
        before = stream.seek(0, os.SEEK_END)
        try:
            _continue(url, stream, limit, progress, timeout)
            return
        except _InterruptedError as error:
            now = stream.seek(0, os.SEEK_END)
            attempts = _ATTEMPTS if now > before else attempts - 1
            if attempts == 0:
                raise DownloadError(
                    f"{url}: interrupted after {now:,} bytes ({error}); run this again to continue"
                ) from None


def _continue(
    url: str,
    stream: IO[bytes],
    limit: int,
    progress: Callable[[int, int | None], None] | None,
    timeout: float,
) -> None:
    """One request for what is missing. Raise `_InterruptedError` when the connection breaks."""
    have = stream.seek(0, os.SEEK_END)
    request = urllib.request.Request(url, headers={"User-Agent": "monofuzz"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            if have and not _continues(answer, have):
                stream.truncate(0)
                have = 0
            _receive(answer, stream, have, limit, url, progress)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416 and have:
                return  # the part is complete already, or wrong: the hash tells
            if error.code >= 500:
                raise _InterruptedError(f"HTTP {error.code} {error.reason}") from None
            raise DownloadError(
                f"{url}: the server answers {error.code} {error.reason}: check the address or "
                "mirror, or add the file by hand: monofuzz traces add FILE"
            ) from None
    except urllib.error.URLError as error:
        raise DownloadError(
            f"{url}: cannot be reached ({error.reason}): check the network, or add the file by "
            "hand: monofuzz traces add FILE"
        ) from None
    except (http.client.HTTPException, ValueError) as error:
        raise _InterruptedError(str(error) or type(error).__name__) from None


def _continues(answer: http.client.HTTPResponse, have: int) -> bool:
    """Whether the server sends the rest, rather than everything again."""
    given = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
    return answer.status == 206 and given is not None and int(given[1]) == have


def _receive(
    answer: http.client.HTTPResponse,
    stream: IO[bytes],
    have: int,
    limit: int,
    url: str,
    progress: Callable[[int, int | None], None] | None,
) -> None:
    length = answer.headers.get("Content-Length", "")
    total = have + int(length) if length.isdecimal() else None
    while True:
        if max(have, total or 0) > limit:
            stream.truncate(0)
            raise DownloadError(f"{url}: more than {limit:,} bytes, so not the released file")
        if progress is not None:
            progress(have, total)
        try:
            chunk = answer.read(_CHUNK)
        except OSError as error:
            raise _InterruptedError(str(error) or type(error).__name__) from None
        if not chunk:
            break
        stream.write(chunk)
        have += len(chunk)
    stream.flush()
    if total is not None and have < total:
        raise _InterruptedError(f"{total - have:,} bytes are missing")
