"""What a page holds: maps and counterexamples as compact blobs of text.

A blob is base64 of a zlib stream of a document: the length of a JSON head (four bytes, little
endian), the head, then columns of numbers. A column is stored as byte planes (the lowest byte of
every number, then the next, as many as the largest needs), which compress several times better than
numbers; floats have all eight. The head lists the columns in order: name, kind and planes.

Base64 has no character that means anything in HTML, so no name in a trace can break out.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from monofuzz.errors import UsageError
from monofuzz.search.verdict import CLAIMS, CLIFF_FACTOR, cliffs, holes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from monofuzz.search.regimes import Map
    from monofuzz.search.verdict import ThrashAs

__all__ = ["EXACT", "map_blob", "pack"]

EXACT = 2**53
"""Up to here browsers count in whole numbers."""

_COUNTERS = (
    "evictions",
    "remats",
    "peak_memory",
    "max_depth",
    "fail_pinned",
    "fail_request",
    "fail_depth",
)


def map_blob(
    found: Map,
    *,
    thrash_as: ThrashAs = "own",
    tolerance: float = 0.0,
    factor: float = CLIFF_FACTOR,
) -> str:
    """A map with everything that a page shows of it.

    Raises `UsageError` when its budgets are too large for a browser to tell one from the next.
    """
    if found.between[1] > EXACT:
        raise UsageError(
            f"the map of {found.origin.trace} reaches beyond {EXACT} bytes, from where on browsers "
            "cannot tell one byte from the next; draw it with 'monofuzz plot' instead"
        )
    rows, origin = found.table, found.origin
    lo, hi = rows["lo"], rows["hi"]
    before = np.concatenate(([found.between[0]], hi))[: len(rows)]
    columns: dict[str, NDArray[Any]] = {
        "skip": lo - before,
        "width": hi - lo,
        "status": rows["status"],
        "certified": rows["certified"],
        "overhead": rows["overhead"],
        **{name: np.clip(rows[name], 0, EXACT) for name in _COUNTERS},
    }
    head = {
        "kind": "map",
        "trace": origin.trace,
        "policy": origin.policy,
        "peak": found.peak,
        "limit": origin.limit,
        "align": origin.align,
        "between": list(found.between),
        "runs": found.runs,
        "certified": found.certified,
        "covered": found.covered,
        "sampled": found.sampled,
        "timeouts": found.timeouts,
        "gaps": [list(gap) for gap in found.gaps],
        "factor": factor,
        "holes": [
            [hole.lo, hole.hi, hole.exact_lo, hole.exact_hi, hole.unknown, hole.open]
            for hole in holes(found, thrash_as=thrash_as)
        ],
        "cliffs": [
            [cliff.at, cliff.below, cliff.above, cliff.gap]
            for cliff in cliffs(found, factor=factor)
        ],
        "verdicts": {
            claim: found.verdict(claim, thrash_as=thrash_as, tolerance=tolerance).to_json()
            for claim in CLAIMS
        },
    }
    return pack(head, columns)


def pack(head: Mapping[str, Any], columns: Mapping[str, NDArray[Any]]) -> str:
    """A blob of a head and columns of equal length, of floats or of integers from 0 to 2**53."""
    listed, planes = [], []
    for name, column in columns.items():
        if column.dtype.kind == "f":
            kind, wide = "float", column.astype("<f8").view("<u8")
            count = 8
        else:
            kind, wide = "int", column.astype("<u8")
            largest = int(wide.max(initial=0))
            count = max((largest.bit_length() + 7) // 8, 1)
        listed.append([name, kind, count])
        planes.append(wide.view(np.uint8).reshape(-1, 8)[:, :count].T.tobytes())
    length = max((len(column) for column in columns.values()), default=0)
    text = json.dumps(
        {**head, "rows": length, "columns": listed}, separators=(",", ":"), allow_nan=False
    ).encode()
    document = b"".join([struct.pack("<I", len(text)), text, *planes])
    return base64.b64encode(zlib.compress(document, 9)).decode()
