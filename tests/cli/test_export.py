"""`monofuzz export`."""

from __future__ import annotations

from pathlib import Path

import pytest

from monofuzz.search.mapfile import MAGIC
from tests.cli.support import HOLE, Run

EXAMPLE = (
    Path(__file__).parents[2] / "corpus/counterexamples/dtr/unit-sizes-feasibility-smallest.json"
)


@pytest.mark.parametrize(
    ("kind", "ending", "begin"),
    [
        ("latex", "tex", "% Counterexample"),
        ("tikz", "tex", "% Counterexample"),
        ("svg", "svg", "<svg"),
        ("dot", "dot", "digraph"),
        ("dtrlog", "log", '{"INSTRUCTION"'),
        ("python", "py", '"""A counterexample'),
        ("markdown", "md", "# More memory fails"),
    ],
)
def test_into_a_file_and_to_standard_output(
    run: Run, tmp_path: Path, kind: str, ending: str, begin: str
) -> None:
    target = tmp_path / f"out.{ending}"
    result = run("export", EXAMPLE, "--format", kind, "--out", target)
    assert result.exit_code == 0
    assert result.output == ""
    text = target.read_text(encoding="utf-8")
    assert text.startswith(begin)
    assert run("export", EXAMPLE, "-f", kind).stdout == text


def test_width_changes_the_figure(run: Run) -> None:
    narrow, wide = (run("export", EXAMPLE, "-f", "svg", "--width", w).stdout for w in ("84", "175"))
    assert narrow != wide
    assert run("export", EXAMPLE, "-f", "svg", "--width", "5").exit_code == 2


def test_refusals_are_sentences(run: Run, tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text(EXAMPLE.read_text().replace('"cost": 1', '"cost": 2', 1))
    found = tmp_path / "found.json"
    found.write_bytes(MAGIC + b"1\n")
    for words, expected in (
        (("export", tmp_path / "none.json", "-f", "svg"), "no such file"),
        (("export", HOLE, "-f", "svg"), "no counterexample"),
        (("export", broken, "-f", "svg"), "is malformed"),
        (("export", found, "-f", "svg"), "it is a map"),
        (("export", EXAMPLE, "-f", "svg", "--out", tmp_path / "x.png"), "ends in .svg"),
        (("export", EXAMPLE, "-f", "pdf"), "'pdf' is not one of"),
    ):
        result = run(*words)
        assert result.exit_code == 2
        assert expected in result.output
        assert "Traceback" not in result.output
