"""The questions asked of a system: map a range, check claims about it, insist on them."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from monofuzz import budget as _budget
from monofuzz.errors import StoredFileError, UsageError
from monofuzz.search.blackbox import BlackBox, as_system, is_runtime
from monofuzz.search.confirm import confirmed
from monofuzz.search.explorer import Explorer, Limits, Progress
from monofuzz.search.frontier import Direction, Frontier
from monofuzz.search.mapfile import Journal
from monofuzz.search.regimes import Map, Origin
from monofuzz.search.rows import OK, OOM, THRASHED, TIMEOUT, clip, joined
from monofuzz.search.system import Runner, System
from monofuzz.search.verdict import CLAIMS, find_witness

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from monofuzz.budget import Budget
    from monofuzz.search.rows import Rows
    from monofuzz.search.verdict import Claim, ThrashAs, Verdict, Witness

__all__ = [
    "Check",
    "MonotonicityUndecided",
    "MonotonicityViolation",
    "assert_monotone",
    "check",
    "map_budgets",
]

BETWEEN: tuple[Budget, Budget] = (0.05, 1.0)
"""The range that is explored if none is named."""


class MonotonicityViolation(AssertionError):  # noqa: N818 (a finding, no error)
    """More memory makes it fail or slower; ``witness`` holds the two budgets that show it.

    ``map`` is what was explored, None where many traces were.
    """

    # The public name, as it is shown in front of the text.
    __module__ = "monofuzz"

    def __init__(self, text: str, witness: Witness, map: Map | None = None) -> None:  # noqa: A002
        self.witness = witness
        self.map = map
        super().__init__(text)


class MonotonicityUndecided(AssertionError):  # noqa: N818 (a finding, no error)
    """A claim could be neither proved nor refuted; the text says why."""

    __module__ = "monofuzz"

    def __init__(self, text: str, map: Map | None = None) -> None:  # noqa: A002
        self.map = map
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class Check:
    """The verdict on one claim, and the map that it rests on."""

    map: Map
    verdict: Verdict

    def to_json(self) -> dict[str, Any]:
        """The result as ``check --json`` prints it."""
        return {
            "trace": self.map.origin.trace,
            "policy": self.map.origin.policy,
            "claim": self.verdict.claim,
            **self.verdict.to_json(),
            "runs": self.map.runs,
        }


def map_budgets(
    trace: Any,
    policy: Any = None,
    *,
    between: tuple[Budget, Budget] = BETWEEN,
    limit: float | None = 60.0,
    align: int | None = None,
    jobs: int | None = None,
    max_runs: int | None = None,
    time: float | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[Progress], None] | None = None,
    engine: str = "compiled",
    timeout: float | None = None,
    direction: Direction = "adaptive",
) -> Map:
    """Map what happens at every budget of a range.

    Without limits the map ends complete; with them, or after Ctrl-C, it holds what was found until
    then, and `Map.stopped` says why it ended. The complete map depends neither on ``jobs`` nor on
    ``direction``, nor on how often the exploration was stopped and resumed.

    Args:
        trace: a trace, the name or path of one, or a system: anything with ``run(budget)``, or a
            function of a budget (then ``policy``, ``limit``, ``align``, ``engine`` and ``timeout``
            are the system's own).
        policy: what to evict, as text (``"nbhd-penalty:b=0.5"``) or a policy; ``"dtr"`` if None.
            Or a runtime of your own: a function ``run(trace, budget)``, or an object that has one
            (see `monofuzz.search.blackbox`).
        between: the half-open range of budgets; see `monofuzz.budget`.
        limit: a run ends thrashed when it needs more than this multiple of the model's compute;
            None: no limit.
        align: sizes are rounded up to a multiple of this many bytes; None: they are not.
        jobs: threads; 0: none, the calling thread does the work; None: one a processor (for a
            system without ``run_many``: none).
        max_runs: stop after this many runs.
        time: stop after this many seconds. A run in progress is abandoned if the system can do
            that (the engine can), and waited for otherwise.
        out: a file to keep the map in, at every moment of the exploration. If it exists, what it
            knows is not run again; it must be of the same system, but may be of another range,
            which then is extended to hold both. Timed-out runs are made again if ``timeout``
            differs.
        progress: called about ten times a second, and at the end.
        engine: ``"compiled"`` or ``"interpreted"``.
        timeout: wall seconds for a run; one that needs more counts as undecided.
        direction: ``"up"`` and ``"down"`` sweep instead of exploring adaptively.

    A system that gives no intervals can only be sampled: if neither ``max_runs`` nor ``time`` is
    given, that ends after `SAMPLED_RUNS` runs.

    Raises `BudgetError`, `PolicyError`, `TraceError`, `UsageError`, `StoredFileError`; and whatever
    a system of the user's own raises, after what was found has been kept.
    """
    system = _system(trace, policy, limit, align, engine, timeout)
    return _explore(
        system, between, jobs, Limits(max_runs, time), out, progress, direction, decided=None
    )


def check(
    trace: Any,
    policy: Any = None,
    *,
    claims: Sequence[Claim] = CLAIMS,
    thrash_as: ThrashAs = "own",
    tolerance: float = 0.0,
    between: tuple[Budget, Budget] = BETWEEN,
    limit: float | None = 60.0,
    align: int | None = None,
    jobs: int | None = None,
    max_runs: int | None = None,
    time: float | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[Progress], None] | None = None,
    engine: str = "compiled",
    timeout: float | None = None,
) -> list[Check]:
    """The verdict on each claim over a range; arguments as for `map_budgets`.

    The exploration ends as soon as *all* claims are refuted, so that the map of a refuted check is
    often incomplete, and its witness the best one known by then, not the best there is.
    ``thrash_as`` and ``tolerance`` are explained at `monofuzz.search.verdict.verdict`. A system
    that gives no intervals is run again at the budgets of a witness, and raises `FlakyError` if it
    breaks the claim only now and then; ``monotone`` it never is.
    """
    if not claims:
        raise UsageError(f"no claim to check; the claims are {' and '.join(CLAIMS)}")

    def refuted(rows: Rows) -> bool:
        return all(
            find_witness(rows, claim, thrash_as=thrash_as, tolerance=tolerance) is not None
            for claim in claims
        )

    system = _system(trace, policy, limit, align, engine, timeout)
    found = _explore(
        system, between, jobs, Limits(max_runs, time), out, progress, "adaptive", decided=refuted
    )
    if "cost" in claims and isinstance(system, BlackBox) and system.unpriced:
        raise UsageError(
            f"{system.policy or system.name} does not say what a run costs, so that nothing can be "
            "said about the cost claim: return a number"
        )
    checks = [
        Check(found, found.verdict(claim, thrash_as=thrash_as, tolerance=tolerance))
        for claim in claims
    ]
    for one in checks:
        witness = one.verdict.witness
        if witness is not None and found.sampled and found.stopped != "interrupted":
            confirmed(Runner(system), witness, thrash_as=thrash_as, tolerance=tolerance)
    return checks


def assert_monotone(
    trace: Any,
    policy: Any = None,
    *,
    claim: Claim = "feasibility",
    allow_undecided: bool = False,
    **options: Any,
) -> Map:
    """Raise `MonotonicityViolation`, with the witness, unless more memory never hurts.

    ``claim`` ``"feasibility"``: more memory never turns ok into failure; ``"cost"``: it never makes
    it slower. A claim that cannot be proved raises `MonotonicityUndecided`, unless
    ``allow_undecided``. ``options`` are those of `check`. Returns the map that proves the claim.
    """
    (checked,) = check(trace, policy, claims=(claim,), **options)
    if checked.map.stopped == "interrupted":
        raise KeyboardInterrupt
    found, verdict = checked.map, checked.verdict
    under = f" under {found.origin.policy}" if found.origin.policy else ""
    subject = f"{found.origin.trace}{under}"
    if verdict.witness is not None:
        more = "more memory fails" if claim == "feasibility" else "more memory costs more"
        raise MonotonicityViolation(f"{subject}: {more}: {verdict.witness}", verdict.witness, found)
    if verdict.verdict == "undecided" and not allow_undecided:
        raise MonotonicityUndecided(f"{subject}: {claim} is undecided: {verdict.reason}", found)
    return found


def _system(
    trace: Any,
    policy: Any,
    limit: float | None,
    align: int | None,
    engine: str,
    timeout: float | None,
) -> System:
    if is_runtime(trace):
        if policy is not None:
            raise UsageError("a system has its own policy; give a policy only with a trace")
        return as_system(trace)
    if isinstance(trace, str | os.PathLike) or hasattr(trace, "read"):
        from monofuzz.trace import load

        trace = load(trace)
    from monofuzz.replay.policy import Policy
    from monofuzz.replay.system import TraceSystem

    # A policy can be called, too: it gives a score.
    if not isinstance(policy, Policy) and is_runtime(policy):
        return as_system(policy, trace)

    system: System = TraceSystem(
        trace,
        "dtr" if policy is None else policy,
        limit=limit,
        align=align,
        engine=engine,
        timeout=timeout,
    )
    return system


def _explore(
    system: System,
    between: tuple[Budget, Budget],
    jobs: int | None,
    limits: Limits,
    out: str | os.PathLike[str] | None,
    progress: Callable[[Progress], None] | None,
    direction: Direction,
    decided: Callable[[Rows], bool] | None,
) -> Map:
    if direction not in get_args(Direction):
        raise UsageError(f"direction is {direction!r}; it must be adaptive, up or down")
    if jobs is not None and jobs < 0:
        raise UsageError(f"jobs is {jobs}; it must be a number of threads")
    runner = Runner(system)
    lo, hi = _budget.parse_range(between, runner.peak)
    origin = Origin.of(runner)
    journal = None if out is None else Journal(out)
    try:
        known = Map(origin, (lo, hi), joined([]))
        if journal is not None and journal.known is not None:
            known = _reusable(journal.known, origin, str(out), lo, hi)
        frontier = Frontier(
            lo, hi, known.table, direction=direction, walks=runner.walk_pays, name=runner.name
        )
        explorer = Explorer(
            runner,
            frontier,
            jobs=runner.default_jobs() if jobs is None else jobs,
            limits=limits,
            progress=progress,
            keep=None if journal is None else journal.append,
            sync=None if journal is None else journal.sync,
            decided=decided,
        )
        if journal is not None:
            journal.begin(known)
        stopped = explorer.explore()
        elsewhere = [clip(known.table, 0, lo), clip(known.table, hi, known.between[1])]
        full = Map(
            origin,
            known.between,
            joined([frontier.rows, *(rows for rows in elsewhere if len(rows))]),
            beyond=known.beyond,
            runs=known.runs + explorer.runs,
            stopped=stopped,
            seconds=explorer.seconds,
        )
        found = full.within(lo, hi)
        if stopped in ("complete", "sampled", "timeouts"):
            found.beyond = _look_beyond(found, runner)
            if full.between[1] == hi:
                full.beyond = found.beyond
        if journal is not None:
            journal.finish(full)
        return found
    finally:
        if journal is not None:
            journal.close()


def _reusable(known: Map, origin: Origin, path: str, lo: int, hi: int) -> Map:
    """What a file knows, in a range that holds its own and the one asked for."""
    if known.origin != origin:
        theirs, ours = dataclasses.asdict(known.origin), dataclasses.asdict(origin)
        differing = [
            f"{name} {theirs[name]!r}, not {ours[name]!r}"
            for name in theirs
            if name not in ("identity", "timeout") and theirs[name] != ours[name]
        ]
        how = "; ".join(differing) or "the same names, but other content or another version"
        raise StoredFileError(f"{path}: this map is of another system ({how}); choose another file")
    table, beyond, runs = known.table, known.beyond, known.runs
    if known.origin.timeout != origin.timeout:
        undecided = table["status"] == TIMEOUT
        runs -= int(np.sum(table["hi"][undecided] - table["lo"][undecided]))
        table = table[~undecided]
        beyond = tuple(run for run in beyond if run[1] != "timeout")
    between = min(lo, known.between[0]), max(hi, known.between[1])
    if between[1] != known.between[1]:
        beyond = ()
    return Map(origin, between, table, beyond=beyond, runs=runs)


def _look_beyond(found: Map, runner: Runner) -> tuple[tuple[int, str], ...]:
    """Runs above a range whose upper end is infeasible, to tell a hole from a wall."""
    rows, hi = found.table, found.between[1]
    if (
        not len(rows)
        or rows["hi"][-1] != hi
        or rows["status"][-1] not in (OOM, THRASHED)
        or not (rows["status"] == OK).any()
    ):
        return ()
    known = dict(found.beyond)
    runs: list[tuple[int, str]] = []
    for budget in (hi, max(hi, runner.peak or 0)):
        if not runs or (runs[-1][1] != "ok" and budget > hi):
            status = known.get(budget)
            runs.append((budget, runner.system.run(budget).status if status is None else status))
    return tuple(runs)
