"""The trace library: traces by name, whether shipped, fetched or your own.

Shipped traces are part of the package. Fetched and added ones are kept as .trace files in the
user's cache folder; the environment variable MONOFUZZ_CACHE names another one.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from monofuzz.errors import TraceError, UsageError, nearest
from monofuzz.trace import container, dtrlog, dtrwrite, interop
from monofuzz.trace.files import MAX_FILE_BYTES, read_content, read_file, unzip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from monofuzz.trace.files import Source
    from monofuzz.trace.model import Trace

__all__ = [
    "PUBLIC_SHA256",
    "PUBLIC_TRACES",
    "TraceInfo",
    "add",
    "cache_folder",
    "check_target",
    "fetch",
    "info",
    "list_traces",
    "load",
    "remove",
    "save",
]

PUBLIC_SHA256: Final = "63579a07a6e7ce063f5ba49450dfb96a9f3995df736c423c27e1336f4365e02a"
_PUBLIC_PATH: Final = (
    "uwsampl/dtr-prototype/raw/eff53cc4804cc7d6246a6e5086861ce2b846f62b/simrd/logs.zip"
)
_PUBLIC_SOURCE: Final = "uwsampl/dtr-prototype simrd/logs.zip eff53cc4"
_DEFAULT_MIRROR: Final = "https://github.com"

PUBLIC_TRACES: Final[dict[str, tuple[str, int | None]]] = {
    "dtr-resnet32": ("ResNet-32, batch 56, 224x224", 56),
    "dtr-unet": ("U-Net, batch 6, 416x608", 6),
    "dtr-densenet121": ("DenseNet-121, batch 84", 84),
    "dtr-inceptionv4": ("InceptionV4, batch 64", 64),
    "dtr-transformer": ("Transformer, batch 10", 10),
    "dtr-treelstm": ("TreeLSTM, depth 6", None),
    "dtr-lstm": ("LSTM, 512 -> 1700, 128 steps", None),
    "dtr-unrolled-gan": ("Unrolled GAN, 10 steps", None),
}
"""The traces that `fetch` brings: model, and batch size where there is one."""

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_PATH_ENDINGS: Final = (".log", ".jsonl", ".trace", ".zip", ".gz", ".xz", ".zst", ".json", ".txt")


@dataclass(frozen=True)
class TraceInfo:
    """What a list of traces shows, without reading the traces.

    ``operators`` excludes constants, ``model_compute`` is in nanoseconds, ``peak`` in bytes: the
    unconstrained peak if it was measured. ``kind`` is ``shipped``, ``fetched`` or ``yours``.
    ``problem`` says why a trace is unusable, and is empty for all others.
    """

    name: str
    kind: str
    path: str
    model: str = ""
    batch: int | None = None
    operators: int = 0
    storages: int = 0
    model_compute: int = 0
    peak: int | None = None
    cost_model: str = ""
    source: str = ""
    digest: str = ""
    problem: str = ""


def cache_folder() -> Path:
    """Where fetched and added traces are kept. Not created by asking."""
    chosen = os.environ.get("MONOFUZZ_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("monofuzz", appauthor=False))


def load(source: Source) -> Trace:
    """The trace with a name, or in a file: a path or an open file.

    A text is a name when the library has one like it, else a path; ``./NAME`` is always a path.
    Files may be DTR logs, .trace files, graphs in NetworkX's JSON or tables of operators (see
    `interop`), plain or packed with zip, gzip, xz or zstandard, told apart by content;
    ``logs.zip:MEMBER`` is one of several in a zip.

    Raises `TraceError`.
    """
    if not isinstance(source, str):
        if not isinstance(source, os.PathLike) and not hasattr(source, "read"):
            raise UsageError(f"a trace has a name, a path or an open file, not {source!r:.80}")
        return _load_file(source, None)
    if _NAME.fullmatch(source):
        found = _find(source)
        if found is not None:
            return container.unpack(read_file(found), file=str(found))
    if os.path.exists(source):
        return _load_file(source, None)
    path, colon, member = source.rpartition(":")
    if colon and os.path.isfile(path):
        return _load_file(path, member)
    if "/" in source or os.sep in source or source.lower().endswith(_PATH_ENDINGS):
        raise TraceError("there is no such file", file=source)
    raise _unknown(source)


def save(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write a trace: as a .trace file, or as a DTR log (.log, .log.gz, .log.xz, .log.zst, .zip).

    The file is complete or not there at all. Raises `UsageError` for another ending, `TraceError`
    when the trace has no log form.
    """
    target = Path(path)
    check_target(target)
    if target.suffix == ".trace":
        container.save(trace, target)
    else:
        dtrwrite.write(trace, target)


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise `UsageError` unless `save` can tell from the path's ending what to write."""
    target = Path(path)
    if target.suffix not in (".trace", ".log", ".zip") and not target.name.endswith(
        (".log.gz", ".log.xz", ".log.zst")
    ):
        raise UsageError(
            f"{target}: cannot tell the format; end the name in .trace, .log, .log.gz, .log.xz, "
            ".log.zst or .zip"
        )


