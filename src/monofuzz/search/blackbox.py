"""Systems of a user's own: a function or an object that runs at a budget and says little about it.

Such a system knows no intervals, so each of its runs counts for one budget, and no number of them
proves anything: what is found is a refutation or nothing.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from monofuzz.errors import MonofuzzError, UsageError
from monofuzz.search.rows import STATUSES

if TYPE_CHECKING:
    from collections.abc import Callable

    from monofuzz.search.system import System
    from monofuzz.trace import Trace

__all__ = ["BlackBox", "Run", "as_system", "is_runtime", "runtime_name", "takes_trace"]

_GIVE = (
    "return True (it ran), False (out of memory), a number (it ran, at this cost) or a monofuzz.Run"
)
_HOW = (
    "a runtime is a function of a budget, or of a trace and a budget, or an object with a method "
    "run of that kind"
)
_RESULT = ("status", "cost", "overhead", "interval", "certified")


@dataclass(frozen=True, slots=True)
class Run:
    """What happened at one budget, for runtimes that have more to say than a number.

    ``status`` is ``"ok"``, ``"oom"``, ``"thrashed"`` (over a limit on compute) or ``"timeout"``
    (given up: counts as nothing). ``cost`` is a number from 0 on, in any unit, of which less is
    better; None: it is not known. ``detail`` is shown to the reader of a failure.

    Raises `UsageError` for anything else.
    """

    status: str = "ok"
    cost: float | None = None
    detail: str = ""

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise UsageError(
                f"the status of a run is one of {', '.join(STATUSES)}, not {self.status!r}"
            )
        if self.cost is not None:
            _checked_cost(self.cost)


@dataclass(frozen=True, slots=True)
class _Sample:
    """A `Run` as the search takes it."""

    status: str
    cost: float
    overhead: float
    interval: tuple[int, int | None]
    detail: str
    priced: bool
    certified: bool = False


class BlackBox:
    """A runtime of the user's own as a system; with a trace, it is run on that trace.

    Out of memory is an answer of False, a `Run` that says so, MemoryError, or any exception whose
    class is called OutOfMemoryError, as PyTorch's is. All other exceptions go through, with a note
    of the budget and the trace.

    Raises `UsageError` for what is no runtime, or does not go with the trace.
    """

    def __init__(self, runtime: Any, trace: Trace | None = None) -> None:
        call = _method(runtime)
        with_trace = takes_trace(runtime)
        own = runtime_name(runtime)
        if with_trace and trace is None:
            raise UsageError(f"{own} runs a trace at a budget: say on which trace")
        if trace is not None and not with_trace:
            raise UsageError(f"{own} takes no trace: it can only be run at a budget")
        self._call: Callable[[int], Any] = call if trace is None else functools.partial(call, trace)
        self._runtime = runtime
        self._trace = trace
        self._own = own
        self.name = own if trace is None else trace.meta.name or trace.digest[:12]
        self.policy = str(getattr(runtime, "policy", "")) if trace is None else own
        self.limit = getattr(runtime, "limit", None)
        self.align = getattr(runtime, "align", None)
        self.timeout = getattr(runtime, "timeout", None)
        self.unpriced = False
        """Whether a run succeeded without saying at what cost."""

    @functools.cached_property
    def peak(self) -> int | None:
        """The budget that ratios refer to: the trace's peak, or what the runtime says it is."""
        own: int | None = getattr(self._runtime, "peak", None)
        if own is not None or self._trace is None:
            return own
        if self._trace.meta.peak is not None:
            return self._trace.meta.peak
        from monofuzz.replay import peak_memory

        return peak_memory(self._trace)

    @property
    def identity(self) -> str:
        own = getattr(self._runtime, "identity", None)
        kind = self._runtime if inspect.isroutine(self._runtime) else type(self._runtime)
        module, name = getattr(kind, "__module__", "?"), getattr(kind, "__qualname__", repr(kind))
        digest = "" if self._trace is None else self._trace.digest
        return f"{own or f'{module}.{name}/{self._own}'}/{digest}"

    def run(self, budget: int) -> Any:
        """The run at ``budget``. Raises `MonofuzzError` for an answer that says nothing."""
        try:
            answer = self._call(budget)
        except (Exception, SystemExit) as error:
            if not _out_of_memory(error):
                error.add_note(f"monofuzz: while {self._subject} ran at budget {budget}")
                raise
            sample = _sample(Run("oom", None, str(error)), budget)
        else:
            if all(hasattr(answer, name) for name in _RESULT):
                return answer
            try:
                sample = _sample(_understood(answer), budget)
            except UsageError as error:
                raise MonofuzzError(
                    f"the answer of {self._subject} at budget {budget} is not usable: {error}"
                ) from None
        self.unpriced = self.unpriced or (sample.status == "ok" and not sample.priced)
        return sample

    @property
    def _subject(self) -> str:
        return self._own if self._trace is None else f"{self._own} on {self.name}"


