"""Both engines, and the oracle that tests them, do what the reference simulator did."""

from __future__ import annotations

import itertools
import json
import lzma

import pytest

from monofuzz.replay import TraceSystem, goldenfile
from monofuzz.replay.golden import Verification, engine_systems, verify, verify_file
from tests.conformance.support import DEEP, SYNTHETIC, OracleSystem, public_golden, synthetic

RUNS = 45_121
DEEP_RUNS = 2_244
PUBLIC_RUNS = 259


def all_equal(found: Verification, runs: int) -> None:
    assert found.mismatches[:5] == []
    assert found.matched == found.runs == runs


def test_compiled_engine_on_all_random_logs() -> None:
    all_equal(verify_file(SYNTHETIC, engine="compiled", jobs=2), RUNS)


def test_interpreted_engine_on_some_random_logs() -> None:
    cases = synthetic()[::25]
    all_equal(verify(cases, engine_systems("interpreted")), sum(len(c.runs) for c in cases))


@pytest.mark.slow
def test_interpreted_engine_on_all_random_logs() -> None:
    all_equal(verify(synthetic(), engine_systems("interpreted")), RUNS)


def test_oracle_on_some_random_logs() -> None:
    cases = synthetic()[7::50]
    all_equal(verify(cases, OracleSystem), sum(len(c.runs) for c in cases))


@pytest.mark.slow
def test_oracle_on_all_random_logs() -> None:
    all_equal(verify(synthetic(), OracleSystem), RUNS)


def test_compiled_engine_on_deep_logs() -> None:
    all_equal(verify_file(DEEP, engine="compiled"), DEEP_RUNS)


@pytest.mark.slow
def test_interpreted_engine_on_deep_logs() -> None:
    all_equal(verify_file(DEEP, engine="interpreted"), DEEP_RUNS)


@pytest.mark.slow
def test_oracle_on_deep_logs() -> None:
    all_equal(verify(goldenfile.read(DEEP), OracleSystem), DEEP_RUNS)


def test_peak_and_compute_without_a_budget() -> None:
    with lzma.open(SYNTHETIC) as lines:
        bases = {record["id"]: record["base"] for record in map(json.loads, lines)}
    for case in synthetic()[::5]:
        system = TraceSystem(case.trace(), "dtr", limit=None)
        base = bases[case.name]
        assert (system.peak, system.model_compute) == (base["peak"], base["model_compute"])


@pytest.mark.public
def test_compiled_engine_on_the_public_traces() -> None:
    cases = list(public_golden())
    all_equal(verify(cases, engine_systems("compiled"), jobs=2), sum(len(c.runs) for c in cases))
    assert len(cases) >= PUBLIC_RUNS


@pytest.mark.public
@pytest.mark.slow
def test_interpreted_engine_on_the_public_traces() -> None:
    small = ("dtr-unet", "dtr-resnet32")
    cases = [case for case in public_golden() if case.name in small]
    all_equal(verify(cases, engine_systems("interpreted")), len(cases))


@pytest.mark.public
@pytest.mark.slow
def test_oracle_on_a_public_trace() -> None:
    cases = itertools.islice((c for c in public_golden() if c.name == "dtr-unet"), 20)
    all_equal(verify(cases, OracleSystem), 20)
