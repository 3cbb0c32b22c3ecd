"""Tapes without PyTorch: whatever happens to storages, the trace is valid and its peak is right."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monofuzz.errors import RecordError
from monofuzz.replay import TraceSystem
from monofuzz.trace import Trace, load, save
from monofuzz.trace.record.tape import Cell, Result, Tape, median_costs


@st.composite
def tapes(draw: st.DrawFn) -> Trace:
    """A recording in which storages appear, are shown, updated, resized, and die."""
    tape = Tape(draw(st.sampled_from(["view", "copy"])))
    alive: list[Cell] = []
    layouts = st.integers(0, 2)
    for _ in range(draw(st.integers(1, 12))):
        if not alive or draw(st.integers(0, 4)) == 0:
            alive.append(tape.constant(draw(st.integers(0, 9)), 0))
        some = st.lists(st.tuples(st.sampled_from(alive), layouts), max_size=3)
        reads, writes = draw(some), draw(some)
        written = {cell for cell, _ in writes}
        sizes = st.integers(0, 9)
        resized = [(cell, draw(sizes)) for cell in dict.fromkeys(c for c, _ in writes)]
        results = [Result(c, n, fresh=False) for c, n in draw(some) if c not in written]
        fresh = [tape.fresh(draw(sizes)) for _ in range(draw(st.integers(0, 2)))]
        results += [Result(cell, 0, fresh=True) for cell in fresh]
        results += [Result(cell, 1, fresh=False) for cell in fresh if draw(st.booleans())]
        tape.operator(
            "op",
            draw(sizes),
            [*reads, *writes],
            results,
            writes=writes,
            resized=[one for one in resized if one[1] % 2],
        )
        alive += fresh
        for cell in (
            draw(st.lists(st.sampled_from(alive), unique=True, max_size=2)) if alive else ()
        ):
            tape.died(cell)
            alive.remove(cell)
    tape.close()
    return tape.trace(name="random")


@settings(deadline=None)
@given(tapes())
def test_peaks_are_those_of_a_replay_that_rematerialises_nothing(trace: Trace) -> None:
    system = TraceSystem(trace, "lru", limit=None, engine="interpreted")
    assert system.peak == trace.meta.peak
    outcome = system.run(system.peak)
    assert (outcome.status, outcome.remats) == ("ok", 0)


@settings(deadline=None)
@given(tapes())
def test_recordings_can_be_written_as_logs(trace: Trace) -> None:
    with TemporaryDirectory() as folder:
        save(trace, Path(folder) / "x.log")
        assert load(Path(folder) / "x.log") == trace


def recording(cost: int, size: int = 8) -> Tape:
    tape = Tape()
    tape.operator("op", cost, [(tape.constant(4), 0)], [Result(tape.fresh(size), 0, fresh=True)])
    tape.close()
    return tape


def test_medians() -> None:
    tape = median_costs([recording(cost) for cost in (5, 100, 7)])
    assert tape.trace().op_cost.tolist() == [0, 7]
    assert median_costs([recording(cost) for cost in (5, 100)]).costs() == [5]


def test_other_operators_are_no_repetition() -> None:
    with pytest.raises(RecordError, match="repetition 3 of the step"):
        median_costs([recording(1), recording(2), recording(1, size=9)])
