"""The page on recording says what is true: its program runs, its table is the code's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from monofuzz.trace.record.devices import DEVICES

PAGE = (Path(__file__).parents[2] / "docs" / "recording.md").read_text(encoding="utf-8")


def test_the_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="recording needs torch")
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {"__name__": "__main__"}
    for block in re.findall(r"^```py\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/recording.md", "exec"), scope)
    assert (tmp_path / "mine.trace").exists()
    assert "roofline A100" in capsys.readouterr().out


def test_the_table_of_devices() -> None:
    for device in DEVICES.values():
        [row] = re.findall(rf"^\| {device.name}\b.*\|$", PAGE, re.MULTILINE)
        cells = [cell.strip() for cell in row.strip("|").split("|")][1:]
        rates = [f"{device.rates[bits] / 1e12:g}e12/s" for bits in (16, 32, 64)]
        assert cells == [f"{device.bandwidth // 10**9:,} GB/s", *rates, f"{device.launch:,} ns"]
