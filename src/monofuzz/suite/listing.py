"""A failure in words: the graph, line by line, and what happened at both budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from monofuzz.replay import Outcome
from monofuzz.trace.model import COMPUTE, GET, PIN

if TYPE_CHECKING:
    from monofuzz.trace import Trace

__all__ = ["happened", "listed", "plural"]

_MOST_LINES = 60


def listed(trace: Trace) -> list[str]:
    """The schedule of a small trace, a command a line; nothing for a large one."""
    if len(trace.command) > _MOST_LINES:
        return []
    names = _tensor_names(trace)
    lines: list[tuple[str, str]] = []
    for what, x in zip(trace.command.tolist(), trace.operand.tolist(), strict=True):
        if what != COMPUTE:
            word = {GET: "hold", PIN: "keep"}.get(what, "drop")
            lines.append((f"{word} {names[x]}", ""))
            continue
        made = trace.outputs(x)
        call = "constant" if trace.op_constant[x] else "op"
        read = ", ".join(names[t] for t in trace.arguments(x).tolist())
        sizes = ", ".join(_size(trace, t, names) for t in made)
        lines.append(
            (
                f"{', '.join(names[t] for t in made)} = {call}({read})",
                f"# {sizes}; {trace.op_cost[x]} ns",
            )
        )
    width = max(len(left) for left, _ in lines)
    return [f"{left:<{width}}  {right}".rstrip() for left, right in lines]


def happened(result: Any) -> str:
    """What a run gave, in a phrase."""
    if isinstance(result, Outcome):
        return _replayed(result)
    detail = getattr(result, "detail", "")
    if result.status == "ok":
        told = f"ok, cost {result.cost:,}" if getattr(result, "priced", True) else "ok"
    else:
        told = _STATUS.get(result.status, result.status)
    return f"{told}: {detail}" if detail else told


_STATUS = {"oom": "out of memory", "thrashed": "over the compute limit", "timeout": "given up"}


def _replayed(run: Outcome) -> str:
    work = f"{plural(run.evictions, 'eviction')}, {plural(run.remats, 'recomputation')}"
    if run.status == "ok":
        return f"ok, {run.cost:,} ns ({run.overhead:.4g} times the model's compute), {work}"
    if run.fail is None:
        return f"{_STATUS[run.status]}, {work}"
    fail = run.fail
    deep = f" while recomputing, {fail.depth - 1} deep" if fail.depth > 1 else ""
    short = plural(fail.over_by, "byte")
    return (
        f"out of memory, {short} short: an operator asks for {fail.request:,}"
        f"{deep}, and {fail.pinned_bytes:,} cannot be evicted; {work}"
    )


def plural(count: int, word: str) -> str:
    """``1 operator``, ``2 operators``."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _tensor_names(trace: Trace) -> list[str]:
    names = []
    single = len(set(trace.op_label)) == trace.n_ops
    for op, label in enumerate(trace.op_label):
        made = trace.outputs(op)
        own = label if single and label.isidentifier() else f"t{op}"
        names += [own] if len(made) == 1 else [f"{own}.{i}" for i in range(len(made))]
    return names


def _size(trace: Trace, tensor: int, names: list[str]) -> str:
    root = int(trace.tensor_root[tensor])
    if root != tensor:
        return f"a view of {names[root]}"
    return plural(int(trace.tensor_size[tensor]), "byte")
