"""Hypothesis strategies for traces and DTR logs, shared by all tests.

`traces` makes them through the builder, `dtr_logs` line by line (names, copies, assignments).
Both cover views (also with several inputs), in-place operators, tuples, constants, repeated
arguments, zero sizes and costs, and references dropped in random order.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from monofuzz.trace import Trace, TraceBuilder

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["dtr_logs", "sizes", "traces", "training_traces"]


def sizes(largest: int = 64) -> st.SearchStrategy[int]:
    """Sizes or costs: small, with zero and repetition (ties) likely."""
    return st.one_of(st.sampled_from([0, 1, 8]), st.integers(0, largest))


@st.composite
def traces(
    draw: st.DrawFn,
    *,
    min_operators: int = 1,
    max_operators: int = 16,
    largest_size: int = 64,
    largest_cost: int = 64,
    views: bool = True,
    in_place: bool = True,
    loggable: bool = True,
) -> Trace:
    """A random trace with ``min_operators`` to ``max_operators`` operators (constants excluded).

    ``loggable`` traces end as logs do: everything referenced is kept. Others keep any tensors, in
    any order.
    """
    build = TraceBuilder(name="random")
    size, cost = sizes(largest_size), sizes(largest_cost)
    for _ in range(draw(st.integers(0, 3))):
        build.constant(draw(size))
    for _ in range(draw(st.integers(min_operators, max_operators))):
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
        _random_update(draw, build, arguments, cost)


def _random_update(
    draw: st.DrawFn, build: TraceBuilder, arguments: list[int], cost: st.SearchStrategy[int]
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
        build.op("read", arguments, draw(sizes()), draw(cost))


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
def training_traces(
    draw: st.DrawFn,
    *,
    max_layers: int = 8,
    largest_size: int = 64,
    largest_cost: int = 64,
) -> Trace:
    """A training step in small: a forward chain, a loss, gradients, updated weights."""
    build = TraceBuilder(name="training")
    size, cost = st.integers(1, largest_size), st.integers(1, largest_cost)
    uniform = draw(st.booleans())
    common = draw(size), draw(cost)

    def activation() -> int:
        return common[0] if uniform else draw(size)

    def price() -> int:
        return common[1] if uniform else draw(cost)

    layers = draw(st.integers(1, max_layers))
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


@st.composite
def dtr_logs(draw: st.DrawFn, *, max_instructions: int = 24) -> list[str]:
    """The lines of a valid DTR log, with the spellings that logs are known to have."""
    log = _Log(draw)
    if draw(st.booleans()):
        log.say(INSTRUCTION="ANNOTATE", ANNOTATION="START")
    log.constant()
    actions: list[Callable[[], None]] = [
        log.constant,
        log.call,
        log.call,
        log.mutate,
        log.copy,
        log.copy_from,
        log.release,
        log.release,
        log.annotate,
    ]
    for _ in range(draw(st.integers(1, max_instructions))):
        draw(st.sampled_from(actions))()
    return log.lines


class _Log:
    """A DTR log being made up, with just enough memory to keep it valid."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.bound: dict[str, int] = {}
        self.root: list[int] = []
        self.shared: list[int] = []

    def say(self, **instruction: Any) -> None:
        self.lines.append(json.dumps(instruction))

    def number(self, value: int) -> int | str | float:
        spellings: list[int | str | float] = [str(value), str(value), value, value + 0.5]
        return self.draw(st.sampled_from(spellings))

    def fresh(self) -> str:
        return f"x{len(self.bound)}"

    def any_name(self) -> str:
        return self.draw(st.sampled_from(list(self.bound)))

    def alive(self, name: str) -> bool:
        return self.shared[self.root[self.bound[name]]] > 0

    def tensor(self, name: str, root: int | None = None) -> None:
        number = len(self.root)
        self.root.append(number if root is None else root)
        self.shared.append(0)
        self.shared[self.root[-1]] += 1
        self.bound[name] = number

    def drop(self, tensor: int) -> None:
        self.shared[self.root[tensor]] -= 1

    def memory(self, name: str) -> None:
        self.say(INSTRUCTION="MEMORY", NAME=name, MEMORY=self.number(self.draw(sizes())))

    def constant(self) -> None:
        name = self.fresh()
        self.say(INSTRUCTION="CONSTANT", NAME=name)
        self.memory(name)
        self.tensor(name)

    def call(self) -> None:
        names = [self.any_name() for _ in range(self.draw(st.integers(0, 3)))]
        storages = [self.root[self.bound[name]] for name in names]
        count = self.draw(st.integers(1, 2))
        results = [f"x{len(self.bound) + i}" for i in range(count)]
        self.say(
            INSTRUCTION="CALL",
            NAME="op",
            ARGS=names,
            RESULT=results,
            TIME=self.number(self.draw(sizes())),
        )
        for name in results:
            alias = self.draw(st.integers(-1, len(names) - 1))
            self.memory(name)
            shown = self.draw(st.sampled_from([alias, str(alias)]))
            self.say(INSTRUCTION="ALIAS", NAME=name, ALIAS=shown)
            self.tensor(name, None if alias < 0 else storages[alias])

    def mutate(self) -> None:
        names = [self.any_name() for _ in range(self.draw(st.integers(1, 3)))]
        left: dict[int, int] = {}
        replaced: list[int] = []
        old: list[int] = []
        for i, name in enumerate(names):
            tensor = self.bound[name]
            root = self.root[tensor]
            left.setdefault(root, self.shared[root])
            if tensor not in old and left[root] > 0 and self.draw(st.booleans()):
                left[root] -= 1
                replaced.append(i)
                old.append(tensor)
        if not replaced:
            return
        time = self.number(self.draw(sizes()))
        self.say(INSTRUCTION="MUTATE", NAME="add_", ARGS=names, MUTATE=replaced, TIME=time)
        for i, tensor in zip(replaced, old, strict=True):
            self.tensor(names[i])
            self.drop(tensor)

    def copy(self) -> None:
        source = self.any_name()
        if self.alive(source):
            name = self.fresh()
            self.say(INSTRUCTION="COPY", DST=name, SRC=source)
            self.bound[name] = self.bound[source]
            self.shared[self.root[self.bound[source]]] += 1

    def copy_from(self) -> None:
        name, source = self.any_name(), self.any_name()
        old, new = self.root[self.bound[name]], self.root[self.bound[source]]
        needed = 2 if old == new and self.bound[name] != self.bound[source] else 1
        if self.shared[old] >= needed and self.shared[new] >= needed:
            self.say(INSTRUCTION="COPY_FROM", DST=name, SRC=source)
            self.bound[name] = self.bound[source]
            self.shared[old] -= 1
            self.shared[new] += 1

    def release(self) -> None:
        name = self.any_name()
        if self.alive(name):
            self.say(INSTRUCTION="RELEASE", NAME=name)
            self.drop(self.bound[name])

    def annotate(self) -> None:
        self.say(INSTRUCTION="ANNOTATE", ANNOTATION="BACKWARD")
