"""The kernel's block of integers, laid out once for all graphs of up to so many operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from monofuzz.replay.system import prepare

if TYPE_CHECKING:
    from types import ModuleType

    from monofuzz.replay.policy import Policy

__all__ = ["Block", "make_block"]

IntArray = npt.NDArray[np.int64]
_SLOTS = 4
_MOST_ARGS = 3
_MOST_OUTPUTS = 2


@dataclass(frozen=True)
class Block:
    """What the kernel needs to run the graphs of one size under one policy.

    ``m`` and ``f`` are its integers and doubles, ``initial`` the state that a run begins with.
    """

    m: IntArray
    f: npt.NDArray[np.float64]
    initial: IntArray
    operators: int

    @property
    def commands(self) -> int:
        """How many commands the present graph has."""
        return int(self.m[_kernel().N_CMD])

    def part(self, name: str, count: int) -> IntArray:
        """The first ``count`` entries of one of the program's arrays."""
        offset = int(self.m[getattr(_kernel(), name)])
        return self.m[offset : offset + count]


def _kernel() -> ModuleType:
    return prepare("compiled")


def make_block(policy: Policy, operators: int) -> Block:
    """A block for graphs of exactly ``operators`` operators, as ``compiled.py`` makes them."""
    kernel = _kernel()
    n = _MOST_OUTPUTS * operators
    words = (n + 31) // 32
    args, edges = _MOST_ARGS * operators, _MOST_ARGS * _MOST_OUTPUTS * operators
    flags, weights = policy.flags()
    classes = 2 * n + 64 if flags.get("CLASSES") else 0
    watches = 8 * n + 1024 if flags.get("REGIONS") else 0
    pool = n + 16
    sizes = dict.fromkeys(kernel.STATE + kernel.SCRATCH + kernel.PROGRAM, n)
    sizes |= dict.fromkeys(["CNT", "LB", "CN", "EX", "VER", "HELD"], 2 * n)
    sizes |= dict.fromkeys(["STK_T", "STK_B", "STK_I", "STK_E"], operators + 1)
    sizes |= dict.fromkeys(["UF", "UFC", "SEEN"], classes)
    sizes |= dict.fromkeys(["W_ROW", "W_NEXT"], watches)
    sizes |= dict.fromkeys(["POOL_S", "POOL_LA"], pool)
    sizes |= dict.fromkeys(["ARG_PTR", "OUT_PTR", "OS_PTR", "ED_PTR"], operators + 1)
    sizes |= dict.fromkeys(["ED_U", "ED_V", "ED_OLD"], edges)
    sizes |= dict.fromkeys(["CMD", "OPERAND"], operators + 2 * n)
    sizes |= dict.fromkeys(["OP_COST", "OP_TOTAL"], operators)
    sizes |= {
        # Each storage is released once at most.
        "REL": min(kernel.MANY, n) + 1,
        "PLIST": args + 1,
        "SLOT_FREE": _SLOTS,
        "SLOT": _SLOTS * 2 * words,
        "NEW": _MOST_OUTPUTS,
        "ARGS": args,
        "ST_PTR": n + 1,
        "ADJ_PTR": 2 * n + 1,
        "ADJ": 2 * edges,
    }
    offsets: dict[str, int] = {}
    end = kernel.ARRAYS
    for name in kernel.STATE + kernel.SCRATCH + kernel.PROGRAM:
        offsets[name] = end
        end += sizes[name]
    state_end = offsets[kernel.SCRATCH[0]]
    m = np.zeros(end, np.int64)
    for name, offset in offsets.items():
        m[getattr(kernel, name)] = offset
    empty = {"POS": -1, "HELD": -1, "NODE": -1, "W_HEAD": -1, "LA": kernel.NEVER}
    for name, value in empty.items():
        m[offsets[name] : offsets[name] + sizes[name]] = value
    m[offsets["SLOT_FREE"] : offsets["SLOT_FREE"] + _SLOTS] = np.arange(_SLOTS)
    scalars = flags | {
        "LIMIT": -1,
        "SLOTS": _SLOTS,
        "WORDS": words,
        "N": n,
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
    return Block(m, f, m[kernel.REGISTERS : state_end].copy(), operators)
