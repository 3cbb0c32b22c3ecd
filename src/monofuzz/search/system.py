"""What the search explores: anything that can be run at a budget.

A *system* has ``run(budget)``, which answers with a *result*. A trace under a policy is one; so is
any object of a user's own. The search knows systems only through this module.
"""

from __future__ import annotations

import inspect
import os
import threading
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from monofuzz.errors import MonofuzzError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Result", "Runner", "Stop", "System"]


class Result(Protocol):
    """What a run at one budget gave.

    ``status`` is ``"ok"``, ``"oom"``, ``"thrashed"`` (the compute limit was reached) or
    ``"timeout"`` (undecided). ``cost`` is any real number of which less is better, ``overhead`` the
    cost as a multiple of the cost without a limit on memory. ``interval`` is ``(lo, hi)``: every
    integer budget ``lo <= b < hi`` makes exactly this run (``hi`` None: all from ``lo`` on). It is
    believed only where ``certified`` is true; otherwise the run counts for its own budget alone.
    A deterministic system over small integers (a number of page frames, say) may certify
    ``(budget, budget + 1)``.

    A result may also have any of the counters of `monofuzz.replay.Outcome`. They are kept in the
    map, and neighbours are one regime only if all of them agree.
    """

    @property
    def status(self) -> str: ...
    @property
    def cost(self) -> float: ...
    @property
    def overhead(self) -> float: ...
    @property
    def interval(self) -> tuple[int, int | None]: ...
    @property
    def certified(self) -> bool: ...


@runtime_checkable
class System(Protocol):
    """Anything with ``run(budget)``, deterministic in the budget.

    It may besides offer

    - ``run_many(budgets, *, stop=None) -> list``: the runs of several budgets in one call, in
      order; a shorter list when ``stop`` was set meanwhile;
    - ``walk(lo, hi, *, stop=None) -> Iterator``: results in order from ``lo`` on, each for the
      budget at which the interval before it ends (with ``walk_pays`` False unless that costs less
      a run than asking for budgets in any order);
    - ``name``, ``policy``: text to show; ``peak``: the budget that ratios refer to; ``limit``,
      ``align``, ``timeout``: how it was set up;
    - ``identity``: text that determines its outcomes. A stored map is resumed only by a system of
      the same identity. Without one, the class and the name and policy stand in for it.

    A system with ``run_many`` is run from several threads at once; another one only if jobs are
    asked for.
    """

    def run(self, budget: int, /) -> Any: ...


class Stop(Protocol):
    """A flag that asks running work to end early."""

    def set(self) -> None: ...
    def is_set(self) -> bool: ...


class Runner:
    """A system with the defaults filled in for what it does not offer."""

    def __init__(self, system: System) -> None:
        if not callable(getattr(system, "run", None)):
            raise MonofuzzError(
                f"{type(system).__name__} is no system: it needs a method run(budget)"
            )
        self.system = system
        self._run_many = getattr(system, "run_many", None)
        self._run_many_stops = _takes_stop(self._run_many)
        self._walk = getattr(system, "walk", None)
        self._walk_stops = _takes_stop(self._walk)
        self.walk_pays = self._walk is not None and bool(getattr(system, "walk_pays", True))
        self.name = _text(system, "name") or type(system).__name__
        self.policy = _text(system, "policy") or ""
        self.peak: int | None = getattr(system, "peak", None)
        self.limit: float | None = getattr(system, "limit", None)
        self.align: int | None = getattr(system, "align", None)
        self.timeout: float | None = getattr(system, "timeout", None)

    @property
    def batches(self) -> bool:
        """Whether the system runs several budgets in one call."""
        return self._run_many is not None

    def new_stop(self) -> Stop:
        """A flag of the kind that the system's batches poll."""
        if not self.batches:
            return threading.Event()
        from monofuzz.replay.stop import StopFlag

        return StopFlag()

    @property
    def identity(self) -> str:
        """Text that determines the outcomes, as far as the system says."""
        own = getattr(self.system, "identity", None)
        if own is not None:
            return str(own)
        kind = type(self.system)
        return f"{kind.__module__}.{kind.__qualname__}/{self.name}/{self.policy}"

    def default_jobs(self) -> int:
        """All processors that this process may use; 0, the calling thread, without batches."""
        if self._run_many is None:
            return 0
        try:
            return len(os.sched_getaffinity(0))
        except AttributeError:  # not on this operating system
            return os.cpu_count() or 1

    def run_many(self, budgets: Sequence[int], stop: Stop) -> list[Any]:
        """The results of ``budgets``, in order; fewer if ``stop`` is set meanwhile."""
        if self._run_many is not None:
            if self._run_many_stops:
                return list(self._run_many(budgets, stop=stop))
            return list(self._run_many(budgets))
        results = []
        for budget in budgets:
            if stop.is_set():
                break
            results.append(self.system.run(budget))
        return results

    def walk(self, lo: int, hi: int, stop: Stop) -> Iterator[Any]:
        """Results in order from ``lo`` on until ``hi`` is covered or ``stop`` is set."""
        if self._walk is not None:
            yield from self._walk(lo, hi, stop=stop) if self._walk_stops else self._walk(lo, hi)
            return
        budget: int | None = lo
        while budget is not None and budget < hi and not stop.is_set():
            result = self.system.run(budget)
            yield result
            budget = result.interval[1] if getattr(result, "certified", False) else budget + 1


def _text(system: System, field: str) -> str | None:
    value = getattr(system, field, None)
    return None if value is None else str(value)


def _takes_stop(method: Any) -> bool:
    if method is None:
        return False
    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == "stop" or p.kind is p.VAR_KEYWORD for p in parameters)
