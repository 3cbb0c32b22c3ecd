"""Where a test looks: a trace, the corpus, or generated graphs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from monofuzz.errors import TraceError, UsageError
from monofuzz.trace import Trace, load
from monofuzz.trace.library import info, list_traces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from monofuzz.generate.fast import GraphClass

__all__ = ["CORPUS", "GENERATED", "Place", "default_places", "generated_graphs", "place"]

CORPUS = "corpus"
GENERATED = "generated"
_CLASSES: tuple[GraphClass, ...] = ("free", "training", "unit-sizes")
_OPERATORS = range(3, 12)


@dataclass(frozen=True)
class Place:
    """Its ``kind``, and for a trace where it is: a name, a path, or the trace itself."""

    kind: Literal["trace", "corpus", "generated", "none"]
    name: str
    source: Any = None

    def trace(self) -> Trace:
        """The trace; loaded when it is asked for."""
        return self.source if isinstance(self.source, Trace) else load(self.source)


def place(source: Any) -> Place:
    """The place that is meant: ``"corpus"``, ``"generated"``, or a trace by name, path or object.

    Raises `TraceError` for a name or path behind which there is nothing, `UsageError` for what is
    neither.
    """
    if isinstance(source, Trace):
        return Place("trace", source.meta.name or source.digest[:12], source)
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    if not isinstance(source, str):
        raise UsageError(
            f"a trace is a name, a path or a monofuzz.Trace, or {CORPUS!r} or {GENERATED!r}, "
            f"not {source!r:.80}"
        )
    if source in (CORPUS, GENERATED):
        return Place(source, source)  # type: ignore[arg-type]
    if os.path.exists(source.partition(":")[0]) and ("." in source or os.sep in source):
        return Place("trace", Path(source).stem, source)
    if os.sep in source or source.endswith((".log", ".trace")):
        raise TraceError("there is no such file", file=source)
    info(source)
    return Place("trace", source, source)


def default_places() -> list[Place]:
    """The traces that come with monofuzz, the corpus, and generated graphs."""
    shipped = [one.name for one in list_traces() if one.kind == "shipped"]
    return [*(Place("trace", name, name) for name in shipped), place(CORPUS), place(GENERATED)]


def generated_graphs(seed: int) -> Iterator[tuple[str, Trace]]:
    """Graphs without end, of several classes and sizes in turns, each with its name."""
    from monofuzz.generate.fast import graph

    for k in count(seed * 2**32):
        operators = _OPERATORS[k % len(_OPERATORS)]
        trace = graph(_CLASSES[k // len(_OPERATORS) % len(_CLASSES)], operators, k)
        yield trace.meta.name, trace
