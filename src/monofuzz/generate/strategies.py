"""Hypothesis strategies for traces, policies, budgets and systems: `monofuzz.strategies`.

::

    from hypothesis import given
    from monofuzz import strategies as mst

    @given(mst.systems(mst.traces(max_ops=8), "lru"))
    def test_more_memory_never_fails(system): ...

Everything is sized by keyword (``min_ops``, ``max_ops``, ``max_size``, ``max_cost``), refuses wrong
arguments when it is called, not when it is drawn from, and shrinks towards fewer operators, then
fewer edges, then smaller numbers. ``docs/strategies.md`` shows each in use.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any, Final

from monofuzz.counterexample import least_budget, runs_of
from monofuzz.errors import MonofuzzError, UsageError, nearest
from monofuzz.generate.logs import draw_log
from monofuzz.generate.moves import Kind, Move, play
from monofuzz.generate.shapes import DROPS, SAVES, SHAPES, Shape, training_step
from monofuzz.generate.steering import nearness
from monofuzz.replay._jit import ENGINES
from monofuzz.replay.policy import Policy, names, parse
from monofuzz.replay.system import TraceSystem
from monofuzz.search.verdict import CLAIMS
from monofuzz.trace import Trace
from monofuzz.trace.model import MAX_COST, MAX_SIZE

try:
    import hypothesis
    from hypothesis import strategies as st
except ImportError:  # pragma: no cover
    raise MonofuzzError("monofuzz.strategies needs hypothesis: pip install hypothesis") from None

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from monofuzz.search.verdict import Claim

__all__ = [
    "amounts",
    "budget_pairs",
    "budgets",
    "dtr_logs",
    "policies",
    "steer",
    "systems",
    "traces",
    "training_traces",
]

_MOST_OPS: Final = 10_000
_MOST_EDGES: Final = 200
_STEERED: Final = 4
"""The most steered draws of one test case: each needs a label of its own."""


# ---------------------------------------------------------------------------------- numbers


def amounts(largest: int = 64, *, smallest: int = 0) -> st.SearchStrategy[int]:
    """Sizes or costs from ``smallest`` to ``largest``, some values more likely than others, so
    that ties occur."""
    _check_number("largest", largest, 0, MAX_SIZE)
    _check_number("smallest", smallest, 0, MAX_SIZE)
    _check_order("smallest", smallest, "largest", largest)
    few = [value for value in (0, 1, 8) if smallest <= value <= largest]
    more = min(largest - smallest, 2**20) if few else 0
    # One draw, not a choice and a draw: what exceeds the largest stands for one of the few.
    return st.integers(smallest, largest + more).map(
        lambda drawn: drawn if drawn <= largest else few[drawn % len(few)]
    )


# ----------------------------------------------------------------------------------- traces


def traces(
    *,
    min_ops: int = 1,
    max_ops: int = 16,
    min_size: int = 0,
    max_size: int = 64,
    min_cost: int = 0,
    max_cost: int = 64,
    max_args: int = 3,
    max_outputs: int = 3,
    max_constants: int = 3,
    views: bool = True,
    in_place: bool = True,
    releases: bool = True,
    loggable: bool = True,
) -> st.SearchStrategy[Trace]:
    """Traces of any structure, of ``min_ops`` to ``max_ops`` operators (constants excluded).

    Operators read up to ``max_args`` tensors, mostly young ones, some of them twice, and make up to
    ``max_outputs``. ``views`` (also with several inputs, and beside new tensors) and ``in_place``
    operators can be left out. With ``releases``, references are taken, dropped and moved between
    the operators and at the end, in any order; without, none is. ``loggable`` traces end as DTR
    logs do, with everything referenced kept; others keep any tensors, in any order.

    Sizes are bytes, costs nanoseconds. ``min_size=max_size=1`` makes all sizes equal (views still
    have size 0).

    Raises `UsageError`.
    """
    _check_range("ops", min_ops, max_ops, 1, _MOST_OPS)
    _check_range("size", min_size, max_size, 0, MAX_SIZE)
    _check_range("cost", min_cost, max_cost, 0, MAX_COST)
    _check_number("max_args", max_args, 0, _MOST_OPS)
    _check_number("max_outputs", max_outputs, 1, _MOST_OPS)
    _check_number("max_constants", max_constants, 0, _MOST_OPS)
    size = amounts(max_size, smallest=min_size)
    far = max_constants + 2 * max_ops
    move = _moves(
        size=size,
        cost=amounts(max_cost, smallest=min_cost),
        arguments=[_optional(far, share) for share in _READING[:max_args]]
        + [_optional(far, _READING[-1])] * (max_args - len(_READING)),
        actions=[_optional(3 * far, _MOVING)] * 2 if releases else [],
        max_outputs=max_outputs,
        kinds=_kinds(views, in_place),
        far=far,
    )
    back = st.integers(0, far)
    return st.builds(
        play,
        _move_lists(move, min_ops, max_ops),
        constants=st.lists(size, max_size=max_constants),
        released=st.one_of(st.just(()), _orders(back, max_ops)) if releases else st.just(()),
        keep=st.none() if loggable else st.lists(back, max_size=4),
    )


def training_traces(
    shapes: Collection[Shape] | Shape | None = None,
    *,
    min_ops: int = 2,
    max_ops: int = 16,
    min_size: int = 1,
    max_size: int = 64,
    min_cost: int = 1,
    max_cost: int = 64,
    extras: bool = True,
) -> st.SearchStrategy[Trace]:
    """Training steps in small: forward and back again, ``min_ops`` to ``max_ops`` operators.

    ``shapes``: which networks, by default all of `monofuzz.generate.shapes.SHAPES` (chain,
    residual, dense, u-shaped, recurrent, tree, unrolled, attention). What backward reads and when
    activations are dropped varies; with ``extras`` there may be weights and their updates in place,
    gradients added up in place, and views. Sizes and costs are often all the same.

    Raises `UsageError`, with the nearest known name for an unknown shape.
    """
    chosen = [shapes] if isinstance(shapes, str) else list(SHAPES if shapes is None else shapes)
    if not chosen:
        raise UsageError("there is no shape to choose from")
    for shape in chosen:
        if shape not in SHAPES:
            raise UsageError(
                f"unknown shape {shape!r}{nearest(str(shape), SHAPES)} "
                f"(the shapes are {', '.join(SHAPES)})"
            )
    _check_range("ops", min_ops, max_ops, 2, _MOST_OPS)
    _check_range("size", min_size, max_size, 0, MAX_SIZE)
    _check_range("cost", min_cost, max_cost, 0, MAX_COST)
    size = amounts(max_size, smallest=min_size)
    cost = amounts(max_cost, smallest=min_cost)
    return _training_traces(tuple(chosen), min_ops, max_ops, size, cost, extras)


def dtr_logs(*, max_instructions: int = 24, max_size: int = 64) -> st.SearchStrategy[list[str]]:
    """Valid DTR logs, line by line, with the spellings that logs are known to have.

    For readers of such logs: names bound anew, copies and assignments, numbers as text or with a
    fraction, annotations.
    """
    _check_number("max_instructions", max_instructions, 1, _MOST_OPS)
    return draw_log(max_instructions, amounts(max_size))


# --------------------------------------------------------------- policies, systems, budgets


def policies(
    choose_from: Collection[str] | None = None, *, parameters: bool = True
) -> st.SearchStrategy[str]:
    """Policies as text: built-in ones, all of them or those named.

    With ``parameters``, policies that are named without any have some of their own now and then.

    Raises `PolicyError` for an unknown name, with the nearest known one.
    """
    if isinstance(choose_from, str):
        choose_from = [choose_from]
    given = list(names() if choose_from is None else choose_from)
    if not given:
        raise UsageError("there is no policy to choose from")
    known = [parse(text) for text in given]
    varied = [
        _varied(text, policy) if parameters and ":" not in text else st.just(text)
        for text, policy in zip(given, known, strict=True)
    ]
    return st.sampled_from(varied).flatmap(lambda strategy: strategy)


def systems(
    of: st.SearchStrategy[Trace] | Trace | None = None,
    under: st.SearchStrategy[str] | str | Policy | None = None,
    *,
    limit: float | None = 60.0,
    align: int | None = None,
    engine: str = "compiled",
    steer: Claim | None = None,
) -> st.SearchStrategy[TraceSystem]:
    """Traces under policies, ready to run: by default any of `traces` under any of `policies`.

    A trace or a policy may stand for a strategy of just that. ``steer`` maps each system completely
    and tells Hypothesis how near it comes to breaking that claim (see `monofuzz.strategies.steer`);
    ``limit``, ``align`` and ``engine`` are those of `monofuzz.replay.TraceSystem`.
    """
    if steer is not None:
        _check_claim("steer", steer)
    # Refuses at once what a system would refuse when it is drawn; nothing is compiled for that.
    least = training_step("chain", 1, sizes=(1,))
    quick = "interpreted" if engine in ENGINES else engine
    TraceSystem(least, "size", limit=limit, align=align, engine=quick)
    whole = st.builds(
        TraceSystem,
        _strategy("of", of, Trace, traces),
        _strategy("under", under, (str, Policy), policies),
        limit=st.just(limit),
        align=st.just(align),
        engine=st.just(engine),
    )
    return whole if steer is None else whole.map(functools.partial(_steered, claim=steer))


def budgets(
    of: TraceSystem | Trace, under: str | Policy | None = None, *, max_edges: int = _MOST_EDGES
) -> st.SearchStrategy[int]:
    """A budget in bytes for a system, or for a trace under a policy (by default ``dtr``).

    Mostly the first or the last of a regime, where runs change; now and then any up to the peak.
    ``max_edges``: walk through so many regimes at most to find them.
    """
    system, edges = _edges(of, under, max_edges)
    return st.one_of(
        st.sampled_from(sorted({e for pair in edges for e in pair})),
        st.integers(0, system.peak + 1),
    )


def budget_pairs(
    of: TraceSystem | Trace, under: str | Policy | None = None, *, max_edges: int = _MOST_EDGES
) -> st.SearchStrategy[tuple[int, int]]:
    """Two budgets, the smaller first, for a system, or for a trace under a policy.

    Mostly the ends of two regimes, often of neighbouring ones: the last budget of one and the first
    of the next. ``max_edges`` as for `budgets`.
    """
    system, edges = _edges(of, under, max_edges)
    neighbours = [(low[1], high[0]) for low, high in itertools.pairwise(edges)]
    single = budgets(system, max_edges=max_edges)
    any_two = st.lists(single, min_size=2, max_size=2, unique=True).map(
        lambda two: (min(two), max(two))
    )
    return st.one_of(st.sampled_from(neighbours), any_two) if neighbours else any_two


def steer(
    of: TraceSystem | Trace,
    under: str | Policy | None = None,
    *,
    claim: Claim = "feasibility",
    label: str = "",
    most_runs: int = 2000,
) -> float:
    """Tell Hypothesis how near a system comes to breaking a claim, so that it goes on from there.

    Maps the system completely (unless that takes more than ``most_runs``) and passes
    `monofuzz.generate.steering.nearness` to ``hypothesis.target``; pays in tests with a thousand
    examples and more. Outside of a test it only measures. ``label`` is needed where one test case
    steers twice for the same claim.

    Returns the measure: above 1.0 the claim is broken.
    """
    _check_claim("claim", claim)
    system = _system(of, under)
    runs = runs_of(system, most=most_runs)
    near = 0.0 if runs is None else min(nearness(runs, claim, system.peak), 1e300)
    if hypothesis.currently_in_test_context():
        hypothesis.target(near, label=label or f"nearness to breaking {claim}")
    return near


# -------------------------------------------------------------------------------- how drawn


_READING: Final = (0.9, 0.4, 0.2)
"""How likely an operator reads a first, a second, a third argument."""
_MOVING: Final = 0.4
"""How likely a reference is taken or dropped after an operator, twice."""


def _optional(most: int, share: float) -> st.SearchStrategy[int]:
    """1 to ``most`` with a probability of ``share``, otherwise 0 or less: nothing."""
    return st.integers(-round(most * (1 - share) / share), most)


def _young(drawn: int, most: int) -> int:
    """How many tensors back, most likely few, from a number from 1 to ``most``."""
    return (drawn - 1) ** 3 // most**2


def _orders(back: st.SearchStrategy[int], max_ops: int) -> st.SearchStrategy[Sequence[int]]:
    """Which tensors to drop at the end, in which order: some, or all, from either side."""
    everything = 4 * max_ops
    return st.one_of(
        st.lists(back, max_size=max_ops),
        st.sampled_from([range(everything), range(everything - 1, -1, -1)]),
    )


@st.composite
def _move_lists(draw: st.DrawFn, of: st.SearchStrategy[Move], least: int, most: int) -> list[Move]:
    # Not st.lists: Hypothesis takes elements of more than a few draws out of the middle only where
    # their number is a draw of its own.
    return [draw(of) for _ in range(draw(st.integers(least, most)))]


def _kinds(views: bool, in_place: bool) -> list[tuple[Kind, bool]]:
    """Kinds of operators, each with whether it may make several new tensors."""
    kinds: list[tuple[Kind, bool]] = [("new", False), ("new", False), ("new", False), ("new", True)]
    if views:
        kinds += [("view", False), ("view first", True), ("view last", True)]
    return [*kinds, ("update", False)] if in_place else kinds


@st.composite
def _moves(
    draw: st.DrawFn,
    *,
    size: st.SearchStrategy[int],
    cost: st.SearchStrategy[int],
    arguments: Sequence[st.SearchStrategy[int]],
    actions: Sequence[st.SearchStrategy[int]],
    max_outputs: int,
    kinds: list[tuple[Kind, bool]],
    far: int,
) -> Move:
    # As few draws as possible: they are what a trace costs.
    kind, several = draw(st.sampled_from(kinds))
    read = [draw(argument) for argument in arguments]
    most = max_outputs - kind.startswith("view ")
    many = several and most > 1
    sizes = draw(st.lists(size, min_size=1, max_size=most)) if many else [draw(size)]
    moved = [drawn for drawn in (draw(action) for action in actions) if drawn > 0]
    return Move(
        kind if most else "view",
        tuple(_young(drawn, far) for drawn in read if drawn > 0),
        tuple(sizes),
        draw(cost),
        draw(st.integers(0, 7)) if kind != "new" else 0,
        tuple(
            ("get" if drawn % 3 == 2 else "release", _young(1 + drawn // 3, far)) for drawn in moved
        ),
    )


@st.composite
def _training_traces(
    draw: st.DrawFn,
    shapes: tuple[Shape, ...],
    min_ops: int,
    max_ops: int,
    size: st.SearchStrategy[int],
    cost: st.SearchStrategy[int],
    extras: bool,
) -> Trace:
    shape = draw(st.sampled_from(shapes))
    sizes = draw(st.lists(size, min_size=1, max_size=2 * max_ops))
    costs = draw(st.lists(cost, min_size=1, max_size=max_ops))
    options: dict[str, Any] = {
        "sizes": sizes,
        "costs": costs,
        "saves": draw(st.sampled_from(SAVES)),
        "drops": draw(st.sampled_from(DROPS)),
    }
    added: dict[str, Any] = {}
    if extras:
        added = {
            name: draw(st.booleans()) for name in ("weights", "updates", "accumulate", "views")
        }
        added["updates"] &= added["weights"]
    # Forward and backward operators come in pairs, so that the loss makes the number odd.
    ops = draw(st.integers(min_ops, max_ops))
    for layers in range(ops // 2, 0, -1):
        trace = training_step(shape, layers, loss=bool(ops % 2), **options, **added)
        if min_ops <= trace.n_operators <= max_ops:
            return trace
    return training_step(shape, ops // 2, loss=bool(ops % 2), **options)


def _varied(text: str, policy: Policy) -> st.SearchStrategy[str]:
    """A policy with other parameters than its own, now and then."""
    ranges = {key: _PARAMETERS[key] for key, _ in policy.parameters if key in _PARAMETERS}
    if not ranges:
        return st.just(text)

    def spelled(values: dict[str, float | int]) -> str:
        return f"{text}:" + ",".join(f"{key}={value!r}" for key, value in values.items())

    return st.one_of(st.just(text), st.fixed_dictionaries(ranges).map(spelled))


_PARAMETERS: Final[dict[str, st.SearchStrategy[Any]]] = {
    "seed": st.integers(0, 2**64 - 1),
    "k": st.integers(1, 16),
    "a": st.sampled_from([0.0, 0.5, 4.0]),
    "b": st.sampled_from([0.0, 0.5, 4.0]),
    "tolerance": st.sampled_from([0.0, 0.1, 2.0]),
    "alpha": st.sampled_from([0.0, 0.9, 3.0]),
    "floor": st.sampled_from([0.0, 0.2, 1.0]),
}


def _system(of: TraceSystem | Trace, under: str | Policy | None) -> TraceSystem:
    if isinstance(of, Trace):
        return TraceSystem(of, "dtr" if under is None else under)
    if not isinstance(of, TraceSystem):
        raise UsageError(f"expected a trace or a system, not {type(of).__name__}")
    if under is not None:
        raise UsageError("a system has its own policy; give a policy only with a trace")
    return of


def _edges(
    of: TraceSystem | Trace, under: str | Policy | None, max_edges: int
) -> tuple[TraceSystem, list[tuple[int, int]]]:
    """A system, and the first and last budgets of its regimes from the least sensible one on."""
    _check_number("max_edges", max_edges, 1, 2**20)
    system = _system(of, under)
    least = least_budget(system.trace, align=system.align)
    edges = [(0, least - 1)] if least else []
    for run in itertools.islice(system.walk(least, system.peak + 1), max_edges):
        lo, hi = max(run.interval[0], least), run.interval[1]
        edges.append((lo, lo + 1 if hi is None else hi - 1))
    return system, edges


def _steered(system: TraceSystem, claim: Claim) -> TraceSystem:
    if hypothesis.currently_in_test_context():
        for place in range(_STEERED):
            label = f"nearness to breaking {claim}, system {place + 1}"
            try:
                steer(system, claim=claim, label=label)
            except hypothesis.errors.InvalidArgument:
                continue  # this test case has drawn such a system before
            break
    return system


# ----------------------------------------------------------------------------------- checks


def _strategy(
    name: str, value: Any, kind: Any, otherwise: Callable[[], st.SearchStrategy[Any]]
) -> st.SearchStrategy[Any]:
    if value is None:
        return otherwise()
    if isinstance(value, st.SearchStrategy):
        return value
    if not isinstance(value, kind):
        what = "a trace" if kind is Trace else "a policy"
        raise UsageError(f"{name} must be {what} or a strategy of them, not {type(value).__name__}")
    if kind is not Trace:
        parse(value)
    return st.just(value)


def _check_claim(name: str, claim: str) -> None:
    if claim not in CLAIMS:
        raise UsageError(
            f"{name} is {claim!r}{nearest(str(claim), CLAIMS)} "
            f"(the claims are {' and '.join(CLAIMS)})"
        )


def _check_number(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UsageError(f"{name} must be a whole number from {least} to {most}, not {value!r}")


def _check_order(less: str, least: int, more: str, most: int) -> None:
    if least > most:
        raise UsageError(f"{less}={least} is more than {more}={most}")


def _check_range(what: str, least: Any, most: Any, lowest: int, highest: int) -> None:
    _check_number(f"min_{what}", least, lowest, highest)
    _check_number(f"max_{what}", most, lowest, highest)
    _check_order(f"min_{what}", least, f"max_{what}", most)
