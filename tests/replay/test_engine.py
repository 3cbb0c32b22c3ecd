"""Properties of the engine on random traces: the oracle, its two forms, intervals, walks."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import monofuzz
from monofuzz import strategies as mst
from monofuzz.errors import PolicyError, ResourceError, UsageError
from monofuzz.replay import Outcome, Policy, TraceSystem
from monofuzz.replay._jit import load_kernel
from monofuzz.replay.policy import names, policy
from monofuzz.trace import Trace, TraceBuilder
from tests import oracle

ANY_TRACE = st.one_of(mst.traces(max_ops=14), mst.training_traces())
READS_BUDGET = ("two-phase", "t-control")
relaxed = functools.partial(settings, deadline=None, suppress_health_check=list(HealthCheck))
DIFFERENTIAL = relaxed(max_examples=25)
METAMORPHIC = relaxed(max_examples=60)


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("MONOFUZZ_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def budgets_of(trace: Trace, data: st.DataObject, name: str = "lru") -> list[int]:
    """Some budgets, mostly where the runs of a policy change."""
    budgets = mst.budgets(TraceSystem(trace, name))
    return data.draw(st.lists(budgets, min_size=1, max_size=4))


def record(outcome: Outcome) -> dict[str, object]:
    """An outcome with the names and shapes of a golden record."""
    found = {name: getattr(outcome, name) for name in COMPARED}
    found["interval"] = list(outcome.interval)
    found["victims"] = list(outcome.victims or ())
    found["fail"] = None if outcome.fail is None else dataclasses.asdict(outcome.fail)
    return found


COMPARED = (
    "status", "model_compute", "remat_compute", "evictions", "evictions_all", "distinct_evicted",
    "remats", "victims_sha256", "peak_memory", "peak_pinned", "depth_at_peak_pinned", "max_depth",
)  # fmt: skip
PARAMETERS = [
    "random:seed=7",
    "random:seed=18446744073709551615",
    "nbhd-penalty:b=2.5",
    "two-phase:k=2",
    "t-control:alpha=0.9",
]


@pytest.mark.parametrize("name", [*names(), *PARAMETERS])
@DIFFERENTIAL
@given(trace=ANY_TRACE, data=st.data())
def test_engines_agree_with_the_oracle(name: str, trace: Trace, data: st.DataObject) -> None:
    limit = data.draw(st.sampled_from([None, 0, 5 * trace.model_compute]))
    compiled = TraceSystem(trace, name, limit=None, remat_limit=limit)
    interpreted = TraceSystem(trace, name, limit=None, remat_limit=limit, engine="interpreted")
    for budget in budgets_of(trace, data, name):
        expected = oracle.replay(trace, name, budget, remat_limit=limit)
        found = record(compiled.run(budget))
        assert found == {key: expected[key] for key in found}
        assert record(interpreted.run(budget)) == found


@pytest.mark.parametrize("room", [0, 1, 5])
@pytest.mark.parametrize("name", ["dtr", "msps", "he-star"])
@DIFFERENTIAL
@given(trace=ANY_TRACE, data=st.data())
def test_full_watch_lists_only_cost_time(
    name: str, room: int, trace: Trace, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("monofuzz.replay.system._WATCHES", room)
        patch.setattr("monofuzz.replay.system._WATCHES_EACH", 0)
        tight = TraceSystem(trace, name)
        for budget in budgets_of(trace, data, name):
            expected = oracle.replay(trace, name, budget, remat_limit=tight.remat_limit)
            found = record(tight.run(budget))
            assert found == {key: expected[key] for key in found}


@pytest.mark.parametrize("name", names())
@METAMORPHIC
@given(trace=ANY_TRACE, data=st.data())
def test_an_interval_is_one_run_and_no_more(name: str, trace: Trace, data: st.DataObject) -> None:
    system = TraceSystem(trace, name)
    (budget, *_) = budgets_of(trace, data, name)
    outcome = system.run(budget)
    lo, hi = outcome.interval
    assert lo <= budget
    assert hi is None or budget < hi
    inside = {lo, hi - 1 if hi is not None else lo + 10**12}
    inside.add(data.draw(st.integers(lo, max(inside))))
    for other in inside:
        again = system.run(other)
        assert again.same_run(outcome)
        assert again.interval == (lo, hi)
        assert (again.victims, again.status) == (outcome.victims, outcome.status)
    if hi is not None and name not in READS_BUDGET:
        assert not system.run(hi).same_run(outcome)
    if lo > 0 and name not in READS_BUDGET:
        assert not system.run(lo - 1).same_run(outcome)


@pytest.mark.parametrize("name", ["dtr", "dtr-eq", "lru", "two-phase", "t-control", "random"])
@METAMORPHIC
@given(trace=ANY_TRACE)
def test_a_walk_is_all_budgets(name: str, trace: Trace) -> None:
    system = TraceSystem(trace, name)
    end = system.peak + 2
    walked = list(system.walk(0, end))
    assert walked[0].interval[0] == 0
    assert walked[-1].interval[1] is None
    for one, two in itertools.pairwise(walked):
        assert one.interval[1] == two.interval[0]
    brute = system.run_many(list(range(end)))
    for outcome in brute:
        regime = next(w for w in walked if w.interval[1] is None or outcome.budget < w.interval[1])
        assert regime.interval == outcome.interval
        assert regime.same_run(outcome)
        assert regime.fail == outcome.fail or regime.fail.over_by != outcome.fail.over_by  # type: ignore[union-attr]


@METAMORPHIC
@given(
    trace=ANY_TRACE,
    name=st.sampled_from([name for name in names() if name != "t-control"]),
    pause=st.integers(0, 6),
    levels=st.integers(1, 3),
)
def test_a_walk_may_save_its_state_anywhere(
    trace: Trace, name: str, pause: int, levels: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("monofuzz.replay.system._PAUSE", pause)
        patch.setattr("monofuzz.replay.system._LEVELS", levels)
        walked = list(TraceSystem(trace, name).walk(0, 2**61))
    alone = TraceSystem(trace, name).run_many([outcome.interval[0] for outcome in walked])
    for one, two in zip(walked, alone, strict=True):
        assert one.same_run(two)
        assert one.interval == two.interval


@METAMORPHIC
@given(trace=ANY_TRACE, align=st.integers(1, 40), data=st.data())
def test_alignment_is_a_trace_with_larger_sizes(
    trace: Trace, align: int, data: st.DataObject
) -> None:
    aligned = dataclasses.replace(trace, tensor_size=-(-trace.tensor_size // align) * align)
    for budget in budgets_of(aligned, data):
        found = TraceSystem(trace, "dtr", align=align).run(budget)
        assert found == TraceSystem(aligned, "dtr").run(budget)


@METAMORPHIC
@given(trace=ANY_TRACE, data=st.data())
def test_names_and_labels_change_nothing(trace: Trace, data: st.DataObject) -> None:
    renamed = dataclasses.replace(
        trace.with_meta(name="other"), names=None, op_label=tuple("x" for _ in trace.op_label)
    )
    for budget in budgets_of(trace, data):
        assert TraceSystem(renamed, "dtr").run(budget) == TraceSystem(trace, "dtr").run(budget)


@METAMORPHIC
@given(trace=ANY_TRACE, factor=st.integers(2, 1000), data=st.data())
def test_larger_sizes_need_larger_budgets_and_change_nothing_else(
    trace: Trace, factor: int, data: st.DataObject
) -> None:
    scaled = dataclasses.replace(trace, tensor_size=trace.tensor_size * factor)
    for budget in budgets_of(trace, data):
        one, two = (
            TraceSystem(trace, "lru").run(budget),
            TraceSystem(scaled, "lru").run(budget * factor),
        )
        assert (one.victims, one.status, one.cost) == (two.victims, two.status, two.cost)


def chain(length: int, size: int = 10, cost: int = 3) -> Trace:
    build = TraceBuilder(name="chain")
    at = build.constant(size)
    kept = [at]
    for _ in range(length):
        (at,) = build.op("f", [at], size, cost=cost)
        kept.append(at)
    for k in reversed(range(1, length)):
        (at,) = build.op("b", [kept[k], at], size, cost=cost)
        build.release(kept[k + 1] if k + 1 < length else kept[-1])
    return build.finish()


def test_recursion_is_as_deep_as_the_trace() -> None:
    """No stack of Python's or of the system's is used: 60,000 levels of rematerialisation."""
    build = TraceBuilder(name="deep")
    (first,) = build.op("f", [], 1, cost=1)
    at = first
    for _ in range(60_000):
        (after,) = build.op("f", [at], 1, cost=1)
        build.release(at)
        at = after
    build.release(at)
    (last,) = build.op("b", [at], 1, cost=1)
    trace = build.finish(keep=[last])
    outcome = monofuzz.replay(trace, "lru", 4, limit=None)
    assert outcome.status == "ok"
    assert outcome.max_depth == 60_002
    assert outcome.remats == 60_001


def test_the_compute_limit_ends_a_run_as_thrashed() -> None:
    trace = chain(12)
    feasible = [o for o in TraceSystem(trace, "dtr", limit=None).walk(0, 200) if o.status == "ok"]
    worst = max(feasible, key=lambda o: o.overhead)
    assert worst.overhead > 1.2
    run = monofuzz.replay(trace, "dtr", worst.budget, limit=1.1)
    assert run.status == "thrashed"
    assert run.remat_compute > 0.1 * trace.model_compute
    assert monofuzz.replay(trace, "dtr", worst.budget, limit=worst.overhead + 0.01).status == "ok"


def test_a_run_that_takes_too_long_is_a_timeout() -> None:
    build = TraceBuilder(name="slow")
    kept = [build.op("f", [], 1, cost=1)[0]]
    for _ in range(3000):
        kept.append(build.op("f", [kept[-1]], 1, cost=1)[0])
    for k in reversed(kept):
        build.op("b", [k], 1, cost=1)
    outcome = monofuzz.replay(build.finish(keep=[]), "lru", 5, limit=None, timeout=0.05)
    assert outcome.status == "timeout"
    assert outcome.interval == (5, 6)
    assert not outcome.certified


def test_runs_of_several_threads_do_not_meet() -> None:
    from concurrent.futures import ThreadPoolExecutor

    system = TraceSystem(chain(40), "dtr")
    budgets = list(range(30, 430))
    alone = system.run_many(budgets)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda b: system.run_many([b])[0], budgets))
    assert together == alone


@policy
def like_dtr_local(cost: float, size: float, staleness: float) -> float:
    return cost / (size * staleness) if size * staleness > 0 else float("inf")


@policy
def like_e(cost: float, region_cost: float, region_rev_cost: float) -> float:
    return cost + region_cost + region_rev_cost


@policy
def like_eq(class_cost: float, cost: float) -> float:
    return cost + class_cost


@policy
def like_he_star(region_count: float, region_rev_count: float) -> float:
    return region_count + region_rev_count


@policy
def like_lru(last_access: float) -> float:
    return last_access


@pytest.mark.parametrize(
    ("own", "name"),
    [
        (like_dtr_local, "dtr-local"),
        (like_e, "e"),
        (like_eq, "eq"),
        (like_he_star, "he-star"),
        (like_lru, "lru"),
    ],
)
@relaxed(max_examples=15)
@given(trace=ANY_TRACE, data=st.data())
def test_own_policies_are_what_they_say(
    own: Policy,
    name: str,
    trace: Trace,
    data: st.DataObject,
) -> None:
    for budget in budgets_of(trace, data):
        expected = TraceSystem(trace, name).run(budget)
        assert TraceSystem(trace, own).run(budget) == expected
        assert TraceSystem(trace, own, engine="interpreted").run(budget) == expected


@relaxed(max_examples=30)
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**40), st.integers(1, 2**39))
@example(0, 0, 2**39)
def test_random_numbers_are_splitmix64(seed: int, number: int, limit: int) -> None:
    for engine in ("compiled", "interpreted"):
        found = load_kernel(engine).random_below(seed >> 32, seed & 0xFFFFFFFF, number, limit)
        assert found == oracle.splitmix64(seed, number) % limit


def test_the_policies_and_the_kernel_number_things_alike() -> None:
    kernel = load_kernel("interpreted")
    module = __import__("monofuzz.replay.policy", fromlist=["_ONE"])
    for mine, theirs in {
        "_ONE": "NUM_ONE", "_COST": "NUM_COST", "_E": "NUM_E", "_REV": "NUM_REV", "_EQ": "NUM_EQ",
        "_LA": "NUM_LA", "_COUNT": "NUM_COUNT", "_UNOPT": "NUM_UNOPT", "_OWN": "NUM_OWN",
        "_MIN": "RULE_MIN", "_RANDOM": "RULE_RANDOM", "_TWO_PHASE": "RULE_TWO_PHASE",
        "_TIE": "RULE_TIE", "_CONTROL": "RULE_CONTROL", "_NONE": "PENALTY_NONE",
        "_NBHD": "PENALTY_NBHD", "_THRASH": "PENALTY_THRASH",
    }.items():  # fmt: skip
        assert getattr(module, mine) == getattr(kernel, theirs)
    arrays = kernel.STATE + kernel.SCRATCH + kernel.PROGRAM
    assert [getattr(kernel, name) for name in arrays] == list(
        range(kernel.OFFSETS, kernel.REGISTERS)
    )


def test_a_trace_too_large_for_the_machine_is_refused_before_memory_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("monofuzz.replay.system._physical_memory", lambda: 2**16)
    with pytest.raises(ResourceError, match=r"needs .* GiB of working memory"):
        monofuzz.replay(chain(200), "dtr", 100)


def outputs_that_a_held_region_counts() -> tuple[Trace, str, int]:
    """Three outputs arrive together in a region that is held and counts all of them."""
    b = TraceBuilder()
    _, t1 = b.op("a", [], [1, 1], 0)
    t2, t3 = b.op("b", [t1], [1, 1], 0)
    b.op("view", [t2, t3], [0], 1, views={0: 0})
    b.op("c", [t1], [1, 1, 1], 1)
    return b.finish(), "dtr", 5


def one_direction_with_held_regions() -> tuple[Trace, str, int]:
    """A policy that reads parents only still needs the edges of held regions over children."""
    b = TraceBuilder()
    b.op("a", [], [345566942], 0)
    _, t2, t3 = b.op("b", [], [1, 4096, 667607589], 0)
    (t4,) = b.op("c", [], [230223043], 240516)
    b.op("view", [t3, t4], [0, 0], 0, views={0: 0})
    b.op("d", [t3], [4096], 702000)
    b.op("view", [t2], [0], 814149, views={0: 0})
    return b.finish(), "msps", 933496263


def a_pending_view_in_an_old_region() -> tuple[Trace, str, int]:
    """A member with a pending view enters a region that does not know of the view."""
    b = TraceBuilder()
    b.constant(33)
    t1, _ = b.op("o", [], [1, 8], 1)
    t3, t4 = b.op("o", [], [1, 54], 0)
    (t5,) = b.op("o", [t4], [1], 0)
    t6, t7 = b.op("o", [t3], [1, 8], 0)
    (t8,) = b.op("o", [], [2], 0)
    b.op("o", [t5], [8], 53)
    (t10,) = b.op("o", [], [43], 0)
    (t11,) = b.op("o", [t4, t10], [42], 0)
    (t12,) = b.op("v", [t7], [0], 0, views={0: 0})
    (t13,) = b.op("o", [t6], [1], 0)
    b.op("o", [t11], [0], 1)
    b.op("o", [t11, t12, t1], [25], 0)
    b.op("v", [t8, t13], [0], 1, views={0: 1})
    return b.finish(keep=[]), "e-size", 173


@pytest.mark.parametrize("engine", ["compiled", "interpreted"])
@pytest.mark.parametrize(
    "case",
    [
        outputs_that_a_held_region_counts,
        one_direction_with_held_regions,
        a_pending_view_in_an_old_region,
    ],
)
def test_rare_regions(case: Callable[[], tuple[Trace, str, int]], engine: str) -> None:
    trace, name, budget = case()
    expected = oracle.replay(trace, name, budget)
    found = record(TraceSystem(trace, name, limit=None, engine=engine).run(budget))
    assert found == {key: expected[key] for key in found}


@pytest.mark.parametrize("name", ["dtr", "msps", "he-star"])
@DIFFERENTIAL
@given(trace=ANY_TRACE, data=st.data())
def test_bounds_never_exceed_the_sums_that_they_bound(
    name: str, trace: Trace, data: st.DataObject
) -> None:
    """After every choice: marked sums are the oracle's, the others at most that."""
    kernel = load_kernel("interpreted")
    roots = np.unique(trace.tensor_root).tolist()
    sums: list[dict[int, tuple[int, int]]] = []

    class Watched(oracle.Replay):
        def choose(self) -> oracle.Storage:
            sums.append({s.root: (s.region.cost, s.region_rev.cost) for s in self.pool})
            return super().choose()

    wrong: list[object] = []

    def choose(m: Sequence[int], f: object, own: object, need: int) -> int:
        victim = original(m, f, own, need)
        expected = sums.pop(0)
        for i in range(m[kernel.POOL_N]):
            s = m[m[kernel.POOL_S] + i]
            for d in range(2):
                row = d * m[kernel.N] + s
                if s < 0 or not (m[kernel.REGIONS] >> d) & 1:
                    continue
                bound, sure = m[m[kernel.LB] + row], m[m[kernel.EX] + row] == m[kernel.ERA]
                total = expected[roots[s]][d]
                if bound > total or (sure and bound != total):
                    wrong.append((roots[s], d, bound, sure, total))
        return int(victim)

    original = kernel.choose
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "choose", choose)
        for budget in budgets_of(trace, data, name):
            sums.clear()
            oracle.replay(trace, name, budget, replayer=Watched)
            TraceSystem(trace, name, limit=None, engine="interpreted").run(budget)
            assert wrong == []


