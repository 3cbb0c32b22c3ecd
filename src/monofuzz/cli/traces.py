"""`monofuzz traces`: the trace library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape
from rich.table import Table

from monofuzz.cli import console, options, session, units, views

if TYPE_CHECKING:
    from collections.abc import Callable

    from monofuzz.trace import Trace
    from monofuzz.trace.library import TraceInfo


@click.group("traces", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """List, describe, add and fetch traces.

    A trace is a recorded training step. Some come with monofuzz, some can be fetched, and your own
    are added from DTR logs or .trace files.
    """


@command.command("list")
@options.as_json
def list_(as_json: bool) -> None:
    """List the traces that can be used by name."""
    from monofuzz.trace.library import list_traces

    _present(list_traces(), as_json)


@command.command("info")
@options.trace
@options.engine
@options.as_json
def info(trace: str, engine: str, as_json: bool) -> None:
    """Describe TRACE: what it is, how large, and where it came from."""
    loaded = session.load(trace)
    peak = _measure(engine)(loaded)
    found = describe(loaded, peak)
    if as_json:
        console.emit(found)
        return
    rows = {
        "name": escape(found["name"]),
        "model": escape(found["model"] or "-"),
        "operators": units.exact(found["operators"]),
        "constants": units.exact(found["constants"]),
        "tensors": f"{units.exact(found['tensors'])}, {units.exact(found['views'])} of them views",
        "storages": f"{units.exact(found['storages'])}, {units.both(found['bytes'])} in all",
        "peak": f"{units.both(peak)} without a budget",
        "model compute": units.nanoseconds(found["model_compute"]),
        "costs": escape(found["cost_model"] or "-"),
        "recorder": escape(found["recorder"] or "-"),
        "source": escape(found["source"] or "-"),
        "digest": found["digest"],
    }
    grid = Table.grid(padding=(0, 2, 0, 0))
    for name, value in rows.items():
        grid.add_row(name, value)
    console.out().print(grid)


@command.command("add")
@click.argument("path", metavar="FILE", type=click.Path())
@click.option("--name", metavar="NAME", help="What to call it.  [default: the file's name]")
@click.option("--replace", is_flag=True, help="Let a name mean this trace from now on.")
@options.engine
@options.as_json
def add(path: str, name: str | None, replace: bool, engine: str, as_json: bool) -> None:
    """Take FILE into the library: a DTR log, a .trace file, or a zip of them."""
    from monofuzz.trace import library

    added = library.add(path, name=name, replace=replace, measure=_measure(engine))
    _present(added, as_json)


@command.command("fetch")
@click.argument("collection", metavar="[COLLECTION]", default="dtr")
@click.option("--mirror", metavar="URL", help="Stands in for https://github.com.")
@options.engine
@options.as_json
def fetch(collection: str, mirror: str | None, engine: str, as_json: bool) -> None:
    """Download public traces; the only collection is dtr, the eight of the DTR paper.

    An interrupted download goes on where it stopped.
    """
    from monofuzz.trace import library

    with console.progress("downloading") as bar:

        def show(done: int, total: int | None) -> None:
            bar(done, total or done)

        fetched = library.fetch(collection, mirror=mirror, progress=show, measure=_measure(engine))
    _present(fetched, as_json)


def describe(trace: Trace, peak: int) -> dict[str, Any]:
    """A trace as JSON."""
    aliases = sum(root != tensor for tensor, root in enumerate(trace.tensor_root.tolist()))
    return {
        "name": trace.meta.name or trace.digest[:12],
        "model": trace.meta.model,
        "batch": trace.meta.batch,
        "operators": trace.n_operators,
        "constants": trace.n_ops - trace.n_operators,
        "tensors": trace.n_tensors,
        "views": aliases,
        "storages": trace.n_storages,
        "bytes": int(trace.tensor_size.sum()),
        "peak": peak,
        "model_compute": trace.model_compute,
        "cost_model": trace.meta.cost_model,
        "recorder": trace.meta.recorder,
        "source": trace.meta.source,
        "digest": trace.digest,
    }


def entry(found: TraceInfo) -> dict[str, Any]:
    """A line of the list as JSON."""
    return {
        "name": found.name,
        "model": found.model,
        "batch": found.batch,
        "operators": found.operators,
        "storages": found.storages,
        "peak": found.peak,
        "model_compute": found.model_compute,
        "cost_model": found.cost_model,
        "source": found.source,
        "kind": found.kind,
        "path": found.path,
        "digest": found.digest,
        "problem": found.problem or None,
    }


def _measure(engine: str) -> Callable[[Trace], int]:
    """What measures the unconstrained peak of a trace."""
    session.prepare(engine)
    from monofuzz.replay.system import TraceSystem

    return lambda trace: TraceSystem(trace, "lru", limit=None, engine=engine).peak


def _present(found: list[TraceInfo], as_json: bool) -> None:
    if as_json:
        console.emit({"traces": [entry(one) for one in found]})
        return
    rows = views.table(
        "<name", "<model", "batch", "operators", "peak", "compute", "<costs", "<from"
    )
    for one in found:
        if one.problem:
            rows.add_row(escape(one.name), f"[red]{escape(one.problem)}[/]")
            continue
        rows.add_row(
            escape(one.name),
            escape(one.model),
            "-" if one.batch is None else units.exact(one.batch),
            units.exact(one.operators),
            "-" if one.peak is None else units.size(one.peak),
            units.nanoseconds(one.model_compute),
            escape(one.cost_model.partition(":")[0] or "-"),
            one.kind,
        )
    out = console.out()
    if found:
        out.print(rows)
    if not any(one.kind == "fetched" for one in found):
        console.remark("the eight public DTR traces are had with: monofuzz traces fetch dtr")
