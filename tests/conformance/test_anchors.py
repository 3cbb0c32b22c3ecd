"""Published sampled results on the public traces (arXiv 2609.31250 and 2610.14369), reproduced.

Ratios are of the unconstrained peak, the budget is ``int(peak * ratio)``, the compute limit 60x.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

import pytest

from monofuzz.replay import Outcome, TraceSystem
from tests.public import public_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.public

# peak (bytes), model compute (ns)
TRACES = {
    "dtr-resnet32": (10_061_179_648, 291_905_487),
    "dtr-unet": (8_415_764_928, 435_278_292),
    "dtr-densenet121": (11_020_751_304, 355_299_140),
    "dtr-inceptionv4": (11_245_351_368, 636_429_561),
    "dtr-transformer": (9_864_405_384, 276_259_118),
    "dtr-treelstm": (170_173_608, 120_490_892),
    "dtr-lstm": (5_595_127_736, 769_458_833),
    "dtr-unrolled-gan": (260_121_062, 125_451_477),
}

# trace: sampled budgets as (last ok below, first oom, last oom, first ok above)
BRACKETS = {
    "dtr-resnet32": [(0.101, 0.102, 0.106, 0.107)],
    "dtr-inceptionv4": [
        (0.209, 0.212, 0.222, 0.223),
        (0.2343, 0.235, 0.2425, 0.243),
        (0.2524, 0.2526, 0.2527, 0.254),
    ],
    "dtr-unet": [(0.422, 0.423, 0.425, 0.426), (0.431, 0.432, 0.435, 0.436)],
    "dtr-unrolled-gan": [(0.236, 0.237, 0.238, 0.239)],
}

# Overheads of dtr-resnet32 from one budget to another, in steps of 0.001.
PLATEAUS = [
    (0.100, 0.101, "2.223"),
    (0.107, 0.110, "2.077"),
    (0.111, 0.115, "3.212"),
    (0.116, 0.119, "3.330"),
    (0.120, 0.124, "2.933"),
    (0.125, 0.128, "2.924"),
    (0.129, 0.133, "2.903"),
    (0.134, 0.137, "2.881"),
    (0.138, 0.142, "2.667"),
    (0.143, 0.146, "2.718"),
    (0.147, 0.150, "1.843"),
]

# trace, ratio, overhead or status, choices of the policy
RUNS = [
    ("dtr-resnet32", 0.101, "2.223", 322),
    ("dtr-resnet32", 0.104, "oom", 326),
    ("dtr-resnet32", 0.107, "2.077", 282),
    ("dtr-unet", 0.422, "ok", 72),
    ("dtr-unet", 0.424, "oom", 207),
    ("dtr-unet", 0.426, "ok", 80),
    ("dtr-densenet121", 0.2, "1.679", 381),
    ("dtr-transformer", 0.3, "1.123", 75),
    ("dtr-treelstm", 0.3, "1.401", 1_430),
    ("dtr-unrolled-gan", 0.3, "1.209", 541),
    ("dtr-inceptionv4", 0.2523, "1.378", 393),
    ("dtr-inceptionv4", 0.235, "oom", 7_632),
    ("dtr-lstm", 0.262, "1.39", None),
    ("dtr-lstm", 0.264, "8.779", 38_059),
    ("dtr-lstm", 0.265, "1.383", 1_726),
    ("dtr-lstm", 0.266, "10.10", 45_302),
]

# trace, ratio, overhead or status, pinned bytes at their peak, depth there, greatest depth
PINNED = [
    ("dtr-resnet32", 0.101, "2.223", "754.9 MB", 8, 38),
    ("dtr-resnet32", 0.104, "oom", "889.8 MB", 118, 124),
    ("dtr-resnet32", 0.107, "2.077", "575.1 MB", 30, 38),
    ("dtr-inceptionv4", 0.209, "4.912", "1.93 GB", 96, 125),
    ("dtr-inceptionv4", 0.212, "oom", "2.25 GB", 164, 164),
    ("dtr-inceptionv4", 0.222, "oom", "2.36 GB", 164, 164),
    ("dtr-inceptionv4", 0.223, "2.575", "1.05 GB", 47, 75),
    ("dtr-inceptionv4", 0.235, "oom", "2.63 GB", 188, 193),
    ("dtr-inceptionv4", 0.2523, "1.378", "0.99 GB", 1, None),
    ("dtr-inceptionv4", 0.2527, "oom", "2.82 GB", 199, None),
    ("dtr-inceptionv4", 0.26, "1.359", None, None, None),
]


@functools.cache
def system(trace: str, policy: str = "dtr") -> TraceSystem:
    return TraceSystem(public_trace(trace), policy, limit=60.0)


@functools.cache
def run(trace: str, ratio: float, policy: str = "dtr") -> Outcome:
    chosen = system(trace, policy)
    return chosen.run(int(chosen.peak * ratio))


def steps(first: float, last: float) -> Iterator[float]:
    """Budgets in steps of 0.001, ends included."""
    return (k / 1000 for k in range(round(first * 1000), round(last * 1000) + 1))


def is_as_published(outcome: Outcome, text: str) -> bool:
    """Whether a run ended as a text says: a status, or an overhead with the digits it has."""
    if not text[0].isdigit():
        return outcome.status == text
    digits = len(text.partition(".")[2])
    return outcome.status == "ok" and f"{outcome.overhead:.{digits}f}" == text


@pytest.mark.parametrize("trace", TRACES)
def test_peak_and_compute(trace: str) -> None:
    assert (system(trace).peak, system(trace).model_compute) == TRACES[trace]


@pytest.mark.parametrize(
    ("trace", "bracket"), [(t, b) for t, brackets in BRACKETS.items() for b in brackets]
)
def test_brackets(trace: str, bracket: tuple[float, float, float, float]) -> None:
    statuses = [run(trace, ratio).status for ratio in bracket]
    assert statuses == ["ok", "oom", "oom", "ok"]


@pytest.mark.parametrize(("first", "last", "overhead"), PLATEAUS)
def test_overheads_of_resnet32(first: float, last: float, overhead: str) -> None:
    for ratio in steps(first, last):
        assert is_as_published(run("dtr-resnet32", ratio), overhead), ratio


def test_first_success_of_resnet32() -> None:
    ratios = list(steps(0.05, 0.15))
    assert next(r for r in ratios if run("dtr-resnet32", r).status == "ok") == 0.098


@pytest.mark.parametrize(("trace", "ratio", "end", "evictions"), RUNS)
def test_runs(trace: str, ratio: float, end: str, evictions: int | None) -> None:
    outcome = run(trace, ratio)
    assert is_as_published(outcome, end), outcome
    assert evictions is None or outcome.evictions == evictions


@pytest.mark.parametrize(("trace", "ratio", "end", "pinned", "at", "deepest"), PINNED)
def test_pinned_bytes_and_depths(
    trace: str, ratio: float, end: str, pinned: str | None, at: int | None, deepest: int | None
) -> None:
    outcome = run(trace, ratio)
    assert is_as_published(outcome, end)
    if pinned is not None:
        unit, digits = (1e6, 1) if pinned.endswith("MB") else (1e9, 2)
        assert f"{outcome.peak_pinned / unit:.{digits}f} {pinned[-2:]}" == pinned
        assert outcome.depth_at_peak_pinned == at
    assert deepest is None or outcome.max_depth == deepest


@pytest.mark.parametrize(
    ("ratio", "each", "distinct"), [(0.264, "8.27", 5236), (0.265, "1.33", 5233)]
)
def test_evictions_a_storage_of_lstm(ratio: float, each: str, distinct: int) -> None:
    outcome = run("dtr-lstm", ratio)
    assert outcome.distinct_evicted == distinct
    assert f"{outcome.evictions_all / outcome.distinct_evicted:.2f}" == each


@pytest.mark.parametrize(
    ("policy", "failing"),
    [
        ("nbhd-penalty", []),
        ("nbhd-penalty:b=0.25", []),
        ("two-phase", [*steps(0.102, 0.110), *steps(0.134, 0.137)]),
    ],
)
def test_other_policies_on_resnet32(policy: str, failing: list[float]) -> None:
    """From 0.080 to 0.150: the first success, and what fails above it."""
    ratios = list(steps(0.080, 0.150))
    ok = [ratio for ratio in ratios if run("dtr-resnet32", ratio, policy).status == "ok"]
    assert ok[0] == 0.094
    assert [ratio for ratio in ratios if ratio > ok[0] and ratio not in ok] == failing


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ratio", "status"), [(0.20, "ok"), (0.21, "oom"), (0.22, "oom"), (0.23, "ok")]
)
def test_t_control_on_inceptionv4(ratio: float, status: str) -> None:
    assert run("dtr-inceptionv4", ratio, "t-control").status == status


def test_two_budgets_of_inceptionv4() -> None:
    """The pair that the published explanation is about, in bytes."""
    below, above = run("dtr-inceptionv4", 0.2343), run("dtr-inceptionv4", 0.235)
    assert (below.budget, above.budget) == (2_634_785_825, 2_642_657_571)
    assert is_as_published(below, "1.471")
    assert above.status == "oom"
    assert below.victims is not None
    assert above.victims is not None
    pairs = zip(below.victims, above.victims, strict=False)
    common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    assert 0 < common < len(below.victims)


@pytest.mark.slow
@pytest.mark.parametrize("trace", ["dtr-resnet32", "dtr-unet"])
def test_complete_maps_agree_with_every_bracket(trace: str) -> None:
    from monofuzz.search import map_budgets

    found = map_budgets(public_trace(trace), "dtr", between=(0.05, 1.0))
    assert found.certified
    for below, first, last, above in BRACKETS[trace]:
        hole = next(h for h in found.holes if h.lo <= int(found.peak * first) < h.hi)
        assert hole.lo > int(found.peak * below)
        assert hole.lo <= int(found.peak * last) < hole.hi <= int(found.peak * above)
