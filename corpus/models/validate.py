"""Recorded peaks beside those that PyTorch's own memory tracker finds for the same steps.

Run from a checkout::

    python corpus/models/validate.py [--out FILE]

records ResNet-32 and GPT-2 small with short texts, on real and on fake tensors, and the same steps
once more under `torch.distributed._tools.mem_tracker.MemTracker`, which knows nothing of
operators: it adds up the storages of parameters, gradients, optimiser states, inputs and all else.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker

from monofuzz.replay import peak_memory, replay
from monofuzz.trace.record import load_step, record_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from monofuzz.trace import Trace

HERE = Path(__file__).resolve().parent
STEPS = {
    "ResNet-32, batch 128": ("images.py:resnet32", {}),
    "GPT-2 small, batch 2, 128 tokens": ("language.py:gpt2_small", {"batch": 2, "length": 128}),
}


def maker(target: str, arguments: dict[str, int]) -> Callable[[], Any]:
    """The function that sets the step up, always from the same random state."""
    load = functools.cache(load_step)

    def make() -> Any:
        torch.manual_seed(0)
        return functools.partial(load(str(HERE / target)), **arguments)()

    return make


def externals(step: Any) -> Iterator[Any]:
    """The modules, optimisers and tensors that a step holds on to."""
    for cell in step.__closure__ or ():
        value = cell.cell_contents
        if isinstance(value, nn.Module | torch.optim.Optimizer | torch.Tensor):
            yield value
        elif callable(value) and getattr(value, "__closure__", None):
            yield from externals(value)


def tracked(make: Callable[[], Any], *, fake: bool) -> int:
    """The peak that the memory tracker finds."""
    tracker = MemTracker()
    with FakeTensorMode() if fake else contextlib.nullcontext():
        step = make()
        step()
        tracker.track_external(*externals(step))
        with tracker:
            step()
    snapshot = tracker.get_tracker_snapshot("peak")
    return int(snapshot[torch.device("cpu")]["Total"])


def shapes(trace: Trace) -> tuple[Any, ...]:
    """The operators, and the bytes of what they make, without times."""
    return trace.op_label, trace.tensor_size.tolist(), trace.tensor_root.tolist()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the table there, too")
    options = parser.parse_args()
    lines = [
        "| step | tensors | operators | recorded peak | tracked peak | difference "
        "| rematerialised | real = fake |",
        "|---|---|---|---|---|---|---|---|",
    ]
    good = True
    for title, (target, arguments) in STEPS.items():
        make = maker(target, arguments)
        traces = {}
        for kind in ("real", "fake"):
            fake = kind == "fake"
            trace = traces[kind] = record_step(make, fake=fake, device="A100")
            peak, other = peak_memory(trace), tracked(make, fake=fake)
            again = replay(trace, "dtr", peak).remats
            same = shapes(trace) == shapes(traces["real"])
            good = good and abs(peak / other - 1) <= 0.02 and again == 0 and same
            lines.append(
                f"| {title} | {kind} | {trace.n_operators:,} | {peak:,} | {other:,} "
                f"| {peak / other - 1:+.3%} | {again} | {'yes' if same else 'NO'} |"
            )
            print(lines[-1], flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
