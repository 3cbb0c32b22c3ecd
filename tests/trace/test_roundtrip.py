"""Whatever can be made can be written and read back."""

from __future__ import annotations

import dataclasses
import io
import json
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monofuzz import strategies as mst
from monofuzz.errors import TraceError
from monofuzz.trace import Trace, container, dtrlog, load, save
from monofuzz.trace.dtrwrite import format_log

any_trace = st.one_of(mst.traces(), mst.training_traces())


def assert_written_or_refused(trace: Trace) -> None:
    refusal = None
    try:
        text = format_log(trace)
    except TraceError as error:
        refusal = str(error)
    if refusal is None:
        assert dtrlog.parse(text) == trace
    else:
        assert ".trace file" in refusal


@given(any_trace)
def test_built_trace_has_a_log(trace: Trace) -> None:
    assert dtrlog.parse(format_log(trace)) == trace


@given(mst.traces(loggable=False))
def test_trace_that_keeps_anything_has_a_log_or_is_refused_in_words(trace: Trace) -> None:
    assert_written_or_refused(trace)


@given(mst.dtr_logs())
def test_log_is_written_back(lines: list[str]) -> None:
    trace = dtrlog.parse("\n".join(lines).encode())
    text = format_log(trace)
    again = dtrlog.parse(text)
    assert again == trace
    assert again.digest == trace.digest
    assert format_log(again) == text


@given(mst.dtr_logs())
def test_log_without_its_names_is_written_or_refused_in_words(lines: list[str]) -> None:
    trace = dataclasses.replace(dtrlog.parse("\n".join(lines).encode()), names=None)
    assert_written_or_refused(trace)


@given(any_trace)
def test_container_of_a_built_trace(trace: Trace) -> None:
    packed = container.pack(trace)
    again = container.unpack(packed, file="x.trace")
    assert again == trace
    assert (again.meta, again.op_label) == (trace.meta, trace.op_label)
    assert container.pack(again) == packed


@given(mst.dtr_logs())
def test_container_keeps_the_names_of_a_log(lines: list[str]) -> None:
    trace = dtrlog.parse("\n".join(lines).encode(), name="log")
    again = container.unpack(container.pack(trace), file="x.trace")
    assert again == trace
    assert format_log(again) == format_log(trace)


@given(any_trace, st.data())
def test_damaged_container_is_refused_or_unchanged(trace: Trace, data: st.DataObject) -> None:
    packed = bytearray(container.pack(trace))
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        again = load(io.BytesIO(bytes(packed)))
    except TraceError:
        return
    assert again == trace


@given(mst.dtr_logs(), st.data())
def test_damaged_log_is_refused_or_a_trace(lines: list[str], data: st.DataObject) -> None:
    text = bytearray("\n".join(lines).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    place = "f.log:"
    try:
        dtrlog.parse(bytes(text), file="f.log")
    except TraceError as error:
        place = str(error)
    assert place.startswith("f.log:")


@given(mst.dtr_logs(), st.data())
def test_truncated_log_is_refused_or_shorter(lines: list[str], data: st.DataObject) -> None:
    text = "\n".join(lines).encode()
    whole = dtrlog.parse(text)
    try:
        cut = dtrlog.parse(text[: data.draw(st.integers(0, len(text) - 1))])
    except TraceError:
        return
    assert cut.n_ops <= whole.n_ops


@given(mst.dtr_logs())
def test_names_do_not_matter(lines: list[str]) -> None:
    renamed = "\n".join(lines).replace('"x', '"tensor number ')
    assert dtrlog.parse(renamed.encode()) == dtrlog.parse("\n".join(lines).encode())


@pytest.mark.parametrize(
    "name", ["a.trace", "a.log", "a.log.gz", "a.log.xz", "a.log.zst", "a.zip", "a.log.zip"]
)
def test_every_file_format(name: str, tmp_path: Path) -> None:
    lines = _golden_logs()[1]
    trace = dtrlog.parse(lines)
    save(trace, tmp_path / name)
    again = load(tmp_path / name)
    assert again == trace
    assert again.meta.name == ("" if name.endswith(".trace") else "a")
    first = (tmp_path / name).read_bytes()
    save(trace, str(tmp_path / name))
    assert (tmp_path / name).read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with (tmp_path / name).open("rb") as stream:
        assert load(stream) == trace


def test_text_file_object() -> None:
    lines = _golden_logs()[0]
    assert load(io.StringIO(lines.decode())) == dtrlog.parse(lines)


def test_golden_logs_round_trip() -> None:
    for lines in _golden_logs()[::5]:
        trace = dtrlog.parse(lines)
        assert dtrlog.parse(format_log(trace)) == trace


def _golden_logs() -> list[bytes]:
    path = Path(__file__).parents[1] / "data" / "synthetic.jsonl.xz"
    if not path.exists():
        pytest.skip("tests/data/synthetic.jsonl.xz is not here")
    with lzma.open(path) as stream:
        return ["\n".join(json.loads(line)["log"]).encode() for line in stream]
