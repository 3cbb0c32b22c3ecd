"""A run, event by event: what was computed, evicted and released, and what the policy chose from.

There is one engine. This module runs its interpreted form with observers around some of its
functions, in a module of its own, so that no other run is touched. Observers only read; what they
must try out (what would have been chosen instead?) they try on a copy of the state.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from monofuzz.replay._jit import fresh_kernel
from monofuzz.replay.policy import parse
from monofuzz.replay.system import TraceSystem

if TYPE_CHECKING:
    from types import ModuleType

    from monofuzz.replay import Outcome
    from monofuzz.replay.policy import Policy
    from monofuzz.trace import Trace

__all__ = ["Choice", "Event", "Kind", "Timeline", "parting", "timeline"]

Kind = Literal["compute", "recompute", "evict", "release", "pin", "fail"]


@dataclass(frozen=True, slots=True)
class Choice:
    """An eviction that the policy chose. Storages are named by their root tensors.

    ``score`` is what the policy minimises, of the storage chosen: None if the policy has none,
    infinite for what it evicts only for want of anything else. ``runner_up`` is what it would have
    chosen if ``storage`` had not been there; None if nothing else was, or the choice is random.
    ``candidates``: how many storages there were to choose from.
    """

    storage: int
    score: float | None
    runner_up: int | None
    runner_up_score: float | None
    candidates: int


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened, and what was the case after it.

    ``command`` is the place in the trace's schedule at which it happened. ``operator`` is the
    operator computed, that failed for want of memory, or for which an eviction made room; None for
    releases and pins. ``storages`` (root tensors) came to be, or went, or were pinned. ``memory``
    is what is resident, ``pinned`` the part of it that cannot be evicted, in bytes. ``depth``
    counts the operators under way: 1 for one of the schedule, more for what is rematerialised for
    it, 0 between operators. ``time`` is the compute done so far, in nanoseconds.
    """

    kind: Kind
    command: int
    operator: int | None
    storages: tuple[int, ...]
    memory: int
    pinned: int
    depth: int
    time: int
    choice: Choice | None = None


@dataclass(frozen=True)
class Timeline:
    """All events of a run, and its outcome.

    ``moves[i]`` are the storages that entered or left the pool of the evictable ones before event
    ``i``, and those that did while it happened.
    """

    events: tuple[Event, ...]
    outcome: Outcome
    moves: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = field(repr=False)

    def resident(self, index: int) -> frozenset[int]:
        """The storages in memory before event ``index``, or with len(events) at the end."""
        there: set[int] = set()
        for event in self.events[:index]:
            if event.kind in ("compute", "recompute"):
                there |= set(event.storages)
            elif event.kind in ("evict", "release"):
                there -= set(event.storages)
        return frozenset(there)

    def pool(self, index: int) -> frozenset[int]:
        """The storages that could be evicted when event ``index`` happened."""
        pool: set[int] = set()
        for before, during in self.moves[:index]:
            pool.symmetric_difference_update(_odd(before + during))
        return frozenset(pool ^ _odd(self.moves[index][0]))

    def locked(self, index: int) -> frozenset[int]:
        """The storages in memory after event ``index`` that could not be evicted."""
        return self.resident(index + 1) - (self.pool(index) ^ _odd(self.moves[index][1]))


def _odd(moves: tuple[int, ...]) -> set[int]:
    """What moved an odd number of times."""
    return {storage for storage, times in Counter(moves).items() if times % 2}


def timeline(
    trace: Trace,
    policy: str | Policy,
    budget: int,
    *,
    limit: float | None = 60.0,
    align: int | None = None,
) -> Timeline:
    """The run of a trace under a policy at ``budget`` bytes; ``limit`` and ``align`` as in
    `TraceSystem`, which says what is raised. Some thousand times slower than a compiled run."""
    system = _Observed(trace, policy, limit, align)
    outcome = system.run(budget)
    observer = system.observer
    return Timeline(tuple(observer.events), outcome, tuple(observer.moves))


def parting(one: Timeline, other: Timeline) -> int:
    """The index of the first event in which two runs differ; that of the shorter's end if none."""

    def what(event: Event) -> tuple[object, ...]:
        return event.kind, event.command, event.operator, event.storages

    pairs = zip(one.events, other.events, strict=False)
    same = (what(a) == what(b) for a, b in pairs)
    return next(
        (index for index, equal in enumerate(same) if not equal),
        min(len(one.events), len(other.events)),
    )


class _Observed(TraceSystem):
    """A trace under a policy on an engine that tells what it does."""

    def __init__(
        self, trace: Trace, policy: str | Policy, limit: float | None, align: int | None
    ) -> None:
        self.observer = _Observer(fresh_kernel())
        policy = self.observer.listening(parse(policy))
        super().__init__(trace, policy, limit=limit, align=align, engine="interpreted")
        self.observer.roots = self._program.roots.tolist()

    def _load(self) -> ModuleType:
        kernel: ModuleType = self.observer.kernel
        return kernel


