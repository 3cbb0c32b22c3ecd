"""Draw counterexamples for the reports: each as a PDF of exactly its size, and as a PNG.

Also the picture in docs/how-to/paper-figure.md, of the counterexample there.

``python tools/export_figures.py [--out reports/figures]``; needs pdflatex and pdftoppm.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from monofuzz.counterexample import load
from monofuzz.report.export import export

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "corpus" / "counterexamples"
FIGURES = {
    "smallest-hole": CORPUS / "dtr" / "free-feasibility-smallest.json",
    "unit-sizes": CORPUS / "dtr" / "unit-sizes-feasibility-smallest.json",
    "unit-sizes-and-costs": CORPUS / "dtr" / "unit-feasibility-smallest.json",
    "cost-cliff": CORPUS / "dtr" / "training-cost-worst.json",
    "resnet32": ROOT / "reports" / "shrink" / "dtr-resnet32-signature.json",
}
# A page that is as large as the float on it; nothing in it depends on the day.
PAGE = r"""\documentclass{article}
\usepackage{booktabs,tikz}
\pdfinfoomitdate=1 \pdftrailerid{} \pdfsuppressptexinfo=-1
\makeatletter
\renewenvironment{figure}[1][]{\def\@captype{figure}}{}
\renewenvironment{figure*}[1][]{\def\@captype{figure}}{}
\makeatother
\begin{document}
\setbox0\vbox{\hsize=122mm \linewidth=\hsize \columnwidth=\hsize \input{float}}
\pdfpagewidth=\dimexpr\wd0+8mm\relax
\pdfpageheight=\dimexpr\ht0+\dp0+8mm\relax
\hoffset=\dimexpr4mm-1in\relax
\voffset=\hoffset
\shipout\box0
\end{document}
"""


def run(folder: Path, *command: str) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def draw(name: str, source: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "float.tex").write_bytes(export(load(source), "latex"))
        (folder / "page.tex").write_text(PAGE, encoding="utf-8")
        for _ in range(2):
            run(folder, "pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page")
        run(folder, "pdftoppm", "-png", "-r", "160", "-singlefile", "page.pdf", "page")
        for ending in ("pdf", "png"):
            shutil.copyfile(folder / f"page.{ending}", target / f"{name}.{ending}")


def documented() -> bytes:
    """The picture of the counterexample that docs/how-to/paper-figure.md writes down."""
    page = (ROOT / "docs" / "how-to" / "paper-figure.md").read_text(encoding="utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        with contextlib.redirect_stdout(None):
            exec(code, {})
        return export(load("hole.json"), "svg", width=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "reports" / "figures")
    target: Path = parser.parse_args().out
    target.mkdir(parents=True, exist_ok=True)
    for name, source in FIGURES.items():
        draw(name, source, target)
    (ROOT / "docs" / "images" / "counterexample.svg").write_bytes(documented())


if __name__ == "__main__":
    main()
