"""A drawing as a list of shapes, in millimetres, y downwards; written as TikZ or as SVG."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Curve", "Polygon", "Rect", "Scene", "Shape", "Text", "text_width"]

POINT = 25.4 / 72.27
"""Millimetres in a printer's point."""

_NARROW = frozenset("fijlrtI.,:;!|'()[]")
_WIDE = frozenset("mwMW%@")
_SUBSCRIPTS = frozenset("₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True)
class Rect:
    """A rectangle by its upper left corner."""

    x: float
    y: float
    width: float
    height: float
    fill: str | None = None
    stroke: str | None = None
    line: float = 0.15
    dashed: bool = False
    radius: float = 0.0


@dataclass(frozen=True)
class Polygon:
    """Straight lines through points, closed or not."""

    points: tuple[tuple[float, float], ...]
    fill: str | None = None
    stroke: str | None = None
    line: float = 0.15
    dashed: bool = False
    closed: bool = True


@dataclass(frozen=True)
class Curve:
    """A cubic Bézier curve by its four points."""

    points: tuple[
        tuple[float, float], tuple[float, float], tuple[float, float], tuple[float, float]
    ]
    stroke: str
    line: float = 0.2
    dashed: bool = False


@dataclass(frozen=True)
class Text:
    """One line of text; ``y`` is its baseline, ``size`` is in points.

    ``bold`` comes first, then ``text``. Digits below the line are written as Unicode has them.
    """

    x: float
    y: float
    text: str
    size: int = 7
    anchor: Literal["start", "middle", "end"] = "start"
    fill: str = "#000000"
    bold: str = ""


Shape = Rect | Polygon | Curve | Text


@dataclass
class Scene:
    """Shapes, the later ones above the earlier, on a sheet of a given size."""

    width: float
    height: float
    shapes: list[Shape] = field(default_factory=list)
    title: str = ""
    description: str = ""

    def add(self, *shapes: Shape) -> None:
        self.shapes += shapes


def text_width(text: str, size: float) -> float:
    """About how wide a text is in a sans-serif face, in millimetres: rather more than less."""
    units = 0.0
    for character in text:
        if character in _SUBSCRIPTS:
            units += 0.42
        elif character in _NARROW:
            units += 0.37
        elif character in _WIDE:
            units += 0.93
        elif character == " ":
            units += 0.32
        else:
            units += 0.61 if character.islower() or character.isdigit() else 0.70
    return units * size * POINT
