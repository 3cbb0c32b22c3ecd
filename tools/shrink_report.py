"""Shrink a hole of four published traces, by any means and by its mechanism: reports/shrink.

Run from a checkout, with the public traces and a checkout of the reference simulator::

    python -m tools.shrink_report --simrd DIR [--jobs 1 2] [--only NAME...] [--check]

Each trace is given two budgets at which its hole is known to be; nothing else is searched. Every
result is checked: both runs replay, the reference simulator agrees with both, and no single pass
finds anything smaller. With several ``--jobs`` each is shrunk once for each number of threads, and
the results must be equal.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import monofuzz
from monofuzz.counterexample import Counterexample, load, save
from monofuzz.counterexample.reference import compare
from monofuzz.explain.timeline import Timeline, parting, timeline
from monofuzz.replay.system import TraceSystem
from monofuzz.shrink import Interest, Keep, Reducer, seek_at, shrink
from monofuzz.shrink.passes import PASSES
from monofuzz.trace.model import COMPUTE, PIN, RELEASE

if TYPE_CHECKING:
    from monofuzz.trace import Trace

REPORTS = Path(__file__).parent.parent / "reports"
FOLDER = REPORTS / "shrink"
RESULTS = FOLDER / "results.json"

CASES: dict[str, tuple[int | float, int | float]] = {
    "dtr-resnet32": (1024657199, 1024657200),
    "dtr-unet": (3634308799, 3634308800),
    "dtr-densenet121": (1540417911, 1540417912),
    "dtr-inceptionv4": (0.2343, 0.235),
}
KEEPS: tuple[Keep, ...] = ("any", "signature")


def main() -> None:
    """Shrink, check, and write the table anew from all results that are there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simrd", type=Path)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1])
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--keep", nargs="+", choices=get_args(Keep), default=list(KEEPS))
    parser.add_argument("--check", action="store_true", help="only check what is stored again")
    parser.add_argument("--table-only", action="store_true")
    given = parser.parse_args()
    if not given.table_only and given.simrd is None:
        parser.error("--simrd names a checkout of uwsampl/dtr-prototype")
    FOLDER.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in [] if given.table_only else given.only:
        for keep in given.keep:
            if given.check:
                results[f"{name} {keep}"] |= checked(name, keep, example_of(name), given.simrd)
            else:
                results[f"{name} {keep}"] = result(name, keep, given.jobs, given.simrd)
            RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
            print(name, keep, results[f"{name} {keep}"])  # noqa: T201
    (REPORTS / "shrink.md").write_text(table(results), encoding="utf-8")


def example_of(name: str) -> Counterexample:
    """The hole that is shrunk."""
    return seek_at(TraceSystem(monofuzz.load(name), "dtr"), "feasibility", *CASES[name])


def path_of(name: str, keep: Keep) -> Path:
    """Where a shrunk counterexample lies."""
    return FOLDER / f"{name}-{keep}.json"


def result(name: str, keep: Keep, jobs: list[int], simrd: Path) -> dict[str, Any]:
    """Shrink one hole in one way, keep the result, and say what was checked."""
    example = example_of(name)
    seconds: dict[str, float] = {}
    cpu: dict[str, float] = {}
    results = []
    for threads in jobs:
        began, busy = time.perf_counter(), time.process_time()
        results.append(shrink(example, keep=keep, jobs=threads))
        seconds[str(threads)] = round(time.perf_counter() - began, 1)
        cpu[str(threads)] = round(time.process_time() - busy, 1)
    small = results[0]
    assert all(other == small for other in results), "the result depends on the threads"
    save(small, path_of(name, keep))
    return {
        "from": size_of(example.trace),
        "to": size_of(small.trace),
        "budgets": list(example.witness),
        "before": signature(example),
        "seconds": seconds,
        "cpu": cpu,
        "tried": small.found["tried"],
        **checked(name, keep, example, simrd),
    }


def checked(name: str, keep: Keep, example: Counterexample, simrd: Path) -> dict[str, Any]:
    """What is true of a stored result."""
    small = load(path_of(name, keep))
    agreement = compare(small, simrd)
    return {
        "minimal": is_minimal(small, example, keep),
        "replays": not small.differences(),
        "reference": f"{agreement.agree} of {agreement.runs}",
    }


