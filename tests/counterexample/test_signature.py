from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from monofuzz.counterexample import Counterexample, Signature, examine, load, save, signature_of
from monofuzz.errors import StoredFileError
from tests.examples import five_operators

DEEP = Signature(depth=9, share=0.9, common=4, evicted=3, instead=5, flips=True)


@pytest.fixture(scope="module")
def example() -> Counterexample:
    found = examine(five_operators(), "dtr", "feasibility")
    assert found is not None
    return found


def test_what_it_says(example: Counterexample) -> None:
    signature = example.signature
    assert signature is not None
    fail = example.above.fail
    assert fail is not None
    assert signature.depth == fail.depth
    assert signature.share == pytest.approx(fail.pinned_bytes / 17)
    first, second = example.below.victims, example.above.victims
    assert first is not None
    assert second is not None
    assert first[: signature.common] == second[: signature.common]
    assert first[signature.common] == signature.evicted != signature.instead
    assert second[signature.common] == signature.instead
    assert signature.flips


def test_a_file_says_the_same(example: Counterexample, tmp_path: Path) -> None:
    path = tmp_path / "five.json"
    save(example, path)
    again = load(path)
    assert again.signature == example.signature == signature_of(again)
    assert again.differences() == []


def test_older_files_have_none(example: Counterexample, tmp_path: Path) -> None:
    path = tmp_path / "five.json"
    save(example, path)
    document = json.loads(path.read_text())
    del document["signature"]
    path.write_text(json.dumps(document))
    assert load(path).signature is None
    assert load(path).differences() == []


def test_a_false_one_is_noticed(example: Counterexample, tmp_path: Path) -> None:
    path = tmp_path / "five.json"
    assert example.signature is not None
    save(replace(example, signature=replace(example.signature, depth=8)), path)
    (difference,) = load(path).differences()
    assert "signature" in difference
    document = json.loads(path.read_text())
    for wrong in ({"depth": "8"}, {}, 3):
        path.write_text(json.dumps(document | {"signature": wrong}))
        with pytest.raises(StoredFileError, match=r"\$\.signature|signature"):
            load(path)


@pytest.mark.parametrize(
    ("changed", "kept"),
    [
        ({}, True),
        ({"depth": 3}, True),
        ({"depth": 2}, False),
        ({"share": 0.86}, True),
        ({"share": 0.84}, False),
        ({"share": 1.0}, True),
        ({"flips": False}, False),
        ({"common": 0, "evicted": 1, "instead": 2}, True),
    ],
)
def test_what_keeps_a_mechanism(changed: dict[str, float], kept: bool) -> None:
    assert replace(DEEP, **changed).keeps(DEEP) is kept  # type: ignore[arg-type]


def test_a_shallow_one_need_not_become_deep() -> None:
    shallow = replace(DEEP, depth=1, flips=False)
    assert shallow.keeps(shallow)
    assert not replace(shallow, depth=0).keeps(shallow)
