"""What is put to the test: a policy, a runtime that takes a trace, or one that does not."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from monofuzz.errors import UsageError
from monofuzz.replay.policy import FIELDS, Policy, parse
from monofuzz.replay.policy import policy as make_policy
from monofuzz.replay.system import TraceSystem
from monofuzz.search.blackbox import as_system, runtime_name, takes_trace

if TYPE_CHECKING:
    from monofuzz.search.system import System
    from monofuzz.trace import Trace

__all__ = ["Subject"]


@dataclass(frozen=True)
class Subject:
    """A policy, a *runtime* (run on a trace at a budget) or a *system* (run at a budget)."""

    kind: Literal["policy", "runtime", "system"]
    thing: Any
    name: str

    @classmethod
    def policy(cls, policy: Any) -> Subject:
        """A policy by its name, decorated, or as a plain score function.

        Raises `PolicyError`.
        """
        known = make_policy(policy) if inspect.isfunction(policy) else parse(policy)
        return cls("policy", known, str(known))

    @classmethod
    def runtime(cls, runtime: Any) -> Subject:
        """A function or object of the kinds that `monofuzz.search.blackbox` takes.

        Raises `UsageError`.
        """
        if isinstance(runtime, str | Policy):
            raise UsageError(f"{str(runtime)!r} is a policy, not a runtime: give it as policy=…")
        if inspect.isfunction(runtime) and _scores(runtime):
            raise UsageError(
                f"{runtime.__name__}{inspect.signature(runtime)} looks like the score function of "
                "a policy: decorate it with @monofuzz.policy, or give it as policy=…"
            )
        if hasattr(runtime, "run_many") or hasattr(runtime, "walk"):
            system = as_system(runtime)
            return cls("system", runtime, str(getattr(system, "name", type(runtime).__name__)))
        if takes_trace(runtime):
            return cls("runtime", runtime, runtime_name(runtime))
        return cls("system", runtime, runtime_name(runtime))

    @classmethod
    def of(cls, thing: Any) -> Subject:
        """Whatever it is: names and decorated functions are policies, all else is a runtime."""
        return cls.policy(thing) if isinstance(thing, str | Policy) else cls.runtime(thing)

    def on(self, trace: Trace, *, limit: float | None) -> System:
        """The system that it makes of a trace. ``limit`` (of compute) is for policies."""
        if self.kind == "policy":
            return TraceSystem(trace, self.thing, limit=limit)
        return as_system(self.thing, trace)


def _scores(function: Any) -> bool:
    names = list(inspect.signature(function).parameters)
    return bool(names) and set(names) <= set(FIELDS)
