"""The traces that come with monofuzz, and the steps that they were recorded from."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from monofuzz.replay import TraceSystem
from monofuzz.search import map_budgets
from monofuzz.trace import Trace, container, load, save
from monofuzz.trace.library import list_traces

MODELS = Path(__file__).parents[2] / "corpus" / "models"
SHIPPED = [one for one in list_traces() if one.kind == "shipped" and one.name != "demo"]


@pytest.fixture(scope="module")
def library() -> dict[str, Any]:
    return runpy.run_path(str(MODELS / "library.py"))


def test_there_are_enough_and_they_are_small(library: dict[str, Any]) -> None:
    assert {one.name for one in SHIPPED} == set(library["ENTRIES"])
    assert len(SHIPPED) >= 15
    assert sum(Path(one.path).stat().st_size for one in SHIPPED) <= 6 * 2**20


@pytest.mark.parametrize("name", [one.name for one in SHIPPED])
def test_a_trace_says_what_it_is(name: str, library: dict[str, Any]) -> None:
    trace = load(name)
    entry = library["ENTRIES"][name]
    assert (trace.meta.name, trace.meta.model, trace.meta.batch) == (name, entry.model, entry.batch)
    assert trace.meta.source == f"corpus/models/{entry.target}"
    assert "torch 2." in trace.meta.recorder
    assert "fake tensors" in trace.meta.recorder
    assert trace.meta.cost_model.startswith("roofline A100: ")
    assert str(entry.batch) in entry.model


@pytest.mark.parametrize("name", [one.name for one in SHIPPED])
def test_without_a_budget_nothing_is_rematerialised(name: str) -> None:
    trace = load(name)
    system = TraceSystem(trace, "lru", limit=None, engine="interpreted")
    assert system.peak == trace.meta.peak
    assert system.run(system.peak).remats == 0


@pytest.mark.parametrize("name", [one.name for one in SHIPPED])
def test_a_trace_has_the_form_of_a_log(name: str, tmp_path: Path) -> None:
    trace = load(name)
    save(trace, tmp_path / "x.log.zst")
    assert load(tmp_path / "x.log.zst") == trace


def test_a_trace_and_its_log_have_one_map(tmp_path: Path) -> None:
    """Regime by regime, certified, with three holes in it."""
    trace = load("resnet32")
    save(trace, tmp_path / "x.log")
    log = load(tmp_path / "x.log")
    expected, found = (
        map_budgets(one, "dtr", between=(0.155, 0.162), jobs=0) for one in (trace, log)
    )
    assert expected.certified
    assert len(expected.holes) == 3
    assert found.holes == expected.holes
    assert [*found.regimes] == [*expected.regimes]


@pytest.mark.slow
@pytest.mark.parametrize("name", [one.name for one in SHIPPED])
def test_a_recording_is_the_same_byte_for_byte(name: str, library: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch", reason="recording needs torch")
    pytest.importorskip("transformers", reason="some models are from transformers")
    shipped = load(name)
    if f"torch {torch.__version__}," not in shipped.meta.recorder:
        pytest.skip(f"recorded with another version: {shipped.meta.recorder}")
    again: Trace = library["record"](name)
    assert container.pack(again) == container.pack(shipped)
