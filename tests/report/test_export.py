"""Counterexamples in the formats of others: complete, harmless, legible, refused with reason."""

from __future__ import annotations

import dataclasses
import functools
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings

from monofuzz import strategies as mst
from monofuzz.cli.export import _FORMATS
from monofuzz.counterexample import Counterexample, load
from monofuzz.errors import MonofuzzError, StoredFileError, UsageError
from monofuzz.replay import TraceSystem
from monofuzz.report.diagram import draw
from monofuzz.report.export import FORMATS, MOST_OPERATORS, check_target, export, write
from monofuzz.report.scene import POINT, Polygon, Rect, Scene, Text, text_width
from monofuzz.report.script import python_script
from monofuzz.report.story import Story, tell
from monofuzz.report.tikz import tex
from monofuzz.trace import Trace, TraceBuilder
from monofuzz.trace.dtrlog import parse

CORPUS = Path(__file__).parents[2] / "corpus" / "counterexamples"
SAMPLE = sorted(CORPUS.glob("*/*.json"))[::24]
HOSTILE = [
    "\\input{/etc/passwd}%",
    "a_b^c & #1 $x$ ~ {}",
    '<script>alert("x")</script>',
    "| ``` | `x`",
    "ünïcode \N{GREEK SMALL LETTER OMEGA} \N{SNAKE}",
    'new\nline \\" }|{<b>',
    "]]> -- !` ?` ,, ''",
    "'''\"\"\" + __import__('os')",
]
relaxed = functools.partial(settings, deadline=None, suppress_health_check=list(HealthCheck))


@functools.cache
def smallest() -> Counterexample:
    return load(CORPUS / "dtr" / "unit-sizes-feasibility-smallest.json")


@functools.cache
def hostile() -> Counterexample:
    """A counterexample with a constant, a view and labels that mean something to others."""
    build = TraceBuilder("hostile \\name{} </title> ```")
    labels = iter(HOSTILE)
    x = build.constant(2, name=next(labels))
    a = build.op(next(labels), [x], 1, 4)
    build.op(next(labels), a, 0, 1, views={0: 0})
    build.release(a[0])
    b = build.op(next(labels), [x], [1, 1], 4)
    c = build.op(next(labels), [], 1, 1)
    d = build.op(next(labels), a, 1, 1)
    build.release(d[0])
    e = build.op(next(labels), [b[1], *d], 1, 1)
    build.release(b[1])
    return recorded(build.finish(keep=[b[0], *c, *e]))


def recorded(trace: Trace, low: int = 5, high: int = 8) -> Counterexample:
    """Whatever happens at two budgets, written down as if it broke a claim."""
    system = TraceSystem(trace, "dtr", engine="interpreted")
    return Counterexample(trace, "dtr", "cost", system.run(low), system.run(high), 2.0)


def story_of(example: Counterexample) -> Story:
    """The story of two runs, whether or not they break anything."""
    from monofuzz.explain.timeline import timeline

    runs = [timeline(example.trace, example.policy, budget) for budget in example.witness]
    return Story(example, *runs)


def boxes(scene: Scene) -> list[tuple[float, float, float, float, str]]:
    """Where each text is, a little smaller than it may be."""
    found = []
    for shape in scene.shapes:
        if isinstance(shape, Text) and shape.text + shape.bold:
            wide = text_width(shape.bold + shape.text, shape.size) * 0.9
            left = shape.x - {"start": 0.0, "middle": wide / 2, "end": wide}[shape.anchor]
            high = 0.66 * shape.size * POINT
            found.append((left, shape.y - high, left + wide, shape.y, shape.bold + shape.text))
    return found


def check_legible(scene: Scene) -> None:
    """No text lies on another, and nothing outside the sheet."""
    texts = boxes(scene)
    for index, (left, top, right, bottom, text) in enumerate(texts):
        assert left >= -0.2, text
        assert right <= scene.width + 0.2, text
        assert 0 <= top < bottom <= scene.height, text
        for other in texts[index + 1 :]:
            apart = other[0] >= right or other[2] <= left or other[1] >= bottom or other[3] <= top
            assert apart, f"{text!r} lies on {other[4]!r}"
    for shape in scene.shapes:
        if isinstance(shape, Rect):
            assert -0.01 <= shape.x <= shape.x + shape.width <= scene.width + 0.01


def test_the_command_offers_all_formats() -> None:
    assert tuple(FORMATS) == _FORMATS


@pytest.mark.parametrize("kind", FORMATS)
def test_the_same_counterexample_gives_the_same_bytes(kind: str) -> None:
    assert export(smallest(), kind) == export(smallest(), kind)


