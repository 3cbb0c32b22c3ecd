"""Exploring a range: the loop that takes gaps, runs them on threads, and keeps to limits."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Literal

from monofuzz.errors import MonofuzzError, UsageError
from monofuzz.search.rows import joined, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from monofuzz.search.frontier import Frontier, Gap
    from monofuzz.search.rows import Rows
    from monofuzz.search.system import Runner, Stop

__all__ = ["SAMPLED_RUNS", "Explorer", "Limits", "Progress", "Stopped"]

Stopped = Literal["complete", "max-runs", "time", "interrupted", "decided", "sampled", "timeouts"]
"""Why an exploration ended: `Map.stopped`."""

SAMPLED_RUNS = 20_000
"""How many runs a system without intervals gets if neither runs nor time are limited."""

# A task is work for one thread between two looks at results, limits and Ctrl-C.
_TASK_SECONDS = 0.1
_TASK_RUNS = 4096
_TICK_SECONDS = 0.1
_SYNC_SECONDS = 2.0
# So many tasks without a result in a row are a mistake of the system (a walk that had ended without
# saying so is none).
_MOST_BARREN = 100


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an exploration is.

    ``covered`` is the share of the range that is known, ``regimes`` counts the intervals found,
    ``seconds_left`` is a guess, or None while there is nothing to base one on.
    """

    covered: float
    runs: int
    regimes: int
    gaps: int
    seconds: float
    seconds_left: float | None


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop before everything is known; None: no such limit. ``seconds`` is wall time."""

    max_runs: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.max_runs is not None and self.max_runs < 0:
            raise UsageError(f"max_runs must not be negative, and is {self.max_runs}")
        if self.seconds is not None and not self.seconds >= 0:
            raise UsageError(f"the time limit must not be negative, and is {self.seconds}")


@dataclass(slots=True)
class _Task:
    """One run in each gap, at its budget, or (no budgets) a walk through each: ``most`` runs.

    A walk is kept with the results that it gave. Those that were not begun, or not finished, are
    missing or short.
    """

    gaps: list[Gap]
    most: int
    budgets: list[int] | None = None
    results: list[Any] = field(default_factory=list)
    walks: list[tuple[Iterator[Any], list[Any]]] = field(default_factory=list)
    seconds: float = 0.0
    error: BaseException | None = None


class _Slice:
    """A stop flag that is set at the end of a time slice, too, for loops in Python."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._end = time.perf_counter() + _TASK_SECONDS
        self._asked = False

    def set(self) -> None:
        self._stop.set()

    def is_set(self) -> bool:
        # The first run is always made, so that slow systems get on.
        first, self._asked = not self._asked, True
        return self._stop.is_set() or (not first and time.perf_counter() >= self._end)


