"""Hunting: generated graphs until one breaks a claim, then the smallest and the worst of them."""

from __future__ import annotations

import time as _time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from monofuzz.counterexample import examine
from monofuzz.errors import UsageError
from monofuzz.generate.fast import CLASSES, MOST_OPERATORS, Sampler
from monofuzz.generate.slow import EngineSampler
from monofuzz.replay.policy import parse
from monofuzz.search.verdict import CLAIMS
from monofuzz.shrink import complexity, shrink

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from monofuzz.counterexample import Counterexample
    from monofuzz.generate.fast import GraphClass, Hit
    from monofuzz.replay.policy import Policy
    from monofuzz.search.verdict import Claim
    from monofuzz.trace import Trace

__all__ = ["DEFAULT_SECONDS", "GOALS", "Goal", "Hunt", "HuntProgress", "hunt", "hunt_all"]

Goal = Literal["smallest", "worst"]
"""*smallest*: fewest operators, then least of everything else. *worst*: the widest hole, or the
largest factor of cost."""

GOALS: Final = get_args(Goal)
DEFAULT_SECONDS = 10.0
"""How long a hunt goes on for each policy if neither time nor examples are limited."""

_FIRST_CHUNK, _LARGEST_CHUNK = 500, 20_000
_SHRUNK_A_CHUNK = 3
_LEAST_OPERATORS = 2


@dataclass(frozen=True, slots=True)
class HuntProgress:
    """How far a hunt is: graphs searched under this policy, seconds, and the best so far."""

    policy: str
    searched: int
    seconds: float
    best: tuple[Counterexample, ...]


@dataclass
class Hunt:
    """What a hunt under one policy found.

    Attributes:
        smallest, worst: the best counterexample for each claim that was broken.
        searched: how many graphs were mapped, by their number of operators.
        runs: how many runs that took.
        seconds: wall time.
        stopped: ``"time"``, ``"examples"``, ``"least"`` (nothing smaller is possible) or
            ``"interrupted"``.
    """

    policy: str
    seed: int
    smallest: dict[Claim, Counterexample] = field(default_factory=dict)
    worst: dict[Claim, Counterexample] = field(default_factory=dict)
    searched: dict[int, int] = field(default_factory=dict)
    runs: int = 0
    seconds: float = 0.0
    stopped: str = ""

    @property
    def graphs(self) -> int:
        """How many graphs were mapped."""
        return sum(self.searched.values())

    def found(self, claim: Claim, goal: Goal) -> Counterexample | None:
        """The best for a claim and a goal, or None."""
        return (self.smallest if goal == "smallest" else self.worst).get(claim)


def hunt(
    policy: str | Policy = "dtr",
    *,
    claim: Claim = "feasibility",
    goal: Goal = "smallest",
    graph_class: GraphClass = "free",
    seed: int = 0,
    time: float | None = None,
    max_examples: int | None = None,
    **options: Any,
) -> Counterexample | None:
    """Generate graphs until one breaks the claim; the smallest (or the worst) found, or None.

    ``time`` (seconds) and ``max_examples`` (graphs) limit the hunt; with ``max_examples`` alone it
    gives the same result each time. Other ``options`` are those of `hunt_all`.
    """
    (result,) = hunt_all(
        [policy],
        claims=(claim,),
        goal=goal,
        graph_class=graph_class,
        seed=seed,
        time=time,
        max_examples=max_examples,
        **options,
    )
    return result.found(claim, goal)