def list_traces() -> list[TraceInfo]:
    """All traces of the library: shipped, fetched, yours, each group by name."""
    listed = [_info(path, shipped=True) for path in _shipped()]
    listed += [_info(path, shipped=False) for path in _kept()]
    order = ("shipped", "fetched", "yours")
    return sorted(listed, key=lambda entry: (order.index(entry.kind), entry.name))


def info(name: str) -> TraceInfo:
    """What the library knows about one of its traces. Raises `TraceError` if it has none such."""
    path = _find(name) if _NAME.fullmatch(name) else None
    if path is None:
        raise _unknown(name)
    return _info(path, shipped=path in list(_shipped()))


def add(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    replace: bool = False,
    measure: Callable[[Trace], int] | None = None,
) -> list[TraceInfo]:
    """Take traces into the library: one file, or all logs of a zip such as DTR's ``logs.zip``.

    Logs that a ``manifest.json`` in the zip names get its names with ``dtr-`` before them; others
    are called like their files, or ``name`` if there is only one. A name that already means
    another trace is refused unless ``replace`` is set. ``measure`` is asked for the unconstrained
    peak of each trace, which is kept with it.

    Raises `TraceError` and `UsageError`; then nothing was added.
    """
    taken = list(_traces_in(Path(path)))
    if name is not None:
        if len(taken) != 1:
            raise UsageError(f"{os.fspath(path)}: {len(taken)} traces cannot share the name {name}")
        taken = [(name, taken[0][1])]
    for chosen, trace in taken:
        _check_name(chosen, trace, replace)
    entries = []
    for chosen, trace in taken:
        peak = trace.meta.peak if measure is None else measure(trace)
        target = _folder() / f"{chosen}.trace"
        container.save(trace.with_meta(name=chosen, peak=peak), target)
        entries.append(_info(target, shipped=False))
    return entries


def remove(name: str) -> None:
    """Take a fetched trace or one of yours out of the library. Raises `TraceError`."""
    path = _find(name) if _NAME.fullmatch(name) else None
    if path is None:
        raise _unknown(name)
    if path in list(_shipped()):
        raise TraceError(f"{name} is part of monofuzz and cannot be removed")
    path.unlink(missing_ok=True)


def fetch(
    collection: str = "dtr",
    *,
    mirror: str | None = None,
    progress: Callable[[int, int | None], None] | None = None,
    measure: Callable[[Trace], int] | None = None,
) -> list[TraceInfo]:
    """Download a public collection of traces into the library; the only one is ``dtr``.

    ``mirror`` (or the environment variable MONOFUZZ_MIRROR) is a base address that stands in for
    ``https://github.com``. ``progress`` is called with the bytes there are and the bytes there
    will be. An interrupted download goes on where it stopped.

    Raises `DownloadError` when the file cannot be had or is not the released one.
    """
    if collection != "dtr":
        raise UsageError(f"there is no collection {collection!r} to fetch; there is: dtr")
    from monofuzz.trace.download import download

    base = (mirror or os.environ.get("MONOFUZZ_MIRROR") or _DEFAULT_MIRROR).rstrip("/")
    target = _folder() / "dtr-logs.zip"
    download(
        f"{base}/{_PUBLIC_PATH}",
        target,
        sha256=PUBLIC_SHA256,
        limit=MAX_FILE_BYTES,
        progress=progress,
    )
    try:
        return add(target, replace=True, measure=measure)
    finally:
        with contextlib.suppress(OSError):
            target.unlink()


# -- inside ---------------------------------------------------------------------------------------


def _load_file(source: Source, member: str | None) -> Trace:
    content = read_content(source, member=member)
    return _parse(content.data, content.label, content.stem, content.source)


def _parse(data: bytes, label: str, stem: str, source_name: str) -> Trace:
    if data.startswith(container.MAGIC):
        return container.unpack(data, file=label)
    if interop.recognises(data):
        return interop.parse(data, file=label, name=stem)
    return dtrlog.parse(data, file=label, name=stem, source_name=source_name)


def _folder() -> Path:
    folder = cache_folder() / "traces"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{folder}: cannot be created ({error.strerror}); set MONOFUZZ_CACHE to another folder"
        ) from None
    return folder


def _shipped() -> Iterator[Path]:
    folder = resources.files("monofuzz.trace") / "data"
    if isinstance(folder, Path) and folder.is_dir():
        yield from sorted(folder.glob("*.trace"))