class Explorer:
    """One exploration of what a frontier lacks.

    ``jobs`` threads run the system; 0 runs it in the calling thread, which saves starting threads
    for a map of a few microseconds, but then Ctrl-C and the time limit wait for the runs of one
    task. ``keep`` gets every array of new rows, ``sync`` is called every few seconds, ``decided``
    is asked now and then, with the sorted rows, whether enough is known. All callbacks are called
    in the calling thread.

    Attributes:
        runs: how many runs were made.
        busy: the seconds that threads spent in the system, added up.
        seconds: wall time.
    """

    def __init__(
        self,
        runner: Runner,
        frontier: Frontier,
        *,
        jobs: int,
        limits: Limits,
        progress: Callable[[Progress], None] | None = None,
        keep: Callable[[Rows], None] | None = None,
        sync: Callable[[], None] | None = None,
        decided: Callable[[Rows], bool] | None = None,
    ) -> None:
        self.runs = 0
        self.busy = 0.0
        self.seconds = 0.0
        self._runner = runner
        self._frontier = frontier
        self._jobs = jobs
        self._limits = limits
        self._progress = progress
        self._keep = keep
        self._sync = sync
        self._decided = decided
        self._stop: Stop = runner.new_stop()
        self._stopped: Stopped | None = None
        self._pace = 0.0
        self._in_flight = 0
        self._reserved = 0
        self._barren = 0
        self._walks: dict[tuple[int, int], Iterator[Any]] = {}
        self._unkept: list[Rows] = []
        self._next_look = 1
        self._started = self._ticked = self._synced = time.perf_counter()

    def explore(self) -> Stopped:
        """Explore until everything is known or a limit is reached; says which.

        An exception of the system is raised again after what was found has been kept. The first
        Ctrl-C (in the main thread) ends the exploration, a second one raises KeyboardInterrupt.
        """
        self._started = time.perf_counter()
        try:
            with self._interruptible():
                self._look()
                (self._on_threads if self._jobs else self._in_place)()
        finally:
            self._stop.set()
            self._flush()
            self.seconds = time.perf_counter() - self._started
        self._report()
        return self._stopped or "complete"

    # The loops

    def _in_place(self) -> None:
        while (task := self._next_task()) is not None:
            self._do(task)
            self._settle(task)
            self._tick()

    def _on_threads(self) -> None:
        tasks: SimpleQueue[_Task | None] = SimpleQueue()
        done: SimpleQueue[_Task] = SimpleQueue()

        def work() -> None:
            while (task := tasks.get()) is not None:
                self._do(task)
                done.put(task)

        threads = 0
        try:
            while True:
                while self._in_flight < self._jobs and (task := self._next_task()) is not None:
                    self._in_flight += 1
                    tasks.put(task)
                    if threads < self._in_flight:
                        threads += 1
                        threading.Thread(target=work, name="monofuzz", daemon=True).start()
                if not self._in_flight:
                    return
                try:
                    task = done.get(timeout=_TICK_SECONDS)
                except Empty:
                    pass
                else:
                    self._in_flight -= 1
                    self._settle(task)
                self._tick()
        finally:
            for _ in range(threads):
                tasks.put(None)

    def _next_task(self) -> _Task | None:
        frontier = self._frontier
        if self._stopped is not None or self._past_limits() or not len(frontier):
            return None
        first = frontier.next
        if first.hopeless and self._limits.max_runs is None and self._limits.seconds is None:
            if not self._in_flight:
                self._stopped = "timeouts"
            return None
        left = self._runs_allowed() - self._reserved
        paced = min(int(_TASK_SECONDS / self._pace) + 1 if self._pace else 1, left, _TASK_RUNS)
        share = -(-len(frontier) // max(self._jobs, 1))
        gaps = frontier.take_walks(share, paced)
        if gaps:
            task = _Task(gaps, min(2 * paced, left))
            self._reserved += task.most
            return task
        gaps = frontier.take(min(paced, share))
        self._reserved += len(gaps)
        return _Task(gaps, len(gaps), [frontier.probe(gap) for gap in gaps])

    def _do(self, task: _Task) -> None:
        started = time.perf_counter()
        try:
            if task.budgets is None:
                self._do_walks(task)
            else:
                stop = self._stop if self._runner.batches else _Slice(self._stop)
                task.results = self._runner.run_many(task.budgets, stop)
        except BaseException as error:  # raised again in the calling thread
            task.error = error
        task.seconds = time.perf_counter() - started

    def _do_walks(self, task: _Task) -> None:
        stop, left = _Slice(self._stop), task.most
        for gap in task.gaps:
            walk = self._walks.pop((gap.lo, gap.hi), None)
            if walk is None:
                walk = self._runner.walk(gap.lo, gap.hi, self._stop)
            results: list[Any] = []
            task.walks.append((walk, results))
            for result in walk:
                results.append(result)
                left -= 1
                # Walking on through budgets that time out would take the whole time for each.
                if not left or result.status == "timeout" or stop.is_set():
                    return

    def _settle(self, task: _Task) -> None:
        frontier, gaps = self._frontier, task.gaps
        if task.budgets is None:
            parts = []
            for gap, (walk, results) in zip(gaps, task.walks, strict=False):
                found, rest = frontier.advance(gap, results)
                parts.append(found)
                if rest is not None and rest.quiet and len(found):
                    self._walks[rest.lo, rest.hi] = walk
            rows, begun = joined(parts), len(task.walks)
        else:
            begun = len(task.results)
            rows = frontier.settle(zip(gaps, task.budgets, task.results, strict=False))
        self._reserved += len(rows) - task.most
        for gap in gaps[begun:]:
            frontier.give_back(gap)
        if len(rows):
            self.runs += len(rows)
            self.busy += task.seconds
            pace = task.seconds / len(rows)
            # Slower runs than expected count at once, faster ones by and by.
            self._pace = max(pace, 0.7 * self._pace + 0.3 * pace)
            self._unkept.append(rows)
            self._barren = 0
        elif task.error is None and not self._stop.is_set():
            self._barren += 1
            if self._barren > _MOST_BARREN:
                raise MonofuzzError(
                    f"{self._runner.name} gives no results for budgets in "
                    f"[{gaps[0].lo}, {gaps[0].hi}), though nothing asked it to stop"
                )
        if task.error is not None:
            if not isinstance(task.error, KeyboardInterrupt):
                raise task.error
            self._end("interrupted")
        self._look()

    # Limits and callbacks

    def _end(self, why: Stopped) -> None:
        if self._stopped is None:
            self._stopped = why
        self._stop.set()

    def _runs_allowed(self) -> int:
        return 2**62 if self._limits.max_runs is None else self._limits.max_runs

    def _past_limits(self) -> bool:
        seconds = self._limits.seconds
        if seconds is not None and time.perf_counter() - self._started >= seconds:
            self._end("time")
        elif self._reserved >= self._runs_allowed():
            if not self._in_flight and len(self._frontier):
                self._stopped = "max-runs"
            return True
        elif (
            self._frontier.sampled
            and seconds is None
            and self._limits.max_runs is None
            and self.runs >= SAMPLED_RUNS
        ):
            self._stopped = "sampled"
        return self._stopped is not None

    def _look(self) -> None:
        """Ask whether enough is known, each time that a tenth more is."""
        known = len(self._frontier.rows)
        if self._decided is not None and known >= self._next_look:
            self._next_look = known + known // 10 + 1
            if self._decided(merged(self._frontier.rows)):
                self._end("decided")

    def _tick(self) -> None:
        now = time.perf_counter()
        seconds = self._limits.seconds
        unfinished = self._in_flight or len(self._frontier)
        if seconds is not None and now - self._started >= seconds and unfinished:
            self._end("time")
        if now - self._ticked < _TICK_SECONDS:
            return
        self._ticked = now
        self._flush()
        if self._sync is not None and now - self._synced >= _SYNC_SECONDS:
            self._sync()
            self._synced = time.perf_counter()
        try:
            self._report()
        except KeyboardInterrupt:
            self._end("interrupted")

    def _flush(self) -> None:
        if self._keep is not None and self._unkept:
            self._keep(joined(self._unkept))
        self._unkept.clear()

    def _report(self) -> None:
        if self._progress is None:
            return
        frontier = self._frontier
        left = None
        if self.runs:
            left = self.busy / self.runs * frontier.runs_left / max(self._jobs, 1)
        self._progress(
            Progress(
                covered=frontier.covered / (frontier.hi - frontier.lo),
                runs=self.runs,
                regimes=len(frontier.rows),
                gaps=len(frontier) + self._in_flight,
                seconds=time.perf_counter() - self._started,
                seconds_left=left,
            )
        )

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        # A KeyboardInterrupt in the middle of the bookkeeping would lose what was found: the first
        # Ctrl-C only asks to stop.
        if (
            threading.current_thread() is not threading.main_thread()
            or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        ):
            yield
            return

        def ask(number: int, frame: Any) -> None:
            if self._stopped == "interrupted":
                signal.default_int_handler(number, frame)
            self._stopped = "interrupted"
            self._stop.set()

        signal.signal(signal.SIGINT, ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
