"""The shrunk holes of published traces are what the report says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from monofuzz.counterexample import Counterexample, Signature, load
from monofuzz.counterexample.signature import DEPTH
from monofuzz.shrink import Interest, Reducer
from monofuzz.shrink.passes import PASSES

FOLDER = Path(__file__).parents[2] / "reports" / "shrink"
FILES = sorted(FOLDER.glob("dtr-*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_replays_and_no_single_pass_improves_on_it(path: Path) -> None:
    example = load(path)
    assert example.differences() == []
    assert "stopped" not in example.found
    name, _, keep = path.stem.rpartition("-")
    row = json.loads((FOLDER / "results.json").read_text())[f"{name} {keep}"]
    assert row["to"]["operators"] == example.operators <= 7
    signature = example.signature
    assert signature is not None
    if keep == "signature":
        assert signature.depth >= DEPTH
        assert signature.keeps(Signature(**row["before"]))

    class Kept(Interest):
        def accepts(self, other: Counterexample) -> bool:
            assert other.signature is not None
            return keep == "any" or other.signature.keeps(Signature(**row["before"]))

    for one in PASSES:
        assert Reducer(example.trace, Kept(example)).reduce([one]) is example.trace, one.__name__


def test_there_are_four_traces_both_ways() -> None:
    assert len(FILES) == 8