@pytest.mark.parametrize("path", SAMPLE, ids=lambda path: f"{path.parent.name}-{path.stem}")
@pytest.mark.parametrize("width", [84.0, 120.0, 175.0])
def test_figures_of_the_corpus_are_legible(path: Path, width: float) -> None:
    story = tell(load(path))
    for heading in (False, True):
        scene = draw(story, width=width, heading=heading)
        check_legible(scene)
    marks = [s for s in scene.shapes if isinstance(s, Polygon) and len(s.points) == 5]
    legend = 1
    assert len(marks) - legend == len(story.low.outcome.victims or ()) + len(
        story.high.outcome.victims or ()
    )


@relaxed(max_examples=15)
@given(trace=mst.traces(max_ops=14, min_ops=3))
def test_figures_of_any_runs_are_legible(trace: Trace) -> None:
    peak = max(TraceSystem(trace, "dtr", engine="interpreted").peak, 1)
    story = story_of(recorded(trace, peak // 2, peak))
    for width in (84.0, 175.0):
        check_legible(draw(story, width=width))


def test_large_numbers_are_short_and_exact_where_they_matter() -> None:
    small = smallest()
    trace = dataclasses.replace(
        small.trace,
        tensor_size=small.trace.tensor_size * 1_367_040_123,
        op_cost=small.trace.op_cost * 23_456_789,
    )
    system = TraceSystem(trace, "dtr", engine="interpreted")
    example = dataclasses.replace(
        small,
        trace=trace,
        below=system.run(small.below.budget * 1_367_040_123),
        above=system.run(small.above.budget * 1_367_040_123),
    )
    scene = draw(tell(example), width=84.0)
    check_legible(scene)
    texts = [shape.bold + shape.text for shape in scene.shapes if isinstance(shape, Text)]
    assert "1.27" in texts  # GiB
    assert any(text.startswith(f"{example.above.budget:,} bytes:") for text in texts)
    assert not any(re.search(r"\de[+-]?\d", text) for text in texts)


@pytest.mark.parametrize("make", [smallest, hostile], ids=["smallest", "hostile"])
def test_svg_is_well_formed_and_holds_no_program(make: functools._lru_cache_wrapper) -> None:  # type: ignore[type-arg]
    from monofuzz.report.svg import svg_document

    text = svg_document(draw(story_of(make()), heading=True))
    root = ElementTree.fromstring(text)
    known = {"svg", "title", "desc", "rect", "polygon", "polyline", "path", "text", "tspan"}
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= known


def compiled(source: str, folder: Path, name: str = "figure") -> str:
    """Set a document with a plain TeX; what it complained about."""
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    (folder / f"{name}.tex").write_text(source, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", name],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    log = (folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")
    return "\n".join(
        line
        for line in log.splitlines()
        if line.startswith(("Overfull", "LaTeX Warning", "LaTeX Font Warning", "Missing character"))
        and "Rerun" not in line
    )


@pytest.mark.parametrize("make", [smallest, hostile], ids=["smallest", "hostile"])
@pytest.mark.parametrize("kind", ["latex", "tikz"])
def test_latex_compiles_alone_and_inside_a_paper(
    make: functools._lru_cache_wrapper,  # type: ignore[type-arg]
    kind: str,
    tmp_path: Path,
) -> None:
    from monofuzz.report.latex import latex_figure, tikz_figure

    source = (latex_figure if kind == "latex" else tikz_figure)(story_of(make()), 84.0)
    assert compiled(source, tmp_path) == ""
    inside = "\\input{figure}"
    if kind == "tikz":
        inside = f"\\begin{{figure}}{inside}\\end{{figure}}"
    paper = (
        "\\documentclass[twocolumn]{article}\\usepackage{booktabs}\\usepackage{tikz}"
        f"\\begin{{document}}Before. {inside} After.\\end{{document}}"
    )
    assert compiled(paper, tmp_path, "paper") == ""


@pytest.mark.parametrize("label", HOSTILE)
def test_tex_takes_any_label_as_text(label: str) -> None:
    assert re.search(r"\\(input|def|write|catcode)", tex(label)) is None
    assert tex(label).isascii()
    assert "\n" not in tex(label)
    assert not re.search(r"(?<!\\)[%#&_]", tex(label))


@pytest.mark.parametrize("path", SAMPLE[::4], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_script_reproduces_it(path: Path, tmp_path: Path) -> None:
    example = load(path)
    script = tmp_path / "again.py"
    write(example, "python", script)
    again = [sys.executable, str(script)]
    done = subprocess.run(again, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert f"{example.above.budget:,} bytes: {example.above.status}" in done.stdout
    wrong = dataclasses.replace(
        example, above=dataclasses.replace(example.above, evictions=example.above.evictions + 1)
    )
    script.write_text(python_script(wrong), encoding="utf-8")
    done = subprocess.run(again, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert f"AssertionError: evictions at {example.above.budget} bytes" in done.stderr


@relaxed(max_examples=60)
@given(trace=mst.traces(max_ops=12) | mst.training_traces())
def test_the_script_builds_any_trace(trace: Trace) -> None:
    assert built(recorded(trace)) == trace


def built(example: Counterexample) -> Trace:
    scope: dict[str, object] = {}
    source, _, _ = python_script(example).partition("\ntrace = build()")
    exec(compile(source, "script", "exec"), scope)
    trace = scope["build"]()  # type: ignore[operator]
    assert trace.op_label == example.trace.op_label
    return trace  # type: ignore[no-any-return]


def test_the_script_says_pins_and_labels_as_they_are() -> None:
    assert built(hostile()) == hostile().trace
    build = TraceBuilder()
    build.constant(3)
    build.op("a", [0], 2, 1)
    build.pin(1)
    build.get(1)
    build.op("b", [1], 2, 1)
    trace = build.finish(keep=[2, 1])
    assert built(recorded(trace)) == trace


def test_the_log_reads_back() -> None:
    assert parse(export(smallest(), "dtrlog")) == smallest().trace
    aligned = parse(export(dataclasses.replace(smallest(), align=8), "dtrlog"))
    assert set(aligned.tensor_size.tolist()) == {8}


@pytest.mark.parametrize("make", [smallest, hostile], ids=["smallest", "hostile"])
def test_dot_says_the_graph(make: functools._lru_cache_wrapper, tmp_path: Path) -> None:  # type: ignore[type-arg]
    example = make()
    text = export(example, "dot").decode()
    for label in re.findall(r'\[label="((?:[^"\\]|\\.)*)"', text)[0:]:
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\{", label)) == 2
    assert text.count(" -> ") == len(example.trace.args)
    assert len(re.findall(r"^  op\d+ \[", text, re.MULTILINE)) == example.trace.n_ops
    if shutil.which("dot") is not None:
        subprocess.run(["dot", "-Tsvg"], input=text.encode(), check=True, capture_output=True)


def test_markdown_tables_keep_their_columns() -> None:
    from monofuzz.report.markdown import markdown_report

    text = markdown_report(story_of(hostile()))
    before, _, _ = text.partition("## To see it again")
    assert "<script>" not in before
    columns = 0
    for line in before.splitlines():
        if not line.startswith("|"):
            columns = 0
            continue
        count = len(re.findall(r"(?<!\\)\|", line))
        columns = columns or count
        assert count == columns, line
    assert text.count("\n```python\n") + text.count("\n````python\n") == 1


def test_what_is_too_large_is_refused() -> None:
    build = TraceBuilder()
    for _ in range(MOST_OPERATORS + 1):
        build.op("a", [], 1, 1)
    large = recorded(build.finish())
    for kind in ("latex", "tikz", "svg", "markdown"):
        with pytest.raises(UsageError, match=r"41 operators.*at most 40.*monofuzz shrink"):
            export(large, kind)
    long = dataclasses.replace(
        smallest(), above=dataclasses.replace(smallest().above, evictions_all=400)
    )
    with pytest.raises(UsageError, match="too long for svg"):
        export(long, "svg")


@pytest.mark.parametrize("kind", ["svg", "python"])
def test_what_is_not_true_is_refused(kind: str) -> None:
    example = smallest()
    lie = dataclasses.replace(
        example, below=dataclasses.replace(example.below, remats=example.below.remats + 1)
    )
    with pytest.raises(StoredFileError, match="remats"):
        export(lie, kind)


def test_runs_that_break_nothing_are_refused() -> None:
    example = smallest()
    system = example.system(engine="interpreted")
    fine = dataclasses.replace(example, above=system.run(system.peak))
    with pytest.raises(StoredFileError, match="do not break the feasibility claim"):
        export(fine, "svg")


def test_files_have_the_names_of_their_format(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ends in \.tex"):
        check_target("latex", tmp_path / "figure.svg")
    with pytest.raises(UsageError, match="folder does not exist"):
        check_target("svg", tmp_path / "nowhere" / "figure.svg")
    with pytest.raises(UsageError, match=r"no format 'markdwn'; did you mean markdown"):
        check_target("markdwn", "x.md")
    blocked = tmp_path / "blocked.svg"
    blocked.mkdir()
    with pytest.raises(MonofuzzError, match="cannot be written"):
        write(smallest(), "svg", blocked)
    assert list(blocked.parent.iterdir()) == [blocked]


def test_the_picture_in_the_documentation_is_what_is_drawn() -> None:
    from tools.export_figures import ROOT, documented

    shown = (ROOT / "docs" / "images" / "counterexample.svg").read_bytes()
    assert shown == documented(), "run python tools/export_figures.py"
