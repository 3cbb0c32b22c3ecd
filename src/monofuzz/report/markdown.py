"""A counterexample as a bug report in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monofuzz import __version__
from monofuzz.counterexample.storage import to_text
from monofuzz.report.diagram import shortened
from monofuzz.report.script import python_script
from monofuzz.report.story import plain_score
from monofuzz.trace.model import COMPUTE, GET, PIN

if TYPE_CHECKING:
    from monofuzz.replay import Outcome
    from monofuzz.report.story import Decision, Story

__all__ = ["markdown_report"]

_SPECIAL = str.maketrans(
    {c: f"\\{c}" for c in "\\`*_{}[]()#+!|~$"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
)


def markdown_report(story: Story) -> str:
    """What breaks, the step, both runs, every choice, a script and the file itself."""
    example = story.example
    title = "More memory fails" if example.claim == "feasibility" else "More memory is slower"
    limit = "none" if example.limit is None else f"{example.limit:g} times the model's compute"
    lines = [
        f"# {title}: {_plain(example.policy)} on {example.operators} operators",
        "",
        f"{_plain(story.summary[:1].upper() + story.summary[1:])}.",
        "",
        "| | |",
        "|---|---|",
        f"| counterexample | `{example.id}` |",
        f"| policy | `{example.policy}` |",
        f"| claim broken | {example.claim} |",
        f"| compute limit | {limit} |",
        f"| sizes aligned to | {_bytes(example.align or 1)} |",
        f"| monofuzz | {__version__} |",
        "",
        "## The step",
        "",
        *_schedule(story),
        "",
        "## The runs",
        "",
        f"| | {example.witness[0]:,} bytes | {example.witness[1]:,} bytes |",
        "|---|---|---|",
        f"| ends | {_plain(story.told(story.low))} | {_plain(story.told(story.high))} |",
        *_facts(story),
        "",
        *_choices(story),
        "",
        "## To see it again",
        "",
        "This script needs monofuzz and nothing else:",
        "",
        *_fenced(python_script(example), "python"),
        "",
        "<details><summary>The counterexample itself, for <code>monofuzz verify</code></summary>",
        "",
        *_fenced(to_text(example).decode(), "json"),
        "",
        "</details>",
    ]
    return "\n".join(lines) + "\n"


def _schedule(story: Story) -> list[str]:
    trace, names = story.trace, story.names
    lines = ["| step | reads | makes (bytes) | cost (ns) | label |", "|---|---|---|---|---|"]
    for what, x in zip(trace.command.tolist(), trace.operand.tolist(), strict=True):
        if what != COMPUTE:
            word = {GET: "share", PIN: "keep"}.get(what, "release")
            lines.append(f"| {word} {names.tensor(x)} | | | | |")
            continue
        reads = ", ".join(names.tensor(t) for t in trace.arguments(x).tolist())
        makes = []
        for tensor in trace.outputs(x):
            root = int(trace.tensor_root[tensor])
            size = f"{story.sizes[tensor]:,}" if root == tensor else f"view of {names.tensor(root)}"
            makes.append(f"{names.tensor(tensor)} ({size})")
        cost = "constant" if trace.op_constant[x] else f"{trace.op_cost[x]:,}"
        label = _plain(shortened(trace.op_label[x], 60))
        step = names.operator(x)
        lines.append(f"| **{step}** | {reads} | {', '.join(makes)} | {cost} | {label} |")
    return lines


def _facts(story: Story) -> list[str]:
    low, high = story.low.outcome, story.high.outcome
    facts = {
        "compute (ns)": "cost",
        "evictions": "evictions",
        "rematerialisations": "remats",
        "peak memory": "peak_memory",
        "most locked": "peak_pinned",
    }
    lines = [f"| {n} | {getattr(low, a):,} | {getattr(high, a):,} |" for n, a in facts.items()]
    return [*lines, f"| the same run at budgets | {_range(low)} | {_range(high)} |"]


def _range(outcome: Outcome) -> str:
    lo, hi = outcome.interval
    if hi is None:
        return f"from {lo:,}"
    return f"{lo:,}" if hi == lo + 1 else f"{lo:,} to {hi - 1:,}"


def _choices(story: Story) -> list[str]:
    """Every eviction that the policy chose, both runs side by side."""
    low, high = (f"{budget:,}" for budget in story.example.witness)
    lines = [
        "What the policy chose, and the next best; from the bold step on the runs differ:",
        "",
        f"| step | {low}: evicts | score | next best | memory "
        f"| {high}: evicts | score | next best | memory |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in story.rows:
        step = f"**{row.step}**" if row.parts else row.step
        cells = " | ".join(_cells(decision) for decision in (row.low, row.high))
        lines.append(f"| {step} | {cells} |")
    return lines


def _cells(decision: Decision | None) -> str:
    if decision is None:
        return " | | | "
    other = decision.runner_up
    if other and decision.runner_up_score is not None:
        other += f" ({plain_score(decision.runner_up_score)})"
    victim = f"{decision.victim} for {decision.operator}"
    return f"{victim} | {plain_score(decision.score)} | {other} | {decision.memory:,}"


def _fenced(code: str, language: str) -> list[str]:
    """A block that nothing inside it ends."""
    fence = "```"
    while fence in code:
        fence += "`"
    return [f"{fence}{language}", *code.rstrip("\n").splitlines(), fence]


def _bytes(count: int) -> str:
    return f"{count:,} byte{'' if count == 1 else 's'}"


def _plain(words: str) -> str:
    return words.translate(_SPECIAL)
