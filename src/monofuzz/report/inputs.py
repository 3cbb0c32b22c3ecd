"""Files that a report is made of: what each is, its first bytes decide."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from monofuzz.counterexample import Counterexample
from monofuzz.counterexample import load as load_counterexample
from monofuzz.errors import StoredFileError
from monofuzz.search.mapfile import MAGIC
from monofuzz.search.regimes import Map

if TYPE_CHECKING:
    import os

__all__ = ["Item", "load_item"]

Item = Map | Counterexample


def load_item(path: str | os.PathLike[str]) -> Item:
    """The map or the counterexample in a file. Raises `StoredFileError` for anything else."""
    file = Path(path)
    try:
        with file.open("rb") as stream:
            begin = stream.read(len(MAGIC))
    except OSError as error:
        raise StoredFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    if begin == MAGIC:
        return Map.load(file)
    if begin.lstrip().startswith(b"{"):
        return load_counterexample(file)
    raise StoredFileError(
        f"{path}: this is neither a map (monofuzz map --out FILE) nor a counterexample "
        "(monofuzz hunt, monofuzz shrink)"
    )
