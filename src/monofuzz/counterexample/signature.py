"""The mechanism of a counterexample, as few numbers that a smaller one can be held to.

Any hole of a large trace can shrink to the same handful of operators. What makes a hole this hole
is how the run at the larger budget comes to its end; `Signature.keeps` says when another one comes
to its end in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from monofuzz.counterexample.model import Counterexample

__all__ = ["DEPTH", "SLACK", "Signature", "signature_of"]

DEPTH: Final = 3
"""A nested cascade: an operator waits for one that waits for one that is computed again."""
SLACK: Final = 0.05
"""By how much the share may be smaller than it was."""


@dataclass(frozen=True, slots=True)
class Signature:
    """How two runs part, and how the one at the larger budget ends.

    Attributes:
        depth: nested operators, the schedule's own included: for a hole those that wait when memory
            runs out, for a rise in cost the most at any time.
        share: for a hole, what cannot be evicted when memory runs out, as a share of the budget,
            both without constants. For a rise in cost, what is computed again, as a share of all
            compute.
        common: how many victims both runs have in common before they part.
        evicted: the storage (root tensor) that only the smaller budget evicts then, None if it
            evicts no other.
        instead: the one that the larger budget evicts in its place, or None.
        flips: whether it is one check of memory that goes the other way, and has them evict
            different storages from then on: both evict another one, and for a hole no third run
            lies between the two budgets.
    """

    depth: int
    share: float
    common: int
    evicted: int | None
    instead: int | None
    flips: bool

    def keeps(self, original: Signature) -> bool:
        """Whether this is the mechanism of the original.

        The cascade is nested at least `DEPTH` deep (or as deep as it was, if that is less), the
        share is at least what it was, less `SLACK`, and one check still decides, if one did.
        """
        return (
            self.depth >= min(DEPTH, original.depth)
            and self.share >= original.share - SLACK
            and self.flips >= original.flips
        )

    def to_json(self) -> dict[str, Any]:
        """All attributes by their names."""
        return {name: getattr(self, name) for name in Signature.__slots__}


def signature_of(example: Counterexample) -> Signature:
    """The signature of a counterexample. Its runs are made again if they lack their victims."""
    below, above = example.below, example.above
    if below.victims is None or above.victims is None:
        system = example.system()
        below, above = system.run(below.budget), system.run(above.budget)
    first, second = below.victims or (), above.victims or ()
    common = next(
        (k for k, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
    evicted = first[common] if common < len(first) else None
    instead = second[common] if common < len(second) else None
    flips = evicted is not None and instead is not None
    if example.claim == "feasibility":
        constants = _constants(example)
        fail = above.fail
        depth = 0 if fail is None else fail.depth
        pinned = 0 if fail is None else fail.pinned_bytes - constants
        share = pinned / max(above.budget - constants, 1)
        flips = flips and below.interval[1] == above.budget
    else:
        depth = above.max_depth
        share = above.remat_compute / max(above.cost, 1)
    return Signature(depth, share, common, evicted, instead, flips)


def _constants(example: Counterexample) -> int:
    """Bytes of the trace's constants, which nothing evicts."""
    trace = example.trace
    size = trace.tensor_size[trace.out_ptr[:-1]][trace.op_constant]
    if example.align is not None:
        size = -(-size // example.align) * example.align
    return int(size.sum())
