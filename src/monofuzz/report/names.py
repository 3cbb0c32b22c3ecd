"""Short names for operators and tensors, for figures and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monofuzz.canonical import letters

if TYPE_CHECKING:
    from monofuzz.trace import Trace

__all__ = ["Names"]

_SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_LONGEST = 2


class Names:
    """What the operators and tensors of a trace are called.

    Labels that are short and told apart are kept; else operators are called a, b, c, … in order,
    and ``key`` says what each stands for. A tensor is called as its operator; where that makes
    several they are numbered: b₁, b₂.
    """

    def __init__(self, trace: Trace) -> None:
        labels = trace.op_label
        short = all(0 < len(name) <= _LONGEST and name.isalnum() for name in labels)
        kept = short and all(name.isascii() for name in labels) and len(set(labels)) == len(labels)
        self._ops = list(labels) if kept else [letters(k) for k in range(trace.n_ops)]
        self.key: tuple[tuple[str, str], ...] = (
            () if kept else tuple(zip(self._ops, labels, strict=True))
        )
        self._tensors = []
        for op in range(trace.n_ops):
            outputs = trace.outputs(op)
            for number in range(1, len(outputs) + 1):
                mark = str(number).translate(_SUBSCRIPT) if len(outputs) > 1 else ""
                self._tensors.append(self._ops[op] + mark)

    def operator(self, op: int) -> str:
        return self._ops[op]

    def tensor(self, tensor: int) -> str:
        return self._tensors[tensor]

    def tensors(self, tensors: tuple[int, ...]) -> str:
        return ", ".join(self._tensors[t] for t in tensors)
