"""A trace under a policy: the system whose budgets monofuzz searches."""

from __future__ import annotations

import functools
import hashlib
import numbers
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from monofuzz.errors import BudgetError, PolicyError, ResourceError, TraceError, UsageError
from monofuzz.replay._jit import compile_entry, load_kernel
from monofuzz.replay.outcome import Fail, Outcome, Status
from monofuzz.replay.own import scan_of
from monofuzz.replay.policy import Policy, parse
from monofuzz.replay.program import compile_program
from monofuzz.replay.stop import StopFlag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

    from monofuzz.trace.model import Trace

__all__ = ["TraceSystem", "prepare"]

IntArray = npt.NDArray[np.int64]
MAX_BUDGET = 2**62
_WALK_ROWS = 64
_LEVELS = 4
_PAUSE = 200
_WATCHES, _WATCHES_EACH = 1024, 24
"""Room in the watch lists: beyond it, bounds over parents are looser and runs slower."""
_RECORDED_BYTES = 2**32
"""The most memory for the victims of one run."""


@dataclass
class _Bench:
    """The buffers of one thread, as the kernel takes them."""

    m: IntArray
    f: npt.NDArray[np.float64]
    initial: IntArray
    saved: IntArray


class TraceSystem:
    """A trace under a policy: `run` it at a budget, or `walk` through all budgets of a range.

    ``limit``: a run whose rematerialisation exceeds (limit - 1) times the model's compute ends
    ``thrashed``; None lifts it; ``remat_limit`` gives the same in nanoseconds. ``timeout``: seconds
    after which a single run is abandoned (status ``timeout``). ``align``: sizes rounded up to a
    multiple of so many bytes. ``engine``: ``compiled`` (numba) or ``interpreted`` (plain Python).

    Safe to use from several threads; runs release the interpreter lock.
    """

    def __init__(
        self,
        trace: Trace,
        policy: str | Policy,
        *,
        limit: float | None = 60.0,
        remat_limit: int | None = None,
        timeout: float | None = None,
        align: int | None = None,
        engine: str = "compiled",
    ) -> None:
        self.trace = trace
        self._policy = parse(policy)
        self.policy = str(self._policy)
        self.name = trace.meta.name or trace.digest[:12]
        self.limit = limit
        self.align = align
        self.engine = engine
        self.timeout = _checked_timeout(timeout)
        self._program = compile_program(trace, align)
        self.model_compute = self._program.model_compute
        self.remat_limit = (
            remat_limit if remat_limit is not None else _remat_limit(limit, self.model_compute)
        )
        self._kernel = self._load()
        if self._policy.needs_betweenness:
            from monofuzz.replay.betweenness import ranks

            self._program.arrays["RANK"][:] = ranks(trace)
        self._own = scan_of(self._policy, self._kernel, engine)
        self._slots = 64
        self._victims = 4 * self._program.storages + 1024
        self._local = threading.local()
        self._idle = StopFlag()

    @property
    def rule(self) -> Policy:
        """The policy itself, of which ``policy`` is the text."""
        return self._policy

    @property
    def identity(self) -> str:
        """A hash of everything that determines the outcomes: trace, policy, limit, alignment."""
        text = (
            f"trace {self.trace.digest}\npolicy {self._policy.identity}\n"
            f"remat_limit {self.remat_limit}\nalign {self.align or 1}\n"
        )
        return hashlib.sha256(text.encode()).hexdigest()

    @functools.cached_property
    def peak(self) -> int:
        """The peak memory of a run without a budget, in bytes."""
        return self._runs([MAX_BUDGET])[0].peak_memory

    def run(self, budget: int, *, stop: StopFlag | None = None) -> Outcome:
        """The run at ``budget`` bytes, its victims recorded."""
        return self._runs([_checked(budget)], record=True, stop=stop)[0]

    def run_many(self, budgets: Sequence[int], *, stop: StopFlag | None = None) -> list[Outcome]:
        """The runs at all ``budgets``, in one call; fewer of them once ``stop`` is set."""
        if not budgets:
            return []
        return self._runs([_checked(b) for b in budgets], stop=stop)

    def walk(self, lo: int, hi: int, *, stop: StopFlag | None = None) -> Iterator[Outcome]:
        """The runs of all intervals that meet lo <= budget < hi, upwards, each one once.

        A run is forked off the one before where they part, so that the common beginning is not
        repeated. Ends early when ``stop`` is set.
        """
        budget = _checked(lo)
        while budget < hi:
            outcomes = self._runs([budget], walk_to=hi, stop=stop)
            yield from outcomes
            if not outcomes or (stop is not None and stop.is_set()):
                return
            end = outcomes[-1].interval[1]
            if end is None:
                return
            budget = end

    # ------------------------------------------------------------------------------ engine

    def _load(self) -> ModuleType:
        return prepare(self.engine)

    def _runs(
        self,
        budgets: list[int],
        *,
        walk_to: int = -1,
        record: bool = False,
        stop: StopFlag | None = None,
    ) -> list[Outcome]:
        kernel = self._kernel
        timed = self.timeout is not None
        outcomes: list[Outcome] = []
        while True:
            bench = self._bench()
            rows = 1 if timed else (_WALK_ROWS if walk_to >= 0 else len(budgets))
            wanted = budgets[:1] if timed else budgets
            results = np.zeros(rows * kernel.NRESULT, np.int64)
            victims = np.zeros(self._victims if record else 1, np.int64)
            flag = (stop or self._idle) if not timed else StopFlag()
            done = self._call(bench, wanted, walk_to, results, victims, flag, record, stop)
            table = results.reshape(rows, kernel.NRESULT)[:done]
            last = int(table[-1, 0])
            if last == kernel.MORE_SLOTS:
                self._more_slots()
                table = table[:-1]
            elif last == kernel.MORE_VICTIMS:
                self._victims *= 4
                if self._victims * 8 > _RECORDED_BYTES:
                    raise ResourceError("the run evicts too often for its victims to be recorded")
                continue
            elif last == kernel.OVERFLOW:
                raise TraceError(
                    "the run's clock passed 2**60 nanoseconds: lower the compute limit, or scale "
                    "the costs of the trace down"
                )
            elif last == kernel.TIMEOUT and (not timed or (stop is not None and stop.is_set())):
                table = table[:-1]
                return outcomes + [self._outcome(row, None) for row in table.tolist()]
            outcomes += [self._outcome(row, victims if record else None) for row in table.tolist()]
            if walk_to >= 0:
                if last != kernel.MORE_SLOTS:
                    return outcomes
                if len(table):
                    end = outcomes[-1].interval[1]
                    if end is None or end >= walk_to:
                        return outcomes
                    budgets = [end]
            else:
                budgets = budgets[len(table) :]
                if not budgets:
                    return outcomes

    def _call(
        self,
        bench: _Bench,
        budgets: list[int],
        walk_to: int,
        results: IntArray,
        victims: IntArray,
        flag: StopFlag,
        record: bool,
        stop: StopFlag | None,
    ) -> int:
        kernel = self._kernel
        bench.m[kernel.RECORD] = len(victims) if record else 0
        levels = _LEVELS if walk_to >= 0 and self.timeout is None else 0
        rows = len(results) // kernel.NRESULT
        at = self._at
        asked = np.array(budgets, np.int64)
        watch = None
        if self.timeout is not None:
            watch = threading.Timer(self.timeout, flag.set)
            watch.daemon = True
            watch.start()
        try:
            return int(
                kernel.run_batch(
                    at(bench.m), at(bench.f), self._own, at(bench.initial), at(bench.saved),
                    levels, _PAUSE, at(asked), len(budgets),
                    walk_to if self.timeout is None else -1,
                    at(results), rows, at(victims), at(flag.array),
                )
            )  # fmt: skip
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            if self._policy.function is None:
                raise
            raise PolicyError(
                f"score function {self._policy.name!r} raised {type(error).__name__}: {error}"
            ) from None
        finally:
            if watch is not None:
                watch.cancel()

    def _at(self, array: npt.NDArray[Any]) -> Any:
        """What the kernel takes for an array: its address, or interpreted, a view of it."""
        return array.ctypes.data if self.engine == "compiled" else memoryview(array)  # type: ignore[arg-type]

    def _outcome(self, row: list[int], victims: IntArray | None) -> Outcome:
        kernel = self._kernel
        (
            status, budget, lo, hi, model, remat, evictions, evictions_all, distinct, remats, peak,
            peak_pinned, depth_pinned, max_depth, f_pinned, f_request, f_depth, f_over, h1, h2,
        ) = row  # fmt: skip
        names: dict[int, Status] = {
            kernel.OK: "ok",
            kernel.OOM: "oom",
            kernel.THRASHED: "thrashed",
            kernel.TIMEOUT: "timeout",
        }
        name = names[status]
        roots: tuple[int, ...] | None = None
        sha = None
        if victims is not None:
            roots = tuple(self._program.roots[victims[:evictions]].tolist())
            sha = hashlib.sha256("".join(f"{v}," for v in roots).encode()).hexdigest()[:16]
        certified = name != "timeout"
        interval = (lo, None if hi == kernel.UNBOUNDED else hi)
        return Outcome(
            status=name,
            budget=budget,
            interval=interval if certified else (budget, budget + 1),
            model_compute=model,
            remat_compute=remat,
            evictions=evictions,
            evictions_all=evictions_all,
            distinct_evicted=distinct,
            remats=remats,
            peak_memory=peak,
            peak_pinned=peak_pinned,
            depth_at_peak_pinned=depth_pinned,
            max_depth=max_depth,
            fail=Fail(f_pinned, f_request, f_depth, f_over) if name == "oom" else None,
            fingerprint=h1 << 31 | h2,
            victims=roots,
            victims_sha256=sha,
            certified=certified,
        )

    def _more_slots(self) -> None:
        most = 2 * self._program.storages
        if self._slots >= most:
            raise AssertionError("more held regions than there are regions")
        self._slots = min(4 * self._slots, most)
        self._local = threading.local()

    def _bench(self) -> _Bench:
        bench: _Bench | None = getattr(self._local, "bench", None)
        if bench is None:
            bench = self._new_bench()
            self._local.bench = bench
        return bench

    def _new_bench(self) -> _Bench:
        kernel, program = self._kernel, self._program
        n, words = program.storages, (program.storages + 31) // 32
        flags, weights = self._policy.flags()
        classes = 2 * n + 64 if flags.get("CLASSES") else 0
        pool = 2 * n + 16
        stack, args = program.ops + 1, len(program.arrays["ARGS"])
        sizes = dict.fromkeys(kernel.STATE + kernel.SCRATCH, n)
        sizes |= dict.fromkeys(["CNT", "LB", "CN", "EX", "VER", "HELD"], 2 * n)
        sizes |= dict.fromkeys(["STK_T", "STK_B", "STK_I", "STK_E"], stack)
        sizes |= dict.fromkeys(["UF", "UFC", "SEEN"], classes)
        watches = _WATCHES + _WATCHES_EACH * n if flags.get("REGIONS") else 0
        sizes |= dict.fromkeys(["W_ROW", "W_NEXT"], watches)
        sizes |= {
            "DEFINED": program.tensors,
            "POOL_S": pool,
            "POOL_LA": pool,
            "REL": kernel.MANY + 1,
            "PLIST": args + 1,
            "SLOT_FREE": self._slots,
            "SLOT": self._slots * 2 * words,
            "NEW": program.most_outputs,
        }
        sizes |= {name: len(program.arrays[name]) for name in kernel.PROGRAM}
        offsets: dict[str, int] = {}
        end = kernel.ARRAYS
        for name in kernel.STATE + kernel.SCRATCH + kernel.PROGRAM:
            offsets[name] = end
            end += sizes[name]
        state_end = offsets[kernel.SCRATCH[0]]
        size = state_end - kernel.REGISTERS
        needed = 8 * (end + size * (1 + _LEVELS) + pool)
        there = _physical_memory()
        if needed > there // 2:
            raise ResourceError(
                f"a replay of this trace ({n:,} storages, {args:,} arguments) needs "
                f"{needed / 2**30:.1f} GiB of working memory a thread, more than half of the "
                f"{there / 2**30:.1f} GiB that this machine has: record a smaller step"
            )
        m = np.zeros(end, np.int64)
        for name, offset in offsets.items():
            m[getattr(kernel, name)] = offset
        for name, array in program.arrays.items():
            m[offsets[name] : offsets[name] + len(array)] = array
        for name, value in {
            "POS": -1,
            "HELD": -1,
            "NODE": -1,
            "W_HEAD": -1,
            "LA": kernel.NEVER,
        }.items():
            m[offsets[name] : offsets[name] + sizes[name]] = value
        m[offsets["SLOT_FREE"] : offsets["SLOT_FREE"] + self._slots] = np.arange(self._slots)
        scalars = flags | {
            "LIMIT": -1 if self.remat_limit is None else self.remat_limit,
            "SLOTS": self._slots,
            "WORDS": words,
            "N": n,
            "N_CMD": len(program.arrays["CMD"]),
            "POOL_CAP": pool,
            "UF_CAP": classes,
            "W_CAP": watches,
            "W_FREE": -1,
            "STATE_END": state_end,
            "CLOCK": 1,
            "HI": kernel.UNBOUNDED,
            "ERA": 1,
        }
        for name, value in scalars.items():
            m[getattr(kernel, name)] = value
        f = np.zeros(kernel.KEY + pool)
        f[: len(weights)] = weights
        return _Bench(
            m=m,
            f=f,
            initial=m[kernel.REGISTERS : state_end].copy(),
            saved=np.zeros(size * _LEVELS, np.int64),
        )


