"""A counterexample as a Python script that needs nothing but monofuzz."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monofuzz import __version__
from monofuzz.counterexample.model import COMPARED
from monofuzz.trace.model import COMPUTE, GET, PIN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from monofuzz.counterexample import Counterexample
    from monofuzz.trace import Trace

__all__ = ["python_script"]

_SCRIPT = '''"""A counterexample to the {claim} claim; made by monofuzz {version}.

Under {policy}: {below} with {low:,} bytes of memory, {above} with {high:,}. Run this file: it ends
without an error if both runs are as they were.
"""

from monofuzz.replay import replay
from monofuzz.trace import TraceBuilder

POLICY = {policy!r}
LIMIT, ALIGN = {limit!r}, {align!r}
RECORDED = {{
{recorded}
}}


def build():
    """The trace. Tensors are numbered in the order in which they are made."""
    step = TraceBuilder({name!r})
{steps}
    return step.finish(keep=[{kept}])


trace = build()
for budget, facts in RECORDED.items():
    run = replay(trace, POLICY, budget, limit=LIMIT, align=ALIGN, engine="interpreted")
    for name, expected in facts.items():
        found = getattr(run, name)
        assert found == expected, f"{{name}} at {{budget}} bytes is {{found}}, not {{expected}}"
    print(f"{{budget:,}} bytes: {{run.status}}, {{run.cost:,}} ns, evictions: {{run.evictions}}")
'''


def python_script(example: Counterexample) -> str:
    """The script: it builds the trace, replays both budgets and asserts what is recorded."""
    trace = example.trace
    recorded = []
    for outcome in (example.below, example.above):
        recorded.append(f"    {outcome.budget}: {{")
        recorded += [f"        {name!r}: {getattr(outcome, name)!r}," for name in COMPARED]
        recorded.append("    },")
    last = _end(trace)
    return _SCRIPT.format(
        claim=example.claim,
        version=__version__,
        policy=example.policy,
        below=example.below.status,
        above=example.above.status,
        low=example.below.budget,
        high=example.above.budget,
        limit=example.limit,
        align=example.align,
        recorded="\n".join(recorded),
        name=trace.meta.name,
        steps="\n".join(f"    {line}" for line in _steps(trace, last)),
        kept=", ".join(map(str, trace.operand[last:].tolist())),
    )


def _end(trace: Trace) -> int:
    """Where the pins at the end begin; the pin of a constant is not one of them."""
    command = trace.command.tolist()
    end = len(command)
    while end > 0 and command[end - 1] == PIN:
        end -= 1
    behind_constant = command[end - 1] == COMPUTE and trace.op_constant[trace.operand[end - 1]]
    if end < len(command) and behind_constant:
        end += 1
    return end


def _steps(trace: Trace, end: int) -> Iterator[str]:
    command, operand = trace.command.tolist(), trace.operand.tolist()
    made_constant = False
    for what, x in zip(command[:end], operand[:end], strict=True):
        if what == COMPUTE:
            made_constant = bool(trace.op_constant[x])
            yield _constant(trace, x) if made_constant else _operator(trace, x)
            continue
        if what == PIN and made_constant:
            made_constant = False  # the builder has pinned it
            continue
        yield f"step.{'get' if what == GET else 'pin' if what == PIN else 'release'}({x})"


def _constant(trace: Trace, op: int) -> str:
    (tensor,) = trace.outputs(op)
    size = int(trace.tensor_size[tensor])
    return f"step.constant({size}, name={trace.op_label[op]!r})  # tensor {tensor}"


def _operator(trace: Trace, op: int) -> str:
    outputs = trace.outputs(op)
    arguments = trace.arguments(op).tolist()
    roots = trace.tensor_root[arguments].tolist()
    shared = {
        k: roots.index(int(trace.tensor_root[tensor]))
        for k, tensor in enumerate(outputs)
        if trace.tensor_root[tensor] != tensor
    }
    sizes = [int(trace.tensor_size[tensor]) for tensor in outputs]
    views = f", views={shared}" if shared else ""
    listed = ", ".join(map(str, outputs))
    return (
        f"step.op({trace.op_label[op]!r}, {arguments}, {sizes}, {int(trace.op_cost[op])}{views})"
        f"  # tensor{'s' if len(outputs) > 1 else ''} {listed}"
    )
