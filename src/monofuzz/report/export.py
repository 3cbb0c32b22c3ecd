"""A counterexample in a format that others read."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from monofuzz.errors import StoredFileError, UsageError, nearest
from monofuzz.report.diagram import DEFAULT_WIDTH

if TYPE_CHECKING:
    import os

    from monofuzz.counterexample import Counterexample
    from monofuzz.report.story import Story

__all__ = ["FORMATS", "MOST_EVENTS", "MOST_OPERATORS", "check_target", "export", "write"]

MOST_OPERATORS: Final = 40
"""More operators than this are no figure, and no report that anybody reads."""
MOST_EVENTS: Final = 200
"""So are runs of more events than this."""


@dataclass(frozen=True)
class _Format:
    meaning: str
    endings: tuple[str, ...]
    told: bool = False


FORMATS: Final = {
    "latex": _Format("a figure with a table of the decisions", (".tex",), True),
    "tikz": _Format("the figure alone", (".tex", ".tikz"), True),
    "svg": _Format("the figure alone", (".svg",), True),
    "dot": _Format("the graph, for Graphviz", (".dot", ".gv")),
    "dtrlog": _Format("the graph, for the reference simulator", (".log",)),
    "python": _Format("a script that reproduces it", (".py",)),
    "markdown": _Format("a bug report", (".md", ".markdown"), True),
}
"""The formats by name: what each is for, and how the names of its files end."""


def export(example: Counterexample, kind: str, *, width: float = DEFAULT_WIDTH) -> bytes:
    """The counterexample in a format of `FORMATS`; figures are about ``width`` millimetres wide.

    The same counterexample gives the same bytes. Raises `UsageError` for an unknown format and for
    what is too large to be shown, `StoredFileError` when the runs are not what is recorded, and
    `TraceError` for a trace that has no form as a log.
    """
    if _known(kind).told:
        return _told(example, kind, width).encode()
    if kind == "dot":
        from monofuzz.report.graphviz import dot_graph

        return dot_graph(example).encode()
    if kind == "python":
        from monofuzz.report.script import python_script

        _check_recorded(example)
        return python_script(example).encode()
    from monofuzz.trace.dtrwrite import format_log

    size, align = example.trace.tensor_size, example.align or 1
    return format_log(dataclasses.replace(example.trace, tensor_size=-(-size // align) * align))


def write(
    example: Counterexample,
    kind: str,
    path: str | os.PathLike[str],
    *,
    width: float = DEFAULT_WIDTH,
) -> None:
    """`export` into a file, completely or not at all."""
    from monofuzz.trace.files import write_atomically

    check_target(kind, path)
    write_atomically(path, export(example, kind, width=width))


def check_target(kind: str, path: str | os.PathLike[str]) -> None:
    """Raise `UsageError` for a file that cannot be one of this format, or has no folder."""
    target, endings = Path(path), _known(kind).endings
    if target.suffix.lower() not in endings:
        wanted = " or ".join(endings)
        raise UsageError(f"{target}: a file of format {kind} has a name that ends in {wanted}")
    if not target.parent.is_dir():
        raise UsageError(f"{target}: cannot be written: its folder does not exist")


def _known(kind: str) -> _Format:
    if kind not in FORMATS:
        hint = nearest(kind, list(FORMATS)) or f": choose one of {', '.join(FORMATS)}"
        raise UsageError(f"there is no format {kind!r}{hint}")
    return FORMATS[kind]


def _told(example: Counterexample, kind: str, width: float) -> str:
    from monofuzz.report.story import tell

    if example.trace.n_ops > MOST_OPERATORS:
        raise UsageError(
            f"{example.trace.n_ops} operators, constants included, are too many for {kind} "
            f"(at most {MOST_OPERATORS}): make the counterexample smaller with 'monofuzz shrink'"
        )
    most = max(run.evictions_all + run.remats for run in (example.below, example.above))
    if most > MOST_EVENTS:
        raise UsageError(
            f"a run with {most} evictions and rematerialisations is too long for {kind} (at most "
            f"{MOST_EVENTS}): make the counterexample smaller with 'monofuzz shrink'"
        )
    return _written(tell(example), kind, width)


def _written(story: Story, kind: str, width: float) -> str:
    if kind == "markdown":
        from monofuzz.report.markdown import markdown_report

        return markdown_report(story)
    if kind == "svg":
        from monofuzz.report.diagram import draw
        from monofuzz.report.svg import svg_document

        return svg_document(draw(story, width=width, heading=True))
    from monofuzz.report.latex import latex_figure, tikz_figure

    return latex_figure(story, width) if kind == "latex" else tikz_figure(story, width)


def _check_recorded(example: Counterexample) -> None:
    small = len(example.trace.command) < 2_000
    differences = example.differences(engine="interpreted" if small else "compiled")
    if differences:
        raise StoredFileError(
            f"the counterexample is not what it says: {differences[0]}; 'monofuzz verify' tells all"
        )
