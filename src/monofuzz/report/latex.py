"""A counterexample for a paper: a figure with its picture, and a table of what was evicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from monofuzz import __version__
from monofuzz.report.diagram import DEFAULT_WIDTH, draw
from monofuzz.report.story import plain_score
from monofuzz.report.tikz import tex, tikz_picture

if TYPE_CHECKING:
    from monofuzz.report.story import Decision, Story

__all__ = ["latex_figure", "tikz_figure"]

_FULL: Final = 125.0  # millimetres: what is wider wants both columns
_ALL_COLUMNS: Final = 110.0
_MOST_ROWS: Final = 32

# Before \begin{document} \@nodocument raises an error, behind it it is \relax.
_HEAD = r"""% {title}
% Made by monofuzz {version}. \input this file (its document must load {packages}), or compile it.
\makeatletter
\newif\ifmonofuzzalone
\ifx\@nodocument\relax\monofuzzalonefalse\else\monofuzzalonetrue\fi
\makeatother
\ifmonofuzzalone
  \documentclass{{article}}
  \usepackage{{{packages}}}
  \usepackage[paperwidth={wide}mm,paperheight={high}mm,margin=6mm]{{geometry}}
  \pagestyle{{empty}}\setlength{{\parindent}}{{0pt}}
  \begin{{document}}
\fi
"""
_TAIL = r"""\ifmonofuzzalone\def\monofuzzend{\end{document}}\else\let\monofuzzend\relax\fi
\monofuzzend
"""
# What does not fit into the line is scaled down to it; nothing is scaled up.
_FIT = r"""\begingroup
\setbox0=\hbox{%
{content}}%
\leavevmode
\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\box0}\else\box0\fi
\endgroup
"""


def tikz_figure(story: Story, width: float = DEFAULT_WIDTH) -> str:
    """The picture alone. The file can be \\input, and compiled."""
    scene = draw(story, width=width)
    head = _head(story, "tikz", scene.width + 13, scene.height + 16)
    return f"{head}{_fit(tikz_picture(scene))}{_TAIL}"


def latex_figure(story: Story, width: float = DEFAULT_WIDTH) -> str:
    """A float: the picture, below it the table, a caption and a label."""
    scene = draw(story, width=width)
    environment = "figure*" if scene.width > _FULL else "figure"
    table = _table(story, full=width >= _ALL_COLUMNS)
    head = _head(story, "booktabs,tikz", max(scene.width, 80.0) + 13, 297)
    return (
        f"{head}\\begin{{{environment}}}[tbp]\n\\centering\n{_fit(tikz_picture(scene))}"
        f"\n\\medskip\n\n{_fit(table)}\\caption{{{_caption(story)}}}\n"
        f"\\label{{fig:monofuzz-{story.example.id}}}\n\\end{{{environment}}}\n{_TAIL}"
    )


def _head(story: Story, packages: str, wide: float, high: float) -> str:
    title = f"Counterexample {story.example.id}: {story.summary}."
    return _HEAD.format(
        title=title, version=__version__, packages=packages, wide=round(wide), high=round(high)
    )


def _fit(content: str) -> str:
    return _FIT.replace("{content}", content.rstrip("\n"))


def _table(story: Story, *, full: bool) -> str:
    """The choices of both runs side by side; a rule where they part."""
    columns = ["for", "evicts", "score", "next best", "memory"]
    kinds = "llrlr"
    if not full:
        columns, kinds = ["evicts", "score", "memory"], "lrr"
    count = len(columns)
    low, high = (f"{budget:,}" for budget in story.example.witness)
    lines = [
        r"\footnotesize\setlength{\tabcolsep}{4pt}%",
        rf"\begin{{tabular}}{{@{{}}l@{{\hspace{{10pt}}}}{kinds}@{{\hspace{{14pt}}}}{kinds}@{{}}}}",
        r"\toprule",
        rf" & \multicolumn{{{count}}}{{c}}{{{tex(low)} bytes}}"
        rf" & \multicolumn{{{count}}}{{c}}{{{tex(high)} bytes}} \\",
        rf"\cmidrule(r){{2-{count + 1}}}\cmidrule(l){{{count + 2}-{2 * count + 1}}}",
        " & ".join(["step", *columns, *columns]) + r" \\",
        r"\midrule",
    ]
    idle = [all(row.low is None for row in story.rows), all(row.high is None for row in story.rows)]
    step = ""
    for row in story.some_rows(_MOST_ROWS):
        if isinstance(row, str):
            lines.append(rf"\multicolumn{{{2 * count + 1}}}{{@{{}}l}}{{\emph{{{tex(row)}}}}} \\")
            continue
        if row.parts and lines[-1] != r"\midrule":
            lines.append(r"\midrule")
            step = ""
        cells = [tex("" if row.step == step else row.step)]
        for decision, nothing in zip((row.low, row.high), idle, strict=True):
            cells += [rf"\multicolumn{{{count}}}{{l}}{{--}}"] * nothing or _cells(
                decision, full=full
            )
        lines.append(" & ".join(cells) + r" \\")
        step = row.step
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _cells(decision: Decision | None, *, full: bool) -> list[str]:
    if decision is None:
        return [""] * (5 if full else 3)
    victim, score = tex(decision.victim), _score(decision.score)
    memory = f"{decision.memory:,}"
    if not full:
        return [victim, score, tex(memory)]
    other = tex(decision.runner_up) or "--"
    if decision.runner_up and decision.runner_up_score is not None:
        other += f" ({_score(decision.runner_up_score)})"
    return [tex(decision.operator), victim, score, other, tex(memory)]


def _score(score: float | None) -> str:
    if score is None:
        return "--"
    mantissa, _, exponent = plain_score(score).partition("e")
    if exponent:
        return rf"${mantissa}\cdot10^{{{int(exponent)}}}$"
    return tex(mantissa)


def _caption(story: Story) -> str:
    example = story.example
    low, high = (tex(f"{budget:,}") for budget in example.witness)
    policy = rf"\texttt{{{tex(example.policy)}}}"
    count = f"{example.operators} operator{'' if example.operators == 1 else 's'}"
    parted = "" if not story.rows or story.rows[0].parts else ", below the rule after the runs part"
    if example.claim == "feasibility":
        first = (
            f"More memory fails: under {policy} these {count} complete with {low}~bytes, and run "
            f"out of memory with {high}."
        )
    else:
        factor = tex(f"{example.above.cost / max(example.below.cost, 1):.4g}")
        first = (
            f"More memory is slower: under {policy} these {count} take {factor}~times as long "
            f"with {high}~bytes as with {low}."
        )
    return (
        f"{first} Top: the operators in their order; an arc leads from a tensor to an operator "
        "that reads it. Middle: what is in memory, step by step, and what was computed, recomputed "
        f"and evicted. Bottom: what the policy chose for eviction{parted}."
    )
