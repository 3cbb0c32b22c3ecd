"""A second replay, slow and literal: the differential oracle for the engine.

Everything is what the semantics say in the plainest Python there is: sets for regions, a chain of
links for equivalence classes, a list for the pool, recursion, integers without bounds and Python's
own ``int / int``. Nothing here is shared with `monofuzz.replay`, and nothing may be borrowed from
it: two replays that agree are only worth something while they were written apart.

`replay` gives a plain dict with the keys of a golden record and the list of victims beside them.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

COMPUTE, GET, PIN, RELEASE = 0, 1, 2, 3
INFINITY = math.inf
MASK = (1 << 64) - 1


class TraceArrays(Protocol):
    """What the oracle reads of a `monofuzz.trace.Trace`."""

    op_cost: Any
    arg_ptr: Any
    args: Any
    out_ptr: Any
    tensor_size: Any
    tensor_root: Any
    command: Any
    operand: Any


class OutOfMemoryError(Exception):
    """Nothing is left to evict and the operator still does not fit."""


class ThrashedError(Exception):
    """Rematerialisation compute went beyond the limit."""


class Operator:
    """An operator of the trace: its cost, its argument tensors in order, its output tensors."""

    def __init__(self, index: int, cost: int) -> None:
        self.index = index
        self.cost = cost
        self.arguments: list[Tensor] = []
        self.outputs: list[Tensor] = []

    def output_size(self) -> int:
        return sum(tensor.size for tensor in self.outputs)


class Tensor:
    """A tensor; ``size`` is 0 for a view."""

    def __init__(self, operator: Operator, storage: Storage, size: int) -> None:
        self.operator = operator
        self.storage = storage
        self.size = size
        self.defined = False


class Region:
    """The evicted storages on one side of a material one, and the material ones at their edge.

    ``cost`` sums the members' compute as it was when each of them entered.
    """

    def __init__(self) -> None:
        self.members: set[Storage] = set()
        self.frontier: set[Storage] = set()
        self.cost = 0

    def add(self, member: Storage) -> None:
        if member not in self.members:
            self.members.add(member)
            self.cost += member.compute


class Class:
    """A node of the union-find; ``cost`` is meaningful at the representative."""

    def __init__(self, cost: int) -> None:
        self.cost = cost
        self.link: Class | None = None

    def find(self) -> Class:
        node = self
        while node.link is not None:
            node = node.link
        return node


class Storage:
    """Memory that tensors share; named by the id of its root tensor."""

    def __init__(self, root: int, size: int) -> None:
        self.root = root
        self.size = size
        self.tensors: list[Tensor] = []
        self.compute = 0
        self.material = False
        self.locks = 0
        self.references = 0
        self.pinned = False
        self.last_access: float = -INFINITY
        self.evicted_before = 0
        self.children: set[Storage] = set()
        self.parents: set[Storage] = set()
        self.region = Region()
        self.region_rev = Region()
        self.node: Class | None = Class(0)

    def evicted_neighbours(self) -> list[Storage]:
        return [s for s in self.children | self.parents if s is not self and not s.material]


Score = Callable[["Replay", Storage], float]


def ratio(numerator: int, denominator: float) -> float:
    """The correctly rounded quotient, infinite for a denominator that is not positive."""
    return numerator / denominator if denominator > 0 else INFINITY


def staleness(run: Replay, s: Storage) -> float:
    return run.clock - s.last_access


def e_star(run: Replay, s: Storage) -> int:
    return s.compute + run.regions_cost(s)


def eq_class(s: Storage) -> int:
    classes = set()
    for neighbour in s.evicted_neighbours():
        assert neighbour.node is not None
        classes.add(neighbour.node.find())
    return s.compute + sum(c.cost for c in classes)


def region_count(s: Storage) -> int:
    return len(s.region.members) + len(s.region_rev.members)


def evicted_reach(s: Storage, step: Callable[[Storage], Iterable[Storage]]) -> set[Storage]:
    found: set[Storage] = set()
    open_ends = [s]
    while open_ends:
        for other in step(open_ends.pop()):
            if not other.material and other not in found:
                found.add(other)
                open_ends.append(other)
    return found


def unoptimised(run: Replay, s: Storage) -> float:
    neighbourhood = evicted_reach(s, lambda x: x.children) | evicted_reach(s, lambda x: x.parents)
    last = max([s.last_access, *(x.last_access for x in neighbourhood)])
    cost = s.compute + sum(x.compute for x in neighbourhood)
    return ratio(cost, s.size * (run.clock - last))


def dtr(run: Replay, s: Storage) -> float:
    return ratio(e_star(run, s), s.size * staleness(run, s))


def e_stale(run: Replay, s: Storage) -> float:
    return ratio(e_star(run, s), staleness(run, s))


def nbhd_penalty(run: Replay, s: Storage) -> float:
    return dtr(run, s) * (1 + run.parameter("b", 0.25) * region_count(s))


def thrash_penalty(run: Replay, s: Storage) -> float:
    return dtr(run, s) * (1 + run.parameter("a", 1) * s.evicted_before)


SCORES: dict[str, Score] = {
    "dtr": dtr,
    "dtr-eq": lambda run, s: ratio(eq_class(s), s.size * staleness(run, s)),
    "dtr-local": lambda run, s: ratio(s.compute, s.size * staleness(run, s)),
    "dtr-unopt": unoptimised,
    "msps": lambda run, s: ratio(s.compute + s.region_rev.cost, s.size),
    "lru": lambda run, s: s.last_access,
    "size": lambda run, s: ratio(1, s.size),
    "e-size": lambda run, s: ratio(e_star(run, s), s.size),
    "e-stale": e_stale,
    "cost-stale": e_stale,
    "e": e_star,
    "eq-size": lambda run, s: ratio(eq_class(s), s.size),
    "eq-stale": lambda run, s: ratio(eq_class(s), staleness(run, s)),
    "eq": lambda run, s: eq_class(s),
    "local-size": lambda run, s: ratio(s.compute, s.size),
    "local-stale": lambda run, s: ratio(s.compute, staleness(run, s)),
    "local": lambda run, s: s.compute,
    "size-stale": lambda run, s: ratio(1, s.size * staleness(run, s)),
    "stale": lambda run, s: ratio(1, staleness(run, s)),
    "nbhd-penalty": nbhd_penalty,
    "he-star": lambda run, s: region_count(s),
    "thrash-penalty": thrash_penalty,
}

RULES = ("random", "two-phase", "tie-aware", "t-control")
POLICIES = (*SCORES, *RULES)


def splitmix64(seed: int, number: int) -> int:
    """Output ``number`` (from 0) of the splitmix64 sequence that ``seed`` starts."""
    z = (seed + (number + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def betweenness_order(trace: TraceArrays) -> list[int]:
    """Root ids of all storages, the highest betweenness first, ties by the smaller id.

    Exact, so only for traces of at most 6,000 storages.
    """
    import networkx

    roots = [int(r) for r in trace.tensor_root]
    compute = dict.fromkeys(roots, 0)
    edges = set()
    for op, cost in enumerate(trace.op_cost):
        outputs = range(trace.out_ptr[op], trace.out_ptr[op + 1])
        for storage in {roots[out] for out in outputs}:
            compute[storage] += int(cost)
        for arg in trace.args[trace.arg_ptr[op] : trace.arg_ptr[op + 1]]:
            edges |= {(roots[arg], out) for out in outputs if roots[out] == out}
    if len(compute) > 6000:
        raise ValueError("the oracle knows exact betweenness only: at most 6,000 storages")
    graph = networkx.DiGraph()
    graph.add_nodes_from(compute)
    graph.add_weighted_edges_from((a, b, max(compute[b], 1e-9)) for a, b in sorted(edges) if a != b)
    central = networkx.betweenness_centrality(graph, normalized=False, weight="weight")
    return sorted(compute, key=lambda s: (-central[s], s))


class Replay:
    """One run of a trace under a policy and a budget."""

    def __init__(
        self,
        trace: TraceArrays,
        policy: str,
        budget: int,
        remat_limit: int | None,
        align: int | None,
    ) -> None:
        name, _, tail = policy.partition(":")
        if name not in POLICIES:
            raise ValueError(f"the oracle knows no policy {name!r}")
        self.policy = name
        # Whole numbers stay integers: a seed may be larger than a double can hold exactly.
        self.parameters: dict[str, float] = {
            key: int(value) if value.isdigit() else float(value)
            for key, _, value in (p.partition("=") for p in tail.split(",") if p)
        }
        self.trace = trace
        self.align = align
        self.budget = budget
        self.remat_limit = remat_limit

        self.tensors: list[Tensor] = []
        self.storages: dict[int, Storage] = {}
        self.pool: list[Storage] = []
        self.clock = 1
        self.memory = 0
        self.depth = 0
        self.need = 0

        self.lo = 0
        self.hi: int | None = None
        self.status = "ok"
        self.model_compute = 0
        self.remat_compute = 0
        self.victims: list[int] = []
        self.evictions_all = 0
        self.distinct: set[Storage] = set()
        self.remats = 0
        self.peak_memory = 0
        self.peak_pinned = 0
        self.depth_at_peak_pinned = 0
        self.max_depth = 0
        self.fail: dict[str, int] | None = None
        self.by_betweenness = betweenness_order(trace) if name == "t-control" else []

    def parameter(self, key: str, default: float) -> float:
        return self.parameters.get(key, default)

    # Commands

    def run(self) -> None:
        operands = [int(x) for x in self.trace.operand]
        try:
            for command, operand in zip(self.trace.command, operands, strict=True):
                if command == COMPUTE:
                    self.compute(operand)
                elif command == GET:
                    self.tensors[operand].storage.references += 1
                elif command == PIN:
                    self.pin(self.tensors[operand])
                else:
                    self.release(self.tensors[operand].storage)
        except OutOfMemoryError:
            self.status = "oom"
        except ThrashedError:
            self.status = "thrashed"

    def compute(self, index: int) -> None:
        trace = self.trace
        operator = Operator(index, int(trace.op_cost[index]))
        for arg in trace.args[trace.arg_ptr[index] : trace.arg_ptr[index + 1]]:
            operator.arguments.append(self.tensors[arg])
        for out in range(trace.out_ptr[index], trace.out_ptr[index + 1]):
            self.create(operator, int(out))
        self.materialize(operator.outputs[0], remat=False)
        for tensor in operator.outputs:
            tensor.storage.last_access = self.clock

    def create(self, operator: Operator, index: int) -> None:
        assert index == len(self.tensors)
        root = int(self.trace.tensor_root[index])
        size = int(self.trace.tensor_size[index])
        if self.align is not None:
            size = -(-size // self.align) * self.align
        if root == index:
            self.storages[root] = Storage(root, size)
        storage = self.storages[root]
        tensor = Tensor(operator, storage, size if root == index else 0)
        if all(other.operator is not operator for other in storage.tensors):
            storage.compute += operator.cost
        storage.tensors.append(tensor)
        storage.references += 1
        operator.outputs.append(tensor)
        self.tensors.append(tensor)
        for argument in operator.arguments:
            if argument.storage is not storage:
                argument.storage.children.add(storage)
                storage.parents.add(argument.storage)

    def pin(self, tensor: Tensor) -> None:
        if not tensor.defined:
            self.materialize(tensor, remat=True)
        if not tensor.storage.pinned:
            tensor.storage.pinned = True
            self.lock(tensor.storage)

    def release(self, storage: Storage) -> None:
        storage.references -= 1
        if storage.references == 0 and storage.material and not storage.pinned:
            self.evict(storage)

    # Materialisation

    def materialize(self, tensor: Tensor, remat: bool) -> None:
        self.depth += 1
        self.max_depth = max(self.max_depth, self.depth)
        self.remats += remat
        operator = tensor.operator
        for parent in operator.arguments:
            parent.storage.last_access = self.clock
        missing = [parent for parent in operator.arguments if not parent.defined]
        for parent in operator.arguments:
            if parent.defined:
                self.lock(parent.storage)
        for parent in missing:
            if not parent.defined:
                self.materialize(parent, remat=True)
            self.lock(parent.storage)
        self.make_room(operator)
        self.execute(tensor, remat)
        for parent in operator.arguments:
            self.unlock(parent.storage)
        if self.remat_limit is not None and self.remat_compute > self.remat_limit:
            raise ThrashedError
        self.depth -= 1

    def make_room(self, operator: Operator) -> None:
        outside = self.memory - sum(s.size for s in self.pool)
        if outside > self.peak_pinned:
            self.peak_pinned = outside
            self.depth_at_peak_pinned = self.depth
        request = operator.output_size()
        self.need = self.memory + request
        while not self.fits(self.need):
            if not self.pool:
                self.fail = {
                    "pinned_bytes": self.memory,
                    "request": request,
                    "depth": self.depth,
                    "over_by": self.need - self.budget,
                }
                raise OutOfMemoryError
            victim = self.choose()
            self.victims.append(victim.root)
            self.evict(victim)
            self.need = self.memory + request

    def fits(self, threshold: int) -> bool:
        """Whether the budget reaches the threshold: the only place that looks at the budget."""
        if self.budget >= threshold:
            self.lo = max(self.lo, threshold)
            return True
        self.hi = threshold if self.hi is None else min(self.hi, threshold)
        return False

    def execute(self, tensor: Tensor, remat: bool) -> None:
        operator = tensor.operator
        self.clock += operator.cost
        if remat:
            self.remat_compute += operator.cost
        else:
            self.model_compute += operator.cost
        self.memory += operator.output_size()
        self.peak_memory = max(self.peak_memory, self.memory)
        siblings = [other for other in operator.outputs if other is not tensor]
        fresh: list[Storage] = []
        for other in [*siblings, tensor]:
            if other.defined:
                self.memory -= other.size
                continue
            other.defined = True
            if not other.storage.material:
                other.storage.material = True
                fresh.append(other.storage)
        for storage in fresh:
            assert storage.locks == 0
            self.pool.append(storage)
        self.became_material(fresh)

    def lock(self, storage: Storage) -> None:
        if storage.locks == 0:
            self.pool.remove(storage)
        storage.locks += 1

    def unlock(self, storage: Storage) -> None:
        storage.locks -= 1
        if storage.locks == 0:
            self.pool.append(storage)

    def evict(self, storage: Storage) -> None:
        self.pool.remove(storage)
        self.memory -= storage.size
        storage.material = False
        for tensor in storage.tensors:
            tensor.defined = False
        self.evictions_all += 1
        self.distinct.add(storage)
        storage.evicted_before += 1
        self.became_immaterial(storage)

    # Regions and classes

    def became_immaterial(self, storage: Storage) -> None:
        region, region_rev = storage.region, storage.region_rev
        for parent in list(region_rev.frontier):
            self.absorb(parent.region, storage, region)
        for child in list(region.frontier):
            self.absorb(child.region_rev, storage, region_rev)
        storage.region, storage.region_rev = Region(), Region()
        storage.node = Class(storage.compute)
        for neighbour in storage.evicted_neighbours():
            assert neighbour.node is not None
            mine, theirs = storage.node.find(), neighbour.node.find()
            if mine is not theirs:
                mine.link = theirs
                theirs.cost += mine.cost

    def absorb(self, into: Region, storage: Storage, beyond: Region) -> None:
        into.frontier.discard(storage)
        into.frontier |= beyond.frontier
        for member in [storage, *beyond.members]:
            into.add(member)

    def became_material(self, fresh: list[Storage]) -> None:
        for storage in fresh:
            self.leave_class(storage)
        for storage in fresh:
            storage.region = self.rebuilt(storage, lambda s: s.children)
            storage.region_rev = self.rebuilt(storage, lambda s: s.parents)
        above = {p for storage in fresh for p in storage.region_rev.frontier}
        below = {c for storage in fresh for c in storage.region.frontier}
        self.rebuild_around(above, below)

    def rebuild_around(self, above: set[Storage], below: set[Storage]) -> None:
        for other in above:
            other.region = self.rebuilt(other, lambda s: s.children)
        for other in below:
            other.region_rev = self.rebuilt(other, lambda s: s.parents)

    def leave_class(self, storage: Storage) -> None:
        assert storage.node is not None
        storage.node.find().cost -= storage.compute
        storage.node = None

    def rebuilt(self, storage: Storage, step: Callable[[Storage], Iterable[Storage]]) -> Region:
        region = Region()
        for member in self.reach(storage, step):
            region.add(member)
        for inside in [storage, *region.members]:
            region.frontier |= {s for s in step(inside) if s.material and s is not storage}
        return region

    def reach(self, storage: Storage, step: Callable[[Storage], Iterable[Storage]]) -> set[Storage]:
        return evicted_reach(storage, step)

    def regions_cost(self, storage: Storage) -> int:
        return storage.region.cost + storage.region_rev.cost

    # Choice

    def choose(self) -> Storage:
        if self.policy == "random":
            number = splitmix64(int(self.parameter("seed", 0)), len(self.victims))
            return self.pool[number % len(self.pool)]
        if self.policy == "two-phase":
            return self.choose_two_phase(int(self.parameter("k", 8)))
        if self.policy == "tie-aware":
            best = min(dtr(self, s) for s in self.pool) * (1 + 1e-6)
            near = [s for s in self.pool if dtr(self, s) <= best]
            return min(near, key=lambda s: (-s.size, s.root))
        if self.policy == "t-control":
            locked = set(self.by_betweenness[: self.locked_count()])
            unlocked = [s for s in self.pool if s.root not in locked]
            return self.last_minimum(unlocked or self.pool, dtr)
        return self.last_minimum(self.pool, SCORES[self.policy])

    def last_minimum(self, candidates: list[Storage], score: Score) -> Storage:
        best, chosen = INFINITY, candidates[-1]
        for storage in candidates:
            value = score(self, storage)
            if value <= best:
                best, chosen = value, storage
            if self.ends_scan(value):
                break
        return chosen

    def ends_scan(self, value: float) -> bool:
        return value == 0

    def choose_two_phase(self, k: int) -> Storage:
        enough = [s for s in self.pool if self.fits(self.need - s.size)]
        largest = sorted(self.pool, key=lambda s: (-s.size, s.root))[:k]
        return min(enough or largest, key=lambda s: (e_stale(self, s), -s.size, s.root))

    def locked_count(self) -> int:
        count = self.locked_at(self.budget)
        lo, hi = 0, self.budget
        while lo < hi:
            middle = (lo + hi) // 2
            lo, hi = (lo, middle) if self.locked_at(middle) == count else (middle + 1, hi)
        self.lo = max(self.lo, lo)
        upper = max(2 * self.budget, 1)
        while upper < 1 << 80 and self.locked_at(upper) == count:
            upper *= 2
        if self.locked_at(upper) != count:
            lo, hi = self.budget, upper
            while lo + 1 < hi:
                middle = (lo + hi) // 2
                lo, hi = (middle, hi) if self.locked_at(middle) == count else (lo, middle)
            self.hi = hi if self.hi is None else min(self.hi, hi)
        return count

    def locked_at(self, budget: int) -> int:
        """How many storages `t-control` locks at a budget: never fewer at a larger one."""
        free = max(budget - self.memory, 0) / budget if budget > 0 else 0.0
        share = self.parameter("alpha", 0.3) * free + self.parameter("floor", 0.01)
        n = len(self.by_betweenness)
        return min(math.ceil(share * n), n)


@contextmanager
def deep_recursion() -> Iterator[None]:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def victims_sha256(victims: Iterable[int]) -> str:
    """First 16 hex digits of the SHA-256 of the ids, each followed by a comma."""
    return hashlib.sha256("".join(f"{v}," for v in victims).encode()).hexdigest()[:16]


def replay(
    trace: TraceArrays,
    policy: str,
    budget: int,
    *,
    remat_limit: int | None = None,
    align: int | None = None,
    replayer: type[Replay] = Replay,
) -> dict[str, Any]:
    """Replay a trace under a policy (`name` or `name:key=value,…`) and a budget in bytes.

    ``remat_limit`` is in nanoseconds, sizes are rounded up to multiples of ``align`` bytes.
    ``replayer`` may be a `Replay` that gets something wrong on purpose.
    Returns the fields of a golden record, and `victims`.
    """
    run = replayer(trace, policy, int(budget), remat_limit, align)
    with deep_recursion():
        run.run()
    return {
        "policy": policy,
        "budget": run.budget,
        "remat_limit": remat_limit,
        "status": run.status,
        "model_compute": run.model_compute,
        "remat_compute": run.remat_compute,
        "evictions": len(run.victims),
        "evictions_all": run.evictions_all,
        "distinct_evicted": len(run.distinct),
        "remats": run.remats,
        "victims_sha256": victims_sha256(run.victims),
        "interval": [run.lo, run.hi],
        "peak_pinned": run.peak_pinned,
        "depth_at_peak_pinned": run.depth_at_peak_pinned,
        "max_depth": run.max_depth,
        "fail": run.fail,
        "peak_memory": run.peak_memory,
        "victims": run.victims,
    }
