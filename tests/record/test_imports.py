"""PyTorch is imported when a recording starts, and is not needed for anything else."""

from __future__ import annotations

import subprocess
import sys

import pytest

import monofuzz
from monofuzz.errors import RecordError


def test_torch_is_not_imported_before_a_recording() -> None:
    code = (
        "import sys, monofuzz, monofuzz.cli.main\n"
        "monofuzz.record, monofuzz.trace.record\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_torch_the_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(RecordError, match=r"pip install 'monofuzz\[torch\]'"):
        monofuzz.record()
