"""A counterexample for a page: its graph, and both runs event by event."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from monofuzz.errors import StoredFileError
from monofuzz.report.payload import pack
from monofuzz.report.story import tell

if TYPE_CHECKING:
    from monofuzz.counterexample import Counterexample
    from monofuzz.explain.timeline import Timeline
    from monofuzz.replay import Outcome
    from monofuzz.report.story import Story

__all__ = ["STEPPED_OPERATORS", "example_blob"]

STEPPED_OPERATORS = 500
"""Counterexamples of more operators are told without their events: nobody would step through."""


def example_blob(example: Counterexample) -> str:
    """A counterexample with everything that a page shows of it.

    Raises `StoredFileError` when its runs are not what it says.
    """
    head: dict[str, Any] = {
        "kind": "example",
        "trace": example.trace.meta.name,
        "id": example.id,
        "policy": example.policy,
        "claim": example.claim,
        "operators": example.operators,
        "severity": example.severity,
        "limit": example.limit,
        "align": example.align,
        "found": {name: _plain(value) for name, value in example.found.items()},
        "most": STEPPED_OPERATORS,
        "graph": None,
        "runs": [_run(outcome) for outcome in (example.below, example.above)],
    }
    if example.operators <= STEPPED_OPERATORS:
        try:
            story = tell(example)
        except StoredFileError as error:
            raise StoredFileError(f"counterexample {example.id}: {error}") from None
        head["graph"] = _graph(story)
        for run, found in zip(head["runs"], (story.low, story.high), strict=True):
            run["events"] = [_event(found, index) for index in range(len(found.events))]
    return pack(head, {})


def _plain(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


def _run(outcome: Outcome) -> dict[str, Any]:
    fail = outcome.fail
    return {
        "budget": outcome.budget,
        "status": outcome.status,
        "interval": list(outcome.interval),
        "cost": outcome.cost,
        "overhead": outcome.overhead,
        "evictions": outcome.evictions,
        "remats": outcome.remats,
        "peak_memory": outcome.peak_memory,
        "max_depth": outcome.max_depth,
        "fail": None if fail is None else dataclasses.asdict(fail),
        "events": None,
    }


def _graph(story: Story) -> dict[str, Any]:
    trace, names = story.trace, story.names
    root = trace.tensor_root.tolist()
    operators, storages = [], {}
    for op in range(trace.n_ops):
        for tensor in trace.outputs(op):
            if root[tensor] == tensor:
                storages[tensor] = {
                    "name": names.tensor(tensor),
                    "size": story.sizes[tensor],
                    "maker": op,
                }
        operators.append(
            {
                "name": names.operator(op),
                "label": trace.op_label[op],
                "cost": int(trace.op_cost[op]),
                "reads": sorted({root[tensor] for tensor in trace.arguments(op).tolist()}),
                "makes": sorted({root[tensor] for tensor in trace.outputs(op)}),
            }
        )
    return {"operators": operators, "storages": storages}


def _event(found: Timeline, index: int) -> dict[str, Any]:
    event = found.events[index]
    # At a choice the pool is what was chosen from, else what is there afterwards.
    pool = found.pool(index) if event.choice else found.resident(index + 1) - found.locked(index)
    told: dict[str, Any] = {
        "kind": event.kind,
        "command": event.command,
        "operator": event.operator,
        "storages": event.storages,
        "memory": event.memory,
        "pinned": event.pinned,
        "depth": event.depth,
        "time": event.time,
        "pool": sorted(pool),
        "choice": None,
    }
    if event.choice is not None:
        choice = dataclasses.asdict(event.choice)
        for name in ("score", "runner_up_score"):
            value = choice[name]
            # JSON has no infinity.
            if value is not None and not math.isfinite(value):
                choice[name] = "∞" if value > 0 else str(value)
        told["choice"] = choice
    return told
