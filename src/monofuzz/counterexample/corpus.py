"""The counterexamples that come with monofuzz: the smallest and the worst known for each policy."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from monofuzz.counterexample.storage import load
from monofuzz.errors import ResourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from monofuzz.trace import Trace

__all__ = ["corpus_files", "corpus_graphs"]


def corpus_files() -> list[Path]:
    """The files, as ``POLICY/CLASS-CLAIM-GOAL.json``, in order.

    Raises `ResourceError` when this installation has none.
    """
    installed = resources.files("monofuzz") / "corpus"
    in_checkout = Path(__file__).parents[3] / "corpus" / "counterexamples"
    for folder in (installed, in_checkout):
        if isinstance(folder, Path) and (files := sorted(folder.glob("*/*.json"))):
            return files
    raise ResourceError("this installation of monofuzz has no corpus: install it as a package")


def corpus_graphs() -> Iterator[tuple[str, Trace]]:
    """The graphs of the corpus, each once, with the name of the first file that holds it."""
    seen = set()
    for file in corpus_files():
        trace = load(file).trace
        if trace.digest not in seen:
            seen.add(trace.digest)
            yield f"{file.parent.name}/{file.stem}", trace
