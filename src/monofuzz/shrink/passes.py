"""The passes: plain functions that propose smaller drafts and keep what is still interesting.

A pass is given a `Desk`: ``desk.draft`` is the present draft; ``desk.first(drafts)`` takes over the
first of several that is smaller and still interesting, and says which. None of them knows what
interesting means, or what keeps a trace valid. Since most proposals fail, drafts are proposed many
at a time, so that whoever judges them may work ahead.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from monofuzz.canonical import canonical_order
from monofuzz.shrink.rewrite import Draft, Step, pins_constant
from monofuzz.trace.model import COMPUTE, GET, PIN, RELEASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["PASSES", "Desk"]

Key = TypeVar("Key")

_FEW = 40
"""Operators up to which all pairs of them are tried."""
_ORDERED = 400
"""Commands up to which the schedule is put in order."""


class Desk(Protocol):
    """Where a pass works."""

    @property
    def draft(self) -> Draft: ...
    def first(self, drafts: Iterable[Draft | None]) -> int | None: ...


def _in_blocks(
    desk: Desk,
    keys: Callable[[Draft], Sequence[Key]],
    without: Callable[[Draft, Sequence[Key]], Draft],
) -> None:
    """Try to go without blocks of things, from the last to the first, large blocks first.

    A round in which a block could go is followed by one of somewhat smaller blocks, one in which
    none could by one of half the size.
    """
    size = max(len(keys(desk.draft)) // 2, 1)
    while True:
        went = _round(desk, size, keys, without)
        if size == 1:
            return
        size = max(size * 2 // 3 if went else size // 2, 1)


def _round(
    desk: Desk,
    size: int,
    keys: Callable[[Draft], Sequence[Key]],
    without: Callable[[Draft, Sequence[Key]], Draft | None],
) -> bool:
    """One round with blocks of a size; whether any could go."""
    went = False
    end = len(keys(desk.draft))
    while end > 0:
        draft, there = desk.draft, keys(desk.draft)
        starts = [max(e - size, 0) for e in range(min(end, len(there)), 0, -size)]
        taken = desk.first(without(draft, there[start : start + size]) for start in starts)
        if taken is None:
            break
        went = True
        end = starts[taken]
    return went


def _one_by_one(
    desk: Desk,
    keys: Callable[[Draft], Sequence[Key]],
    changed: Callable[[Draft, Key], Draft | None],
) -> None:
    """Try to change things one by one, from the last to the first."""
    _round(desk, 1, keys, lambda draft, block: changed(draft, block[0]))


# Drop operators: what reads their outputs reads their first argument instead, or nothing, or, with
# few operators, each of the other arguments.
def drop_operators(desk: Desk) -> None:
    _in_blocks(desk, _operators, lambda draft, gone: _dropped(draft, set(gone), rewire=0))
    _in_blocks(desk, _operators, lambda draft, gone: _dropped(draft, set(gone), rewire=None))

    def others(draft: Draft) -> list[tuple[int, int]]:
        places = _operators(draft)
        if len(places) > _FEW:
            return []
        return [(i, k) for i in places for k in range(1, len(draft.steps[i].reads))]

    _one_by_one(desk, others, lambda draft, key: _dropped(draft, {key[0]}, rewire=key[1]))


def _operators(draft: Draft) -> list[int]:
    return [i for i, step in enumerate(draft.steps) if step.what == COMPUTE]


def _dropped(draft: Draft, places: set[int], *, rewire: int | None) -> Draft:
    instead: dict[int, int | None] = {}
    steps = []
    for i, step in enumerate(draft.steps):
        if step.what == COMPUTE:
            reads = _replaced(step.reads, instead) if instead else step.reads
            if i in places:
                kept = reads[rewire] if rewire is not None and rewire < len(reads) else None
                instead.update(dict.fromkeys(step.makes, kept))
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
    _one_by_one(desk, _operators, _contracted)


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


# Merge operators: two become one that reads and makes what both did, in place of the first or of
# the second; neighbours, and with few operators all pairs.
def merge_operators(desk: Desk) -> None:
    def pairs(draft: Draft) -> list[tuple[int, int, bool]]:
        places = _operators(draft)
        reach = len(places) if len(places) <= _FEW else 2
        return [
            (i, j, late)
            for k, i in enumerate(places)
            for j in places[k + 1 : k + reach]
            for late in (False, True)
        ]

    _one_by_one(desk, pairs, lambda draft, pair: _merged(draft, *pair))


def _merged(draft: Draft, i: int, j: int, late: bool) -> Draft:
    one, two = draft.steps[i], draft.steps[j]
    reads = tuple(dict.fromkeys(t for t in (*one.reads, *two.reads) if t not in one.makes))
    both = replace(
        one,
        constant=False,
        cost=one.cost + two.cost,
        reads=reads,
        makes=one.makes + two.makes,
        sizes=one.sizes + two.sizes,
        of=one.of + two.of,
    )
    keep, gone = (j, i) if late else (i, j)
    steps = [both if k == keep else s for k, s in enumerate(draft.steps)]
    pins = [k + 1 for k in (i, j) if draft.steps[k].constant]
    return replace(draft, steps=tuple(steps)).without((gone, *pins))


# Merge storages: two outputs of an operator become one of both sizes.
def merge_storages(desk: Desk) -> None:
    def pairs(draft: Draft) -> list[tuple[int, int, int]]:
        return [
            (place, first, second)
            for place in _operators(draft)
            for second in range(len(draft.steps[place].makes))
            for first in range(second)
            if draft.steps[place].of[first] is None and draft.steps[place].of[second] is None
        ]

    _one_by_one(desk, pairs, lambda draft, pair: _in_one_storage(draft, *pair))


def _in_one_storage(draft: Draft, place: int, first: int, second: int) -> Draft:
    step = draft.steps[place]
    kept, gone = step.makes[first], step.makes[second]
    total = step.sizes[first] + step.sizes[second]
    sizes = tuple(total if k == first else size for k, size in enumerate(step.sizes))
    larger = draft.with_step(place, replace(step, sizes=sizes))
    named = [
        replace(s, of=tuple(kept if o == gone else o for o in s.of)) if gone in s.of else s
        for s in larger.steps
    ]
    return _without_output(replace(draft, steps=tuple(named)), place, second, instead=kept)


# Drop outputs of operators with several, and let views have storage of their own.
def drop_outputs(desk: Desk) -> None:
    def several(draft: Draft) -> list[tuple[int, int]]:
        steps = draft.steps
        return [
            (i, k)
            for i in _operators(draft)
            if len(steps[i].makes) > 1
            for k in range(len(steps[i].makes))
        ]

    def views(draft: Draft) -> list[tuple[int, int]]:
        return [
            (i, k)
            for i in _operators(draft)
            for k, of in enumerate(draft.steps[i].of)
            if of is not None
        ]

    _one_by_one(desk, several, lambda draft, key: _without_output(draft, *key))
    _one_by_one(desk, views, lambda draft, key: _own_storage(draft, *key))


def _own_storage(draft: Draft, place: int, index: int) -> Draft:
    step = draft.steps[place]
    own = replace(
        step,
        of=tuple(None if k == index else o for k, o in enumerate(step.of)),
        sizes=tuple(1 if k == index else z for k, z in enumerate(step.sizes)),
    )
    return draft.with_step(place, own)


def _without_output(draft: Draft, place: int, index: int, instead: int | None = None) -> Draft:
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
        replace(other, reads=_replaced(other.reads, {gone: instead}))
        if gone in other.reads
        else other
        for other in draft.with_step(place, fewer).steps
        if other.what == COMPUTE or other.tensor != gone
    ]
    return replace(draft, steps=tuple(steps))


# Drop arguments.
def drop_arguments(desk: Desk) -> None:
    def arguments(draft: Draft) -> list[tuple[int, int]]:
        return [(i, k) for i in _operators(draft) for k in range(len(draft.steps[i].reads))]

    def without(draft: Draft, gone: Sequence[tuple[int, int]]) -> Draft:
        steps = list(draft.steps)
        for i in {i for i, _ in gone}:
            reads = tuple(t for k, t in enumerate(steps[i].reads) if (i, k) not in gone)
            steps[i] = replace(steps[i], reads=reads)
        return replace(draft, steps=tuple(steps))

    _in_blocks(desk, arguments, without)


# Drop references: commands that take, drop or pin one, and pairs that take and drop one.
def drop_references(desk: Desk) -> None:
    def places(draft: Draft) -> list[int]:
        steps = draft.steps
        return [
            i
            for i, step in enumerate(steps)
            if step.what != COMPUTE and not (step.what == PIN and pins_constant(steps, i))
        ]

    def taken(draft: Draft) -> list[int]:
        return [i for i, step in enumerate(draft.steps) if step.what == GET]

    def without_both(draft: Draft, place: int) -> Draft | None:
        drop = Step(RELEASE, draft.steps[place].tensor)
        for later in range(place + 1, len(draft.steps)):
            if draft.steps[later] == drop:
                return draft.without((place, later))
        return None

    _in_blocks(desk, places, Draft.without)
    _one_by_one(desk, taken, without_both)


# Unpin: constants become operators that anybody may recompute; what is kept to the end is dropped
# there, or after its last use.
def unpin(desk: Desk) -> None:
    def constants(draft: Draft) -> list[int]:
        return [i for i in _operators(draft) if draft.steps[i].constant]

    def loose(draft: Draft, gone: Sequence[int]) -> Draft:
        steps = [replace(s, constant=False) if i in gone else s for i, s in enumerate(draft.steps)]
        return replace(draft, steps=tuple(steps)).without(i + 1 for i in gone)

    _in_blocks(desk, constants, loose)

    def kept(draft: Draft) -> list[tuple[int, bool]]:
        moved = {step.tensor for step in draft.steps if step.what in (GET, RELEASE)}
        made = [t for step in draft.steps for t in step.makes if t not in moved]
        return [(tensor, late) for tensor in made for late in (True, False)]

    _one_by_one(desk, kept, lambda draft, key: _let_go(draft, *key))


def _let_go(draft: Draft, tensor: int, late: bool) -> Draft:
    steps = draft.steps
    if late:
        behind = max(i for i, s in enumerate(steps) if s.what != PIN or pins_constant(steps, i))
    else:
        behind = max(i for i, s in enumerate(steps) if tensor in s.reads or tensor in s.makes)
    drop = Step(RELEASE, tensor)
    return replace(draft, steps=(*steps[: behind + 1], drop, *steps[behind + 1 :]))


# Equalise: fewer different numbers, each the most common one that does.
def equalise(desk: Desk) -> None:
    for which in ("sizes", "cost"):

        def pairs(draft: Draft, which: str = which) -> list[tuple[int, int]]:
            counted = [value for value, _ in Counter(_numbers(draft, which)).most_common(64)]
            return [(v, other) for v in counted for other in reversed(counted) if other != v]

        def swapped(draft: Draft, pair: tuple[int, int], which: str = which) -> Draft:
            value, other = pair
            return _mapped(draft, which, lambda v: other if v == value else v)

        _one_by_one(desk, pairs, swapped)


# Divide sizes and costs: by what all have in common, then by powers of two, rounded up, to the
# nearest and down.
def divide_numbers(desk: Desk) -> None:
    for which in ("sizes", "cost"):
        taken: int | None = 0
        while taken is not None:
            draft = desk.draft
            numbers = _numbers(draft, which)
            largest = max(numbers, default=0)
            divisors = [math.gcd(*numbers), *(1 << s for s in (40, 32, 24, 16, 8, 4, 2, 1))]
            taken = desk.first(
                _divided(draft, which, divisor, more)
                for divisor in divisors
                if 1 < divisor <= largest
                for more in dict.fromkeys((divisor - 1, divisor // 2, 0))
            )


def _divided(draft: Draft, which: str, divisor: int, more: int) -> Draft:
    return _mapped(draft, which, lambda v: max((v + more) // divisor, 1) if v else 0)


# Close gaps: all sizes or costs from one on come nearer to the next smaller one, together.
def close_gaps(desk: Desk) -> None:
    for which in ("sizes", "cost"):
        for place in reversed(range(len(set(_numbers(desk.draft, which))))):
            values = [0, *sorted(set(_numbers(desk.draft, which)))]
            if place + 1 >= len(values):
                continue
            top, gap = values[place + 1], values[place + 1] - values[place]

            def nearer(
                draft: Draft, new: int, which: str = which, top: int = top, gap: int = gap
            ) -> Draft:
                return _mapped(draft, which, lambda v: v - gap + new if v >= top else v)

            _lower(desk, gap, nearer)


# Lower sizes and costs: all that are equal together, then each alone.
def lower_numbers(desk: Desk) -> None:
    for which in ("sizes", "cost"):
        for value in sorted(set(_numbers(desk.draft, which)), reverse=True):

            def all_equal(draft: Draft, new: int, which: str = which, old: int = value) -> Draft:
                return _mapped(draft, which, lambda v: new if v == old else v)

            _lower(desk, value, all_equal)
    for place in range(len(desk.draft.steps)):
        step = desk.draft.steps[place]
        if step.what != COMPUTE:
            continue
        _lower(desk, step.cost, functools.partial(_priced, place))
        for index in range(len(step.makes)):
            if step.of[index] is None:
                _lower(desk, step.sizes[index], functools.partial(_sized, place, index))


def _lower(desk: Desk, value: int, lowered: Callable[[Draft, int], Draft]) -> None:
    """The least value from 1 on that does, found as if less were always harder."""
    low, high = 0, value
    while high - low > 1:
        draft = desk.draft
        tries = list(_middles(low, high))
        taken = desk.first(lowered(draft, number) for number in tries)
        if taken is None:
            return
        low, high = (tries[taken - 1] if taken else low), tries[taken]


def _middles(low: int, high: int) -> Iterator[int]:
    """The values that a bisection asks about as long as the answer is no; from 0 on, 1 first."""
    while high - low > 1:
        low = (low + high) // 2 if low else 1
        yield low


def _priced(place: int, draft: Draft, cost: int) -> Draft:
    return draft.with_step(place, replace(draft.steps[place], cost=cost))


def _sized(place: int, index: int, draft: Draft, size: int) -> Draft:
    step = draft.steps[place]
    sizes = (*step.sizes[:index], size, *step.sizes[index + 1 :])
    return draft.with_step(place, replace(step, sizes=sizes))


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


# Reorder: references go right after the last use; the schedule comes into its canonical order, as
# a whole or one command after the other.
def reorder(desk: Desk) -> None:
    def releases(draft: Draft) -> list[int]:
        return [i for i, step in enumerate(draft.steps) if step.what == RELEASE]

    _one_by_one(desk, releases, _sooner)
    taken: int | None = 0
    while taken is not None and len(desk.draft.steps) <= _ORDERED:
        taken = desk.first(_tidier(desk.draft))


def _sooner(draft: Draft, place: int) -> Draft | None:
    """With a release right behind the last use before it."""
    steps = draft.steps
    tensor = steps[place].tensor
    uses = [
        i
        for i, s in enumerate(steps[:place])
        if tensor in s.reads or tensor in s.makes or (s.what != COMPUTE and s.tensor == tensor)
    ]
    if not uses:
        return None
    behind = uses[-1] + 1
    moved = (*steps[:behind], steps[place], *steps[behind:place], *steps[place + 1 :])
    return replace(draft, steps=moved)


def _tidier(draft: Draft) -> Iterator[Draft]:
    """All in canonical order; then two neighbours, where it has them the other way round."""
    trace = draft.trace()
    assert trace is not None
    rank = {c: k for k, c in enumerate(canonical_order(trace))}
    units: list[tuple[int, ...]] = []
    for i in range(len(draft.steps)):
        if pins_constant(draft.steps, i):
            units[-1] = (*units[-1], i)
        else:
            units.append((i,))

    def arranged(order: Sequence[tuple[int, ...]]) -> Draft:
        return replace(draft, steps=tuple(draft.steps[i] for unit in order for i in unit))

    yield arranged(sorted(units, key=lambda unit: rank[unit[0]]))
    for k in reversed(range(len(units) - 1)):
        one, two = units[k : k + 2]
        if rank[one[0]] > rank[two[0]]:
            yield arranged([*units[:k], two, one, *units[k + 2 :]])


PASSES = (
    drop_operators,
    contract_chains,
    merge_operators,
    merge_storages,
    drop_outputs,
    drop_arguments,
    drop_references,
    unpin,
    equalise,
    divide_numbers,
    close_gaps,
    lower_numbers,
    reorder,
)
"""In the order in which they are run: what makes later passes cheaper comes first."""
