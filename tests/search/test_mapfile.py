"""Map files: what is found survives anything, and nothing wrong is ever read."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monofuzz.errors import MonofuzzError, StoredFileError, UsageError
from monofuzz.search import Map, map_budgets
from monofuzz.search.mapfile import Journal
from tests.search.test_explorer import RANGE, SPAN, by_brute_force, intervals, many_steps, shown
from tests.search.toys import BatchSteps, Steps, step_lists

if TYPE_CHECKING:
    from pathlib import Path

patient = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(step_lists(span=SPAN), st.booleans(), st.data())
@patient
def test_a_map_and_its_file_are_equal(
    tmp_path: Path, steps: list[tuple[int, str, float]], certified: bool, data: st.DataObject
) -> None:
    steps = [(a, b, c + data.draw(st.sampled_from([0, 0.5]))) for a, b, c in steps]
    path = tmp_path / "a.map"
    path.unlink(missing_ok=True)
    system = BatchSteps(steps, certified=certified)
    found = map_budgets(
        system, between=RANGE, out=path, jobs=0, max_runs=data.draw(st.integers(0, 30))
    )
    again = Map.load(path)
    assert again == found
    assert again.runs == found.runs
    assert again.to_json() == found.to_json()
    before = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@given(step_lists(span=SPAN), st.lists(st.integers(0, 5), max_size=5), st.data())
@patient
def test_interrupted_and_resumed_is_the_same_file(
    tmp_path: Path, steps: list[tuple[int, str, float]], stops: list[int], data: st.DataObject
) -> None:
    straight, resumed = tmp_path / "straight", tmp_path / "resumed"
    straight.unlink(missing_ok=True)
    resumed.unlink(missing_ok=True)
    map_budgets(BatchSteps(steps), between=RANGE, out=straight, jobs=1)
    system = BatchSteps(steps)
    orders = st.sampled_from(["adaptive", "up", "down"])
    for runs in stops:
        jobs, order = data.draw(st.integers(0, 2)), data.draw(orders)
        map_budgets(system, between=RANGE, out=resumed, jobs=jobs, max_runs=runs, direction=order)
    found = map_budgets(system, between=RANGE, out=resumed, jobs=data.draw(st.integers(0, 2)))
    assert found.certified
    assert resumed.read_bytes() == straight.read_bytes()
    assert len([b for b in system.runs if b < RANGE[1]]) == intervals(system, *RANGE)


@given(step_lists(span=SPAN), st.lists(st.integers(0, 70), min_size=2, max_size=6, unique=True))
@patient
def test_other_ranges_reuse_what_is_known(
    tmp_path: Path, steps: list[tuple[int, str, float]], edges: list[int]
) -> None:
    path = tmp_path / "a.map"
    path.unlink(missing_ok=True)
    system = BatchSteps(steps)
    asked = []
    for a, b in itertools.pairwise(edges):
        lo, hi = min(a, b), max(a, b)
        asked += [lo, hi]
        found = map_budgets(system, between=(lo, hi), out=path, jobs=0)
        assert found.between == (lo, hi)
        assert shown(found) == by_brute_force(system, lo, hi)
        assert Map.load(path).between == (min(asked), max(asked))
    before = len(system.runs)
    map_budgets(system, between=(lo, hi), out=path)
    inside = [b for b in system.runs[before:] if b < hi]
    assert inside == []
    widest = map_budgets(system, between=(min(asked), max(asked)), out=path)
    assert shown(widest) == by_brute_force(system, min(asked), max(asked))
    assert path.read_bytes()


def test_a_map_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.map"
    map_budgets(Steps([(0, "ok", 1)]), between=(0, 9), out=path)
    with pytest.raises(StoredFileError, match=r"a\.map.*another system.*policy 'toy', not 'other'"):
        map_budgets(Steps([(0, "oom", 1)], policy="other"), between=(0, 9), out=path)
    with pytest.raises(StoredFileError, match="other content"):
        map_budgets(Steps([(0, "oom", 1)]), between=(0, 9), out=path)
    assert Map.load(path).regimes[0].status == "ok"


def test_files_that_are_no_maps_are_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.map"
    system = Steps([(0, "ok", 1)])
    for content, why in [
        (b"", "not a map file"),
        (b"hello", "not a map file"),
        (b'{"format": 1}\n', "not a map file"),
        (b"monofuzz map, format 2\nwhatever", "newer monofuzz"),
        (b"monofuzz map, format 0\n", "unknown monofuzz"),
        (b"monofuzz map, format 1\n", "header is missing"),
        (os.urandom(5000), "not a map file"),
    ]:
        path.write_bytes(content)
        with pytest.raises(StoredFileError, match=why) as caught:
            map_budgets(system, between=(0, 9), out=path)
        assert str(path) in str(caught.value)
        assert path.read_bytes() == content
    with pytest.raises(StoredFileError, match="cannot read"):
        Map.load(tmp_path / "none.map")
    with pytest.raises(StoredFileError, match="cannot read"):
        map_budgets(system, between=(0, 9), out=tmp_path)
    with pytest.raises(UsageError, match="folder does not exist"):
        map_budgets(system, between=(0, 9), out=tmp_path / "no" / "a.map")
    assert system.runs == []


def finished(tmp_path: Path) -> tuple[Path, Map]:
    path = tmp_path / "a.map"
    return path, map_budgets(BatchSteps(many_steps(12, span=500)), between=(0, 600), out=path)


def unfinished(tmp_path: Path) -> tuple[Path, Map]:
    """A file as a kill leaves it: a snapshot of a few regimes, and a journal of several blocks."""
    path = tmp_path / "a.map"
    found = map_budgets(
        BatchSteps(many_steps(12, span=500)), between=(0, 600), out=path, max_runs=3
    )
    whole = map_budgets(BatchSteps(many_steps(12, span=500)), between=(0, 600))
    journal = Journal(path)
    journal.begin(found)
    known = {r.lo for r in found.regimes}
    for i, row in enumerate(whole.table):
        if row["lo"] not in known and i % 4:
            journal.append(whole.table[i : i + 1])
    journal.sync()
    journal.close()
    return path, whole


def load_or_refusal(path: Path, content: bytes) -> Map | str:
    path.write_bytes(content)
    try:
        return Map.load(path)
    except StoredFileError as error:
        return str(error)


@pytest.mark.parametrize("make", [finished, unfinished])
def test_damage_anywhere_is_told_or_repaired_never_believed(tmp_path: Path, make: Any) -> None:
    path, whole = make(tmp_path)
    truth = {b: whole.at(b) for b in range(600)}
    content = path.read_bytes()
    snapshot = Map.load(path)
    cut = [content[:length] for length in range(len(content))]
    flipped = [
        content[:at] + bytes([content[at] ^ (1 << at % 8)]) + content[at + 1 :]
        for at in range(len(content))
    ]
    longer = [content + bytes(100), content + b"garbage that is long enough", content + content]
    recovered = refused = 0
    for damaged in [*cut, *flipped, *longer]:
        found = load_or_refusal(path, damaged)
        if isinstance(found, str):
            refused += 1
            assert found.startswith(str(path))
            assert "\n" not in found
            continue
        recovered += 1
        assert found.origin == snapshot.origin
        assert found.between == (0, 600)
        if found == snapshot:
            continue
        for regime in found.regimes:
            known = truth[regime.lo]
            assert known is not None
            assert (known.status, known.cost) == (regime.status, regime.cost)
            assert known.lo <= regime.lo < regime.hi <= known.hi
    assert refused
    assert recovered
    # Whatever was recovered can be gone on from.
    path.write_bytes(content[: len(content) - 3] if make is unfinished else content)
    again = map_budgets(BatchSteps(many_steps(12, span=500)), between=(0, 600), out=path)
    assert again == whole


def test_wrong_rows_with_right_checksums_are_refused(tmp_path: Path) -> None:
    path, whole = finished(tmp_path)
    for field, value in [("lo", 599), ("hi", 0), ("hi", 900), ("status", 7), ("certified", 2)]:
        bad = Map(whole.origin, whole.between, whole.table)
        bad.table = bad.table.copy()
        bad.table[field][3] = value
        bad.save(path)
        with pytest.raises(StoredFileError, match="contradict"):
            Map.load(path)


def test_two_processes_cannot_explore_into_one_file(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    path, whole = finished(tmp_path)
    first = Journal(path)
    first.begin(whole)
    with pytest.raises(StoredFileError, match="another process"):
        map_budgets(BatchSteps(many_steps(12, span=500)), between=(0, 600), out=path)
    first.close()
    assert map_budgets(BatchSteps(many_steps(12, span=500)), between=(0, 600), out=path) == whole


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_is_told_and_what_was_saved_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    steps, file = many_steps(200), tmp_path / "map"
    map_budgets(BatchSteps(steps), between=(0, 10**9), max_runs=20, out=file)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        begin = Journal.begin

        def begin_and_fill(self: Journal, start: Map) -> None:
            begin(self, start)
            if call == "write":
                assert self._file is not None
                patch.setattr(self._file, "write", full, raising=False)
            else:
                patch.setattr("os.fsync", full)

        patch.setattr(Journal, "begin", begin_and_fill)
        with pytest.raises(MonofuzzError, match="map: cannot write the map: No space left"):
            map_budgets(BatchSteps(steps), between=(0, 10**9), out=file)
    again = BatchSteps(steps)
    found = map_budgets(again, between=(0, 10**9), out=file)
    assert found == map_budgets(BatchSteps(steps), between=(0, 10**9))
    assert len(again.runs) <= len(steps) - 20


def test_another_time_limit_of_runs_tries_timeouts_again(tmp_path: Path) -> None:
    path = tmp_path / "a.map"
    slow = BatchSteps([(0, "ok", 1), (50, "ok", 2)], timeouts=frozenset({0, 99}))
    slow.timeout = 1.0  # type: ignore[attr-defined]
    found = map_budgets(slow, between=(0, 100), out=path)
    assert found.timeouts == 2
    before = len(slow.runs)
    assert map_budgets(slow, between=(0, 100), out=path) == found
    assert len(slow.runs) == before
    patient_one = BatchSteps([(0, "ok", 1), (50, "ok", 2)])
    patient_one.identity = slow.identity
    again = map_budgets(patient_one, between=(0, 100), out=path)
    assert again.certified
    assert sorted(patient_one.runs) == [0, 99]
    assert again.runs == found.runs


KILLED = """
import sys
from tests.search.test_explorer import many_steps
from tests.search.toys import BatchSteps
from monofuzz.search import map_budgets
system = BatchSteps(many_steps(600), seconds=0.002)
found = map_budgets(system, between=(0, 10**9), jobs=2, out=sys.argv[1])
print(found.stopped)
"""


def test_killed_at_any_moment_and_resumed_it_ends_the_same(tmp_path: Path) -> None:
    straight, killed = tmp_path / "straight.map", tmp_path / "killed.map"
    whole = map_budgets(BatchSteps(many_steps(600)), between=(0, 10**9), out=straight)
    progress, kills = [], 0
    for _ in range(50):
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(killed)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        assert child.stdout is not None
        size = killed.stat().st_size if killed.exists() else 0
        until = time.monotonic() + 30
        # Let it get somewhere, then kill it wherever it is.
        while child.poll() is None and time.monotonic() < until:
            if killed.exists() and killed.stat().st_size > size + 300:
                time.sleep(0.01 * (kills % 7))
                child.send_signal(signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.01)
        said = child.stdout.read()
        child.stdout.close()
        child.wait()
        found = Map.load(killed)
        progress.append(found.covered)
        if said.strip() == b"complete":
            break
        if kills == 4:
            map_budgets(BatchSteps(many_steps(600)), between=(0, 10**9), jobs=2, out=killed)
            break
    assert kills >= 2
    assert progress == sorted(progress), "nothing is ever lost"
    assert Map.load(killed) == whole
    assert killed.read_bytes() == straight.read_bytes()


def test_half_a_million_regimes_stay_small(tmp_path: Path) -> None:
    import tracemalloc

    import numpy as np

    from monofuzz.search.rows import INT_ROW
    from tests.search.test_verdict import ORIGIN

    count = 500_000
    rng = np.random.default_rng(1)
    rows = np.zeros(count, INT_ROW)
    rows["lo"] = np.arange(count) * 10
    rows["hi"] = rows["lo"] + 10
    for name in ("cost", "remat_compute", "evictions", "fingerprint", "peak_memory"):
        rows[name] = rng.integers(0, 10**9, count)
    rows["certified"] = 1
    found = Map(ORIGIN, (0, 10 * count), rows)
    path = tmp_path / "large.map"
    tracemalloc.start()
    try:
        found.save(path)
        assert Map.load(path) == found
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.regimes) == count
    assert found.regimes[-1].hi == 10 * count
    assert path.stat().st_size < 30_000_000
    assert most + rows.nbytes < 1_000_000_000
