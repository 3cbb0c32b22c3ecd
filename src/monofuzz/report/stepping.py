"""A counterexample for a page: its graph, and both runs event by event."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from monofuzz.explain.timeline import timeline
from monofuzz.report.payload import pack

if TYPE_CHECKING:
    from monofuzz.counterexample import Counterexample
    from monofuzz.explain.timeline import Timeline
    from monofuzz.replay import Outcome
    from monofuzz.trace import Trace

__all__ = ["STEPPED_OPERATORS", "example_blob"]

STEPPED_OPERATORS = 500
"""Counterexamples of more operators are told without their events: nobody would step through."""

_COMMANDS = ("compute", "get", "pin", "release")


def example_blob(example: Counterexample) -> str:
    """A counterexample with everything that a page shows of it."""
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
        head["graph"] = _graph(example.trace, example.align)
        for run, outcome in zip(head["runs"], (example.below, example.above), strict=True):
            found = timeline(
                example.trace,
                example.policy,
                outcome.budget,
                limit=example.limit,
                align=example.align,
            )
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


def _graph(trace: Trace, align: int | None) -> dict[str, Any]:
    labels = Counter(trace.op_label)
    operators, storages = [], {}
    for op in range(trace.n_ops):
        label = trace.op_label[op]
        name = label if label and labels[label] == 1 else f"{label}#{op}"
        roots = [t for t in trace.outputs(op) if trace.tensor_root[t] == t]
        for place, root in enumerate(roots):
            size = int(trace.tensor_size[root])
            storages[root] = {
                "name": name if len(roots) == 1 else f"{name}.{place}",
                "size": size if align is None else -(-size // align) * align,
                "maker": op,
            }
        operators.append(
            {
                "name": name,
                "cost": int(trace.op_cost[op]),
                "constant": bool(trace.op_constant[op]),
                "reads": sorted({int(trace.tensor_root[t]) for t in trace.arguments(op)}),
                "makes": sorted({int(trace.tensor_root[t]) for t in trace.outputs(op)}),
            }
        )
    commands = [
        [_COMMANDS[command], int(operand)]
        for command, operand in zip(trace.command.tolist(), trace.operand.tolist(), strict=True)
    ]
    return {"operators": operators, "storages": storages, "commands": commands}


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
