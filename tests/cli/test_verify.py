"""`monofuzz verify --golden`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import HOLE, Run, document


@pytest.fixture
def record(run: Run) -> dict[str, Any]:
    """A golden line of three runs, made by the engine itself."""
    lines = run("replay", HOLE, "-p", "dtr", "-b", "18", "19", "1.0", "--json").stdout.splitlines()
    runs = [json.loads(line) | {"remat_limit": None} for line in lines]
    return {"id": "h1", "log": Path(HOLE).read_text().splitlines(), "runs": runs}


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_all_match(run: Run, record: dict[str, Any], tmp_path: Path) -> None:
    file = write(tmp_path / "golden.jsonl", record, record)
    result = run("verify", "--golden", file, "--json")
    assert result.exit_code == 0
    assert document(result) == {"runs": 6, "matched": 6, "mismatches": []}
    assert "6 of 6 runs match" in run("verify", "--golden", file).stdout


def test_a_mismatch_names_its_fields(run: Run, record: dict[str, Any], tmp_path: Path) -> None:
    record["runs"][1]["remats"] += 1
    record["runs"][1]["interval"][0] -= 1
    file = write(tmp_path / "golden.jsonl", record)
    result = run("verify", "--golden", file, "--json")
    assert result.exit_code == 1
    found = document(result)
    assert (found["runs"], found["matched"]) == (3, 2)
    (mismatch,) = found["mismatches"]
    assert (mismatch["trace"], mismatch["policy"], mismatch["budget"]) == ("h1", "dtr", 19)
    assert sorted(mismatch["fields"]) == ["interval", "remats"]
    text = run("verify", "--golden", file).stdout
    assert "remats: 3 expected, 2 found" in text
    assert "2 of 3 runs match" in text