def hunt_all(
    policies: Sequence[str | Policy],
    *,
    claims: Sequence[Claim] = CLAIMS,
    goal: Goal = "smallest",
    graph_class: GraphClass = "free",
    seed: int = 0,
    time: float | None = None,
    max_examples: int | None = None,
    min_operators: int = _LEAST_OPERATORS,
    max_operators: int = 8,
    limit: float | None = 60.0,
    progress: Callable[[HuntProgress], None] | None = None,
) -> list[Hunt]:
    """Hunt under each policy, on the same graphs; ``time`` and ``max_examples`` are for each.

    Graphs have ``min_operators`` to ``max_operators`` operators, in turns. With the goal
    ``smallest``, sizes at which something was found already are left out from then on. What is
    found is shrunk inside its class of graphs, and both the smallest and the worst are kept,
    whatever the goal. The first Ctrl-C ends the hunt with what was found.

    Raises `UsageError` and `PolicyError`.
    """
    if goal not in GOALS:
        raise UsageError(f"goal is {goal!r}; it must be {' or '.join(GOALS)}")
    if graph_class not in CLASSES:
        raise UsageError(f"unknown class of graphs {graph_class!r}; one of {', '.join(CLASSES)}")
    if not claims or not set(claims) <= set(CLAIMS):
        raise UsageError(f"claims are {' and '.join(CLAIMS)}, not {list(claims)}")
    if not 1 <= min_operators <= max_operators <= MOST_OPERATORS:
        raise UsageError(
            f"graphs of {min_operators} to {max_operators} operators: there must be at least one, "
            f"and {MOST_OPERATORS} at most"
        )
    if max_examples is not None and max_examples < 1:
        raise UsageError(f"max_examples is {max_examples}; it must be 1 or more")
    if time is not None and not time > 0:
        raise UsageError(f"the time limit must be a positive number of seconds, not {time}")
    if time is None and max_examples is None:
        time = DEFAULT_SECONDS
    results: list[Hunt] = []
    for policy in policies:
        hunter = _Hunter(
            policy, claims, goal, graph_class, seed, range(min_operators, max_operators + 1), limit
        )
        results.append(hunter.result)
        hunter.run(time, max_examples, progress)
        if hunter.result.stopped == "interrupted":
            break
    return results


