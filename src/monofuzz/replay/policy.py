"""Eviction policies: a registry of the known ones, their parameters, and scores of your own.

A policy is a score over the evictable storages and a rule to choose one by it; ``docs/policies.md``
lists them with their formulas. In text a policy is ``NAME`` or ``NAME:KEY=VALUE,KEY=VALUE``.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import time
import types
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from monofuzz.errors import PolicyError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["FIELDS", "Policy", "names", "parse", "policy"]

FIELDS = (
    "cost",
    "size",
    "staleness",
    "last_access",
    "clock",
    "region_cost",
    "region_rev_cost",
    "region_count",
    "region_rev_count",
    "class_cost",
    "evictions",
)
"""What a score function of your own may ask for, by parameter name; all are doubles.

``cost``: nanoseconds of the operators that made the storage; ``size``: bytes; ``staleness``:
nanoseconds on the replay's clock since ``last_access``; ``clock``: the present time;
``region_cost``/``region_rev_cost``: summed cost of the evicted storages reachable through children
/ parents; ``region_count``/``region_rev_count``: their number; ``class_cost``: summed cost of the
distinct equivalence classes among the evicted neighbours; ``evictions``: how often this storage was
evicted before, releases counted.
"""

# Numerators, rules and penalties: the same numbers as in kernel.py, which tests compare.
_ONE, _COST, _E, _REV, _EQ, _LA, _COUNT, _UNOPT, _OWN = range(9)
_MIN, _RANDOM, _TWO_PHASE, _TIE, _CONTROL = range(5)
_NONE, _NBHD, _THRASH = range(3)


@dataclass(frozen=True)
class _Parameter:
    """A parameter's default and its legal range; integers stay integers."""

    default: float | int
    least: float
    most: float


@dataclass(frozen=True)
class _Kind:
    """What the kernel needs to know about a policy."""

    meaning: str
    numerator: int
    by_size: bool = False
    by_staleness: bool = False
    rule: int = _MIN
    penalty: int = _NONE
    parameters: Mapping[str, _Parameter] = field(default_factory=dict)


_REGISTRY: dict[str, _Kind] = {
    "dtr": _Kind("cost of the evicted neighbourhood / (size · staleness)", _E, True, True),
    "dtr-eq": _Kind("dtr with equivalence classes as neighbourhood", _EQ, True, True),
    "dtr-local": _Kind("own cost / (size · staleness)", _COST, True, True),
    "dtr-unopt": _Kind("dtr with the exact neighbourhood, made anew", _UNOPT, True, True),
    "msps": _Kind("cost to recompute from what is resident / size", _REV, True),
    "lru": _Kind("least recently used", _LA),
    "size": _Kind("largest first", _ONE, True),
    "random": _Kind(
        "any, at random", _ONE, rule=_RANDOM, parameters={"seed": _Parameter(0, 0, 2**64 - 1)}
    ),
    "e-size": _Kind("dtr without staleness", _E, True),
    "e-stale": _Kind("dtr without size", _E, False, True),
    "e": _Kind("cost of the evicted neighbourhood", _E),
    "eq-size": _Kind("dtr-eq without staleness", _EQ, True),
    "eq-stale": _Kind("dtr-eq without size", _EQ, False, True),
    "eq": _Kind("cost with the classes of evicted neighbours", _EQ),
    "local-size": _Kind("own cost / size", _COST, True),
    "local-stale": _Kind("own cost / staleness", _COST, False, True),
    "local": _Kind("own cost", _COST),
    "size-stale": _Kind("1 / (size · staleness)", _ONE, True, True),
    "stale": _Kind("1 / staleness", _ONE, False, True),
    "nbhd-penalty": _Kind(
        "dtr · (1 + b · evicted neighbours)", _E, True, True, penalty=_NBHD,
        parameters={"b": _Parameter(0.25, 0.0, 1e9)},
    ),
    "he-star": _Kind("number of evicted neighbours", _COUNT),
    "cost-stale": _Kind("the same as e-stale", _E, False, True),
    "thrash-penalty": _Kind(
        "dtr · (1 + a · times evicted before)", _E, True, True, penalty=_THRASH,
        parameters={"a": _Parameter(1.0, 0.0, 1e9)},
    ),
    "two-phase": _Kind(
        "among those that free enough, or the k largest: e-stale", _E, False, True, _TWO_PHASE,
        parameters={"k": _Parameter(8, 1, 2**31 - 1)},
    ),
    "tie-aware": _Kind(
        "the largest among dtr scores within a tolerance of the least", _E, True, True, _TIE,
        parameters={"tolerance": _Parameter(1e-6, 0.0, 1e6)},
    ),
    "t-control": _Kind(
        "dtr among storages not locked for their betweenness", _E, True, True, _CONTROL,
        parameters={"alpha": _Parameter(0.3, 0.0, 1e6), "floor": _Parameter(0.01, 0.0, 1.0)},
    ),
}  # fmt: skip
_WEIGHTS = {"b": 0, "a": 0, "alpha": 1, "floor": 2, "tolerance": 3}


