"""Paging: a memory of so many frames, and pages that are brought in when they are referenced.

The oldest example of more memory doing worse: first in, first out replacement can fault more often
with more frames (Belady, Nelson and Shedler, "An anomaly in space-time characteristics of certain
programs running in a paging machine", CACM 12(6), 1969). Least recently used replacement cannot:
what it keeps with fewer frames it also keeps with more (Mattson, Gecsei, Slutz and Traiger,
"Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2), 1970).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from monofuzz.errors import BudgetError, UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from monofuzz.trace.model import Trace

__all__ = ["RULES", "Paging", "PagingResult", "Rule", "references"]

Rule = Literal["fifo", "lru"]
"""Which page goes: *fifo*, the one that came first; *lru*, the one that was used least recently."""

RULES: tuple[Rule, ...] = get_args(Rule)


@dataclass(frozen=True, slots=True)
class PagingResult:
    """A run with so many frames: ``cost`` is the number of faults, ``overhead`` that number as a
    multiple of the number of pages. Without any frame, the run fails."""

    status: Literal["ok", "oom"]
    cost: int
    overhead: float
    interval: tuple[int, int | None]
    certified: bool = True


class Paging:
    """A reference string under a replacement rule; the budget is the number of frames.

    ``pages`` are the pages in the order in which they are referenced, each anything hashable. Every
    result is certified, so that a map of all frames proves what it says.
    """

    def __init__(self, pages: Iterable[Hashable], rule: Rule = "fifo") -> None:
        if rule not in RULES:
            raise UsageError(
                f"unknown rule {rule!r}{nearest(str(rule), RULES)} "
                f"(the rules are {' and '.join(RULES)})"
            )
        self.pages = tuple(pages)
        if not self.pages:
            raise UsageError("a reference string needs at least one page")
        self.rule = rule
        self.peak = len(set(self.pages))
        self.name = f"{len(self.pages)} references to {self.peak} pages"
        self.policy = rule
        # Runs depend on which references are to the same page, not on what pages are called.
        numbers = {page: i for i, page in enumerate(dict.fromkeys(self.pages))}
        self.identity = f"paging {rule} {[numbers[page] for page in self.pages]}"

    def run(self, frames: int) -> PagingResult:
        """The faults with so many frames."""
        if frames < 0:
            raise BudgetError(f"a number of frames is 0 or more, not {frames}")
        if frames == 0:
            return PagingResult("oom", 0, 0.0, (0, 1))
        present: OrderedDict[Hashable, None] = OrderedDict()
        faults = 0
        for page in self.pages:
            if page in present:
                if self.rule == "lru":
                    present.move_to_end(page)
                continue
            faults += 1
            if len(present) == frames:
                present.popitem(last=False)
            present[page] = None
        enough = frames >= self.peak
        interval = (self.peak, None) if enough else (frames, frames + 1)
        return PagingResult("ok", faults, faults / self.peak, interval)


def references(trace: Trace) -> tuple[int, ...]:
    """The reference string of a trace: the storages that its operators read, in order.

    Whatever makes, shrinks or keeps traces thereby serves reference strings, too.
    """
    return tuple(trace.tensor_root[trace.args].tolist())
