"""The passes: plain functions that propose smaller drafts and keep what is still interesting.

A pass is given a `Desk`: ``desk.draft`` is the present draft, ``desk.consider(draft)`` takes
another one over if it is smaller and still interesting, and says whether it did. None of them knows
what interesting means, or what keeps a trace valid.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from monofuzz.shrink.rewrite import Draft, Step, pins_constant
from monofuzz.trace.model import COMPUTE, GET, PIN, RELEASE

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PASSES", "Desk"]


class Desk(Protocol):
    """Where a pass works."""

    @property
    def draft(self) -> Draft: ...
    def consider(self, draft: Draft) -> bool: ...


def _in_blocks(desk: Desk, count: Callable[[], int], without: Callable[[int, int], Draft]) -> None:
    """Try to go without blocks of things, from the last to the first, large blocks first.

    A block that could go is followed by a larger one, one that could not by a smaller one.
    """
    size = max(count() // 2, 1)
    while True:
        end = count()
        went = False
        while end > 0:
            start = max(end - size, 0)
            if desk.consider(without(start, end)):
                went = True
                end = min(start, count())
            else:
                end = start
        if size == 1:
            return
        size = max(size // 2, 1) if not went else max(size * 2 // 3, 1)


# Drop operators: what reads their outputs reads their first argument instead, or nothing.
def drop_operators(desk: Desk) -> None:
    for rewire in (True, False):

        def without(start: int, end: int, rewire: bool = rewire) -> Draft:
            return _dropped(desk.draft, set(_operators(desk.draft)[start:end]), rewire=rewire)

        _in_blocks(desk, lambda: len(_operators(desk.draft)), without)


def _operators(draft: Draft) -> list[int]:
    return [i for i, step in enumerate(draft.steps) if step.what == COMPUTE]


def _dropped(draft: Draft, places: set[int], *, rewire: bool) -> Draft:
    instead: dict[int, int | None] = {}
    steps = []
    for i, step in enumerate(draft.steps):
        if step.what == COMPUTE:
            reads = _replaced(step.reads, instead) if instead else step.reads
            if i in places:
                first = reads[0] if reads and rewire else None
                instead.update(dict.fromkeys(step.makes, first))
                continue
            steps.append(replace(step, reads=reads) if reads != step.reads else step)
        elif step.tensor not in instead:
            steps.append(step)
    return replace(draft, steps=tuple(steps))


def _replaced(reads: tuple[int, ...], instead: dict[int, int | None]) -> tuple[int, ...]:
    kept: list[int] = []
    for tensor in reads:
        new = instead.get(tensor, tensor)
        if new is not None and (new == tensor or new not in kept):
            kept.append(new)
    return tuple(kept)


# Contract chains: an operator and the only one that reads it become one, with both costs.
def contract_chains(desk: Desk) -> None:
    place = len(desk.draft.steps) - 1
    while place >= 0:
        steps = desk.draft.steps
        place = min(place, len(steps) - 1)
        contracted = _contracted(desk.draft, place)
        if contracted is not None:
            desk.consider(contracted)
        place -= 1


def _contracted(draft: Draft, place: int) -> Draft | None:
    step = draft.steps[place]
    if step.what != COMPUTE or step.constant or len(step.makes) != 1:
        return None
    (made,) = step.makes
    readers = [i for i, other in enumerate(draft.steps) if made in other.reads]
    if len(readers) != 1:
        return None
    reader = draft.steps[readers[0]]
    reads: list[int] = []
    for tensor in reader.reads:
        reads += [t for t in (step.reads if tensor == made else (tensor,)) if t not in reads]
    joined = replace(reader, reads=tuple(reads), cost=reader.cost + step.cost)
    steps = [
        joined if i == readers[0] else other
        for i, other in enumerate(draft.steps)
        if i != place and other.tensor != made
    ]
    return replace(draft, steps=tuple(steps))


# Drop outputs of operators with several, and let views have storage of their own.
def drop_outputs(desk: Desk) -> None:
    for place in reversed(range(len(desk.draft.steps))):
        if place >= len(desk.draft.steps):
            continue
        for index in reversed(range(len(desk.draft.steps[place].makes))):
            step = desk.draft.steps[place]
            if index >= len(step.makes):
                continue
            if len(step.makes) > 1 and desk.consider(_without_output(desk.draft, place, index)):
                continue
            if step.of[index] is not None:
                own = replace(
                    step,
                    of=tuple(None if k == index else o for k, o in enumerate(step.of)),
                    sizes=tuple(1 if k == index else z for k, z in enumerate(step.sizes)),
                )
                desk.consider(desk.draft.with_step(place, own))


def _without_output(draft: Draft, place: int, index: int) -> Draft:
    step = draft.steps[place]
    gone = step.makes[index]
    kept = [k for k in range(len(step.makes)) if k != index]
    fewer = replace(
        step,
        makes=tuple(step.makes[k] for k in kept),
        sizes=tuple(step.sizes[k] for k in kept),
        of=tuple(step.of[k] for k in kept),
    )
    steps = [
        replace(other, reads=tuple(t for t in other.reads if t != gone))
        if gone in other.reads
        else other
        for other in draft.with_step(place, fewer).steps
        if other.what == COMPUTE or other.tensor != gone
    ]
    return replace(draft, steps=tuple(steps))


# Drop single arguments.
def drop_arguments(desk: Desk) -> None:
    for place in reversed(range(len(desk.draft.steps))):
        if place >= len(desk.draft.steps):
            continue
        for index in reversed(range(len(desk.draft.steps[place].reads))):
            step = desk.draft.steps[place]
            if index < len(step.reads):
                reads = step.reads[:index] + step.reads[index + 1 :]
                desk.consider(desk.draft.with_step(place, replace(step, reads=reads)))


# Drop references: commands that take, drop or pin one.
def drop_references(desk: Desk) -> None:
    def places() -> list[int]:
        steps = desk.draft.steps
        return [
            i
            for i, step in enumerate(steps)
            if step.what != COMPUTE and not (step.what == PIN and pins_constant(steps, i))
        ]

    _in_blocks(
        desk,
        lambda: len(places()),
        lambda start, end: desk.draft.without(places()[start:end]),
    )
    # A reference that is taken goes with the one that is dropped.
    for place in reversed(range(len(desk.draft.steps))):
        steps = desk.draft.steps
        if place < len(steps) and steps[place].what == GET:
            for later in range(place + 1, len(steps)):
                if steps[later] == Step(RELEASE, steps[place].tensor):
                    desk.consider(desk.draft.without((place, later)))
                    break


# Unpin: constants become operators that anybody may recompute; what is kept to the end is dropped
# there, or after its last use.
def unpin(desk: Desk) -> None:
    for place in reversed(range(len(desk.draft.steps))):
        steps = desk.draft.steps
        if place < len(steps) and steps[place].constant:
            loose = replace(steps[place], constant=False)
            desk.consider(replace(desk.draft, steps=(*steps[:place], loose, *steps[place + 2 :])))
    tensors = [t for step in desk.draft.steps for t in step.makes]
    for tensor in reversed(tensors):
        steps = desk.draft.steps
        if any(step.what in (GET, RELEASE) and step.tensor == tensor for step in steps):
            continue
        uses = [i for i, s in enumerate(steps) if tensor in s.reads or tensor in s.makes]
        if not uses:
            continue
        drop = Step(RELEASE, tensor)
        ends = [i for i, s in enumerate(steps) if s.what != PIN or pins_constant(steps, i)]
        for behind in dict.fromkeys((uses[-1], ends[-1])):
            if desk.consider(
                replace(desk.draft, steps=(*steps[: behind + 1], drop, *steps[behind + 1 :]))
            ):
                break


# Lower sizes and costs: all at once, by common factors, each alone.
def lower_numbers(desk: Desk) -> None:
    _scale(desk)
    for which in ("sizes", "cost"):
        for value in sorted({v for v in _numbers(desk.draft, which) if v > 1}, reverse=True):
            _lower(desk, value, functools.partial(_swapped, desk, which, value))
    for place in range(len(desk.draft.steps)):
        step = desk.draft.steps[place]
        if step.what != COMPUTE:
            continue
        _lower(desk, step.cost, functools.partial(_priced, desk, place))
        for index in range(len(step.makes)):
            if step.of[index] is None:
                _lower(desk, step.sizes[index], functools.partial(_sized, desk, place, index))


def _scale(desk: Desk) -> None:
    for which in ("sizes", "cost"):
        common = math.gcd(*_numbers(desk.draft, which))
        if common > 1:
            desk.consider(_divided(desk.draft, which, common))
        largest = max(_numbers(desk.draft, which), default=0)
        for shift in (40, 32, 24, 16, 8, 4, 2, 1):
            while largest >> shift >= 1 and desk.consider(_divided(desk.draft, which, 1 << shift)):
                largest >>= shift


def _lower(desk: Desk, value: int, lowered: Callable[[int], Draft]) -> None:
    """The least value from 1 on that does, found as if less were always harder."""
    if value <= 1 or desk.consider(lowered(1)):
        return
    low, high = 1, value
    while high - low > 1:
        middle = (low + high) // 2
        if desk.consider(lowered(middle)):
            high = middle
        else:
            low = middle


def _numbers(draft: Draft, which: str) -> list[int]:
    if which == "cost":
        return [step.cost for step in draft.steps if step.what == COMPUTE]
    return [size for step in draft.steps for size in step.sizes]


def _mapped(draft: Draft, which: str, change: Callable[[int], int]) -> Draft:
    steps = []
    for step in draft.steps:
        if step.what != COMPUTE:
            steps.append(step)
        elif which == "cost":
            steps.append(replace(step, cost=change(step.cost)))
        else:
            steps.append(replace(step, sizes=tuple(change(size) for size in step.sizes)))
    return replace(draft, steps=tuple(steps))


def _divided(draft: Draft, which: str, divisor: int) -> Draft:
    return _mapped(draft, which, lambda v: -(-v // divisor))


def _swapped(desk: Desk, which: str, value: int, other: int) -> Draft:
    return _mapped(desk.draft, which, lambda v: other if v == value else v)


def _priced(desk: Desk, place: int, cost: int) -> Draft:
    return desk.draft.with_step(place, replace(desk.draft.steps[place], cost=cost))


def _sized(desk: Desk, place: int, index: int, size: int) -> Draft:
    step = desk.draft.steps[place]
    sizes = (*step.sizes[:index], size, *step.sizes[index + 1 :])
    return desk.draft.with_step(place, replace(step, sizes=sizes))


# Equalise: fewer different numbers, each the most common one that does.
def equalise(desk: Desk) -> None:
    for which in ("sizes", "cost"):
        counted = [value for value, _ in Counter(_numbers(desk.draft, which)).most_common()]
        if len(counted) > 64:
            continue
        for value in reversed(counted):
            for other in counted:
                if other != value and desk.consider(_swapped(desk, which, value, other)):
                    break


PASSES = (
    drop_operators,
    contract_chains,
    drop_outputs,
    drop_arguments,
    drop_references,
    unpin,
    equalise,
    lower_numbers,
)
"""In the order in which they are run: what makes later passes cheaper comes first."""