def prepare(engine: str = "compiled", announce: Callable[[], None] | None = None) -> ModuleType:
    """Load an engine; the first time on a machine, compile it (some 30 s) and keep it on disk.

    ``announce`` is called before a compilation. Other calls do this by themselves, in silence.
    """
    kernel = load_kernel(engine)
    if engine == "compiled":
        compile_entry(announce)
    return kernel


@functools.cache
def _physical_memory() -> int:
    """Bytes of memory that the machine has; where the system does not say, 8 GiB."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 8 * 2**30


def _checked(budget: int) -> int:
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer):
        raise BudgetError(f"a budget in bytes is a whole number, not {budget!r}")
    if not 0 <= budget <= MAX_BUDGET:
        raise BudgetError(f"a budget lies between 0 and 2**62 bytes, {budget} does not")
    return int(budget)


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _checked_timeout(timeout: float | None) -> float | None:
    if timeout is not None and not (_is_number(timeout) and timeout > 0):
        raise UsageError(f"timeout must be a positive number of seconds, not {timeout!r}")
    return timeout


def _remat_limit(limit: float | None, model_compute: int) -> int | None:
    """The greatest allowed rematerialisation compute, in nanoseconds."""
    if limit is None:
        return None
    if not (_is_number(limit) and 1 <= limit < float("inf")):
        raise UsageError(f"limit is a factor of the model's compute, 1 or more, not {limit!r}")
    if limit >= 2**62:
        return 2**62
    whole = int(limit)
    return min(int((whole - 1) * model_compute + (limit - whole) * model_compute), 2**62)
