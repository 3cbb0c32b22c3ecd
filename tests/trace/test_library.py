"""Traces by name, and the download, against a server of our own."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import re
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from monofuzz.errors import DownloadError, TraceError, UsageError
from monofuzz.trace import Trace, TraceBuilder, container, library, load, save
from monofuzz.trace.download import download
from monofuzz.trace.dtrwrite import format_log


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("MONOFUZZ_CACHE", str(folder))
    monkeypatch.delenv("MONOFUZZ_MIRROR", raising=False)
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    return folder


def small(cost: int = 5) -> Trace:
    build = TraceBuilder(name="small", model="A small one")
    weight = build.constant(16)
    build.op("f", [weight], 8, cost)
    return build.finish()


def collection() -> bytes:
    """A zip in the shape of the public one, with two of its names."""
    models = [
        {"name": "ResNet-32 (56)", "log": "logs/resnet.log"},
        {"name": "Unrolled GAN", "log": "logs/gan.log"},
        {"name": "Other Model (D.6)", "log": "logs/other.log"},
    ]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("logs/", b"")
        for cost, model in enumerate(models):
            archive.writestr(model["log"], format_log(small(cost)))
        archive.writestr("logs/manifest.json", json.dumps({"models": models}))
        archive.writestr("logs/Without Title.log", format_log(small(9)))
    return out.getvalue()


# -- names ----------------------------------------------------------------------------------------


def test_add_and_load(tmp_path: Path, cache: Path) -> None:
    save(small(), tmp_path / "My Trace.log.gz")
    [entry] = library.add(tmp_path / "My Trace.log.gz", measure=lambda trace: trace.n_ops + 40)
    assert (entry.name, entry.kind, entry.operators, entry.storages) == ("my-trace", "yours", 1, 2)
    assert (entry.model_compute, entry.peak) == (5, 42)
    assert entry.path == str(cache / "traces" / "my-trace.trace")
    assert entry.source == "My Trace.log.gz"
    assert load("my-trace") == small()
    assert load("my-trace").meta.peak == 42
    assert entry in library.list_traces()
    assert library.info("my-trace") == entry
    library.remove("my-trace")
    assert entry not in library.list_traces()
    with pytest.raises(TraceError, match="no trace or file 'my-trace'"):
        load("my-trace")


def test_add_a_collection(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    path.write_bytes(collection())
    added = library.add(path)
    assert [entry.name for entry in added] == [
        "dtr-resnet32",
        "dtr-unrolled-gan",
        "dtr-other-model",
        "without-title",
    ]
    assert added[0].model == "ResNet-32, batch 56, 224x224"
    assert added[2].model == "Other Model (D.6)"
    assert load("dtr-unrolled-gan") == small(1)
    assert load("dtr-resnet32").meta.batch == 56
    assert library.add(path) == added
    with pytest.raises(UsageError, match="4 traces cannot share the name x"):
        library.add(path, name="x")


def test_names_are_not_taken_over(tmp_path: Path) -> None:
    save(small(1), tmp_path / "a.trace")
    save(small(2), tmp_path / "b.trace")
    library.add(tmp_path / "a.trace", name="mine")
    library.add(tmp_path / "a.trace", name="mine")
    with pytest.raises(UsageError, match="mine is another trace already"):
        library.add(tmp_path / "b.trace", name="mine")
    assert load("mine") == small(1)
    library.add(tmp_path / "b.trace", name="mine", replace=True)
    assert load("mine") == small(2)


@pytest.mark.parametrize("name", ["", "../x", "A", "a/b", "-x", ".x", "x" * 101, "a b"])
def test_impossible_names(name: str, tmp_path: Path) -> None:
    save(small(), tmp_path / "a.trace")
    with pytest.raises(UsageError, match="cannot be the name of a trace"):
        library.add(tmp_path / "a.trace", name=name)


def test_nothing_is_added_when_one_log_is_bad(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("good.log", format_log(small()))
        archive.writestr("bad.log", "hello\n")
    with pytest.raises(TraceError, match=r"logs\.zip:bad\.log:1: not JSON"):
        library.add(path)
    assert not [entry for entry in library.list_traces() if entry.kind == "yours"]


def test_two_logs_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/x.log", format_log(small()))
        archive.writestr("b/x.log", format_log(small()))
    with pytest.raises(TraceError, match=r"a/x\.log and b/x\.log would both be x"):
        library.add(path)


def test_bad_manifest(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.log", format_log(small()))
        archive.writestr("manifest.json", '{"models": 5}')
    with pytest.raises(TraceError, match="not a manifest"):
        library.add(path)


def test_unknown_names() -> None:
    with pytest.raises(TraceError, match=r"did you mean dtr-resnet32.*traces fetch dtr"):
        load("dtr-resnet23")
    with pytest.raises(TraceError, match="dtr-lstm is one of the public traces, which are not"):
        load("dtr-lstm")
    with pytest.raises(TraceError, match="no trace or file"):
        library.info("../../etc/passwd")


def test_damaged_file_in_the_library(cache: Path) -> None:
    folder = cache / "traces"
    folder.mkdir(parents=True)
    (folder / "broken.trace").write_bytes(b"hello")
    (folder / "cut.trace").write_bytes(container.pack(small())[:40])
    problems = {entry.name: entry.problem for entry in library.list_traces() if entry.problem}
    assert problems["broken"] == "this is not a .trace file"
    assert "truncated" in problems["cut"]
    with pytest.raises(TraceError, match=r"broken\.trace"):
        load("broken")


def test_library_comes_before_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(small(1), tmp_path / "a.trace")
    library.add(tmp_path / "a.trace", name="same")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "same").write_bytes(format_log(small(2)))
    assert load("same") == small(1)
    assert load("./same") == small(2)
    assert load(Path("same")) == small(2)


def test_shipped_traces_are_whole() -> None:
    for entry in library.list_traces():
        if entry.kind == "shipped":
            assert entry.problem == ""
            assert load(entry.name).digest == entry.digest


# -- download -------------------------------------------------------------------------------------


class Server(http.server.ThreadingHTTPServer):
    """Serves one file; ``faults`` are taken one a request, then it works."""

    content = b""
    ranges = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.faults: list[str] = []
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        server = self.server
        wanted = self.headers.get("Range", "")
        server.asked.append(wanted)
        fault = server.faults.pop(0) if server.faults else ""
        if fault.isdecimal():
            self.send_error(int(fault))
            return
        body, begin = server.content, 0
        match = re.match(r"bytes=(\d+)-", wanted) if server.ranges else None
        if match:
            begin = int(match[1])
            if begin >= len(body):
                self.send_error(416)
                return
        self.send_response(206 if match else 200)
        if match:
            shift = 1 if fault == "shifted" else 0
            span = f"bytes {begin + shift}-{len(body) - 1}/{len(body)}"
            self.send_header("Content-Range", span)
        body = body[begin:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if fault == "cut":
            body = body[: max(1, len(body) // 2)]
        elif fault == "nothing":
            body = b""
        elif fault == "wrong":
            body = bytes(len(body))
        self.wfile.write(body)
        self.close_connection = True


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server() as running:
        running.content = collection()
        monkeypatch.setattr(library, "PUBLIC_SHA256", hashlib.sha256(running.content).hexdigest())
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def leftovers(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "traces").iterdir() if path.suffix != ".trace")


def test_fetch(server: Server, cache: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    fetched = library.fetch(mirror=server.url, progress=lambda *now: seen.append(now))
    assert [entry.name for entry in fetched][:2] == ["dtr-resnet32", "dtr-unrolled-gan"]
    assert {entry.kind for entry in fetched} == {"fetched"}
    assert load("dtr-resnet32") == small(0)
    size = len(server.content)
    assert seen[0] == (0, size)
    assert seen[-1] == (size, size)
    assert leftovers(cache) == []


def test_fetch_through_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONOFUZZ_MIRROR", server.url + "/")
    assert len(library.fetch("dtr")) == 4


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize(
    "faults", [["cut"], ["cut", "cut", "cut"], ["503"], ["nothing", "cut", "500"]]
)
def test_interruptions_are_survived(
    server: Server, ranges: bool, faults: list[str], cache: Path
) -> None:
    server.ranges = ranges
    server.faults = list(faults)
    library.fetch(mirror=server.url)
    assert len(server.asked) == len(faults) + 1
    assert leftovers(cache) == []


def test_resumes_where_it_stopped(server: Server, cache: Path) -> None:
    server.faults = ["cut", "nothing", "nothing", "nothing"]
    with pytest.raises(DownloadError, match=r"interrupted after [\d,]+ bytes.*run this again"):
        library.fetch(mirror=server.url)
    assert leftovers(cache) == ["dtr-logs.zip.part"]
    half = (cache / "traces" / "dtr-logs.zip.part").stat().st_size
    assert 0 < half < len(server.content)
    library.fetch(mirror=server.url)
    assert server.asked[-1] == f"bytes={half}-"


def test_range_answered_wrongly(server: Server) -> None:
    server.faults = ["cut", "shifted"]
    library.fetch(mirror=server.url)
    assert load("dtr-resnet32") == small(0)


@pytest.mark.parametrize("length", [10, 10**6])
def test_bad_part_is_thrown_away(server: Server, cache: Path, length: int) -> None:
    part = cache / "traces" / "dtr-logs.zip.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * length)
    library.fetch(mirror=server.url)
    assert len(server.asked) == 2
    assert leftovers(cache) == []


def test_wrong_content_once(server: Server) -> None:
    server.faults = ["wrong"]
    library.fetch(mirror=server.url)


def test_wrong_content(server: Server, cache: Path) -> None:
    server.content = b"something else"
    with pytest.raises(DownloadError, match="not the released file"):
        library.fetch(mirror=server.url)
    assert len(server.asked) == 2
    assert not list((cache / "traces").glob("*.trace"))


def test_missing_file(server: Server) -> None:
    server.faults = ["404"]
    with pytest.raises(DownloadError, match=r"404 Not Found.*monofuzz traces add FILE"):
        library.fetch(mirror=server.url)


def test_server_out_of_order(server: Server) -> None:
    server.faults = ["503"] * 9
    with pytest.raises(DownloadError, match="HTTP 503"):
        library.fetch(mirror=server.url)
    assert len(server.asked) == 3


def test_too_large(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="more than 100 bytes"):
        download(server.url, tmp_path / "x", sha256="0" * 64, limit=100)
    assert (tmp_path / "x.part").stat().st_size == 0


def test_no_network(cache: Path) -> None:
    with Server() as closed:
        url = closed.url
    with pytest.raises(DownloadError, match=r"cannot be reached.*check the network"):
        library.fetch(mirror=url)


def test_other_addresses() -> None:
    with pytest.raises(DownloadError, match="only http and https"):
        library.fetch(mirror="file:///etc")


def test_unknown_collection() -> None:
    with pytest.raises(UsageError, match="there is: dtr"):
        library.fetch("drt")


def test_one_download_at_a_time(server: Server, cache: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    part = cache / "traces" / "dtr-logs.zip.part"
    part.parent.mkdir(parents=True)
    with part.open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(DownloadError, match="another process"):
            library.fetch(mirror=server.url)


def test_cache_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MONOFUZZ_CACHE", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="set MONOFUZZ_CACHE"):
        library.fetch(mirror="http://127.0.0.1:9")
