"""What stays of a trace when names and the order of independent operators are forgotten.

Two finds that differ only in how a graph was written down are one find. `canonical_hash` is equal
for such traces: every command of the schedule is described by what it needs, again and again, until
the descriptions tell apart all that differs (colour refinement, as in tests of graph isomorphism).
A command needs the commands that made what it reads; a reference that is taken or dropped needs the
reads of the same storage that stand before it, and comes before those that stand behind it.

The hash says that two traces are the same graph, not that they replay alike: a schedule is an
order, and policies see it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from monofuzz.trace.model import COMPUTE, PIN, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["canonical_hash", "canonical_order", "letters"]

_WORDS = ("compute", "get", "pin", "release")
_ROUNDS = 24


def canonical_hash(trace: Trace) -> str:
    """SHA-256 (hexadecimal) of the graph: no names, no order of independent operators."""
    sha = hashlib.sha256(b"monofuzz graph 1\n")
    for colour in sorted(_colours(trace, _needs(trace))):
        sha.update(colour)
    return sha.hexdigest()


def canonical_order(trace: Trace) -> list[int]:
    """The commands of the schedule in an order that depends on the graph alone.

    A topological order; where several commands could be next, the one whose colour is least. Equal
    colours keep the order that they have.
    """
    import heapq

    needs = _needs(trace)
    colours = _colours(trace, needs)
    waiting = [len({c for c, _ in need}) for need in needs]
    behind: list[set[int]] = [set() for _ in needs]
    for c, need in enumerate(needs):
        for before, _ in need:
            behind[before].add(c)
    ready = [(_rank(trace, c), colours[c], c) for c, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        *_, c = heapq.heappop(ready)
        order.append(c)
        for later in sorted(behind[c]):
            waiting[later] -= 1
            if not waiting[later]:
                heapq.heappush(ready, (_rank(trace, later), colours[later], later))
    return order


def _rank(trace: Trace, command: int) -> int:
    """What comes first of all that could: a constant's pin, other commands, operators."""
    if trace.command[command] == COMPUTE:
        return 2
    return 0 if _pins_constant(trace, command) else 1


def _pins_constant(trace: Trace, command: int) -> bool:
    """Whether this is the pin that makes the command before it a constant."""
    if trace.command[command] != PIN or trace.command[command - 1] != COMPUTE:
        return False
    op = int(trace.operand[command - 1])
    return bool(trace.op_constant[op] and trace.operand[command] == trace.out_ptr[op])


def _needs(trace: Trace) -> list[list[tuple[int, bytes]]]:
    """For each command, the commands that must come before it, and in which role."""
    made_by: dict[int, int] = {}
    last_moves: dict[int, list[int]] = {}
    readers: dict[int, list[int]] = {}
    needs: list[list[tuple[int, bytes]]] = []
    root = trace.tensor_root.tolist()
    for c, (what, operand) in enumerate(
        zip(trace.command.tolist(), trace.operand.tolist(), strict=True)
    ):
        need: list[tuple[int, bytes]] = []
        if what == COMPUTE:
            for place, tensor in enumerate(trace.arguments(operand).tolist()):
                maker = made_by[tensor]
                index = tensor - int(trace.out_ptr[trace.operand[maker]])
                need.append((maker, b"a%d.%d" % (place, index)))
                storage = root[tensor]
                need += [(move, b"after") for move in last_moves.get(storage, [])]
                readers.setdefault(storage, []).append(c)
            for tensor in trace.outputs(operand):
                made_by[tensor] = c
        else:
            storage = root[operand]
            maker = made_by[operand]
            index = operand - int(trace.out_ptr[trace.operand[maker]])
            need.append((maker, b"t%d" % index))
            need += [(reader, b"read") for reader in readers.get(storage, [])]
            if _pins_constant(trace, c):
                # It orders nothing else.
                needs.append(need)
                continue
            moves = last_moves.get(storage, [])
            if what == PIN:
                # Pins may stand in any order: one keeps the storage, the others change nothing.
                need += [(move, b"move") for move in moves if trace.command[move] != PIN]
                last_moves[storage] = [*moves, c]
            else:
                need += [(move, b"move") for move in moves]
                last_moves[storage] = [c]
                readers[storage] = []
        needs.append(need)
    return needs


def _colours(trace: Trace, needs: Sequence[Sequence[tuple[int, bytes]]]) -> list[bytes]:
    size, root = trace.tensor_size.tolist(), trace.tensor_root.tolist()
    colours = []
    for what, operand in zip(trace.command.tolist(), trace.operand.tolist(), strict=True):
        text = _WORDS[what]
        if what == COMPUTE:
            outputs = trace.outputs(operand)
            arguments = trace.arguments(operand).tolist()
            shapes = [
                size[t] if root[t] == t else f"view{[root[a] for a in arguments].index(root[t])}"
                for t in outputs
            ]
            text += f" {trace.op_constant[operand]} {trace.op_cost[operand]} {shapes}"
        colours.append(hashlib.sha256(text.encode()).digest())
    behind: list[list[tuple[int, bytes]]] = [[] for _ in needs]
    for c, need in enumerate(needs):
        for before, role in need:
            behind[before].append((c, role))
    kinds = len(set(colours))
    for _ in range(_ROUNDS):
        colours = [
            hashlib.sha256(
                colours[c]
                + b"|".join(sorted(role + colours[before] for before, role in needs[c]))
                + b"#"
                + b"|".join(sorted(role + colours[later] for later, role in behind[c]))
            ).digest()
            for c in range(len(needs))
        ]
        known, kinds = kinds, len(set(colours))
        if kinds == known:
            break
    return colours


def letters(number: int) -> str:
    """The name of the operator of that number where labels do not count: a, b, …, z, aa, ab, …"""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("a") + rest) + text
    return text