def size_of(trace: Trace) -> dict[str, int]:
    """What shrinking makes less."""
    return {
        "operators": trace.n_operators,
        "constants": trace.n_ops - trace.n_operators,
        "tensors": trace.n_tensors,
        "arguments": len(trace.args),
        "commands": len(trace.command),
    }


def signature(example: Counterexample) -> dict[str, Any]:
    """The mechanism as numbers."""
    assert example.signature is not None
    return example.signature.to_json()


def is_minimal(small: Counterexample, original: Counterexample, keep: Keep) -> bool:
    """Whether no single pass finds anything smaller."""
    for one in PASSES:
        interest = Interest(original, keep)
        interest.adopt(small)
        reducer = Reducer(small.trace, interest, adopted=interest.adopt)
        if reducer.reduce([one]) is not small.trace:
            return False
    return True


# ---------------------------------------------------------------------------- in words


def mechanism(example: Counterexample) -> str:
    """What happens at the two budgets, in a sentence."""
    low, high = (
        timeline(example.trace, example.policy, budget, limit=example.limit, align=example.align)
        for budget in example.witness
    )
    at = parting(low, high)
    trace = example.trace
    first, fits = low.events[at], example.above.budget
    assert first.kind == "evict"
    assert first.operator is not None
    chosen = next((e for e in high.events[at:] if e.kind == "evict"), None)
    fail = high.events[-1]
    last = example.above.fail
    assert last is not None
    chain = waiting(high, trace)
    text = (
        f"With {example.below.budget} bytes there is no room to compute "
        f"{name(trace, first.operator)}{' again' if first.depth > 1 else ''} until "
        f"{storage(trace, first.storages[0])} is evicted; with {fits} there is, and "
    )
    if chosen is None:
        text += "nothing is evicted any more. "
    else:
        text += f"the next to go is {storage(trace, chosen.storages[0])}. "
    waits = ", which waits for ".join(name(trace, op) for op in chain[1:])
    if trace.command[fail.command] != COMPUTE:
        wanted = storage(trace, int(trace.operand[fail.command]))
        text += f"At the end {wanted} is wanted, so {name(trace, chain[0])} is computed again"
        text += f" and waits for {waits}: " if waits else ": "
    elif waits:
        text += f"So {name(trace, chain[0])} later waits for {waits}: "
    else:
        text += f"When {name(trace, chain[0])} runs, "
    if waits:
        text += f"{len(chain)} nested operators hold what they have"
    else:
        text += "what it reads, and what is left of what it made, is held"
    return text + (
        f", {last.pinned_bytes} of {fits} bytes cannot be evicted, and {last.request} more "
        f"{'byte is' if last.request == 1 else 'bytes are'} needed (after command {fail.command})."
    )


def waiting(run: Timeline, trace: Trace) -> list[int]:
    """The operators under way when a run failed, the schedule's own first."""
    fail = run.events[-1]
    there = run.resident(len(run.events) - 1)
    assert fail.kind == "fail"
    wanted = int(trace.operand[fail.command])
    chain = [wanted if trace.command[fail.command] == COMPUTE else maker(trace, wanted)]
    while chain[-1] != fail.operator and len(chain) < fail.depth:
        missing = [
            int(trace.tensor_root[t])
            for t in trace.arguments(chain[-1]).tolist()
            if int(trace.tensor_root[t]) not in there
        ]
        chain.append(maker(trace, missing[0]))
    assert chain[-1] == fail.operator
    assert len(chain) == fail.depth
    return chain


def maker(trace: Trace, tensor: int) -> int:
    """The operator that makes a tensor."""
    return next(k for k in range(trace.n_ops) if tensor in trace.outputs(k))


def name(trace: Trace, operator: int) -> str:
    """An operator by its label."""
    return f"`{trace.op_label[operator]}`"


def storage(trace: Trace, root: int) -> str:
    """A storage by the operator that makes it."""
    made = trace.outputs(maker(trace, root))
    label = trace.op_label[maker(trace, root)]
    if len(made) == 1:
        return f"the output of `{label}`"
    return f"output {made.index(root) + 1} of `{label}`"


