"""Golden files: read, refused in words, compared field by field; with the oracle as the engine."""

from __future__ import annotations

import gzip
import json
import lzma
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from monofuzz.errors import MonofuzzError
from monofuzz.replay import goldenfile
from monofuzz.replay.golden import Verification, verify
from tests import oracle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from monofuzz.trace import Trace

LOG = [
    '{"INSTRUCTION": "CONSTANT", "NAME": "w"}',
    '{"INSTRUCTION": "MEMORY", "NAME": "w", "MEMORY": "4"}',
    '{"INSTRUCTION": "CALL", "NAME": "f", "ARGS": ["w"], "RESULT": ["x"], "TIME": "3"}',
    '{"INSTRUCTION": "MEMORY", "NAME": "x", "MEMORY": "5"}',
    '{"INSTRUCTION": "ALIAS", "NAME": "x", "ALIAS": "-1"}',
]
OK = {"policy": "dtr", "budget": 9, "remat_limit": None, "status": "ok", "interval": [9, None]}
OOM = {
    "policy": "lru",
    "budget": 8,
    "status": "oom",
    "fail": {"pinned_bytes": 4, "request": 5, "depth": 1, "over_by": 1},
    "victims": [],
}


class Oracle:
    """A system that the oracle replays."""

    def __init__(self, trace: Trace, policy: str, remat_limit: int | None) -> None:
        self.trace, self.policy, self.limit = trace, policy, remat_limit

    def run(self, budget: int, /) -> Any:
        run = oracle.replay(self.trace, self.policy, budget, remat_limit=self.limit)
        fail = run.pop("fail")
        return SimpleNamespace(fail=fail and SimpleNamespace(**fail), **run)


def lines(*records: object) -> bytes:
    return b"".join(json.dumps(r).encode() + b"\n" for r in records)


def golden(path: Path, *records: object) -> Path:
    path.write_bytes(lines(*records))
    return path


def record(*runs: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "s1", "log": LOG, "runs": list(runs), **more}


