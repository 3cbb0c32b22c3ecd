"""Every malformed log is refused with its line and field, in words, and quickly."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import zipfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

from monofuzz.errors import MonofuzzError, TraceError, UsageError
from monofuzz.trace import container, dtrlog, files, load, save
from monofuzz.trace.builder import TraceBuilder


def line(instruction: str, **keys: Any) -> str:
    return json.dumps({"INSTRUCTION": instruction, **keys})


def constant(name: str, memory: Any = "4") -> list[str]:
    return [line("CONSTANT", NAME=name), line("MEMORY", NAME=name, MEMORY=memory)]


def call(
    *results: str, args: tuple[str, ...] = (), time: Any = "1", alias: Any = "-1"
) -> list[str]:
    lines = [line("CALL", NAME="op", ARGS=list(args), RESULT=list(results), TIME=time)]
    for name in results:
        lines += [line("MEMORY", NAME=name, MEMORY="4"), line("ALIAS", NAME=name, ALIAS=alias)]
    return lines


def mutate(*args: str, replaced: Any = (0,), time: Any = "1") -> str:
    return line("MUTATE", NAME="op_", ARGS=list(args), MUTATE=list(replaced), TIME=time)


def release(name: str) -> str:
    return line("RELEASE", NAME=name)


def copy(dst: str, src: str) -> str:
    return line("COPY", DST=dst, SRC=src)


def copy_from(dst: str, src: str) -> str:
    return line("COPY_FROM", DST=dst, SRC=src)


A = constant("a")
START = line("ANNOTATE", ANNOTATION="START")

# what is wrong: lines, line number, field, words of the message
BAD: dict[str, tuple[list[str], int, str | None, str]] = {
    "empty": ([""], 1, None, "computes nothing"),
    "nothing after START": ([*A, START], 1, None, "computes nothing"),
    "only releases": ([release("a")], 1, None, "computes nothing"),
    "not JSON": ([*A, "hello"], 3, None, "not JSON"),
    "not JSON before START": (["hello", START, *A], 1, None, "not JSON"),
    "binary": (["\0\1\2"], 1, None, "binary"),
    "empty line": ([A[0], "", A[1]], 2, None, "empty line"),
    "truncated in a line": ([*A, release("a")[:-5]], 3, None, "ends in the middle"),
    "nested": (["[" * 100_000], 1, None, "nested too deeply"),
    "nested value": (
        ['{"INSTRUCTION":"RELEASE","NAME":"a","X":' + "[" * 9000 + "]" * 9000 + "}"],
        1,
        None,
        "nested too deeply",
    ),
    "not an object": ([*A, "[1]"], 3, None, "expected a JSON object"),
    "number": ([*A, "7"], 3, None, "a number, expected a JSON object"),
    "no instruction": (['{"NAME": "a"}'], 1, "INSTRUCTION", "no INSTRUCTION"),
    "unknown": ([line("FROB")], 1, "INSTRUCTION", "'FROB'; known: CONSTANT"),
    "not a word": (['{"INSTRUCTION": 5}'], 1, "INSTRUCTION", "unknown instruction 5"),
    "missing key": ([*A, line("COPY", DST="b")], 3, "SRC", "COPY without SRC"),
    "missing name": ([line("CONSTANT")], 1, "NAME", "CONSTANT without NAME"),
    "name of wrong type": ([line("CONSTANT", NAME=5)], 1, "NAME", "a number, expected text"),
    "args of wrong type": (
        [line("CALL", NAME="f", ARGS="a", RESULT=["b"], TIME=1)],
        1,
        "ARGS",
        "text, expected a list",
    ),
    "arg of wrong type": (
        [line("CALL", NAME="f", ARGS=["a", None], RESULT=["b"], TIME=1)],
        1,
        "ARGS[1]",
        "null, expected text",
    ),
    "index of wrong type": ([*A, mutate("a", replaced=["0"])], 3, "MUTATE[0]", "expected an index"),
    "time true": (call("b", time=True), 1, "TIME", "true or false, expected an integer"),
    "time null": (call("b", time=None), 1, "TIME", "null, expected an integer"),
    "time fractional text": (call("b", time="1.5"), 1, "TIME", "'1.5', expected an integer"),
    "time negative": (call("b", time="-1"), 1, "TIME", "negative"),
    "time too large": (call("b", time=2**48 + 1), 1, "TIME", "above 2**48"),
    "time beyond 64 bits": (call("b", time=10**30), 1, "TIME", "above 2**48"),
    "number beyond all": (['{"INSTRUCTION":"X","TIME":1e999}'], 1, None, "too large"),
    "size negative": (constant("a", -1), 2, "MEMORY", "negative"),
    "size too large": (constant("a", 1e20), 2, "MEMORY", "above 2**48"),
    "size is words": (constant("a", "four"), 2, "MEMORY", "'four', expected an integer"),
    "size of other digits": (constant("a", "٤"), 2, "MEMORY", "expected an integer"),
    "size of many digits": (constant("a", "9" * 5000), 2, "MEMORY", "expected an integer"),
    "sizes overflow together": (
        [x for i in range(8192) for x in constant(f"a{i}", 2**48)],
        16384,
        "MEMORY",
        "2**61",
    ),
    "alias out of range": (
        [*A, *call("b", args=("a",), alias="1")],
        5,
        "ALIAS",
        "index into the 1 ARGS",
    ),
    "alias below -1": ([*A, *call("b", args=("a",), alias=-2)], 5, "ALIAS", "expected -1"),
    "alias into nothing": (call("b", alias=0), 3, "ALIAS", "index into the 0 ARGS"),
    "alias is words": (call("b", alias="x"), 3, "ALIAS", "expected an integer"),
    "constant cut off": ([*A, line("CONSTANT", NAME="b")], 3, None, "ends before the MEMORY of b"),
    "call cut off": ([*A, *call("b", "c")[:2]], 4, None, "ends before the ALIAS of b"),
    "call cut off later": ([*A, *call("b", "c")[:3]], 5, None, "CALL op in line 3"),
    "memory of another": (
        [line("CONSTANT", NAME="a"), line("MEMORY", NAME="b", MEMORY=1)],
        2,
        "NAME",
        "MEMORY of b, expected that of a",
    ),
    "memory missing": ([A[0], release("a")], 2, "INSTRUCTION", "found RELEASE"),
    "alias missing": ([*call("b")[:2], release("a")], 3, "INSTRUCTION", "expected the ALIAS of b"),
    "memory alone": ([*A, line("MEMORY", NAME="a", MEMORY=1)], 3, "INSTRUCTION", "directly behind"),
    "alias alone": ([*A, line("ALIAS", NAME="a", ALIAS=0)], 3, "INSTRUCTION", "directly behind"),
    "use before definition": ([*A, *call("b", args=("a", "c"))], 3, "ARGS[1]", "c is not defined"),
    "uses its own result": (call("b", args=("b",)), 1, "ARGS[0]", "b is not defined"),
    "defined before START": ([*A, START, *call("b", args=("a",))], 4, "ARGS[0]", "not defined"),
    "constant bound twice": ([*A, *A], 3, "NAME", "bound already"),
    "call binds a bound name": ([*A, *call("b", "a")], 3, "RESULT[1]", "bound already"),
    "call binds a released name": ([*A, release("a"), *call("a")], 4, "RESULT[0]", "bound already"),
    "copy binds a bound name": ([*A, copy("a", "a")], 3, "DST", "bound already"),
    "duplicate results": (call("b", "b"), 1, "RESULT", "twice"),
    "no results": (call(), 1, "RESULT", "without a result"),
    "mutate nothing": ([*A, mutate("a", replaced=[])], 3, "MUTATE", "none of its arguments"),
    "mutate beyond": ([*A, mutate("a", replaced=[1])], 3, "MUTATE[0]", "outside the 1 ARGS"),
    "mutate negative": ([*A, mutate("a", replaced=[-1])], 3, "MUTATE[0]", "outside"),
    "mutate twice": ([*A, mutate("a", "a", replaced=[0, 1])], 3, "MUTATE", "twice"),
    "mutate unknown": ([*A, mutate("b")], 3, "ARGS[0]", "b is not defined"),
    "mutate released": ([*A, release("a"), mutate("a")], 4, "MUTATE[0]", "no references left"),
    "copy from unknown": ([*A, copy("b", "c")], 3, "SRC", "c, which is not defined"),
    "copy from released": ([*A, release("a"), copy("b", "a")], 4, "SRC", "no references"),
    "copy_from unknown": ([*A, copy_from("a", "c")], 3, "SRC", "c, which is not defined"),
    "copy_from into unknown": ([*A, copy_from("c", "a")], 3, "DST", "c, which is not defined"),
    "copy_from released": ([*A, *call("b"), release("b"), copy_from("a", "b")], 7, "SRC", "no ref"),
    "copy_from into released": (
        [*A, *call("b"), release("a"), copy_from("a", "b")],
        7,
        "DST",
        "no references left",
    ),
    "copy_from itself, released": ([*A, release("a"), copy_from("a", "a")], 4, "SRC", "no ref"),
    "released twice": ([*A, release("a"), release("a")], 4, "NAME", "no references left"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_log(case: str) -> None:
    lines, number, field, words = BAD[case]
    with pytest.raises(TraceError) as caught:
        dtrlog.parse("\n".join(lines).encode(), file="bad.log")
    error = caught.value
    assert (error.file, error.line, error.field) == ("bad.log", number, field)
    assert words in str(error)
    assert str(error).startswith(f"bad.log:{number}: ")
    assert "\n" not in str(error)
    assert len(str(error)) < 300


GOOD: dict[str, list[str]] = {
    "byte order mark": ["\ufeff" + A[0], A[1]],
    "ends with empty lines": [*A, "", " "],
    "carriage returns": [A[0] + "\r", A[1] + "\r"],
    "unknown keys": [A[0][:-1] + ', "X": [1]}', A[1]],
    "undefined release": [release("zzz"), *A],
    "released argument": [*A, release("a"), *call("b", args=("a",))],
    "second START is ignored": [START, *A, START],
    "fractions are cut": constant("a", 4.9),
    "escaped": [A[0].replace('"a"', '"\\u0061"'), A[1]],
    "copy_from itself": [*A, copy_from("a", "a")],
    "one reference for two tensors": [
        *A, *call("b", args=("a",), alias=0), release("a"), release("a"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("case", GOOD)
def test_good_log(case: str) -> None:
    trace = dtrlog.parse("\n".join(GOOD[case]).encode())
    assert trace.tensor_size[0] == 4


def test_lines_are_counted_from_the_beginning_of_the_file() -> None:
    with pytest.raises(TraceError) as caught:
        dtrlog.parse("\n".join([*A, START, *A, release("a"), release("a")]).encode())
    assert caught.value.line == 7


MUCH = 2 * files.MAX_TEXT_BYTES


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\0" * (files.MAX_FILE_BYTES + 1), "more than the 64 MiB"),
        (b'"' + b"a" * (dtrlog.MAX_LINE_BYTES + 9) + b'"', "longer than 4 MiB"),
        (b"\n" * 10_000_000, "computes nothing"),
        (A[0].encode() + b"\n" * 10_000_000 + A[1].encode(), "empty line"),
        (gzip.compress(b"\0" * MUCH, 1), "unpacks to too much"),
        (lzma.compress(b"\0" * MUCH, preset=0), "unpacks to too much"),
        (zstandard.ZstdCompressor(level=1).compress(b"\0" * MUCH), "unpacks to too much"),
        (gzip.compress(b"", mtime=0) * 100_000, "more than 10,000 streams"),
        (lzma.compress(b"") * 100_000, "more than 10,000 streams"),
        (zstandard.ZstdCompressor().compress(b"") * 100_000, "more than 10,000 streams"),
        (b"name,cost,size\n" + b"\n" * 10_000_000, "more than 1,048,576 lines"),
        (b"name,cost,size\n" + b"," * 10_000_000, "2: the line is longer than 4 MiB"),
        (b"name,cost,size" + b",a" * 10_000_000, "1: the line is longer than 4 MiB"),
    ],
    ids=[
        "long",
        "one line",
        "newlines",
        "empty lines",
        "gzip bomb",
        "xz bomb",
        "zstd bomb",
        "gzip streams",
        "xz streams",
        "zstd streams",
        "rows",
        "cells",
        "columns",
    ],
)
def test_hostile_size(data: bytes, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        load(io.BytesIO(data))


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


LOG = ("\n".join([*A, *call("b", args=("a",))]) + "\n").encode()
PACKED = {
    "gzip": gzip.compress(LOG),
    "xz": lzma.compress(LOG),
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress(LOG),
    "zip": zipped({"a.log": LOG}),
    "container": container.pack(dtrlog.parse(LOG)),
}


@pytest.mark.parametrize("kind", ["gzip", "xz", "zstd"])
def test_streams_one_behind_another(kind: str) -> None:
    """As appending to a compressed file leaves it; gzip and xz may be padded, too."""
    pack = {"gzip": gzip.compress, "xz": lzma.compress, "zstd": zstandard.compress}[kind]
    halves = [pack(LOG[:50]), b"" if kind == "zstd" else b"\0" * 5000, pack(LOG[50:])]
    assert load(io.BytesIO(b"".join(halves))) == dtrlog.parse(LOG)


@pytest.mark.parametrize("kind", PACKED)
def test_packed_files_cut_anywhere_are_refused(kind: str) -> None:
    whole = PACKED[kind]
    assert load(io.BytesIO(whole)) == dtrlog.parse(LOG)
    for length in range(len(whole)):
        with pytest.raises(TraceError):
            load(io.BytesIO(whole[:length]))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (gzip.compress(b"", mtime=0), "holds nothing"),
        (gzip.compress(gzip.compress(LOG)), "binary data"),
        (PACKED["gzip"] + b"garbage", "damaged"),
        (zipped({}), "holds no log"),
        (zipped({"manifest.json": b"{}", "x/": b""}), "holds no log"),
        (zipped({"a.log": b""}), "a.log: the file is empty"),
        (zipped({"a.log": b"\0" * MUCH}), "unpacks to too much"),
        (zipped({"a.log": LOG, "b.log": LOG}), "holds 2 logs; name one .* a.log, b.log"),
        (zipped({"a.log": LOG}, zipfile.ZIP_LZMA), "other than deflate"),
        (zipped({"a\n\x1b[31m.log": LOG}), r"a name like 'a\\n\\x1b\[31m\.log'"),
        (zipped({"a" * 60_000: LOG}), "a name like 'aaa"),
        (zipped({f"{i}.log": b"" for i in range(20_000)}), "too many files"),
    ],
)
def test_odd_packages(data: bytes, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        load(io.BytesIO(data))


def test_member_of_a_zip(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    path.write_bytes(zipped({"logs/a.log": LOG, "logs/b.log": "\n".join(A).encode()}))
    trace = load(f"{path}:b.log")
    assert trace.n_operators == 0
    assert trace.meta.name == "b"
    assert trace.meta.source == "logs.zip:logs/b.log"
    assert load(f"{path}:logs/a.log").n_operators == 1
    with pytest.raises(TraceError, match=r"no member 'logs/c.log'.*logs/a.log"):
        load(f"{path}:logs/c.log")


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no such file"):
        load(tmp_path / "x.log")
    with pytest.raises(TraceError, match="no such file"):
        load(str(tmp_path / "x.log"))
    with pytest.raises(TraceError, match="a folder"):
        load(tmp_path)
    with pytest.raises(TraceError, match="no trace or file"):
        load("x" * 10_000)
    with pytest.raises(UsageError, match="not 5"):
        load(5)  # type: ignore[arg-type]


def test_writing_where_one_cannot(tmp_path: Path) -> None:
    trace = dtrlog.parse(LOG)
    with pytest.raises(MonofuzzError, match="cannot be written"):
        save(trace, tmp_path / "missing" / "a.trace")
    with pytest.raises(UsageError, match=r"end the name in \.trace"):
        save(trace, tmp_path / "a.png")
    (tmp_path / "folder.trace").mkdir()
    with pytest.raises(MonofuzzError, match="cannot be written"):
        save(trace, tmp_path / "folder.trace")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.trace"]


def test_container_of_a_later_version() -> None:
    packed = PACKED["container"].replace(b'"version":1', b'"version":9')
    with pytest.raises(TraceError, match="version 9; this monofuzz reads 1: use a newer"):
        load(io.BytesIO(packed))


def test_container_that_unpacks_to_more_than_it_says() -> None:
    magic = len(container.MAGIC)
    whole = PACKED["container"]
    start = magic + 4 + int.from_bytes(whole[magic : magic + 4], "little")
    bomb = zstandard.ZstdCompressor().compress(b"\0" * MUCH)
    with pytest.raises(TraceError, match="length is not as stated"):
        load(io.BytesIO(whole[:start] + bomb))


def kept() -> TraceBuilder:
    build = TraceBuilder()
    build.op("a", [], 1, 1)
    build.op("b", [0], 1, 1)
    return build


@pytest.mark.parametrize(
    ("keep", "words"),
    [([0], "tensor 1 ends with 1 references but is kept 0 times"), ([1, 0], "no names")],
)
def test_trace_without_a_log_form(keep: list[int], words: str, tmp_path: Path) -> None:
    trace = kept().finish(keep=keep)
    with pytest.raises(TraceError, match=words):
        save(trace, tmp_path / "a.log")
    assert list(tmp_path.iterdir()) == []
    save(trace, tmp_path / "a.trace")
    assert load(tmp_path / "a.trace") == trace


def test_trace_that_keeps_what_is_released_has_no_log_form(tmp_path: Path) -> None:
    build = kept()
    build.release(0)
    with pytest.raises(TraceError, match="without a reference of its own"):
        save(build.finish(keep=[0, 1]), tmp_path / "a.log")


def test_a_dash_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MonofuzzError, match="name a file"):
        files.write_atomically("-", b"")
    assert not list(tmp_path.iterdir())
