"""The reference simulator, run as it is from a checkout that the user names.

``MONOFUZZ_SIMRD`` is the path of a checkout of ``uwsampl/dtr-prototype``, or of its ``simrd``
folder. Nothing of it is part of this project; it needs the package ``attrs``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SIMRD_VARIABLE = "MONOFUZZ_SIMRD"
COMMIT = "eff53cc4804cc7d6246a6e5086861ce2b846f62b"


class SimrdError(Exception):
    """The reference simulator is missing, or failed."""


@dataclass(frozen=True)
class Simrd:
    """A checkout: ``folder`` holds the package; ``remark`` says what is unusual about it."""

    folder: Path
    remark: str

    def measure(
        self, log: Path, budgets: Sequence[int], remat_limit: int
    ) -> Iterator[dict[str, Any]]:
        """Replay a log at each budget, all in one new process; yields results as they come."""
        request = {
            "simrd": str(self.folder),
            "log": str(log),
            "budgets": list(budgets),
            "remat_limit": remat_limit,
        }
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("simrd_process.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            json.dump(request, process.stdin)
            process.stdin.close()
            for line in process.stdout:
                yield json.loads(line)
            if process.wait() != 0:
                raise SimrdError(f"simrd failed on {log.name} (exit status {process.returncode})")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def find_simrd() -> Simrd | None:
    """The checkout that the environment names; None when it names none."""
    named = os.environ.get(SIMRD_VARIABLE)
    if not named:
        return None
    for folder in (Path(named), Path(named) / "simrd"):
        if (folder / "simrd" / "runtime" / "v2.py").is_file():
            return Simrd(folder.resolve(), _remark(folder))
    raise SimrdError(f"{SIMRD_VARIABLE}={named}: there is no simrd package in this folder")


def _remark(folder: Path) -> str:
    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False
        )

    head = git("rev-parse", "HEAD")
    if head.returncode != 0:
        return "not a git checkout, so nobody knows which commit it is"
    if head.stdout.strip() != COMMIT:
        return f"at commit {head.stdout.strip()[:12]} instead of {COMMIT[:12]}"
    if git("diff", "--quiet", "HEAD", "--", "simrd").returncode != 0:
        return "changed since its commit"
    return ""
