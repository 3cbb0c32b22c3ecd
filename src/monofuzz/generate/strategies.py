"""Hypothesis strategies for traces, policies, budgets and systems: `monofuzz.strategies`.

::

    from hypothesis import given
    from monofuzz import strategies as mst

    @given(mst.systems(mst.traces(max_ops=8), mst.policies(["lru"])))
    def test_more_memory_never_fails(system): ...

Everything is sized by keyword (``min_ops``, ``max_ops``, ``max_size``, ``max_cost``), refuses wrong
arguments when it is called, not when it is drawn from, and shrinks towards fewer operators, then
fewer edges, then smaller numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from monofuzz.errors import MonofuzzError, UsageError
from monofuzz.replay.policy import names, parse
from monofuzz.replay.system import TraceSystem
from monofuzz.trace import Trace, TraceBuilder
from monofuzz.trace.model import MAX_COST, MAX_SIZE

try:
    from hypothesis import strategies as st
except ImportError:  # pragma: no cover
    raise MonofuzzError("monofuzz.strategies needs hypothesis: pip install hypothesis") from None

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["amounts", "budget_pairs", "policies", "systems", "traces", "training_traces"]

_MOST_OPS = 10_000
_MOST_EDGES = 200


def amounts(largest: int = 64) -> st.SearchStrategy[int]:
    """Sizes or costs up to ``largest``: small, with zero and repetition (ties) likely."""
    _check_number("largest", largest, 0, MAX_SIZE)
    few = [value for value in (0, 1, 8) if value <= largest]
    return st.one_of(st.sampled_from(few), st.integers(0, largest))


def policies(
    choose_from: Collection[str] | None = None, *, parameters: bool = True
) -> st.SearchStrategy[str]:
    """Policies as text: built-in ones, all of them or those named, with parameters now and then.

    Raises `PolicyError` for an unknown name.
    """
    given = list(names() if choose_from is None else choose_from)
    if not given:
        raise UsageError("there is no policy to choose from")
    for text in given:
        parse(text)
    ranges: dict[str, st.SearchStrategy[str]] = {
        "random": st.integers(0, 2**32).map(lambda seed: f"random:seed={seed}"),
        "nbhd-penalty": st.sampled_from([0.0, 0.5, 4.0]).map(lambda b: f"nbhd-penalty:b={b}"),
        "thrash-penalty": st.sampled_from([0.0, 0.5, 4.0]).map(lambda a: f"thrash-penalty:a={a}"),
        "two-phase": st.integers(1, 16).map(lambda k: f"two-phase:k={k}"),
    }

    def varied(text: str) -> st.SearchStrategy[str]:
        if not parameters or text not in ranges:
            return st.just(text)
        return st.one_of(st.just(text), ranges[text])

    return st.sampled_from(given).flatmap(varied)


def systems(
    of: st.SearchStrategy[Trace] | None = None,
    under: st.SearchStrategy[str] | None = None,
    *,
    limit: float | None = 60.0,
    engine: str = "compiled",
) -> st.SearchStrategy[TraceSystem]:
    """Traces under policies, ready to run: by default any of `traces` under any of `policies`."""
    return st.builds(
        TraceSystem,
        traces() if of is None else of,
        policies() if under is None else under,
        limit=st.just(limit),
        engine=st.just(engine),
    )


@st.composite
def _budget_pairs(draw: st.DrawFn, system: TraceSystem, max_edges: int) -> tuple[int, int]:
    peak = system.peak
    edges = [0, peak, peak + 1]
    for run in system.walk(0, peak + 1):
        lo, hi = run.interval
        edges += [lo, lo if hi is None else hi - 1]
        if len(edges) > 2 * max_edges:
            break
    ordered = sorted(set(edges))
    budget = st.one_of(st.sampled_from(ordered), st.integers(0, peak + 1))
    low, high = sorted((draw(budget), draw(budget)))
    return (low, high) if low < high else (low, high + 1)


def budget_pairs(
    system: TraceSystem, *, max_edges: int = _MOST_EDGES
) -> st.SearchStrategy[tuple[int, int]]:
    """Two budgets, the smaller first: mostly first and last budgets of regimes, where runs change.

    ``max_edges``: walk through so many regimes at most to find them.
    """
    _check_number("max_edges", max_edges, 1, 2**20)
    return _budget_pairs(system, max_edges)


def traces(
    *,
    min_ops: int = 1,
    max_ops: int = 16,
    max_size: int = 64,
    max_cost: int = 64,
    views: bool = True,
    in_place: bool = True,
    loggable: bool = True,
) -> st.SearchStrategy[Trace]:
    """Traces of ``min_ops`` to ``max_ops`` operators (constants excluded) of every kind there is.

    Tuples, constants, repeated arguments, zero sizes and costs, references taken and dropped in any
    order; ``views`` (also with several inputs) and ``in_place`` operators can be left out.
    ``loggable`` traces end as DTR logs do, with everything referenced kept; others keep any
    tensors, in any order. Sizes are bytes, costs nanoseconds.
    """
    _check_range("ops", min_ops, max_ops)
    _check_number("max_size", max_size, 0, MAX_SIZE)
    _check_number("max_cost", max_cost, 0, MAX_COST)
    return _traces(min_ops, max_ops, max_size, max_cost, views, in_place, loggable)


def training_traces(
    *, min_layers: int = 1, max_layers: int = 8, max_size: int = 64, max_cost: int = 64
) -> st.SearchStrategy[Trace]:
    """Training steps in small: a chain forward with skips, a loss, gradients, updated weights."""
    _check_range("layers", min_layers, max_layers)
    _check_number("max_size", max_size, 1, MAX_SIZE)
    _check_number("max_cost", max_cost, 1, MAX_COST)
    return _training_traces(min_layers, max_layers, max_size, max_cost)


def _check_number(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UsageError(f"{name} must be a whole number from {least} to {most}, not {value!r}")


def _check_range(what: str, least: Any, most: Any) -> None:
    _check_number(f"min_{what}", least, 1, _MOST_OPS)
    _check_number(f"max_{what}", most, 1, _MOST_OPS)
    if least > most:
        raise UsageError(f"min_{what}={least} is more than max_{what}={most}")


@st.composite
def _traces(
    draw: st.DrawFn,
    min_ops: int,
    max_ops: int,
    max_size: int,
    max_cost: int,
    views: bool,
    in_place: bool,
    loggable: bool,
) -> Trace:
    build = TraceBuilder(name="random")
    size, cost = amounts(max_size), amounts(max_cost)
    for _ in range(draw(st.integers(0, 3))):
        build.constant(draw(size))
    for _ in range(draw(st.integers(min_ops, max_ops))):
        _random_operator(draw, build, size, cost, views=views, in_place=in_place)
        for _ in range(draw(st.integers(0, 2))):
            _random_reference(draw, build)
    if draw(st.booleans()):
        order = draw(st.permutations(range(build.n_tensors)))
        for tensor in order[: draw(st.integers(0, len(order)))]:
            if build.references(tensor):
                build.release(tensor)
    if loggable:
        return build.finish()
    tensors = st.integers(0, build.n_tensors - 1)
    return build.finish(keep=draw(st.lists(tensors, max_size=4)))


def _recent(draw: st.DrawFn, build: TraceBuilder) -> int:
    """A tensor, most likely a young one."""
    count = build.n_tensors
    return count - 1 - min(draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1)))


def _random_operator(
    draw: st.DrawFn,
    build: TraceBuilder,
    size: st.SearchStrategy[int],
    cost: st.SearchStrategy[int],
    *,
    views: bool,
    in_place: bool,
) -> None:
    if build.n_tensors == 0:
        build.op("source", [], draw(st.lists(size, min_size=1, max_size=3)), draw(cost))
        return
    kinds = ["op", "op", "op", "tuple"] + ["view", "mixed"] * views + ["mutate"] * in_place
    kind = draw(st.sampled_from(kinds))
    arguments = [_recent(draw, build) for _ in range(draw(st.integers(1, 3)))]
    if kind == "op":
        build.op("op", arguments, draw(size), draw(cost))
    elif kind == "tuple":
        build.op("tuple", arguments, draw(st.lists(size, min_size=2, max_size=3)), draw(cost))
    elif kind == "view":
        argument = draw(st.integers(0, len(arguments) - 1))
        build.op("view", arguments, [0], draw(cost), views={0: argument})
    elif kind == "mixed":
        made = [0, draw(size)] if draw(st.booleans()) else [draw(size), 0]
        argument = draw(st.integers(0, len(arguments) - 1))
        build.op("mixed", arguments, made, draw(cost), views={made.index(0): argument})
    else:
        _random_update(draw, build, arguments, size, cost)


def _random_update(
    draw: st.DrawFn,
    build: TraceBuilder,
    arguments: list[int],
    size: st.SearchStrategy[int],
    cost: st.SearchStrategy[int],
) -> None:
    left: dict[int, int] = {}
    replaced: list[int] = []
    for i, tensor in enumerate(arguments):
        root = build.storage(tensor)
        if tensor in arguments[:i] or left.setdefault(root, build.references(tensor)) < 1:
            continue
        if draw(st.booleans()):
            left[root] -= 1
            replaced.append(i)
    if replaced:
        build.mutate("mutate_", arguments, replaced, draw(cost))
    else:
        build.op("read", arguments, draw(size), draw(cost))


def _random_reference(draw: st.DrawFn, build: TraceBuilder) -> None:
    tensor = _recent(draw, build)
    action = draw(st.sampled_from(["release", "release", "get", "assign"]))
    if not build.references(tensor):
        return
    if action == "get":
        build.get(tensor)
        return
    build.release(tensor)
    if action == "assign":
        other = _recent(draw, build)
        if build.references(other):
            build.get(other)


@st.composite
def _training_traces(
    draw: st.DrawFn, min_layers: int, max_layers: int, max_size: int, max_cost: int
) -> Trace:
    build = TraceBuilder(name="training")
    size, cost = st.integers(1, max_size), st.integers(1, max_cost)
    uniform = draw(st.booleans())
    common = draw(size), draw(cost)

    def activation() -> int:
        return common[0] if uniform else draw(size)

    def price() -> int:
        return common[1] if uniform else draw(cost)

    layers = draw(st.integers(min_layers, max_layers))
    weights = [build.constant(draw(size)) for _ in range(layers)]
    outputs = [build.constant(draw(size))]
    for weight in weights:
        arguments = [outputs[-1], weight]
        if len(outputs) > 2 and draw(st.booleans()):
            arguments.append(draw(st.sampled_from(outputs)))
        (made,) = build.op("forward", arguments, activation(), price())
        if draw(st.integers(0, 3)) == 0:
            (view,) = build.op("view", [made], [0], 0, views={0: 0})
            build.release(made)
            made = view
        outputs.append(made)
    (gradient,) = build.op("loss", [outputs[-1]], activation(), price())
    for layer in reversed(range(layers)):
        arguments = [gradient, outputs[layer], weights[layer]]
        if draw(st.booleans()):
            arguments.append(outputs[layer + 1])
        gradients = build.op("backward", arguments, [activation(), activation()], price())
        build.release(gradient)
        build.release(outputs[layer + 1])
        gradient = gradients[0]
        if draw(st.booleans()):
            build.mutate("update_", [weights[layer], gradients[1]], [0], price())
            build.release(gradients[1])
    return build.finish()
