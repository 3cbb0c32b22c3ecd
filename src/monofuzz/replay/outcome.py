"""What a run at one budget gave."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Fail", "Outcome", "Status"]

Status = Literal["ok", "oom", "thrashed", "timeout"]


@dataclass(frozen=True, slots=True)
class Fail:
    """Where an out-of-memory run ended: bytes outside the pool, the whole output size of the
    failing operator, its nesting depth, and the bytes by which the need exceeded the budget."""

    pinned_bytes: int
    request: int
    depth: int
    over_by: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run: its status, cost (nanoseconds), counters, and the budgets at which it happens.

    ``interval`` is [lo, hi), every integer budget in it makes exactly this run; hi is None when the
    run never evicted under pressure. With ``certified`` false nothing is known beyond the budget
    itself. ``evictions`` are the policy's choices, ``evictions_all`` count eager releases too.
    ``fingerprint`` is a hash of the victims in order; ``victims`` their root tensor ids, and
    ``victims_sha256`` the reference hash of those, where they were recorded: in single runs, not
    in maps.
    """

    status: Status
    budget: int
    interval: tuple[int, int | None]
    model_compute: int
    remat_compute: int
    evictions: int
    evictions_all: int
    distinct_evicted: int
    remats: int
    peak_memory: int
    peak_pinned: int
    depth_at_peak_pinned: int
    max_depth: int
    fail: Fail | None
    fingerprint: int
    victims: tuple[int, ...] | None = None
    victims_sha256: str | None = None
    certified: bool = True

    @property
    def cost(self) -> int:
        """Nanoseconds of compute, rematerialisation included."""
        return self.model_compute + self.remat_compute

    @property
    def overhead(self) -> float:
        """Compute relative to the model's own; 1.0 for a trace without compute."""
        return self.cost / self.model_compute if self.model_compute else 1.0

    def to_json(self) -> dict[str, Any]:
        """Everything but the budget, for JSON; of the victims only their hash."""
        return {
            "status": self.status,
            "model_compute": self.model_compute,
            "remat_compute": self.remat_compute,
            "overhead": self.overhead,
            "evictions": self.evictions,
            "evictions_all": self.evictions_all,
            "distinct_evicted": self.distinct_evicted,
            "remats": self.remats,
            "victims_sha256": self.victims_sha256,
            "interval": list(self.interval),
            "certified": self.certified,
            "peak_memory": self.peak_memory,
            "peak_pinned": self.peak_pinned,
            "depth_at_peak_pinned": self.depth_at_peak_pinned,
            "max_depth": self.max_depth,
            "fail": None if self.fail is None else dataclasses.asdict(self.fail),
        }

    def same_run(self, other: Outcome) -> bool:
        """Whether both are the same run: same victims, same counters, same end."""
        return (
            self.fingerprint == other.fingerprint
            and self.status == other.status
            and self.remat_compute == other.remat_compute
            and self.model_compute == other.model_compute
            and self.evictions == other.evictions
            and self.evictions_all == other.evictions_all
            and self.distinct_evicted == other.distinct_evicted
            and self.remats == other.remats
            and self.peak_memory == other.peak_memory
            and self.peak_pinned == other.peak_pinned
            and self.depth_at_peak_pinned == other.depth_at_peak_pinned
            and self.max_depth == other.max_depth
        )