class _Hunter:
    """A hunt under one policy."""

    def __init__(
        self,
        policy: str | Policy,
        claims: Sequence[Claim],
        goal: Goal,
        graph_class: GraphClass,
        seed: int,
        sizes: range,
        limit: float | None,
    ) -> None:
        self._claims = tuple(dict.fromkeys(claims))
        self._goal = goal
        self._class = graph_class
        self._limit = limit
        self._policy = parse(policy)
        kind = EngineSampler if self._policy.needs_betweenness else Sampler
        self._samplers: dict[int, Sampler | EngineSampler] = {
            size: kind(self._policy, graph_class, size, claims=self._claims, limit=limit)
            for size in sizes
        }
        # Each size has its own seeds, so that where one begins does not depend on the others.
        self._next = dict.fromkeys(sizes, seed * 2**32)
        self.result = Hunt(str(self._policy), seed)

    def run(
        self,
        time: float | None,
        max_examples: int | None,
        progress: Callable[[HuntProgress], None] | None,
    ) -> None:
        result = self.result
        started = _time.perf_counter()
        end = None if time is None else started + time
        chunk = _FIRST_CHUNK
        if max_examples is not None:
            # Few graphs are shared out among the sizes: the first is not to have them all.
            chunk = min(chunk, -(-max_examples // len(self._samplers)))
        try:
            while not result.stopped:
                sizes = self._sizes()
                if not sizes:
                    result.stopped = "least"
                for size in sizes:
                    left = chunk
                    if max_examples is not None:
                        left = min(left, max_examples - result.graphs)
                    if left <= 0:
                        result.stopped = "examples"
                    elif end is not None and _time.perf_counter() >= end:
                        result.stopped = "time"
                    if result.stopped:
                        break
                    self._search(size, left, end)
                    result.seconds = _time.perf_counter() - started
                    if progress is not None:
                        best = (*result.smallest.values(),)
                        progress(HuntProgress(result.policy, result.graphs, result.seconds, best))
                chunk = min(2 * chunk, _LARGEST_CHUNK)
        except KeyboardInterrupt:
            result.stopped = "interrupted"
        result.seconds = _time.perf_counter() - started

    def _sizes(self) -> list[int]:
        """The sizes of graphs that can still improve on what is known."""
        if self._goal == "worst" or len(self.result.smallest) < len(self._claims):
            return list(self._samplers)
        most = max(example.operators for example in self.result.smallest.values())
        return [size for size in self._samplers if size < most]

    def _search(self, size: int, count: int, end: float | None) -> None:
        sampler = self._samplers[size]
        worst = self.result.worst
        threshold = {claim: worst[claim].severity if claim in worst else 0.0 for claim in CLAIMS}
        # Only what is worse than anything before is worth a look, where no smaller one is sought.
        smaller = any(self._seeks(claim, size) for claim in self._claims)
        first = self._next[size]
        hits, self._next[size] = sampler.search(
            first,
            count,
            widest=0.0 if smaller else threshold["feasibility"],
            steepest=0.0 if smaller else threshold["cost"],
        )
        searched = self.result.searched
        searched[size] = searched.get(size, 0) + self._next[size] - first
        self.result.runs = sum(sampler.stats.runs for sampler in self._samplers.values())
        for claim in self._claims:
            broken = [hit for hit in hits if hit.severity(claim) > 0]
            if not broken:
                continue
            top = max(broken, key=lambda hit: hit.severity(claim))
            if top.severity(claim) > threshold[claim]:
                self._keep_worst(claim, sampler, top)
            for hit in broken[:_SHRUNK_A_CHUNK]:
                if not self._seeks(claim, size) or (
                    end is not None
                    and _time.perf_counter() >= end
                    and claim in self.result.smallest
                ):
                    break
                self._keep_smallest(claim, sampler, hit, end)

    def _seeks(self, claim: Claim, size: int) -> bool:
        known = self.result.smallest.get(claim)
        return known is None or size < known.operators

    def _keep_worst(self, claim: Claim, sampler: Sampler | EngineSampler, hit: Hit) -> None:
        example = self._example(claim, sampler, hit)
        known = self.result.worst.get(claim)
        if example is not None and (known is None or example.severity > known.severity):
            self.result.worst[claim] = example

    def _keep_smallest(
        self, claim: Claim, sampler: Sampler | EngineSampler, hit: Hit, end: float | None
    ) -> None:
        example = self._example(claim, sampler, hit)
        if example is None:
            return
        left = None if end is None else max(end - _time.perf_counter(), 0.1)
        small = shrink(example, within=within_class(self._class, example.trace), seconds=left)
        known = self.result.smallest.get(claim)
        if known is None or complexity(small.trace) < complexity(known.trace):
            self.result.smallest[claim] = small
        if small.found.get("stopped") == "interrupted":
            raise KeyboardInterrupt

    def _example(
        self, claim: Claim, sampler: Sampler | EngineSampler, hit: Hit
    ) -> Counterexample | None:
        from monofuzz import __version__

        found = examine(sampler.trace(hit.seed), self._policy, claim, limit=self._limit)
        return (
            None
            if found is None
            else found.with_found(
                generator="monofuzz.hunt",
                graph_class=self._class,
                graph_operators=sampler.operators,
                graph_seed=hit.seed,
                version=__version__,
            )
        )


def within_class(graph_class: GraphClass, original: Trace) -> Callable[[Trace], bool] | None:
    """What shrinking must not leave: the numbers of a class, or the shape of a training step."""
    if graph_class == "unit-sizes":
        return lambda trace: set(trace.tensor_size.tolist()) == {1}
    if graph_class == "unit":
        return lambda trace: (
            set(trace.tensor_size.tolist()) == {1} and set(trace.op_cost.tolist()) == {1}
        )
    if graph_class == "training":
        return lambda trace: (
            trace.arg_ptr.tolist() == original.arg_ptr.tolist()
            and trace.args.tolist() == original.args.tolist()
        )
    return None