@pytest.mark.parametrize(
    "pack",
    [bytes, gzip.compress, lzma.compress, zstandard.ZstdCompressor().compress],
    ids=["plain", "gz", "xz", "zst"],
)
def test_reads_through_compression(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "golden"
    path.write_bytes(pack(lines(record(OK, OOM))))
    (case,) = goldenfile.read(path)
    assert case.name == "s1"
    assert case.place == f"{path}:1"
    assert [(r.policy, r.budget, r.remat_limit) for r in case.runs] == [
        ("dtr", 9, None),
        ("lru", 8, None),
    ]
    assert case.runs[0].expected == {"status": "ok", "interval": [9, None]}
    assert goldenfile.count_lines(path) == 1


def test_all_match(tmp_path: Path) -> None:
    found = verify(goldenfile.read(golden(tmp_path / "g", record(OK, OOM))), Oracle)
    assert (found.runs, found.matched, found.mismatches) == (2, 2, [])


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_difference_is_named(tmp_path: Path, jobs: int) -> None:
    wrong_ok = OK | {"interval": [8, None], "status": "thrashed"}
    wrong_oom = OOM | {"fail": {"pinned_bytes": 4, "request": 5, "depth": 1, "over_by": 2}}
    path = golden(tmp_path / "g", *[record(OK)] * 20, record(OK, wrong_ok), record(wrong_oom))
    found = verify(goldenfile.read(path), Oracle, jobs=jobs)
    assert (found.runs, found.matched) == (23, 21)
    first, second = found.mismatches
    assert (first.trace, first.policy, first.budget) == ("s1", "dtr", 9)
    assert first.differences == {
        "status": ("thrashed", "ok"),
        "interval": ([8, None], [9, None]),
    }
    assert list(second.differences) == ["fail"]
    assert second.differences["fail"][0]["over_by"] == 2


def test_two_cases_run_at_the_same_time(tmp_path: Path) -> None:
    both = threading.Barrier(2, timeout=30)

    class Meeting(Oracle):
        def run(self, budget: int, /) -> Any:
            both.wait()
            return super().run(budget)

    path = golden(tmp_path / "g", record(OK), record(OK))
    assert verify(goldenfile.read(path), Meeting, jobs=2).matched == 2


def test_progress_counts_cases(tmp_path: Path) -> None:
    seen: list[int] = []
    path = golden(tmp_path / "g", record(OK), record(OK), record(OOM))
    verify(goldenfile.read(path), Oracle, progress=seen.append)
    assert seen == [1, 2, 3]


def test_named_traces_come_from_the_library(tmp_path: Path) -> None:
    log = tmp_path / "step.log"
    log.write_text("\n".join(LOG))
    path = golden(tmp_path / "g", {"trace": str(log), "ratio": 1.0, **OK})
    found = verify(goldenfile.read(path), Oracle)
    assert found == Verification(1, [])


def test_empty_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "g"
    path.write_bytes(b"\n" + lines(record(OK)) + b"  \n" + lines(record(OK)))
    assert [case.place for case in goldenfile.read(path)] == [f"{path}:2", f"{path}:4"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "{}: there is no golden run in this file"),
        (lines(record()), "{}: there is no golden run in this file"),
        (b"\n{]\n", "{}:2: not JSON"),
        (b"\xff\xfe\n", "{}:1: not JSON"),
        (b"[" * 100_000, "{}:1: not a golden record"),
        (b"[1]\n", "{}:1: not a golden record: Expected `object`, got `array`"),
        (b"{}\n", "{}:1: not a golden record: it has neither `log` and `runs` nor `trace`"),
        (lines({"log": LOG}), "{}:1: not a golden record: Object missing required field `runs`"),
        (lines({"trace": 3}), "{}:1: not a golden record: Expected `str`, got `int` (field trace)"),
        (
            lines(record(OK, OK | {"budget": 1.5})),
            "{}:1: not a golden record: Expected `int`, got `float` (field runs[1].budget)",
        ),
        (
            lines(record(OK | {"interval": [1]})),
            "Expected `array` of length 2",
        ),
        (lines(record(OK | {"budget": -1})), "-1 is no number of bytes or nanoseconds"),
        (lines(record({"policy": "dtr", "budget": 9})), "it says nothing of what the run did"),
        (gzip.compress(lines(record(OK)))[:-9], "{}: the compressed file is truncated after line"),
        (lzma.compress(lines(record(OK)))[:-9], "{}: the compressed file is truncated after line"),
        (b"\xfd7zXZ\x00 and then nothing of the kind", "{}: cannot be read after line 0"),
        (b"\x28\xb5\x2f\xfd and then nothing of the kind", "{}: cannot be read after line 0"),
    ],
)
def test_broken_files_are_refused_in_words(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "g"
    path.write_bytes(content)
    with pytest.raises(MonofuzzError) as caught:
        list(goldenfile.read(path))
    assert message.format(path) in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MonofuzzError, match="there is no such file"):
        list(goldenfile.read(tmp_path / "nowhere"))


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goldenfile, "MAX_LINE_BYTES", 100)
    with pytest.raises(MonofuzzError, match=r"g:1: the line is longer than"):
        list(goldenfile.read(golden(tmp_path / "g", record(OK))))


def test_a_broken_log_is_named_with_its_line(tmp_path: Path) -> None:
    path = golden(tmp_path / "g", record(OK), record(OK) | {"log": [*LOG, "nonsense"]})
    with pytest.raises(MonofuzzError, match=rf"^{path}:2: s1:6: "):
        verify(goldenfile.read(path), Oracle)


def test_a_missing_trace_is_named(tmp_path: Path) -> None:
    path = golden(tmp_path / "g", {"trace": "no-such-trace", **OK})
    with pytest.raises(MonofuzzError, match=rf"^{path}:1: .*no-such-trace"):
        verify(goldenfile.read(path), Oracle)
