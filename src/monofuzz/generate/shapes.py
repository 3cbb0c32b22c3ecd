"""Training steps of the shapes that networks have, in small: pure functions of a few parameters.

A shape says which earlier operators each forward operator reads (`network`). From that, one way of
going back serves all shapes (`training_step`): every operator gets a backward operator, in reverse,
that reads the gradients of what it made and what was saved for it, and makes the gradients of what
it read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

from monofuzz.errors import UsageError, nearest
from monofuzz.trace.builder import TraceBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from monofuzz.trace.model import Trace

__all__ = [
    "DROPS",
    "SAVES",
    "SHAPES",
    "Drops",
    "Node",
    "Saves",
    "Shape",
    "network",
    "training_step",
]

Shape = Literal[
    "chain", "residual", "dense", "u-shaped", "recurrent", "tree", "unrolled", "attention"
]
"""*chain*: each layer reads the one before. *residual*: every third operator adds what entered its
block. *dense*: each layer reads all before it. *u-shaped*: smaller and smaller, then back up, each
layer on the way up reads the one of its size on the way down. *recurrent*: a state goes from step
to step with shared weights, each step has an output, and the loss reads them all. *tree*: leaves,
then pairs. *unrolled*: steps of an optimiser, whose gradients are themselves differentiated.
*attention*: three projections, scores between two of them, their product with the third, a sum with
what entered."""

Saves = Literal["inputs", "output", "both"]
"""What a backward operator reads beside gradients: what its operator read, or made, or both."""

Drops = Literal["used", "end", "never"]
"""When activations and gradients are dropped: after their last use, at the end of the step in the
order in which they were made, or never."""

SHAPES: Final[tuple[Shape, ...]] = get_args(Shape)
SAVES: Final[tuple[Saves, ...]] = get_args(Saves)
DROPS: Final[tuple[Drops, ...]] = get_args(Drops)

INPUT: Final = -1
"""What a node reads that reads the input of the step."""


@dataclass(frozen=True, slots=True)
class Node:
    """A forward operator: the earlier ones that it reads (or `INPUT`), which weight it has, and
    its output as a multiple or a fraction of the common size."""

    reads: tuple[int, ...]
    weight: int | None = None
    times: int = 1
    over: int = 1


def network(shape: Shape, layers: int) -> tuple[Node, ...]:
    """The forward operators of a shape, ``layers`` of them, each reading only earlier ones.

    Raises `UsageError` for an unknown shape.
    """
    _known("shape", shape, SHAPES)
    number: object = layers
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise UsageError(f"layers must be a whole number from 1 on, not {layers!r}")
    return tuple(_NETWORKS[shape](layers))


def training_step(
    shape: Shape,
    layers: int,
    *,
    sizes: Sequence[int] = (1,),
    costs: Sequence[int] = (1,),
    saves: Saves = "inputs",
    drops: Drops = "used",
    loss: bool = True,
    weights: bool = False,
    updates: bool = False,
    accumulate: bool = False,
    views: bool = False,
) -> Trace:
    """The training step of a network: forward, loss, backward, updates.

    Args:
        shape: one of `SHAPES`.
        layers: forward operators; there are as many backward ones.
        sizes: bytes of what operators make, taken in turns, scaled as the shape says (nothing
            becomes 0 by that); weights and their gradients take theirs from it, too.
        costs: nanoseconds of operators, taken in turns.
        saves: see `Saves`.
        drops: see `Drops`. What is never dropped is pinned at the end of the step.
        loss: an operator of its own between forward and backward, which reads what no layer reads;
            otherwise the outputs of such layers serve as their own gradients.
        weights: layers have weights: constants that they and their backward operators read, and
            gradients of them.
        updates: weights are updated in place at the end, and their gradients dropped.
        accumulate: gradients that arrive from several readers are added up one by one, in place;
            otherwise the backward operator reads all of them.
        views: every third layer that reads one other is a view of it.

    Raises `UsageError` for an unknown name, and `TraceError` for sizes or costs that a trace cannot
    have.
    """
    nodes = network(shape, layers)
    _known("saves", saves, SAVES)
    _known("drops", drops, DROPS)
    if not sizes or not costs:
        raise UsageError("a training step needs at least one size and one cost")
    if updates and not weights:
        raise UsageError("there are no weights to update: say weights=True")
    step = _Step(nodes, shape, sizes, costs, saves, drops, weights, accumulate, views)
    step.forward()
    step.backward(loss)
    return step.finish(updates)


class _Step:
    """A training step being built."""

    def __init__(
        self,
        nodes: tuple[Node, ...],
        name: str,
        sizes: Sequence[int],
        costs: Sequence[int],
        saves: Saves,
        drops: Drops,
        weights: bool,
        accumulate: bool,
        views: bool,
    ) -> None:
        self.nodes = nodes
        self.build = TraceBuilder(name=f"{name}-{len(nodes)}", model=name)
        self.sizes, self.costs = sizes, costs
        self.saves, self.drops, self.accumulate = saves, drops, accumulate
        self.taken = {"sizes": 0, "costs": 0}
        self.made: list[int] = []
        self.dropped: list[int] = []
        self.gradients: list[list[int]] = [[] for _ in nodes]
        self.weight_gradients: dict[int, list[int]] = {}
        used = sorted({n.weight for n in nodes if n.weight is not None}) if weights else []
        self.weights = {w: self.build.constant(self._size(), name="weight") for w in used}
        self.input = self.build.constant(self._size(), name="input")
        self.views = {
            k for k, node in enumerate(nodes) if views and k % 3 == 2 and node.reads == (k - 1,)
        }

    def forward(self) -> None:
        for k, node in enumerate(self.nodes):
            if k in self.views:
                made = self.build.op("view", [self.made[-1]], [0], self._cost(), views={0: 0})
            else:
                made = self.build.op("forward", self._read(k), self._scaled(node), self._cost())
            self.made += made

    def backward(self, loss: bool) -> None:
        read = {r for node in self.nodes for r in node.reads}
        ends = [k for k in range(len(self.nodes)) if k not in read]
        if loss:
            arguments = [self.made[k] for k in ends]
            sizes = [self._scaled(self.nodes[k]) for k in ends]
            for k, gradient in zip(
                ends, self.build.op("loss", arguments, sizes, self._cost()), strict=True
            ):
                self.gradients[k].append(gradient)
        else:
            for k in ends:
                self.gradients[k].append(self.made[k])
        for k in reversed(range(len(self.nodes))):
            self._backward(k)

    def finish(self, updates: bool) -> Trace:
        build = self.build
        if updates:
            for w, gradients in self.weight_gradients.items():
                arguments = [self.weights[w], *gradients]
                (self.weights[w],) = build.mutate("update_", arguments, [0], self._cost())
                for gradient in gradients:
                    build.release(gradient)
        if self.drops == "end":
            for tensor in sorted(self.dropped):
                build.release(tensor)
        return build.finish()

    def _backward(self, k: int) -> None:
        node, build, gradients = self.nodes[k], self.build, self.gradients[k]
        sources = [r for r in node.reads if r != INPUT]
        if k in self.views and len(gradients) == 1:
            made = build.op("view", gradients, [0], self._cost(), views={0: 0})
            weight = None
        else:
            weight = self._weight(k)
            sizes = [self._scaled(self.nodes[r]) for r in sources]
            if weight is not None or not sizes:
                sizes.append(self._size())
            arguments = [*gradients, *self._saved(k)]
            made = build.op("backward", list(dict.fromkeys(arguments)), sizes, self._cost())
        for r, gradient in zip(sources, made, strict=False):
            self._arrives(self.gradients[r], gradient)
        if weight is not None:
            self._arrives(self.weight_gradients.setdefault(weight, []), made[-1])
        for tensor in dict.fromkeys([*gradients, self.made[k]]):
            self._drop(tensor)

    def _saved(self, k: int) -> list[int]:
        if self.saves == "inputs":
            return self._read(k)
        weight = self._weight(k)
        read = self._read(k) if self.saves == "both" else []
        if self.saves == "output" and weight is not None:
            read = [self.weights[weight]]
        return [*read, self.made[k]]

    def _arrives(self, known: list[int], gradient: int) -> None:
        if self.accumulate and known:
            (known[0],) = self.build.mutate("add_", [known[0], gradient], [0], self._cost())
            self._drop(gradient)
        else:
            known.append(gradient)

    def _read(self, k: int) -> list[int]:
        """What a layer reads."""
        read = [self.input if r == INPUT else self.made[r] for r in self.nodes[k].reads]
        weight = self._weight(k)
        return read if weight is None else [*read, self.weights[weight]]

    def _weight(self, k: int) -> int | None:
        weight = self.nodes[k].weight
        return weight if weight in self.weights and k not in self.views else None

    def _drop(self, tensor: int) -> None:
        if self.drops == "used":
            self.build.release(tensor)
        elif self.drops == "end":
            self.dropped.append(tensor)

    def _scaled(self, node: Node) -> int:
        size = self._size()
        return max(size * node.times // node.over, min(size, 1))

    def _size(self) -> int:
        self.taken["sizes"] += 1
        return self.sizes[(self.taken["sizes"] - 1) % len(self.sizes)]

    def _cost(self) -> int:
        self.taken["costs"] += 1
        return self.costs[(self.taken["costs"] - 1) % len(self.costs)]


def _chain(layers: int) -> list[Node]:
    return [Node((k - 1,), k) for k in range(layers)]


def _residual(layers: int) -> list[Node]:
    # A block: two layers, and the sum of what entered it and what left them.
    return [Node((k - 3, k - 1)) if k % 3 == 2 else Node((k - 1,), k) for k in range(layers)]


def _dense(layers: int) -> list[Node]:
    return [Node(tuple(range(INPUT, k)), k) for k in range(layers)]


def _u_shaped(layers: int) -> list[Node]:
    nodes = []
    for k in range(layers):
        mirrored = layers - 1 - k
        across = (mirrored,) if mirrored < k - 1 else ()
        nodes.append(Node((*across, k - 1), k, over=2 ** min(k, mirrored, 16)))
    return nodes


def _recurrent(layers: int) -> list[Node]:
    # The even ones are states, the odd ones their outputs.
    return [
        Node((k - 1,), 1) if k % 2 else Node((k - 2, INPUT) if k else (INPUT,), 0)
        for k in range(layers)
    ]


def _tree(layers: int) -> list[Node]:
    # A heap from its leaves to its root: the children of its node i are 2i + 1 and 2i + 2.
    nodes = []
    for k in range(layers):
        i = layers - 1 - k
        children = tuple(layers - 1 - c for c in (2 * i + 2, 2 * i + 1) if c < layers)
        nodes.append(Node(children, 1) if children else Node((INPUT,), 0))
    return nodes


def _unrolled(layers: int) -> list[Node]:
    # An inner step: a loss of the parameters, its gradient, and the parameters after it.
    nodes = []
    for k in range(layers):
        parameters = k - k % 3 - 1
        nodes.append(Node((parameters, k - 1) if k % 3 else (parameters,)))
    return nodes


def _attention(layers: int) -> list[Node]:
    # Query, key, scores, value, context, and its sum with what entered.
    nodes = []
    for k in range(layers):
        start = k - k % 6
        entered = start - 1
        reads = {2: (start, start + 1), 4: (start + 2, start + 3), 5: (entered, start + 4)}
        if k % 6 in reads:
            nodes.append(Node(reads[k % 6], times=2 if k % 6 == 2 else 1))
        else:
            nodes.append(Node((entered,), k))
    return nodes


_NETWORKS: Final[dict[Shape, Callable[[int], list[Node]]]] = {
    "chain": _chain,
    "residual": _residual,
    "dense": _dense,
    "u-shaped": _u_shaped,
    "recurrent": _recurrent,
    "tree": _tree,
    "unrolled": _unrolled,
    "attention": _attention,
}


def _known(what: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise UsageError(
            f"{what} {value!r} is not known{nearest(str(value), tuple(known))} "
            f"(it is one of {', '.join(known)})"
        )