def _kept() -> Iterator[Path]:
    folder = cache_folder() / "traces"
    if folder.is_dir():
        yield from sorted(folder.glob("*.trace"))


def _find(name: str) -> Path | None:
    return next((p for paths in (_shipped(), _kept()) for p in paths if p.stem == name), None)


def _info(path: Path, *, shipped: bool) -> TraceInfo:
    kind = "shipped" if shipped else "yours"
    try:
        with path.open("rb") as stream:
            header = container.read_header(stream.read(2**20 + 64), file=str(path))
    except OSError as error:
        return TraceInfo(path.stem, kind, str(path), problem=str(error.strerror or error))
    except TraceError as error:
        return TraceInfo(path.stem, kind, str(path), problem=error.problem)
    source, peak, batch = (header.meta.get(key) for key in ("source", "peak", "batch"))
    if not shipped and isinstance(source, str) and source.startswith(_PUBLIC_SOURCE):
        kind = "fetched"
    return TraceInfo(
        name=path.stem,
        kind=kind,
        path=str(path),
        model=str(header.meta.get("model") or ""),
        batch=batch if isinstance(batch, int) else None,
        operators=header.operators,
        storages=header.storages,
        model_compute=header.model_compute,
        peak=peak if isinstance(peak, int) else None,
        cost_model=str(header.meta.get("cost_model") or ""),
        source=str(source or ""),
        digest=header.digest,
    )


def _check_name(name: str, trace: Trace, replace: bool) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a trace: use small letters, digits, '.', '_' and '-'"
        )
    path = _find(name)
    if path is None:
        return
    if path in list(_shipped()):
        raise UsageError(f"{name} is a trace that monofuzz ships: choose another name")
    if not replace and _info(path, shipped=False).digest != trace.digest:
        raise UsageError(f"{name} is another trace already: choose another name, or replace it")


def _name_from(stem: str) -> str:
    name = re.sub(r"[^a-z0-9._-]+", "-", stem.lower()).strip("-._")[:100]
    return name or "trace"


def _traces_in(path: Path) -> Iterator[tuple[str, Trace]]:
    packed = read_file(path)
    if not packed.startswith(b"PK"):
        content = read_content(path)
        trace = _parse(content.data, content.label, content.stem, content.source)
        yield _name_from(content.stem), trace
        return
    import hashlib

    public = hashlib.sha256(packed).hexdigest() == PUBLIC_SHA256
    members = unzip(packed, str(path))
    named = [member for member in members if member.rpartition("/")[2] == "manifest.json"]
    titles = _titles(members.pop(named[0]), str(path)) if named else {}
    seen: dict[str, str] = {}
    for member, data in members.items():
        title = titles.get(member)
        stem = re.sub(r"\.(log|jsonl|trace|txt)$", "", member.rpartition("/")[2])
        name = _name_from(stem) if title is None else _public_name(title)
        if name in seen:
            raise TraceError(f"{seen[name]} and {member} would both be {name}", file=str(path))
        seen[name] = member
        source = _PUBLIC_SOURCE if public else path.name
        trace = _parse(data, f"{path}:{member}", name, f"{source}:{member}")
        if title is not None:
            model, batch = PUBLIC_TRACES.get(name, (title, None))
            trace = trace.with_meta(model=model, batch=batch)
        yield name, trace


class _Model(msgspec.Struct):
    name: str
    log: str


class _Manifest(msgspec.Struct):
    models: list[_Model]


def _titles(manifest: bytes, label: str) -> dict[str, str]:
    try:
        models = msgspec.json.decode(manifest, type=_Manifest).models
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(f"not a manifest: {error}", file=f"{label}:manifest.json") from None
    return {model.log: model.name for model in models}


def _public_name(title: str) -> str:
    """``Unrolled GAN (10)`` is called ``dtr-unrolled-gan``, ``U-Net (6)`` ``dtr-unet``."""
    plain = re.sub(r"\(.*?\)", "", title).strip().lower().replace("-", "")
    return "dtr-" + _name_from(re.sub(r"\s+", "-", plain))


def _unknown(name: str) -> TraceError:
    if name in PUBLIC_TRACES:
        return TraceError(
            f"{name} is one of the public traces, which are not here yet: "
            "get them with `monofuzz traces fetch dtr`"
        )
    here = [path.stem for paths in (_shipped(), _kept()) for path in paths]
    hint = nearest(name, sorted({*here, *PUBLIC_TRACES}))
    return TraceError(
        f"there is no trace or file {name!r:.80}{hint or '; '}"
        f"{' ' if hint else ''}`monofuzz traces list` shows what there is, "
        "`monofuzz traces fetch dtr` gets the public ones"
    )
