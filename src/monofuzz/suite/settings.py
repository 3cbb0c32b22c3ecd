"""How hard a test looks."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from monofuzz import budget as _budget
from monofuzz.errors import UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from monofuzz.budget import Budget

__all__ = ["POLICY_EXAMPLES", "RUNTIME_EXAMPLES", "Settings"]

POLICY_EXAMPLES = 20_000
RUNTIME_EXAMPLES = 200
"""How many graphs are generated if nobody says: for a policy, and for a runtime."""

_ANY_PEAK = 2**40


@dataclass(frozen=True, slots=True)
class Settings:
    """The limits of a search, the same for each test.

    Attributes:
        between: the half-open range of budgets; None: 0.05 to 1.0 of a trace's peak, and on small
            graphs all budgets up to the peak.
        max_examples: how many graphs are generated; None: 20,000 for a policy, which is searched in
            one compiled loop, and 200 for a runtime.
        max_runs: how often a trace is run.
        time: seconds to search in, and as many again to shrink in.
        seed: which graphs are generated.
        tolerance: by how much more a larger budget may cost (0.05: five percent).
        limit: the compute limit of policies, as a multiple of the model's compute.
        allow_undecided: whether a test passes that found nothing, but proved nothing.

    Raises `UsageError` and `BudgetError` for values that make no sense.
    """

    between: tuple[Budget, Budget] | None = None
    max_examples: int | None = None
    max_runs: int = 2000
    time: float = 10.0
    seed: int = 0
    tolerance: float = 0.0
    limit: float | None = 60.0
    allow_undecided: bool = True

    def __post_init__(self) -> None:
        if self.between is not None:
            _check_range(self.between)
        if self.max_examples is not None:
            _whole("max_examples", self.max_examples, 1)
        _whole("max_runs", self.max_runs, 1)
        _whole("seed", self.seed, 0)
        if not (_number(self.time) and 0 < self.time < float("inf")):
            raise UsageError(f"time is a positive number of seconds, not {self.time!r}")
        if not (_number(self.tolerance) and 0 <= self.tolerance < float("inf")):
            raise UsageError(f"tolerance is a number from 0 on, not {self.tolerance!r}")
        if not isinstance(self.allow_undecided, bool):
            raise UsageError(f"allow_undecided is True or False, not {self.allow_undecided!r}")

    @classmethod
    def of(cls, given: Mapping[str, Any], *, beside: Sequence[str] = ()) -> Settings:
        """From keywords, naming the nearest known one for one that is unknown.

        The keywords ``beside`` are known, too, but not for this.
        """
        own = [field.name for field in fields(cls)]
        for name in given:
            if name not in own and name not in beside:
                raise UsageError(f"there is no setting {name!r}{nearest(name, [*own, *beside])}")
        return cls(**{name: value for name, value in given.items() if name in own})


def _check_range(between: Any) -> None:
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise UsageError(f"between is a pair of budgets (LO, HI), not {between!r:.60}")
    lo, hi = (_budget.parse(one, _ANY_PEAK) for one in between)
    if lo >= hi and _budget.is_ratio(between[0]) == _budget.is_ratio(between[1]):
        raise UsageError(
            f"there is no budget between {between[0]} and {between[1]}: LO comes first"
        )


def _whole(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < least:
        raise UsageError(f"{name} is a whole number from {least} on, not {value!r}")


def _number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