class _Observer:
    """Replaces functions of a kernel by ones that do the same and note an event."""

    def __init__(self, kernel: ModuleType) -> None:
        self.kernel: Any = kernel
        self.events: list[Event] = []
        self.moves: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        self.roots: list[int] = []
        self._moved: list[int] = []
        self._before: tuple[int, ...] = ()
        self._choice: Choice | None = None
        self._own_scores: list[float] = []
        self._run, kernel.run = kernel.run, self.run  # type: ignore[attr-defined]
        self._enter, kernel.enter = kernel.enter, self.enter  # type: ignore[attr-defined]
        self._leave, kernel.leave = kernel.leave, self.leave  # type: ignore[attr-defined]
        self._choose, kernel.choose = kernel.choose, self.choose  # type: ignore[attr-defined]
        self._evict, kernel.evict = kernel.evict, self.evict  # type: ignore[attr-defined]
        self._finish, kernel.finish = kernel.finish, self.finish  # type: ignore[attr-defined]
        self._command, kernel.command = kernel.command, self.command  # type: ignore[attr-defined]

    def listening(self, policy: Policy) -> Policy:
        """The policy; if its score function is the user's own, one that tells its results."""
        inner = policy.function
        if inner is None:
            return policy

        @functools.wraps(inner)
        def function(*fields: float) -> float:
            value = inner(*fields)
            self._own_scores.append(float(value))
            return value

        return dataclasses.replace(policy, function=function)

    # Functions of the kernel

    def run(self, m: Any, *rest: Any) -> int:
        # A run begins anew when a buffer was too small.
        self.events.clear()
        self.moves.clear()
        self._before = ()
        self._moved.clear()
        depth: int = self._run(m, *rest)
        k = self.kernel
        if m[k.STATUS] == k.OOM:
            self._begin()
            self._note("fail", m, ())
        return depth

    def enter(self, m: Any, f: Any, s: int) -> None:
        self._enter(m, f, s)
        self._moved.append(self.roots[s])

    def leave(self, m: Any, f: Any, s: int) -> None:
        self._leave(m, f, s)
        self._moved.append(self.roots[s])

    def choose(self, m: Any, f: Any, own: Any, need: int) -> int:
        k = self.kernel
        candidates = m[k.POOL_LIVE]
        self._own_scores.clear()
        storage: int = self._choose(m, f, own, need)
        if m[k.RULE] == k.RULE_RANDOM:
            self._choice = Choice(self.roots[storage], None, None, None, candidates)
            return storage
        m, f = memoryview(bytearray(m)).cast("q"), memoryview(bytearray(f)).cast("d")
        score = self._score(m, f, storage)
        runner_up = runner_up_score = None
        if candidates > 1:
            self._leave(m, f, storage)
            self._own_scores.clear()
            other = self._choose(m, f, own, need)
            runner_up, runner_up_score = self.roots[other], self._score(m, f, other)
        self._choice = Choice(self.roots[storage], score, runner_up, runner_up_score, candidates)
        return storage

    def evict(self, m: Any, f: Any, s: int, released: bool) -> None:
        self._begin()
        self._evict(m, f, s, released)
        if released:
            self._note("release", m, (s,))
        else:
            self._note("evict", m, (s,), self._choice)

    def finish(self, m: Any, f: Any, t: int, remat: bool) -> None:
        k = self.kernel
        op = m[m[k.T_OP] + t]
        storages = [
            m[i] for i in range(m[k.OS] + m[m[k.OS_PTR] + op], m[k.OS] + m[m[k.OS_PTR] + op + 1])
        ]
        fresh = [s for s in storages if m[m[k.ICOST] + s] >= 0]
        self._begin()
        self._finish(m, f, t, remat)
        self._note("recompute" if remat else "compute", m, tuple(fresh))

    def command(self, m: Any, f: Any) -> None:
        k = self.kernel
        at = m[k.PC]
        pin = m[m[k.CMD] + at] == k.PIN
        s = m[m[k.T_STO] + m[m[k.OPERAND] + at]] if pin else -1
        before = pin and m[m[k.PINNED] + s]
        self._begin()
        self._command(m, f)
        if pin and m[m[k.PINNED] + s] and not before:
            self._note("pin", m, (s,), command=at)

    # What they note

    def _begin(self) -> None:
        """What moved so far moved before the event to come."""
        self._before = self._before + tuple(self._moved)
        self._moved.clear()

    def _note(
        self,
        kind: Kind,
        m: Any,
        storages: tuple[int, ...],
        choice: Choice | None = None,
        *,
        command: int | None = None,
    ) -> None:
        k = self.kernel
        depth = m[k.SP]
        operator = m[m[k.T_OP] + m[m[k.STK_T] + depth - 1]] if depth else None
        self.moves.append((self._before, tuple(self._moved)))
        self._before = ()
        self._moved.clear()
        self.events.append(
            Event(
                kind=kind,
                command=m[k.PC] if command is None else command,
                operator=operator,
                storages=tuple(self.roots[s] for s in storages),
                memory=m[k.MEMORY],
                pinned=m[k.MEMORY] - m[k.POOL_BYTES],
                depth=depth,
                time=m[k.MODEL] + m[k.REMAT],
                choice=choice,
            )
        )

    def _score(self, m: Any, f: Any, s: int) -> float:
        """What the policy minimises, for a candidate of the choice just made on this state."""
        k = self.kernel
        if m[k.NUM] == k.NUM_OWN:
            entries = [m[m[k.POOL_S] + i] for i in range(m[k.POOL_N])]
            place = [e for e in entries if e >= 0].index(s)
            return self._own_scores[place]
        size = m[m[k.S_SIZE] + s] if m[k.USE_M] else 1
        if m[k.NUM] == k.NUM_UNOPT:
            cost, stale = k.neighbourhood(m, s)
            return float(k.quotient(cost, size, stale)) if size > 0 and stale > 0 else math.inf
        if size == 0 or (m[k.USE_T] and k.staleness(m, s) == 0):
            return math.inf
        k.settle(m, f, s, k.UNBOUNDED)
        exact = k.numerator(m, s) if m[k.INTEGRAL] else k.score(m, f, s)
        return float(exact)
