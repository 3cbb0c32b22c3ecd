"""How much an operator does: floating-point operations and bytes moved, from its arguments.

This module imports PyTorch; import it only where recording starts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from torch.utils.flop_counter import flop_registry

__all__ = ["Work", "amount"]

# They read only the rows that they return.
_GATHERS = frozenset(
    {"aten::embedding", "aten::gather", "aten::index", "aten::index_select", "aten::take_along_dim"}
)
# Memory is set aside, and not touched.
_ALLOCATIONS = frozenset(
    {
        "aten::empty",
        "aten::empty_like",
        "aten::empty_strided",
        "aten::new_empty",
        "aten::new_empty_strided",
    }
)
# Matrix products that attention consists of, and where query, key and value stand.
_ATTENTION: Final[dict[str, tuple[int, int]]] = {
    "aten::_scaled_dot_product_flash_attention_for_cpu": (2, 0),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": (5, 1),
}


@dataclass(frozen=True)
class Work:
    """Operations, bytes read and written, and the bits of the numbers that are computed with."""

    operations: int
    moved: int
    bits: int


def amount(
    func: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    out: Any,
    read: list[Any],
    written: list[Any],
    made: list[Any],
) -> Work:
    """The work of one operator: that of its formula, or one operation an element it makes.

    Matrix products, convolutions and attention have formulas (PyTorch's own, where it has one).
    """
    label = func._schema.name
    targets = [*written, *(m for m in made if not any(m is w for w in written))]
    bits = max((8 * t.element_size() for t in targets or read if t.is_floating_point()), default=32)
    if label in _ALLOCATIONS:
        return Work(0, 0, bits)
    sources = targets if label in _GATHERS else read
    moved = sum(map(_bytes, sources)) + sum(map(_bytes, targets))
    formula = flop_registry.get(func.overloadpacket)
    if formula is not None:
        return Work(int(formula(*args, **kwargs, out_val=out)), moved, bits)
    if label in _ATTENTION:
        products, first = _ATTENTION[label]
        query, key, value = args[first : first + 3]
        return Work(products * _product(query, key, value), moved, bits)
    return Work(sum(t.numel() for t in targets or read), moved, bits)


def _bytes(tensor: Any) -> int:
    """Bytes that the tensor shows: an expanded one shows no more than its storage holds."""
    shown = tensor.numel() * tensor.element_size()
    return int(min(shown, tensor.untyped_storage().nbytes()))


def _product(query: Any, key: Any, value: Any) -> int:
    """Operations of one of attention's matrix products, query by key."""
    *batch, rows, width = query.shape
    wide = max(int(width), int(value.shape[-1]))
    return 2 * math.prod(map(int, batch)) * int(rows) * int(key.shape[-2]) * wide
