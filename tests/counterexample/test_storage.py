from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from monofuzz.counterexample import Counterexample, examine, load, save
from monofuzz.errors import PolicyError, StoredFileError
from tests.examples import five_operators


@pytest.fixture(scope="module")
def example() -> Counterexample:
    found = examine(five_operators(), "dtr", "feasibility")
    assert found is not None
    return found.with_found(generator="hand", seed=0)


@pytest.fixture
def path(example: Counterexample, tmp_path: Path) -> Path:
    target = tmp_path / "five.json"
    save(example, target)
    return target


def change(path: Path, **values: Any) -> None:
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | values))


def test_what_it_says(example: Counterexample) -> None:
    assert example.witness == (16, 17)
    assert (example.below.status, example.above.status) == ("ok", "oom")
    assert example.severity == pytest.approx(0.15)
    assert "5 operators, ok at 16 bytes, oom at 17" in str(example)


def test_it_survives_a_file(example: Counterexample, path: Path) -> None:
    again = load(path)
    assert again.trace == example.trace
    assert again.id == example.id
    assert again.found == example.found
    assert again.differences() == []


def test_the_file_is_written_the_same_way_each_time(path: Path, tmp_path: Path) -> None:
    save(load(path), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


def test_the_same_graph_written_otherwise_has_the_same_id(example: Counterexample) -> None:
    other = examine(five_operators(name="another"), "dtr", "feasibility")
    assert other is not None
    assert other.id == example.id
    late = examine(five_operators(swapped=True), "dtr", "feasibility")
    assert late is None or late.id != example.id


def test_a_trace_may_be_named_by_its_hash(example: Counterexample, path: Path) -> None:
    document = json.loads(path.read_text())
    del document["trace"]["schedule"]
    path.write_text(json.dumps(document))
    assert load(path, trace=example.trace).id == example.id
    with pytest.raises(StoredFileError, match="five"):
        load(path)
    build = five_operators(swapped=True)
    with pytest.raises(StoredFileError, match="not what its hash says"):
        load(path, trace=build)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"format": "map"}, "a 'map' file"),
        ({"version": 2}, "version 2"),
        ({"id": "0" * 16}, "the file was changed"),
        ({"policy": "dtrr"}, "unknown policy 'dtrr'; did you mean"),
        ({"claim": "speed"}, r"\$\.claim"),
        ({"witness": [17, 16]}, "not at the budgets"),
        ({"witness": ["16", 17]}, r"\$\.witness"),
        ({"limit": 0.5}, "limit"),
        ({"align": 0}, "aligned"),
        ({"severity": -1.0}, "severity"),
        ({"operators": 6}, "5 operators, the file says 6"),
        ({"trace": {"name": "x", "sha256": "", "schedule": []}}, "malformed"),
        ({"below": None}, r"\$\.below"),
    ],
)
def test_wrong_files_are_refused(path: Path, values: dict[str, Any], problem: str) -> None:
    change(path, **values)
    with pytest.raises(StoredFileError, match=problem) as caught:
        load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "step",
    [
        {"do": "compute", "label": "x", "cost": -1, "reads": [], "makes": [1]},
        {"do": "compute", "label": "x", "cost": 1, "reads": [9], "makes": [1]},
        {"do": "compute", "label": "x", "cost": 1, "reads": [], "makes": [1], "storage": [7]},
        {"do": "compute", "label": "x", "cost": 1, "reads": [], "makes": [1], "storage": []},
        {"do": "compute", "label": "x", "cost": 10**18, "reads": [], "makes": [1]},
        {"do": "release", "tensor": 99},
        {"do": "explode", "tensor": 0},
    ],
)
def test_wrong_schedules_are_refused(path: Path, step: dict[str, Any]) -> None:
    document = json.loads(path.read_text())
    document["trace"]["schedule"].append(step)
    path.write_text(json.dumps(document))
    with pytest.raises(StoredFileError):
        load(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "nonsense", '{"format": 1}', "\x00"])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(StoredFileError):
        load(path)


def test_folders_and_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoredFileError, match="folder"):
        load(tmp_path)
    with pytest.raises(StoredFileError, match="missing"):
        load(tmp_path / "missing")


def test_a_false_record_is_noticed(path: Path) -> None:
    document = json.loads(path.read_text())
    document["above"]["evictions"] = 7
    path.write_text(json.dumps(document))
    assert load(path).differences() == ["evictions at 17 bytes is 4, not 7"]


def test_an_own_policy_cannot_be_stored(example: Counterexample, tmp_path: Path) -> None:
    from dataclasses import replace

    with pytest.raises(PolicyError):
        save(replace(example, policy="mine"), tmp_path / "x.json")
