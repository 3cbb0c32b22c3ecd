"""A counterexample: all that somebody needs to see a claim break, and to see it again."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from monofuzz.canonical import canonical_hash
from monofuzz.counterexample.finding import findings, runs_of
from monofuzz.counterexample.signature import Signature, signature_of
from monofuzz.errors import UsageError
from monofuzz.search.verdict import CLAIMS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from monofuzz.replay import Outcome, TraceSystem
    from monofuzz.replay.policy import Policy
    from monofuzz.search.verdict import Claim
    from monofuzz.trace import Trace

__all__ = ["COMPARED", "Counterexample", "breaks", "examine"]

COMPARED = (
    "status",
    "model_compute",
    "remat_compute",
    "evictions",
    "evictions_all",
    "distinct_evicted",
    "remats",
    "victims_sha256",
    "peak_memory",
    "peak_pinned",
    "depth_at_peak_pinned",
    "max_depth",
    "interval",
)
"""What must be the same when a counterexample is replayed."""

MOST_FINDINGS = 16
"""How many breaks of a claim in one map are looked at, the worst first."""


@dataclass(frozen=True)
class Counterexample:
    """A trace, a policy and two budgets that break a claim.

    ``below`` and ``above`` are the runs at the smaller and the larger budget. ``severity`` is the
    width of the hole as a share of the peak (feasibility), or the factor by which the larger budget
    costs more (cost). ``signature`` is its mechanism. ``limit`` and ``align`` are those of
    `TraceSystem`. ``found`` says how it was found (generator, seed, versions); nothing depends on
    it. ``own`` is the policy itself where it is one of the user's own, whose name says nothing to
    others.
    """

    trace: Trace
    policy: str
    claim: Claim
    below: Outcome
    above: Outcome
    severity: float
    signature: Signature | None = None
    limit: float | None = 60.0
    align: int | None = None
    found: Mapping[str, Any] = field(default_factory=dict)
    own: Policy | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(
        cls, system: TraceSystem, claim: Claim, below: int, above: int, severity: float
    ) -> Counterexample:
        """The runs of a system at two budgets; that they break the claim is not checked."""
        example = cls(
            trace=system.trace,
            policy=system.policy,
            claim=claim,
            below=system.run(below),
            above=system.run(above),
            severity=severity,
            limit=system.limit,
            align=system.align,
            own=system.rule if system.rule.function is not None else None,
        )
        return replace(example, signature=signature_of(example))

    @property
    def rule(self) -> Policy | str:
        """The policy to run: ``policy``, or the user's own."""
        return self.policy if self.own is None else self.own

    @property
    def operators(self) -> int:
        """Operators of the trace, constants excluded."""
        return self.trace.n_operators

    @property
    def witness(self) -> tuple[int, int]:
        """The two budgets in bytes."""
        return self.below.budget, self.above.budget

    @functools.cached_property
    def id(self) -> str:
        """16 hexadecimal digits: equal for the same graph, policy, claim, limit and alignment."""
        text = (
            f"{canonical_hash(self.trace)}\n{self.policy}\n{self.claim}\n{self.limit}\n{self.align}"
        )
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def system(self, *, engine: str = "compiled") -> TraceSystem:
        """The trace under the policy, ready to run."""
        from monofuzz.replay.system import TraceSystem

        return TraceSystem(self.trace, self.rule, limit=self.limit, align=self.align, engine=engine)

    def differences(self, *, engine: str = "compiled") -> list[str]:
        """What a replay of both budgets gives otherwise than recorded; empty when all is the same.

        A replay that is the same but breaks no claim counts as a difference, too.
        """
        system = self.system(engine=engine)
        listed = []
        for recorded in (self.below, self.above):
            again = system.run(recorded.budget)
            listed += [
                f"{name} at {recorded.budget} bytes is {getattr(again, name)}, "
                f"not {getattr(recorded, name)}"
                for name in COMPARED
                if getattr(again, name) != getattr(recorded, name)
            ]
        if self.signature is not None and not listed and signature_of(self) != self.signature:
            listed.append(f"the signature is {signature_of(self)}, not {self.signature}")
        if not breaks(self.claim, self.below, self.above):
            listed.append(f"the two runs do not break the {self.claim} claim")
        return listed

    def with_found(self, **facts: Any) -> Counterexample:
        """The same with more known about how it was found."""
        return replace(self, found={**self.found, **facts})

    def to_json(self) -> dict[str, Any]:
        """What ``hunt --json`` and ``shrink --json`` list, but for goal and file."""
        return {
            "id": self.id,
            "policy": self.policy,
            "claim": self.claim,
            "operators": self.operators,
            "severity": self.severity,
            "witness": list(self.witness),
            "signature": None if self.signature is None else self.signature.to_json(),
            "below": {"budget": self.below.budget, **self.below.to_json()},
            "above": {"budget": self.above.budget, **self.above.to_json()},
        }

    def __str__(self) -> str:
        size = f"{self.operators} {'operator' if self.operators == 1 else 'operators'}"
        low, high = self.below, self.above
        if self.claim == "feasibility":
            return (
                f"{self.policy}: {size}, {low.status} at {low.budget} bytes, "
                f"{high.status} at {high.budget} (the hole is {self.severity:.1%} of the peak)"
            )
        return (
            f"{self.policy}: {size}, cost {low.cost} at {low.budget} bytes, "
            f"{high.cost} at {high.budget} ({self.severity:.4g} times)"
        )


def breaks(claim: Claim, below: Outcome, above: Outcome) -> bool:
    """Whether two runs, the second at the larger budget, break a claim."""
    if below.budget >= above.budget or below.status != "ok":
        return False
    if claim == "feasibility":
        return above.status == "oom"
    return above.status == "ok" and above.cost > below.cost


def examine(
    trace: Trace,
    policy: str | Policy,
    claim: Claim,
    *,
    limit: float | None = 60.0,
    align: int | None = None,
    engine: str = "compiled",
    most_runs: int | None = None,
    accept: Callable[[Counterexample], bool] | None = None,
) -> Counterexample | None:
    """The worst counterexample that a trace is to a claim, from its complete map, or None.

    ``most_runs``: give up (None) on a trace whose map needs more. ``accept``: the worst to which it
    says yes, of the `MOST_FINDINGS` worst.
    """
    from monofuzz.replay.system import TraceSystem

    if claim not in CLAIMS:
        raise UsageError(f"unknown claim {claim!r}; the claims are {' and '.join(CLAIMS)}")
    system = TraceSystem(trace, policy, limit=limit, align=align, engine=engine)
    runs = runs_of(system, most=most_runs)
    if runs is None:
        return None
    worst = sorted(findings(runs, claim, system.peak), key=lambda f: -f.severity)
    for finding in worst[: MOST_FINDINGS if accept is not None else 1]:
        example = Counterexample.of(system, claim, finding.below, finding.above, finding.severity)
        if accept is None or accept(example):
            return example
    return None
