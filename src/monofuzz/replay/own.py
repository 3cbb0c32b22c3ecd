"""Score functions of your own, made into what the kernel calls.

The kernel takes one function that scans the whole pool. A call for each candidate would cost more
than most scores do; inside a scan the score is inlined.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from monofuzz.errors import PolicyError
from monofuzz.replay._jit import scan_type
from monofuzz.replay.policy import FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from monofuzz.replay.policy import Policy

__all__ = ["scan_of", "score_of"]


@functools.lru_cache(maxsize=64)
def scan_of(policy: Policy, kernel: ModuleType, engine: str) -> Any:
    """The choice by the policy's score function; for built-in policies a function never called.

    Raises `PolicyError` when numba cannot compile the score function.
    """
    function = policy.function
    if engine != "compiled":
        return None if function is None else _scan(kernel, _widened(policy, _as_doubles(function)))
    import numba

    compiled: Any = functools.partial(numba.njit, error_model="numpy", nogil=True)
    signature = scan_type().signature
    if function is None:
        return compiled(signature)(lambda m, f: 0)
    try:
        score = compiled(_widened(policy, compiled(function)))
        return compiled(signature)(_scan(kernel, score))
    except Exception as error:
        raise _refused(policy, error) from None


@functools.lru_cache(maxsize=64)
def score_of(policy: Policy, signature: Any) -> Any:
    """The policy's score as a compiled function of all `FIELDS`; for built-in policies, 0.

    Raises `PolicyError` when numba cannot compile the score function.
    """
    import numba

    compiled: Any = functools.partial(numba.njit, error_model="numpy", nogil=True)
    inner = (lambda: 0.0) if policy.function is None else policy.function
    try:
        return compiled(signature.signature)(_widened(policy, compiled(inner)))
    except Exception as error:
        raise _refused(policy, error) from None


def _refused(policy: Policy, error: Exception) -> PolicyError:
    return PolicyError(
        f"score function {policy.name!r} cannot be compiled by numba: {_reason(error)}"
    )


def _reason(error: Exception) -> str:
    """The line of numba's message that says what is wrong."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("Failed in", "During", "File "))]
    return told[0] if told else type(error).__name__


def _widened(policy: Policy, inner: Callable[..., float]) -> Callable[..., float]:
    """``inner``, which takes the fields that the policy reads, as a function of all `FIELDS`."""
    reads = policy.reads if policy.function is not None else ()
    source = f"lambda {', '.join(FIELDS)}: inner({', '.join(reads)})"
    return eval(source, {"inner": inner})  # type: ignore[no-any-return]


def _as_doubles(function: Callable[..., float]) -> Callable[..., float]:
    """Arithmetic as compiled doubles have it: 1 / 0 is infinite, nothing raises."""

    def score(*fields: float) -> float:
        with np.errstate(all="ignore"):
            return float(function(*map(np.float64, fields)))

    return score


def _scan(kernel: ModuleType, score: Callable[..., float]) -> Callable[[Any, Any], int]:
    """The entry of the pool with the least score: the last among equals, or the first zero."""
    clock_at, end_at, pool_at, n_at = kernel.CLOCK, kernel.POOL_N, kernel.POOL_S, kernel.N
    cost_at, size_at, la_at, evictions_at = kernel.COST, kernel.S_SIZE, kernel.LA, kernel.EVC
    sum_at, count_at, class_at = kernel.LB, kernel.CN, kernel.QC

    def scan(m: Any, f: Any) -> int:
        clock, pool, n = m[clock_at], m[pool_at], m[n_at]
        cost, size, la, evictions = m[cost_at], m[size_at], m[la_at], m[evictions_at]
        sums, counts, classes = m[sum_at], m[count_at], m[class_at]
        best = -1
        least = np.inf
        for i in range(m[end_at]):
            s = m[pool + i]
            if s < 0:
                continue
            value = score(
                float(m[cost + s]),
                float(m[size + s]),
                float(clock - m[la + s]),
                float(m[la + s]),
                float(clock),
                float(m[sums + s]),
                float(m[sums + n + s]),
                float(m[counts + s]),
                float(m[counts + n + s]),
                float(m[classes + s]),
                float(m[evictions + s]),
            )
            if value <= least:
                best = i
                least = value
                if value == 0.0:
                    return best
            elif value == 0.0:
                return best
            elif least == np.inf and value != value:
                best = i
        return best

    return scan
