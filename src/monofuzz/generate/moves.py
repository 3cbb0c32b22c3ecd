"""Traces from moves: operators that are described without regard to what stands before them.

A move names tensors by how many were made since, so that a list of moves means something whatever
is left out of it: that is what lets Hypothesis take operators away one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from monofuzz.trace.builder import TraceBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from monofuzz.trace.model import Trace

__all__ = ["Action", "Kind", "Move", "play"]

Kind = Literal["new", "view", "view first", "view last", "update"]
"""What an operator makes: new tensors; a view; a view and then new ones; new ones and then a view;
new tensors in place of some that it reads."""

Action = Literal["release", "get"]
"""A reference dropped, or taken."""


@dataclass(frozen=True, slots=True)
class Move:
    """An operator, and what happens to references after it.

    Attributes:
        back: its arguments, each by how many tensors were made after it.
        sizes: bytes of what it makes; of no meaning for views and in-place updates.
        cost: nanoseconds.
        which: the argument that it views (modulo their number), or, as bits, those that it
            replaces. What has no reference left is not replaced; an update that replaces nothing
            makes one new tensor.
        actions: each with the tensor that it is about, by how many were made after it. Those about
            a storage without references are left out.
    """

    kind: Kind = "new"
    back: tuple[int, ...] = ()
    sizes: tuple[int, ...] = (1,)
    cost: int = 1
    which: int = 0
    actions: tuple[tuple[Action, int], ...] = ()


def play(
    moves: Sequence[Move],
    *,
    constants: Sequence[int] = (),
    released: Sequence[int] = (),
    keep: Sequence[int] | None = None,
    name: str = "random",
) -> Trace:
    """The trace that moves make.

    ``constants`` are the sizes of constants in front of them; ``released`` and ``keep`` tensors to
    drop at the end, and to pin there, by how many were made after them. ``keep`` None: what still
    has references, as in a DTR log.
    """
    build = TraceBuilder(name=name)
    for size in constants:
        build.constant(size)
    for move in moves:
        _operator(build, move)
        for action, back in move.actions:
            _act(build, action, back)
    for back in released:
        _act(build, "release", back)
    return build.finish(keep=None if keep is None else [_back(build, back) for back in keep])


def _back(build: TraceBuilder, back: int) -> int:
    count = build.n_tensors
    return count - 1 - back % count


def _operator(build: TraceBuilder, move: Move) -> None:
    arguments = [_back(build, back) for back in move.back] if build.n_tensors else []
    if not arguments or move.kind == "new":
        build.op("op", arguments, move.sizes, move.cost)
        return
    if move.kind == "update":
        replaced = _replaced(build, arguments, move.which)
        if replaced:
            build.mutate("update_", arguments, replaced, move.cost)
        else:
            build.op("op", arguments, move.sizes[:1], move.cost)
        return
    sizes = {
        "view": [0],
        "view first": [0, *move.sizes],
        "view last": [*move.sizes, 0],
    }[move.kind]
    view = len(sizes) - 1 if move.kind == "view last" else 0
    viewed = move.which % len(arguments)
    build.op("view", arguments, sizes, move.cost, views={view: viewed})


def _replaced(build: TraceBuilder, arguments: list[int], bits: int) -> list[int]:
    left: dict[int, int] = {}
    replaced = []
    for i, tensor in enumerate(arguments):
        root = build.storage(tensor)
        left.setdefault(root, build.references(tensor))
        if bits >> i & 1 and tensor not in arguments[:i] and left[root] > 0:
            left[root] -= 1
            replaced.append(i)
    return replaced


def _act(build: TraceBuilder, action: Action, back: int) -> None:
    tensor = _back(build, back)
    if build.references(tensor):
        (build.get if action == "get" else build.release)(tensor)
