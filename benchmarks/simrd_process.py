"""One process of the reference simulator: a log is parsed once and replayed at several budgets.

Reads one JSON request from standard input (``simrd``: the folder that holds the package,
``log``, ``budgets``, ``remat_limit``) and writes one JSON line a budget. Only the replay is timed:
no import, no parsing, no building of the schedule. The simulator runs as it is; its DTR heuristic
is subclassed to note each victim's id, one append beside a scan of the whole pool.
"""

from __future__ import annotations

import gc
import hashlib
import json
import sys
import time
from typing import Any

START = '"START"'


def main() -> None:
    """Answer the request on standard input."""
    request = json.load(sys.stdin)
    answers, sys.stdout = sys.stdout, sys.stderr
    sys.path.insert(0, request["simrd"])
    sys.setrecursionlimit(1_000_000)
    from simrd.parse import parse_file

    with open(request["log"], encoding="utf-8") as log:
        has_start = any(START in line for line in log)
        log.seek(0)
        schedule = parse_file(log, start=has_start).get_closure()
    for budget in request["budgets"]:
        answer = measure(schedule, budget, request["remat_limit"])
        print(json.dumps(answer), file=answers, flush=True)


def measure(schedule: Any, budget: int, remat_limit: int) -> dict[str, Any]:
    """Replay once; ``seconds`` are process CPU time."""
    from simrd.heuristic import DTR
    from simrd.runtime import RematExceededError, RuntimeV2EagerOptimized

    class NotingDTR(DTR):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.victims: list[int] = []

        def choose(self, pool: Any, runtime: Any, **options: Any) -> Any:
            chosen = super().choose(pool, runtime, **options)
            self.victims.append(chosen[0].root_id)
            return chosen

    heuristic = NotingDTR()
    runtime = RuntimeV2EagerOptimized(
        budget, heuristic, stats=False, trace=False, remat_limit=remat_limit
    )
    status = "ok"
    gc.collect()
    begin = time.process_time()
    try:
        schedule(runtime)
    except MemoryError:
        status = "oom"
    except RematExceededError:
        status = "thrashed"
    seconds = time.process_time() - begin
    summary = runtime.telemetry.summary
    text = "".join(f"{victim}," for victim in heuristic.victims)
    return {
        "budget": budget,
        "seconds": seconds,
        "status": status,
        "model_compute": summary["model_compute"],
        "remat_compute": summary["remat_compute"],
        "peak_memory": summary["max_memory"],
        "evictions": len(heuristic.victims),
        "victims_sha256": hashlib.sha256(text.encode()).hexdigest()[:16],
    }


if __name__ == "__main__":
    main()
