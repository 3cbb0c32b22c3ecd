"""One HTML page, complete in itself, of any number of maps and counterexamples.

The page loads nothing and sends nothing; its content security policy admits its own script and
style by their hashes and nothing else. Why it is built as it is: docs/notes/report.md.
"""

from __future__ import annotations

import base64
import hashlib
import html
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from monofuzz.errors import UsageError
from monofuzz.report.palette import DARK, LIGHT
from monofuzz.report.payload import map_blob
from monofuzz.report.stepping import example_blob
from monofuzz.search.regimes import Map
from monofuzz.search.verdict import CLIFF_FACTOR
from monofuzz.trace.files import write_atomically

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from monofuzz.report.inputs import Item
    from monofuzz.search.verdict import ThrashAs

__all__ = ["SCRIPTS", "render", "write_page"]

SCRIPTS = (
    "format.js",
    "data.js",
    "axis.js",
    "viewport.js",
    "columns.js",
    "plot.js",
    "gestures.js",
    "table.js",
    "mapview.js",
    "compare.js",
    "stepper.js",
    "main.js",
)
"""The page's script, in order: each uses only what stands before it."""

_THEME = """
:root {{ color-scheme: light; {light} }}
@media (prefers-color-scheme: dark) {{
  :root:not([data-theme=light]) {{ color-scheme: dark; {dark} }}
}}
:root[data-theme=dark] {{ color-scheme: dark; {dark} }}
"""


def write_page(
    items: Sequence[Item],
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    thrash_as: ThrashAs = "own",
    tolerance: float = 0.0,
    factor: float = CLIFF_FACTOR,
) -> None:
    """Write the page of the items, in their order; equal items give equal bytes.

    The options are those of verdicts and cliffs. Raises `UsageError` when there are no items.
    """
    text = render(items, title=title, thrash_as=thrash_as, tolerance=tolerance, factor=factor)
    # A name may hold half a surrogate pair, which has no place in a file.
    write_atomically(Path(path), text.encode("utf-8", "replace"))


def render(
    items: Sequence[Item],
    *,
    title: str | None = None,
    thrash_as: ThrashAs = "own",
    tolerance: float = 0.0,
    factor: float = CLIFF_FACTOR,
) -> str:
    """The page as text; see `write_page`."""
    if not items:
        raise UsageError("a page needs at least one map or counterexample")
    blobs = [
        map_blob(item, thrash_as=thrash_as, tolerance=tolerance, factor=factor)
        if isinstance(item, Map)
        else example_blob(item)
        for item in items
    ]
    style = _THEME.format(light=_variables(LIGHT), dark=_variables(DARK)) + _asset("report.css")
    bodies = "\n".join(f"// {name}\n{_asset(name)}" for name in SCRIPTS)
    script = f'"use strict";\n(() => {{\n{bodies}\n}})();\n'
    return Template(_asset("page.html")).substitute(
        title=html.escape(title or _title(items)),
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        data="\n".join(f'<script type="text/plain" class="blob">{blob}</script>' for blob in blobs),
    )


def _title(items: Sequence[Item]) -> str:
    if len(items) > 1:
        maps = sum(isinstance(item, Map) for item in items)
        counts = ((maps, "map"), (len(items) - maps, "counterexample"))
        return ", ".join(f"{count} {noun}{'s' * (count != 1)}" for count, noun in counts if count)
    (item,) = items
    if not isinstance(item, Map):
        return f"{item.policy} breaks {item.claim}"
    origin = item.origin
    return f"{origin.trace} under {origin.policy}" if origin.policy else origin.trace


def _variables(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


def _asset(name: str) -> str:
    return (resources.files("monofuzz.report") / "assets" / name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
