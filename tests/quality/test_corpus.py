"""Every counterexample that is stored here is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from monofuzz.counterexample import load
from monofuzz.hunt import within_class

CORPUS = Path(__file__).parents[2] / "corpus" / "counterexamples"
FOLDERS = sorted(path for path in CORPUS.iterdir() if path.is_dir()) if CORPUS.is_dir() else []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_all_replay_as_recorded(folder: Path) -> None:
    files = sorted(folder.glob("*.json"))
    assert files
    for path in files:
        example = load(path)
        assert example.policy == folder.name
        assert path.stem.rpartition("-")[0].endswith(f"-{example.claim}")
        assert example.differences() == [], path
        graph_class = path.stem.removesuffix("-smallest").removesuffix("-worst")
        graph_class = graph_class.removesuffix(f"-{example.claim}")
        if graph_class != "training":
            inside = within_class(graph_class, example.trace)  # type: ignore[arg-type]
            assert inside is None or inside(example.trace)
