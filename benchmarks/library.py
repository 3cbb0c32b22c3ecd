"""Traces that come with monofuzz, as DTR logs in the reference simulator: the same runs?

    MONOFUZZ_SIMRD=CHECKOUT python -m benchmarks.library [--ratios R...] [NAME...]

Each trace is written as a log, read back (equal, or the benchmark fails) and replayed at a few
budgets by simrd and by monofuzz; status, costs, peak and every victim must agree.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.simrd import SIMRD_VARIABLE, find_simrd
from monofuzz.replay import TraceSystem
from monofuzz.trace import load, save

FIELDS = (
    "status",
    "model_compute",
    "remat_compute",
    "peak_memory",
    "evictions",
    "victims_sha256",
)
LIMIT = 60


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["resnet32", "unet", "gpt2-small"])
    parser.add_argument("--ratios", nargs="*", type=float, default=[0.3, 0.6, 0.9])
    options = parser.parse_args()
    simrd = find_simrd()
    if simrd is None:
        print(f"{SIMRD_VARIABLE} does not name a checkout of simrd")
        return 2
    if simrd.remark:
        print(f"careful: simrd is {simrd.remark}")
    different = 0
    for name in options.names:
        trace = load(name)
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / f"{name}.log"
            save(trace, log)
            again = load(log)
            if again != trace:
                print(f"{name}: the log is another trace")
                return 1
            system = TraceSystem(again, "dtr", limit=LIMIT)
            budgets = [int(system.peak * ratio) for ratio in options.ratios]
            remat_limit = (LIMIT - 1) * trace.model_compute
            for budget, theirs in zip(
                budgets, simrd.measure(log, budgets, remat_limit), strict=True
            ):
                ours = system.run(budget)
                unequal = [field for field in FIELDS if getattr(ours, field) != theirs[field]]
                different += bool(unequal)
                verdict = f"DIFFERENT: {', '.join(unequal)}" if unequal else "equal"
                print(
                    f"{name:16}{budget / system.peak:6.2f}  {ours.status:9}"
                    f"{ours.evictions:8,} evictions  {verdict}",
                    flush=True,
                )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
