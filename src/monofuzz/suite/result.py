"""What a test found, and how it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from monofuzz.suite.listing import listed, plural

if TYPE_CHECKING:
    from monofuzz.search.verdict import Claim, Witness
    from monofuzz.trace import Trace

__all__ = ["Breach", "Result"]


@dataclass(frozen=True)
class Breach:
    """Two budgets that break a claim, on the smallest trace that was found to show it.

    ``below`` and ``above`` say in words what happened at each. ``first`` names where it was seen
    first, a trace of ``operators``. Without a trace the system takes none.
    """

    witness: Witness
    below: str
    above: str
    trace: Trace | None
    first: str
    operators: int | None


@dataclass(frozen=True)
class Result:
    """The verdict on one claim in one place.

    ``covered`` is the share of the budgets that is known, over all graphs; ``runs`` and ``graphs``
    are what was searched. ``feasible``: some run succeeded, so that something was compared.
    ``monotone`` is said of the budgets and graphs that were searched, each of which was proved.
    """

    subject: str
    place: str
    claim: Claim
    verdict: Literal["monotone", "refuted", "undecided"]
    covered: float
    runs: int
    graphs: int
    feasible: bool
    reason: str
    breach: Breach | None = None

    def text(self, reproduce: str = "") -> str:
        """The failure for a reader: what breaks, where, and the line that shows it again."""
        breach = self.breach
        if breach is None:
            on = f" on {self.place}" if self.place else ""
            return f"{self.subject}{on}: {self.claim} is {self.verdict}: {self.reason}"
        more = "more memory fails" if self.claim == "feasibility" else "more memory costs more"
        low, high = breach.witness.budgets
        wide = max(len(f"{low:,}"), len(f"{high:,}"))
        lines = [
            f"{self.subject}: {more}",
            "",
            f"  at {low:>{wide},} {'byte' if low == 1 else 'bytes'}: {breach.below}",
            f"  at {high:>{wide},} {'byte' if high == 1 else 'bytes'}: {breach.above}",
        ]
        if breach.trace is not None:
            now = plural(breach.trace.n_operators, "operator")
            was = (
                f", shrunk from {breach.operators:,}"
                if breach.operators is not None and breach.operators > breach.trace.n_operators
                else ""
            )
            graph = [f"    {line}" for line in listed(breach.trace)]
            lines += ["", f"on a graph of {now}{was} (first seen on {breach.first})"]
            lines += ["", *graph] if graph else []
        if reproduce:
            lines += ["", "to see it again:", "", f"    {reproduce}"]
        return "\n".join(lines)
