"""The graph of a counterexample in Graphviz's language."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from monofuzz.report.diagram import shortened
from monofuzz.trace.model import PIN, RELEASE

if TYPE_CHECKING:
    from monofuzz.counterexample import Counterexample

__all__ = ["dot_graph"]

_SPECIAL = str.maketrans({c: f"\\{c}" for c in '\\{}|<>"'} | {"\n": " "})


def dot_graph(example: Counterexample) -> str:
    """Operators as records: label, cost, and one field a tensor with its bytes.

    Constants are grey; tensors that the step releases are marked ✗, those that it keeps ●.
    """
    trace = example.trace
    operand = trace.operand.tolist()
    kept = {t for c, t in zip(trace.command, operand, strict=True) if c == PIN}
    released = {t for c, t in zip(trace.command, operand, strict=True) if c == RELEASE}
    title = (
        f"{example.policy}, {example.claim}, {example.witness[0]} and {example.witness[1]} bytes"
    )
    lines = [
        f"digraph monofuzz_{example.id} {{",
        f"  graph [rankdir=LR, label={_quoted(title)}];",
        '  node [shape=record, fontname="Helvetica"];',
    ]
    for op in range(trace.n_ops):
        fields = []
        for tensor in trace.outputs(op):
            root = int(trace.tensor_root[tensor])
            size = f"{trace.tensor_size[tensor]} B" if root == tensor else f"view of {root}"
            mark = " ●" if tensor in kept else " ✗" if tensor in released else ""
            fields.append(f"<t{tensor}> {tensor}: {size}{mark}")
        label = shortened(trace.op_label[op], 60).translate(_SPECIAL)
        grey = ', style=filled, fillcolor="#E6E6E6"' if trace.op_constant[op] else ""
        record = f"{{{label}\\n{trace.op_cost[op]} ns|{{{'|'.join(fields)}}}}}"
        lines.append(f'  op{op} [label="{record}"{grey}];')
    maker = {tensor: op for op in range(trace.n_ops) for tensor in trace.outputs(op)}
    lines += [
        f"  op{maker[tensor]}:t{tensor} -> op{op};"
        for op in range(trace.n_ops)
        for tensor in trace.arguments(op).tolist()
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