def picture(trace: Trace) -> list[str]:
    """The schedule, a line an operator."""
    lines = []
    for k in range(trace.n_ops):
        reads = ", ".join(tensor(trace, t) for t in trace.arguments(k).tolist())
        made = ", ".join(
            f"{tensor(trace, t)} [{int(trace.tensor_size[t])}]" for t in trace.outputs(k)
        )
        constant = "  constant" if trace.op_constant[k] else ""
        lines.append(f"{made} = {trace.op_label[k]}({reads})  cost {trace.op_cost[k]}{constant}")
        gone = [
            tensor(trace, int(x))
            for c, x in zip(trace.command.tolist(), trace.operand.tolist(), strict=True)
            if c == RELEASE and after(trace, k, int(x))
        ]
        if gone:
            lines.append(f"    drop {', '.join(gone)}")
    kept = [int(x) for x in trace.operand[trace.command == PIN]]
    if kept:
        lines.append(f"    keep {', '.join(tensor(trace, t) for t in kept)}")
    return lines


def after(trace: Trace, operator: int, tensor_id: int) -> bool:
    """Whether a tensor is dropped between this operator and the next."""
    seen = -1
    for c, x in zip(trace.command.tolist(), trace.operand.tolist(), strict=True):
        if c == COMPUTE:
            seen = int(x)
        elif c == RELEASE and int(x) == tensor_id and seen == operator:
            return True
    return False


def tensor(trace: Trace, t: int) -> str:
    """A tensor by the operator that makes it."""
    k = next(k for k in range(trace.n_ops) if t in trace.outputs(k))
    made = trace.outputs(k)
    label = trace.op_label[k].upper()
    return label if len(made) == 1 else f"{label}{made.index(t) + 1}"


# ---------------------------------------------------------------------------- the report


def table(results: dict[str, Any]) -> str:
    """The report."""
    lines = [
        "# Holes of published traces, shrunk",
        "",
        "Made by `python -m tools.shrink_report --simrd DIR --jobs 1 2`, under the policy `dtr`,",
        "from two budgets of each trace. `any` keeps that more memory fails; `signature` keeps the",
        "mechanism as well: a cascade at least 3 deep, the share of memory that is pinned when it",
        "fails (less 0.05, constants excluded), and that one check of memory decides. Sizes are",
        "operators + constants. *Minimal*: no single pass finds anything smaller. *Reference*: the",
        "runs to which the reference simulator agrees, to the last eviction. The machine (2 cores)",
        "had much other work to do, up to eight times what it can, so wall seconds say little.",
        "",
        "| trace | keep | from | to | commands | tried | seconds: CPU / wall (threads) "
        "| minimal | replays | reference |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    shown = [
        (case, keep, results[f"{case} {keep}"])
        for case in CASES
        for keep in KEEPS
        if f"{case} {keep}" in results
    ]
    for case, keep, row in shown:
        took = ", ".join(
            f"{row['cpu'][n]} / {seconds} ({n})" for n, seconds in row["seconds"].items()
        )
        start, end = row["from"], row["to"]
        lines.append(
            f"| {case} | {keep} | {start['operators']:,} + {start['constants']:,} | "
            f"**{end['operators']}** + {end['constants']} | "
            f"{start['commands']:,} to {end['commands']} | {row['tried']:,} | {took} | "
            f"{'yes' if row['minimal'] else 'no'} | {'yes' if row['replays'] else 'no'} | "
            f"{row['reference']} |"
        )
    lines += ["", "## The mechanisms", ""]
    for case, keep, row in shown:
        example = load(path_of(case, keep))
        assert example.signature is not None
        before, now = row["before"], dataclasses.asdict(example.signature)
        budgets = " and ".join(f"{budget:,}" for budget in row["budgets"])
        lines += [
            f"### {case}, {keep}",
            "",
            mechanism(example),
            "",
            "```",
            *picture(example.trace),
            "```",
            "",
            f"In the trace, at {budgets} bytes, {before['depth']} operators are nested when memory "
            f"runs out and {before['share']:.1%} of it is pinned; here {now['depth']} and "
            f"{now['share']:.1%}. File: [{path_of(case, keep).name}](shrink/"
            f"{path_of(case, keep).name}).",
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    main()
