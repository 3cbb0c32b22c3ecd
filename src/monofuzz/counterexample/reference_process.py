"""One process of the reference simulator: a log, replayed at some budgets.

Reads one JSON request from standard input (``simrd``: the folder that holds the package, ``log``,
``heuristic``, ``budgets``, ``remat_limit``) and writes one JSON list. The simulator runs as it is;
the chosen heuristic's class is subclassed to note each victim's id.
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any


def main() -> None:
    """Answer the request on standard input."""
    request = json.load(sys.stdin)
    answers, sys.stdout = sys.stdout, sys.stderr
    sys.path.insert(0, request["simrd"])
    sys.setrecursionlimit(100_000)
    try:
        from simrd.heuristic import ablation, dtr, etc  # type: ignore[import-not-found]
        from simrd.parse import parse_file  # type: ignore[import-not-found]
    except ImportError as error:
        print(error, file=sys.stderr)  # noqa: T201
        raise SystemExit(1) from None
    with open(request["log"], encoding="utf-8") as log:
        has_start = any('"START"' in line for line in log)
        log.seek(0)
        schedule = parse_file(log, start=has_start).get_closure()
    kind = next(
        getattr(module, request["heuristic"])
        for module in (dtr, etc, ablation)
        if hasattr(module, request["heuristic"])
    )
    limit = request["remat_limit"]
    json.dump([replay(schedule, kind, budget, limit) for budget in request["budgets"]], answers)


def replay(schedule: Any, kind: Any, budget: int, limit: int | None) -> dict[str, Any]:
    """One run: its outcome, clock and victims."""
    from simrd.runtime import (  # type: ignore[import-not-found]
        RematExceededError,
        RuntimeV2EagerOptimized,
    )

    victims: list[int] = []

    class Noting(kind):  # type: ignore[misc]
        def choose(self, pool: Any, runtime: Any, **options: Any) -> Any:
            chosen = super().choose(pool, runtime, **options)
            victims.append(chosen[0].root_id)
            return chosen

    options = {} if limit is None else {"remat_limit": limit}
    runtime = RuntimeV2EagerOptimized(budget, Noting(), stats=False, trace=False, **options)
    status = "ok"
    try:
        schedule(runtime)
    except MemoryError:
        status = "oom"
    except RematExceededError:
        status = "thrashed"
    summary = runtime.telemetry.summary
    text = "".join(f"{victim}," for victim in victims)
    return {
        "status": status,
        "model_compute": summary["model_compute"],
        "remat_compute": summary["remat_compute"],
        "evictions": len(victims),
        "victims_sha256": hashlib.sha256(text.encode()).hexdigest()[:16],
        "peak_memory": summary["max_memory"],
    }


if __name__ == "__main__":
    main()
