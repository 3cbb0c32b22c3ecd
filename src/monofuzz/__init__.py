"""Where does more memory make a rematerialised training step fail, or slow it down?

The names listed in ``__all__`` are the public interface. They are looked up when first used, so
that ``import monofuzz`` costs next to nothing: compilers and plotting libraries are imported by
the call that needs them.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monofuzz.counterexample import Counterexample as Counterexample
    from monofuzz.errors import FlakyError as FlakyError
    from monofuzz.errors import MonofuzzError as MonofuzzError
    from monofuzz.generate import strategies as strategies
    from monofuzz.hunt import hunt as hunt
    from monofuzz.replay import Outcome as Outcome
    from monofuzz.replay import peak_memory as peak_memory
    from monofuzz.replay import replay as replay
    from monofuzz.replay.policy import policy as policy
    from monofuzz.search import Map as Map
    from monofuzz.search import MonotonicityUndecided as MonotonicityUndecided
    from monofuzz.search import MonotonicityViolation as MonotonicityViolation
    from monofuzz.search import Run as Run
    from monofuzz.search import assert_monotone as assert_monotone
    from monofuzz.search import check as check
    from monofuzz.search import map_budgets as map_budgets
    from monofuzz.shrink import shrink as shrink
    from monofuzz.systems.curve import Measured as Measured
    from monofuzz.systems.curve import check_measured as check_measured
    from monofuzz.trace import Trace as Trace
    from monofuzz.trace import load as load
    from monofuzz.trace.record import record as record
    from monofuzz.trace.record import record_step as record_step

__version__ = "0.1.0"

_HOMES = {
    "Counterexample": "monofuzz.counterexample",
    "FlakyError": "monofuzz.errors",
    "Map": "monofuzz.search",
    "Measured": "monofuzz.systems.curve",
    "MonofuzzError": "monofuzz.errors",
    "MonotonicityUndecided": "monofuzz.search",
    "MonotonicityViolation": "monofuzz.search",
    "Outcome": "monofuzz.replay",
    "Run": "monofuzz.search",
    "Trace": "monofuzz.trace",
    "assert_monotone": "monofuzz.search",
    "check": "monofuzz.search",
    "check_measured": "monofuzz.systems.curve",
    "hunt": "monofuzz.hunt",
    "load": "monofuzz.trace",
    "map_budgets": "monofuzz.search",
    "peak_memory": "monofuzz.replay",
    "policy": "monofuzz.replay.policy",
    "record": "monofuzz.trace.record",
    "record_step": "monofuzz.trace.record",
    "replay": "monofuzz.replay",
    "shrink": "monofuzz.shrink",
    "strategies": "monofuzz.generate",
}

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604


class _CallablePackage(ModuleType):
    """A subpackage that is also the function of its own name: ``monofuzz.replay(...)``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = getattr(self, self.__name__.rpartition(".")[2])
        return function(*args, **kwargs)


class _Package(ModuleType):
    """This package: importing ``monofuzz.replay`` must not hide the function of that name."""

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and name in _HOMES:
            value.__class__ = _CallablePackage
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'monofuzz' has no attribute {name!r}")
    home = importlib.import_module(_HOMES[name])
    # Importing a subpackage binds its name here already, as a callable package.
    if name not in globals():
        globals()[name] = getattr(home, name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