def names() -> list[str]:
    """The built-in policies."""
    return list(_REGISTRY)


def meaning(name: str) -> str:
    """What a built-in policy evicts first, in a few words."""
    return _REGISTRY[name].meaning


@dataclass(frozen=True)
class Policy:
    """A policy with its parameters. ``str()`` gives the canonical text; equal texts, equal runs.

    ``function`` is the score function of an own policy, compiled when first used.
    """

    name: str
    parameters: tuple[tuple[str, float | int], ...] = ()
    function: Callable[..., float] | None = None

    def __str__(self) -> str:
        kind = _REGISTRY.get(self.name)
        shown = [
            f"{key}={value!r}"
            for key, value in self.parameters
            if kind is None or value != kind.parameters[key].default
        ]
        return self.name + (":" + ",".join(shown) if shown else "")

    def __call__(self, *args: float) -> float:
        """The score itself, for own policies: plain Python, for tests and for reading."""
        if self.function is None:
            raise PolicyError(f"{self} is built in: it has no score function to call")
        return self.function(*args)

    @functools.cached_property
    def identity(self) -> str:
        """What determines the choices: the text, and for own policies the code as well."""
        if self.function is None:
            return str(self)
        import hashlib

        text = repr(_content(self.function, set()))
        return f"{self.name}@{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @property
    def reads(self) -> tuple[str, ...]:
        """The candidate's fields that an own score function reads."""
        assert self.function is not None
        return tuple(inspect.signature(self.function).parameters)

    def flags(self) -> tuple[dict[str, int], tuple[float, ...]]:
        """The kernel's parameters: integers by name, and the four floats."""
        weights = [0.0] * 4
        given = dict(self.parameters)
        for key, value in given.items():
            if key in _WEIGHTS:
                weights[_WEIGHTS[key]] = float(value)
        if self.function is not None:
            reads = self.reads
            regions = any(name.startswith("region_c") for name in reads) * 1
            regions |= any(name.startswith("region_rev") for name in reads) * 2
            classes = "class_cost" in reads
            return (
                {"NUM": _OWN, "REGIONS": regions, "CLASSES": int(classes), "USE_T": 0},
                tuple(weights),
            )
        kind = _REGISTRY[self.name]
        seed = int(given.get("seed", 0))
        numerator = kind.numerator
        return (
            {
                "NUM": numerator,
                "USE_M": int(kind.by_size),
                "USE_T": int(kind.by_staleness),
                "RULE": kind.rule,
                "PENALTY": kind.penalty,
                "INTEGRAL": int(
                    not kind.by_size and not kind.by_staleness and kind.numerator != _ONE
                ),
                "TOPK": int(given.get("k", 0)),
                "SEED_HIGH": seed >> 32,
                "SEED_LOW": seed & 0xFFFFFFFF,
                "REGIONS": 3 if numerator in (_E, _COUNT) else (2 if numerator == _REV else 0),
                "CLASSES": int(numerator == _EQ),
            },
            tuple(weights),
        )

    @property
    def needs_betweenness(self) -> bool:
        """Whether the policy ranks the trace's storages beforehand."""
        return self.function is None and _REGISTRY[self.name].rule == _CONTROL


def _content(value: object, seen: set[int]) -> object:
    """What a function does, as far as it can be written down: its code and all that it refers to.

    Anything that has no faithful text of its own stands for this very object, in this process: then
    nothing kept from another process is taken for the same.
    """
    value = getattr(value, "py_func", value)
    if isinstance(value, types.CodeType):
        return (value.co_code.hex(), [_content(c, seen) for c in value.co_consts], value.co_names)
    if inspect.isfunction(value):
        if id(value) in seen:
            return value.__qualname__
        seen.add(id(value))
        read = inspect.getclosurevars(value)
        outside = {**read.globals, **read.nonlocals}
        return (
            _content(value.__code__, seen),
            [_content(v, seen) for v in value.__defaults__ or ()],
            sorted((name, repr(_content(v, seen))) for name, v in outside.items()),
        )
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, tuple | list | frozenset):
        return (type(value).__name__, [_content(v, seen) for v in value])
    if isinstance(value, types.ModuleType | types.BuiltinFunctionType | type):
        return repr(value)
    return (os.getpid(), id(value), time.time_ns())


