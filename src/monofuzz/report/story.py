"""A counterexample told: its two runs event by event, named and put into words."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monofuzz.counterexample.model import COMPARED, breaks
from monofuzz.errors import StoredFileError
from monofuzz.explain.timeline import parting, timeline
from monofuzz.report.names import Names
from monofuzz.trace.model import COMPUTE, PIN

if TYPE_CHECKING:
    from monofuzz.counterexample import Counterexample
    from monofuzz.explain.timeline import Timeline
    from monofuzz.replay import Outcome
    from monofuzz.trace import Trace

__all__ = ["Decision", "Row", "Story", "plain_score", "tell"]


@dataclass(frozen=True)
class Decision:
    """A choice of the policy in words: what went, for which operator, and with which score."""

    victim: str
    operator: str
    score: float | None
    runner_up: str
    runner_up_score: float | None
    memory: int


@dataclass(frozen=True)
class Row:
    """Choices of both runs in the same step of the schedule; ``parts`` where they first differ."""

    step: str
    low: Decision | None
    high: Decision | None
    parts: bool


@dataclass(frozen=True)
class Story:
    """A counterexample with both runs' timelines."""

    example: Counterexample
    low: Timeline
    high: Timeline

    @property
    def trace(self) -> Trace:
        return self.example.trace

    @functools.cached_property
    def names(self) -> Names:
        return Names(self.trace)

    @functools.cached_property
    def sizes(self) -> list[int]:
        """Bytes of each tensor as the runs count them."""
        size, align = self.trace.tensor_size, self.example.align or 1
        rounded: list[int] = (-(-size // align) * align).tolist()
        return rounded

    @functools.cached_property
    def parting(self) -> int:
        """The index of the first event in which the runs differ."""
        return parting(self.low, self.high)

    def step(self, command: int) -> str:
        """What a command of the schedule is called."""
        what, operand = int(self.trace.command[command]), int(self.trace.operand[command])
        if what == COMPUTE:
            return self.names.operator(operand)
        name = self.names.tensor(operand)
        return f"keep {name}" if what == PIN else f"release {name}"

    @functools.cached_property
    def summary(self) -> str:
        """One sentence: what breaks, where, and how badly."""
        example = self.example
        low, high = (f"{budget:,}" for budget in example.witness)
        count = f"{example.operators} operator{'' if example.operators == 1 else 's'}"
        if example.claim == "feasibility":
            return (
                f"{count} that {example.policy} completes with {low} bytes of memory, "
                f"but not with {high}"
            )
        return (
            f"{count} that take {example.above.cost / max(example.below.cost, 1):.4g} times as "
            f"long under {example.policy} with {high} bytes of memory as with {low}"
        )

    def told(self, run: Timeline) -> str:
        """How a run ends, in a few words."""
        outcome = run.outcome
        if outcome.status != "oom":
            word = "completes" if outcome.status == "ok" else "thrashes"
            return f"{word} in {outcome.cost:,} ns (overhead {outcome.overhead:.4g})"
        assert outcome.fail is not None
        operator = run.events[-1].operator
        assert operator is not None
        return (
            f"out of memory: {outcome.fail.pinned_bytes:,} are locked, and "
            f"{self.names.operator(operator)} needs {outcome.fail.request:,} more"
        )

    @functools.cached_property
    def rows(self) -> tuple[Row, ...]:
        """All choices of both runs, side by side by the step in which they were made."""
        low, high = self._by_command(self.low), self._by_command(self.high)
        rows = []
        parted = False
        for command in sorted({*low, *high}):
            ours, theirs = low.get(command, []), high.get(command, [])
            for k in range(max(len(ours), len(theirs))):
                pair = [side[k] if k < len(side) else None for side in (ours, theirs)]
                behind = any(given is not None and given[0] >= self.parting for given in pair)
                one, other = (None if given is None else given[1] for given in pair)
                rows.append(Row(self.step(command), one, other, behind and not parted))
                parted |= behind
        return tuple(rows)

    def some_rows(self, most: int) -> list[Row | str]:
        """At most about ``most`` rows; instead of what is left out, a line that says how much.

        Left out first is what both runs have in common, then the middle of the rest.
        """
        rows: list[Row | str] = list(self.rows)
        if len(rows) <= most:
            return rows
        parts = next((k for k, row in enumerate(self.rows) if row.parts), len(rows))
        same, rest = rows[:parts], rows[parts:]
        if len(same) > 3:
            same = [f"{len(same) - 2} choices that are the same", *same[-2:]]
        if len(rest) > most - len(same):
            end = most // 3
            start = most - len(same) - end
            rest = [*rest[:start], f"{len(rest) - start - end} more rows", *rest[-end:]]
        return [*same, *rest]

    def _by_command(self, run: Timeline) -> dict[int, list[tuple[int, Decision]]]:
        chosen: dict[int, list[tuple[int, Decision]]] = {}
        names = self.names
        for index, event in enumerate(run.events):
            choice = event.choice
            if choice is None:
                continue
            assert event.operator is not None
            decision = Decision(
                victim=names.tensor(choice.storage),
                operator=names.operator(event.operator),
                score=choice.score,
                runner_up="" if choice.runner_up is None else names.tensor(choice.runner_up),
                runner_up_score=choice.runner_up_score,
                memory=event.memory,
            )
            chosen.setdefault(event.command, []).append((index, decision))
        return chosen


def tell(example: Counterexample) -> Story:
    """Replay both runs of a counterexample, event by event.

    Raises `StoredFileError` when they are not what the counterexample says.
    """
    runs = []
    for recorded in (example.below, example.above):
        run = timeline(
            example.trace,
            example.policy,
            recorded.budget,
            limit=example.limit,
            align=example.align,
        )
        _compare(recorded, run.outcome)
        runs.append(run)
    if not breaks(example.claim, example.below, example.above):
        raise StoredFileError(
            f"the runs at {example.witness[0]} and {example.witness[1]} bytes do not break the "
            f"{example.claim} claim: this is no counterexample; shrink or hunt again"
        )
    return Story(example, *runs)


def _compare(recorded: Outcome, replayed: Outcome) -> None:
    for name in COMPARED:
        before, now = getattr(recorded, name), getattr(replayed, name)
        if before != now:
            raise StoredFileError(
                f"the run at {recorded.budget} bytes has {name} {now}, but {before} is recorded: "
                "the counterexample is not what it says; 'monofuzz verify' tells more"
            )


def plain_score(score: float | None) -> str:
    """A score in four digits, for people."""
    if score is None:
        return ""
    if score == float("inf"):
        return "∞"
    return f"{score:.4g}"