def as_system(runtime: Any, trace: Trace | None = None) -> System:
    """The system that a runtime is (on a trace, if it takes one).

    One that offers ``run_many`` or ``walk`` speaks the language of systems already, and is taken as
    it is. Raises `UsageError`.
    """
    known = (
        isinstance(runtime, BlackBox) or hasattr(runtime, "run_many") or hasattr(runtime, "walk")
    )
    if trace is None and known:
        system: System = runtime
        return system
    return BlackBox(runtime, trace)


def is_runtime(thing: Any) -> bool:
    """Whether something may be a runtime or a system: it can be called, or has a method run."""
    return callable(getattr(thing, "run", None)) or callable(thing)


def takes_trace(runtime: Any) -> bool:
    """Whether a runtime is run on a trace (at a budget), not at a budget alone.

    Raises `UsageError` for what is no runtime.
    """
    call, own = _method(runtime), runtime_name(runtime)
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):
        raise UsageError(f"the parameters of {own} are not known; wrap it in a function") from None
    parameters = list(signature.parameters.values())
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p.name for p in places if p.default is p.empty]
    missing = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if missing or not places or len(needed) > 2:
        raise UsageError(f"{own} takes {signature}; {_HOW}")
    return len(needed) == 2 or (places[0].name == "trace" and len(places) > 1)


def _method(runtime: Any) -> Callable[..., Any]:
    if inspect.isclass(runtime):
        raise UsageError(f"{runtime.__name__} is a class; give an object of it")
    method = getattr(runtime, "run", None)
    if not callable(method):
        method = runtime
    if not callable(method):
        raise UsageError(f"{runtime!r:.80} cannot be run; {_HOW}")
    if inspect.iscoroutinefunction(method):
        raise UsageError(
            f"{runtime_name(runtime)} is a coroutine; wrap it in a function that awaits it"
        )
    return method  # type: ignore[no-any-return]


def runtime_name(runtime: Any) -> str:
    """What a runtime is called in texts: its own ``name``, else that of its function or class."""
    for said in (getattr(runtime, "name", None), getattr(runtime, "__name__", None)):
        if isinstance(said, str) and said:
            return said
    if isinstance(runtime, functools.partial):
        return runtime_name(runtime.func)
    return type(runtime).__name__


def _out_of_memory(error: BaseException) -> bool:
    return any(kind.__name__ in ("MemoryError", "OutOfMemoryError") for kind in type(error).mro())


def _understood(answer: Any) -> Run:
    if isinstance(answer, Run):
        return answer
    if answer is None:
        raise UsageError(f"it is None; {_GIVE}")
    if isinstance(answer, bool | np.bool_):
        return Run("ok" if answer else "oom")
    if isinstance(answer, numbers.Real):
        return Run("ok", answer)  # type: ignore[arg-type]
    status = getattr(answer, "status", None)
    if status is None:
        raise UsageError(f"it is {answer!r:.60}; {_GIVE}")
    cost = getattr(answer, "cost", None)
    return Run(status, cost if status == "ok" else None, str(getattr(answer, "detail", "")))


def _checked_cost(cost: object) -> None:
    if isinstance(cost, bool | np.bool_) or not isinstance(cost, numbers.Real):
        raise UsageError(f"a cost is a number, not {cost!r:.60}")
    try:
        finite = math.isfinite(cost)
    except OverflowError:
        raise UsageError("a cost is less than 1e308, about the largest float") from None
    if not finite:
        raise UsageError(f"a cost is finite, not {cost}; a run that does not succeed gives False")
    if cost < 0:
        raise UsageError(f"a cost is 0 or more, not {cost}")


def _sample(run: Run, budget: int) -> _Sample:
    cost = 0 if run.cost is None else run.cost
    return _Sample(
        status=run.status,
        cost=cost,
        overhead=float(cost),
        interval=(budget, budget + 1),
        detail=run.detail,
        priced=run.cost is not None,
    )