def test_a_trace_goes_by_its_name() -> None:
    assert monofuzz.replay("demo", "lru", 1.0).status == "ok"


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": "60"},
        {"limit": 0.5},
        {"limit": float("nan")},
        {"timeout": "x"},
        {"timeout": 0},
        {"align": 1.5},
        {"align": 0},
        {"engine": "jit"},
    ],
)
def test_wrong_settings_are_refused_in_a_sentence(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        monofuzz.replay(chain(3), "dtr", 100, **wrong)


def score_with(helper: Callable[[float], float]) -> Policy:
    def same_name(cost: float) -> float:
        return helper(cost)

    return policy(same_name)


def test_own_policies_are_told_apart_by_what_they_do() -> None:
    def once(x: float) -> float:
        return x

    def twice(x: float) -> float:
        return 2 * x

    def scaled(factor: float) -> Callable[[float], float]:
        return lambda x: factor * x

    assert score_with(once).identity == score_with(once).identity
    assert score_with(once).identity != score_with(twice).identity
    assert score_with(scaled(2)).identity == score_with(scaled(2)).identity
    assert score_with(scaled(2)).identity != score_with(scaled(3)).identity


@policy
def fails(cost: float) -> float:
    return float((1, 2, 3)[int(cost) + 5])


@policy
def reads_a_dictionary(cost: float) -> float:
    return TABLE["x"] * cost


TABLE = {"x": object()}


def test_score_functions_that_cannot_work_are_refused_in_a_sentence() -> None:
    with pytest.raises(PolicyError, match="score function 'fails' raised IndexError"):
        monofuzz.replay(chain(9), fails, 60, engine="interpreted")
    with pytest.raises(PolicyError, match=r"'reads_a_dictionary' cannot be compiled.*TABLE"):
        monofuzz.replay(chain(9), reads_a_dictionary, 60)
