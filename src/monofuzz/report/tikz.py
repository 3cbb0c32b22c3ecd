"""A scene as TikZ, and text as TeX takes it."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from monofuzz.report.scene import Curve, Polygon, Rect, Text

if TYPE_CHECKING:
    from monofuzz.report.scene import Scene, Shape

__all__ = ["tex", "tikz_picture"]

_TEX = {
    "\\": r"$\backslash$",
    "{": r"$\{$",
    "}": r"$\}$",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "`": r"\textasciigrave{}",
    "'": r"\textquoteright{}",
    '"': r"\textquotedblright{}",
    "-": "{-}",
    ",": "{,}",
    "!": "{!}",
    "?": "{?}",
    "–": r"\textendash{}",
    "…": r"\dots{}",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "µ": r"$\mu$",
    "∞": r"$\infty$",
    "=": "{=}",
    "[": "{[}",
    "]": "{]}",
} | {
    subscript: rf"\textsubscript{{{digit}}}" for digit, subscript in enumerate("₀₁₂₃₄₅₆₇₈₉")
}  # fmt: skip


def tex(text: str) -> str:
    """Text that any TeX sets as it is; letters without a plain form become a question mark."""
    return "".join(_TEX.get(character) or _plain(character) for character in text)


def _plain(character: str) -> str:
    if " " <= character <= "~":
        return character
    if character.isspace():
        return " "
    folded = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return "".join(_TEX.get(c, c) for c in folded if c.isprintable()) or "{?}"


def tikz_picture(scene: Scene) -> str:
    """A ``tikzpicture`` environment; needs the package tikz and nothing else.

    Colours are defined inside, under names that a document will not have.
    """
    colours: dict[str, str] = {}
    for shape in scene.shapes:
        for look in (getattr(shape, "fill", None), getattr(shape, "stroke", None)):
            if look is not None:
                colours.setdefault(look, f"monofuzz{look[1:]}")
    lines = [r"\begin{tikzpicture}[x=1mm,y=-1mm,inner sep=0pt,outer sep=0pt,line join=round]"]
    lines += [rf"\definecolor{{{name}}}{{HTML}}{{{look[1:]}}}" for look, name in colours.items()]
    lines.append(rf"\useasboundingbox (0,0) rectangle ({_n(scene.width)},{_n(scene.height)});")
    lines += [_shape(shape, colours) for shape in scene.shapes]
    lines.append(r"\end{tikzpicture}")
    return "\n".join(lines) + "\n"


def _shape(shape: Shape, colours: dict[str, str]) -> str:
    if isinstance(shape, Text):
        return _text(shape, colours)
    if isinstance(shape, Rect):
        a, b = _point((shape.x, shape.y)), _point((shape.x + shape.width, shape.y + shape.height))
        corners = f",rounded corners={_n(shape.radius)}mm" if shape.radius else ""
        return rf"\path[{_look(shape, colours)}{corners}] {a} rectangle {b};"
    if isinstance(shape, Polygon):
        path = " -- ".join(_point(point) for point in shape.points)
        end = " -- cycle" if shape.closed else ""
        return rf"\path[{_look(shape, colours)}] {path}{end};"
    start, one, two, end = (_point(point) for point in shape.points)
    return rf"\path[{_look(shape, colours)}] {start} .. controls {one} and {two} .. {end};"


def _look(shape: Rect | Polygon | Curve, colours: dict[str, str]) -> str:
    fill = getattr(shape, "fill", None)
    parts = [] if fill is None else [f"fill={colours[fill]}"]
    if shape.stroke is not None:
        parts += [f"draw={colours[shape.stroke]}", f"line width={_n(shape.line)}mm"]
        if shape.dashed:
            parts.append("dash pattern=on 1mm off 0.7mm")
    return ",".join(parts)


def _text(shape: Text, colours: dict[str, str]) -> str:
    anchor = {"start": "base west", "middle": "base", "end": "base east"}[shape.anchor]
    bold = rf"\textbf{{{tex(shape.bold)}}}" if shape.bold else ""
    font = rf"\sffamily\fontsize{{{shape.size}}}{{{_n(shape.size * 1.2)}}}\selectfont"
    at = _point((shape.x, shape.y))
    return (
        rf"\node[anchor={anchor},text={colours[shape.fill]},font={{{font}}}] at {at} "
        rf"{{\strut\smash{{{bold}{tex(shape.text)}}}}};"
    )


def _point(point: tuple[float, float]) -> str:
    return f"({_n(point[0])},{_n(point[1])})"


def _n(value: float) -> str:
    return f"{round(value, 3):g}"