def parse(text: str | Policy) -> Policy:
    """The policy that a text names, or the policy itself.

    Raises `PolicyError` for an unknown name or parameter (with the nearest known one), a value that
    is not a number, or one out of range.
    """
    if isinstance(text, Policy):
        return text
    if not isinstance(text, str):
        raise PolicyError(f"a policy is a name or a decorated score function, not {text!r}")
    name, colon, rest = text.strip().partition(":")
    kind = _REGISTRY.get(name)
    if kind is None:
        shown = name if len(name) <= 60 else name[:57] + "..."
        raise PolicyError(
            f"unknown policy {shown!r}{nearest(name, names())}"
            if nearest(name, names())
            else f"unknown policy {shown!r}: choose one of {', '.join(names())}"
        )
    given: dict[str, float | int] = {}
    if colon:
        for item in rest.split(","):
            key, equals, value = item.partition("=")
            key = key.strip()
            if not equals:
                raise PolicyError(
                    f"{item!r} in policy {text!r} is not KEY=VALUE"
                    + (f" (for example {name}:{_example(kind)})" if kind.parameters else "")
                )
            given[key] = _value(text, name, kind, key, value.strip(), given)
    settled = {key: given.get(key, p.default) for key, p in kind.parameters.items()}
    return Policy(name, tuple(settled.items()))


def _example(kind: _Kind) -> str:
    return ",".join(f"{key}={p.default!r}" for key, p in kind.parameters.items())


def _value(
    text: str, name: str, kind: _Kind, key: str, value: str, given: Mapping[str, float | int]
) -> float | int:
    if key not in kind.parameters:
        known = ", ".join(kind.parameters) or "none"
        raise PolicyError(
            f"policy {name} has no parameter {key!r}{nearest(key, list(kind.parameters))} "
            f"(its parameters: {known})"
        )
    if key in given:
        raise PolicyError(f"parameter {key!r} is given twice in policy {text!r}")
    parameter = kind.parameters[key]
    try:
        number: float | int = int(value) if isinstance(parameter.default, int) else float(value)
    except ValueError:
        what = "a whole number" if isinstance(parameter.default, int) else "a number"
        raise PolicyError(f"{key}={value!r} in policy {text!r} is not {what}") from None
    if math.isnan(number) or not parameter.least <= number <= parameter.most:
        raise PolicyError(
            f"{key}={value} in policy {text!r} is out of range: "
            f"{parameter.least} to {parameter.most}"
        )
    return number


def policy(function: Callable[..., float]) -> Policy:
    """Make a policy of a score function: the storage with the least score is evicted.

    The function's parameters, all doubles, name the fields that it reads (see `FIELDS`). Ties: the
    storage that became evictable last wins; a score of exactly 0 ends the search at once; infinite
    and NaN scores lose to all finite ones. The function is compiled by numba when first used, so it
    may use arithmetic, ``math`` and other compiled functions. It sees no budget, so the replay
    makes every comparison with the budget, and intervals and certificates stay valid.

    Raises `PolicyError` for a parameter that is not a known field.

    >>> @policy
    ... def cheap_first(cost, size, staleness):
    ...     return cost / (size * staleness) if size * staleness > 0 else float("inf")
    """
    if not inspect.isfunction(function):
        raise PolicyError(f"an own policy is a plain Python function, not {function!r}")
    for key, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise PolicyError(
                f"score function {function.__name__!r} takes {parameter}: name the fields that it "
                f"reads, each as a plain parameter (known fields: {', '.join(FIELDS)})"
            )
        if key not in FIELDS:
            raise PolicyError(
                f"score function {function.__name__!r} reads {key!r}, which no candidate has"
                f"{nearest(key, FIELDS)} (known fields: {', '.join(FIELDS)})"
            )
    if function.__name__ in _REGISTRY:
        raise PolicyError(f"{function.__name__!r} is the name of a built-in policy")
    return Policy(function.__name__, (), function)
