"""Map the traces that come with monofuzz under `dtr`: the tables in reports/library.

Run from a checkout::

    python tools/library_maps.py --maps FOLDER [--time SECONDS] [--variants] [NAME...]

explores each trace for SECONDS more; maps stay in FOLDER and are continued by the next call, and
the table is written anew from all maps that are there. ``--variants`` also maps each trace with
sizes rounded up to 512 bytes, and with costs jittered by up to 1% and 5%. ``--direction down``
completes a map from the peak downwards, which certifies its upper part soon; without it, what
matters is found first.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from monofuzz import map_budgets
from monofuzz.search import Map
from monofuzz.trace import Trace, load
from monofuzz.trace.library import list_traces

if TYPE_CHECKING:
    from monofuzz.search.frontier import Direction

REPORT = Path(__file__).resolve().parents[1] / "reports" / "library"
VARIANTS = ("", "align512", "jitter1", "jitter5")
SEED = 20240607


def jittered(trace: Trace, share: float) -> Trace:
    """The trace with each cost changed by up to that share, the same each time."""
    factors = 1 + share * np.random.default_rng(SEED).uniform(-1, 1, trace.n_ops)
    costs = np.rint(trace.op_cost * factors).astype(np.int64)
    return dataclasses.replace(trace, op_cost=costs)


def explore(name: str, variant: str, file: Path, seconds: float, direction: Direction) -> None:
    """Continue one map."""
    trace = load(name)
    if variant.startswith("jitter"):
        trace = jittered(trace, int(variant.removeprefix("jitter")) / 100)
    align = 512 if variant == "align512" else None
    map_budgets(trace, "dtr", align=align, time=seconds, out=file, jobs=1, direction=direction)


def worse(found: Map) -> float | None:
    """Share of the budgets above the first feasible one at which less memory is known to be better.

    Worse is to fail, or to cost more than at some smaller budget. Unexplored budgets do not count.
    """
    rows = found.table
    ok = rows["status"] == found.STATUSES.index("ok")
    if not ok.any():
        return None
    rows, ok = rows[int(np.argmax(ok)) :], ok[int(np.argmax(ok)) :]
    width = (rows["hi"] - rows["lo"]).astype(float)
    best = np.minimum.accumulate(np.where(ok, rows["cost"], np.iinfo(np.int64).max))
    return float(width[~ok | (rows["cost"] > best)].sum() / width.sum())


def summary(name: str, found: Map) -> dict[str, object]:
    """What the table says of one map."""
    ok = found.table[found.table["status"] == found.STATUSES.index("ok")]
    cliff = max((cliff.factor for cliff in found.cliffs), default=None)
    return {
        "trace": name,
        "peak": found.peak,
        "between": list(found.between),
        "certified": found.certified,
        "covered": found.covered,
        "complete_from": found.gaps[-1][1] if found.gaps else found.between[0],
        "regimes": len(found.table),
        "runs": found.runs,
        "first_feasible": int(ok["lo"][0]) if len(ok) else None,
        "holes": len(found.holes),
        "widest_hole": max((hole.bytes for hole in found.holes), default=0),
        "largest_cliff": cliff,
        "worse": worse(found),
        "feasibility": found.verdicts["feasibility"].verdict,
        "cost": found.verdicts["cost"].verdict,
    }


def table(found: dict[str, dict[str, dict[str, object]]]) -> list[str]:
    """The summaries as Markdown."""
    lines = [
        "| trace | certified from | known | first feasible | holes | widest | largest cliff "
        "| more is worse | holes, 512 bytes | holes, 1% | holes, 5% |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, variants in sorted(found.items()):
        base = variants[""]
        peak, first = int(str(base["peak"])), base["first_feasible"]
        cliff, share = base["largest_cliff"], base["worse"]
        widest = int(str(base["widest_hole"]))
        cells = [
            name,
            f"{int(str(base['complete_from'])) / peak:.4f}",
            f"{base['covered']:.2%}",
            "-" if first is None else f"{int(str(first)) / peak:.4f}",
            holes(base),
            f"{100 * widest / peak:.2g}%" if widest else "-",
            "-" if cliff is None else f"{cliff:.2f}x",
            "-" if share is None else f"{share:.1%}",
            *(holes(variants[v]) if v in variants else "-" for v in VARIANTS[1:]),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def holes(one: dict[str, object]) -> str:
    """A number of holes; at least so many, if the map is not complete."""
    return f"{'' if one['certified'] else '≥ '}{one['holes']}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--maps", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--time", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--direction", choices=["adaptive", "up", "down"], default="adaptive")
    options = parser.parse_args()
    options.maps.mkdir(parents=True, exist_ok=True)
    shipped = [one.name for one in list_traces() if one.kind == "shipped" and one.name != "demo"]
    for name in options.names or shipped:
        for variant in VARIANTS if options.variants else VARIANTS[:1]:
            file = options.maps / f"{name}{'.' if variant else ''}{variant}.map"
            if options.time > 0 and not (file.exists() and Map.load(file).certified):
                explore(name, variant, file, options.time, options.direction)
    found: dict[str, dict[str, dict[str, object]]] = {}
    for name in shipped:
        for variant in VARIANTS:
            file = options.maps / f"{name}{'.' if variant else ''}{variant}.map"
            if file.exists():
                found.setdefault(name, {})[variant] = summary(name, Map.load(file))
    REPORT.mkdir(parents=True, exist_ok=True)
    (REPORT / "maps.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (REPORT / "maps.md").write_text("\n".join(table(found)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
