"""The public traces read as published."""

from __future__ import annotations

import dataclasses
import time

import pytest

from monofuzz.trace import container, dtrlog
from monofuzz.trace.dtrwrite import format_log
from tests.public import MEMBERS, public_trace

pytestmark = pytest.mark.public

# operators with constants, model compute in nanoseconds
PUBLISHED = {
    "dtr-resnet32": (509, 291_905_487),
    "dtr-unet": (399, 435_278_292),
    "dtr-densenet121": (2_925, 355_299_140),
    "dtr-inceptionv4": (2_307, 636_429_561),
    "dtr-transformer": (3_154, 276_259_118),
    "dtr-treelstm": (6_959, 120_490_892),
    "dtr-lstm": (8_063, 769_458_833),
    "dtr-unrolled-gan": (6_820, 125_451_477),
}


@pytest.mark.parametrize("name", MEMBERS)
def test_totals(name: str) -> None:
    trace = public_trace(name)
    assert (trace.n_ops, trace.model_compute) == PUBLISHED[name]


@pytest.mark.parametrize("name", ["dtr-resnet32", "dtr-unet", "dtr-unrolled-gan"])
def test_round_trips(name: str) -> None:
    trace = public_trace(name)
    assert dtrlog.parse(format_log(trace)) == trace
    assert container.unpack(container.pack(trace), file="x") == trace


@pytest.mark.parametrize("name", ["dtr-resnet32", "dtr-densenet121"])
def test_written_with_new_names(name: str) -> None:
    trace = dataclasses.replace(public_trace(name), names=None)
    assert dtrlog.parse(format_log(trace)) == trace


def test_largest_reads_quickly() -> None:
    text = format_log(public_trace("dtr-lstm"))
    begin = time.process_time()
    dtrlog.parse(text)
    assert time.process_time() - begin < 1.0
