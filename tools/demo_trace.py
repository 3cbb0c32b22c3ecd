"""Makes the trace `demo`, which is part of the package: `python tools/demo_trace.py FILE`.

One training step of a small residual network, written down rather than recorded: sizes are those
of its tensors, costs an arithmetic estimate of a graphics card's. It is small enough to be mapped
in seconds, and there are ranges of budgets, wide enough to be seen, in which DTR fails on it though
it needs less memory than that.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from monofuzz.replay.system import TraceSystem
from monofuzz.trace import Trace, TraceBuilder
from monofuzz.trace.library import save

BATCH, IMAGE, CHANNELS = 8, 64, 32
BLOCKS = (3, 2, 5)
FLOAT = 4
FLOPS_PER_NS = 8_000
BYTES_PER_NS = 600
LAUNCH_NS = 5_000


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor of the network: channels and edge length of its images."""

    channels: int
    edge: int

    @property
    def size(self) -> int:
        return BATCH * self.channels * self.edge**2 * FLOAT


@dataclass(frozen=True, eq=False)
class Weight:
    """A weight, or statistics: a number of floats."""

    floats: int

    @property
    def size(self) -> int:
        return self.floats * FLOAT


Value = Tensor | Weight
Backward = Callable[[Tensor], None]


@dataclass
class Step:
    """The operators of a training step, in order: first forward, then, in reverse, backward."""

    operators: list[tuple[str, Sequence[Value], Sequence[Value], int]] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    kept: list[Value] = field(default_factory=list)
    tape: list[tuple[Tensor, Backward]] = field(default_factory=list)
    gradients: dict[Tensor, Tensor] = field(default_factory=dict)

    def do(
        self, name: str, arguments: Sequence[Value], results: Sequence[Value], flops: int = 0
    ) -> None:
        moved = sum(value.size for value in (*arguments, *results))
        cost = LAUNCH_NS + max(flops // FLOPS_PER_NS, moved // BYTES_PER_NS)
        self.operators.append((name, arguments, results, cost))

    def weight(self, floats: int) -> Weight:
        made = Weight(floats)
        self.inputs.append(made)
        return made

    def receive(self, tensor: Tensor, gradient: Tensor) -> None:
        """Add a gradient to what a tensor has got already."""
        before = self.gradients.get(tensor)
        if before is not None:
            total = Tensor(tensor.channels, tensor.edge)
            self.do("add", [before, gradient], [total])
            gradient = total
        self.gradients[tensor] = gradient

    def backward(self) -> None:
        for output, rule in reversed(self.tape):
            rule(self.gradients.pop(output))

    # Layers

    def convolution(self, x: Tensor, channels: int, *, kernel: int = 3, stride: int = 1) -> Tensor:
        weight = self.weight(channels * x.channels * kernel**2)
        y = Tensor(channels, x.edge // stride)
        flops = 2 * BATCH * weight.floats * y.edge**2
        self.do("convolution", [x, weight], [y], flops)

        def rule(gradient: Tensor) -> None:
            to_weight = Weight(weight.floats)
            self.do("convolution_backward_weight", [gradient, x], [to_weight], flops)
            self.kept.append(to_weight)
            if x not in self.inputs:
                to_input = Tensor(x.channels, x.edge)
                self.do("convolution_backward_input", [gradient, weight], [to_input], flops)
                self.receive(x, to_input)

        self.tape.append((y, rule))
        return y

    def batch_norm(self, x: Tensor) -> Tensor:
        scale, statistics = self.weight(2 * x.channels), Weight(2 * x.channels)
        y = Tensor(x.channels, x.edge)
        self.do("batch_norm", [x, scale], [y, statistics])

        def rule(gradient: Tensor) -> None:
            to_input, to_scale = Tensor(x.channels, x.edge), Weight(scale.floats)
            self.do("batch_norm_backward", [gradient, x, scale, statistics], [to_input, to_scale])
            self.kept.append(to_scale)
            self.receive(x, to_input)

        self.tape.append((y, rule))
        return y

    def relu(self, x: Tensor) -> Tensor:
        y = Tensor(x.channels, x.edge)
        self.do("relu", [x], [y])

        def rule(gradient: Tensor) -> None:
            to_input = Tensor(x.channels, x.edge)
            self.do("relu_backward", [gradient, y], [to_input])
            self.receive(x, to_input)

        self.tape.append((y, rule))
        return y

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        y = Tensor(a.channels, a.edge)
        self.do("add", [a, b], [y])

        def rule(gradient: Tensor) -> None:
            self.receive(a, gradient)
            self.receive(b, gradient)

        self.tape.append((y, rule))
        return y

    def loss(self, x: Tensor) -> None:
        target, loss = Tensor(1, x.edge), Weight(1)
        self.inputs.append(target)
        self.do("cross_entropy", [x, target], [loss])
        self.kept.append(loss)
        gradient = Tensor(x.channels, x.edge)
        self.do("cross_entropy_backward", [x, target, loss], [gradient])
        self.receive(x, gradient)


def residual_network() -> Step:
    """The step of a residual network; each stage halves the images and doubles the channels."""
    step = Step()
    x = Tensor(3, IMAGE)
    step.inputs.append(x)
    x = step.relu(step.batch_norm(step.convolution(x, CHANNELS)))
    channels = CHANNELS
    for stage, blocks in enumerate(BLOCKS):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            y = step.relu(step.batch_norm(step.convolution(x, channels, stride=stride)))
            y = step.batch_norm(step.convolution(y, channels))
            if stride > 1:
                x = step.batch_norm(step.convolution(x, channels, kernel=1, stride=stride))
            x = step.relu(step.add(x, y))
        channels *= 2
    step.loss(x)
    step.backward()
    return step


def trace_of(step: Step) -> Trace:
    """The step as a trace; every tensor is dropped after its last use, gradients are kept."""
    build = TraceBuilder(
        name="demo",
        model=f"residual network, {sum(BLOCKS)} blocks, batch {BATCH}, {IMAGE}x{IMAGE}",
        batch=BATCH,
        source="tools/demo_trace.py",
        cost_model="arithmetic estimate",
    )
    ids: dict[Value, int] = {value: build.constant(value.size) for value in step.inputs}
    last_use: dict[Value, int] = {}
    for number, (_, arguments, results, _) in enumerate(step.operators):
        last_use.update(dict.fromkeys((*results, *arguments), number))
    lasting = {*step.inputs, *step.kept}
    for number, (name, arguments, results, cost) in enumerate(step.operators):
        made = build.op(name, [ids[a] for a in arguments], [r.size for r in results], cost)
        ids.update(zip(results, made, strict=True))
        for value in dict.fromkeys((*arguments, *results)):
            if last_use[value] == number and value not in lasting:
                build.release(ids[value])
    return build.finish()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    file = parser.parse_args().file
    trace = trace_of(residual_network())
    peak = TraceSystem(trace, "lru", limit=None, engine="interpreted").peak
    save(trace.with_meta(peak=peak), file)


if __name__ == "__main__":
    main()
