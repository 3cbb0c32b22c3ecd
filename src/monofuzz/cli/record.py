"""`monofuzz record`: a PyTorch training step becomes a trace."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from monofuzz.cli import console, options, units
from monofuzz.errors import UsageError

if TYPE_CHECKING:
    from monofuzz.trace import Trace
    from monofuzz.trace.record.tape import InPlace


@click.command("record")
@click.argument("target", metavar="FILE.py:FUNCTION")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    required=True,
    help="Where the trace goes: FILE.trace, or a DTR log (.log, .log.gz, .log.xz, .log.zst, .zip).",
)
@click.option(
    "--fake", is_flag=True, help="Use fake tensors: nothing is allocated and nothing computed."
)
@click.option(
    "--device",
    metavar="NAME",
    help="Assume the speed of A100, H100, RTX 4090 or CPU.  [default: measure; A100 with --fake]",
)
@click.option(
    "--inplace",
    type=click.Choice(["view", "copy"]),
    default="view",
    show_default=True,
    help="How an update in place of an activation is written.",
)
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="N",
    help="Steps before the one that is recorded, so that the optimiser has its state.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    metavar="N",
    help="Measure N steps; an operator costs its median.",
)
@click.option("--name", metavar="NAME", help="The trace's name.  [default: the function's]")
@click.option("--model", metavar="TEXT", default="", help="What the model is, for people.")
@click.option("--batch", type=click.IntRange(min=1), metavar="N", help="The batch size, likewise.")
@options.as_json
def command(
    target: str,
    out: Path,
    fake: bool,
    device: str | None,
    inplace: InPlace,
    warmup: int,
    repeats: int,
    name: str | None,
    model: str,
    batch: int | None,
    as_json: bool,
) -> None:
    """Record the training step that FUNCTION in FILE.py sets up.

    FUNCTION takes no arguments and returns the step, a function without arguments too, which is run
    and recorded. A FUNCTION that returns anything else is the step itself.
    """
    from monofuzz.trace.library import check_target, save
    from monofuzz.trace.record import load_step, record_step
    from monofuzz.trace.record.devices import device as known_device
    from monofuzz.trace.record.recorder import require_torch

    check_target(out)
    if not out.absolute().parent.is_dir():
        raise UsageError(f"{out}: there is no folder {out.absolute().parent}")
    if device is not None:
        known_device(device)
    require_torch()
    path, _, function = target.rpartition(":")
    # The file may make tensors, too: it is loaded where the step is set up, and once.
    load = functools.cache(load_step)

    def make() -> Any:
        return load(target)()

    trace = record_step(
        make,
        fake=fake,
        device=device,
        inplace=inplace,
        warmup=warmup,
        repeats=repeats,
        name=name or function,
        model=model,
        batch=batch,
        source=f"{Path(path).name}:{function}",
    )
    save(trace, out)
    if as_json:
        console.emit(document(trace, out))
    else:
        _show(trace, out)


def document(trace: Trace, out: Path) -> dict[str, Any]:
    """What was recorded, as JSON."""
    meta = trace.meta
    return {
        "file": str(out),
        "name": meta.name,
        "model": meta.model,
        "batch": meta.batch,
        "operators": trace.n_operators,
        "storages": trace.n_storages,
        "peak": meta.peak,
        "model_compute": trace.model_compute,
        "recorder": meta.recorder,
        "cost_model": meta.cost_model,
        "source": meta.source,
        "digest": trace.digest,
    }


def _show(trace: Trace, out: Path) -> None:
    peak = trace.meta.peak
    console.out().print(
        f"[bold]{escape(str(out))}[/]: {units.plural(trace.n_operators, 'operator')}, "
        f"peak {units.both(peak or 0)}, {units.nanoseconds(trace.model_compute)} "
        f"[dim]({escape(trace.meta.cost_model)})[/]"
    )
