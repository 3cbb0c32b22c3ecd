"""A scene as SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from monofuzz.report.scene import POINT, Curve, Polygon, Rect, Text

if TYPE_CHECKING:
    from monofuzz.report.scene import Scene, Shape

__all__ = ["svg_document"]

_MARGIN = 2.0


def svg_document(scene: Scene) -> str:
    """A document of its own, on white, in millimetres, without scripts or anything from outside."""
    wide, high = scene.width + 2 * _MARGIN, scene.height + 2 * _MARGIN
    box = f"{_n(-_MARGIN)} {_n(-_MARGIN)} {_n(wide)} {_n(high)}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(wide)}mm" height="{_n(high)}mm" '
        f'viewBox="{box}" role="img" font-family="Arial, Helvetica, Liberation Sans, sans-serif">',
        f"<title>{escape(_printable(scene.title))}</title>",
        f"<desc>{escape(_printable(scene.description))}</desc>",
        f'<rect x="{_n(-_MARGIN)}" y="{_n(-_MARGIN)}" width="{_n(wide)}" height="{_n(high)}" '
        'fill="#FFFFFF"/>',
    ]
    lines += [_shape(shape) for shape in scene.shapes]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _shape(shape: Shape) -> str:
    if isinstance(shape, Text):
        bold = f'<tspan font-weight="bold">{_inside(shape.bold)}</tspan>' if shape.bold else ""
        return (
            f'<text x="{_n(shape.x)}" y="{_n(shape.y)}" font-size="{_n(shape.size * POINT)}" '
            f'text-anchor="{shape.anchor}" fill="{shape.fill}" xml:space="preserve">'
            f"{bold}{_inside(shape.text)}</text>"
        )
    look = _look(shape)
    if isinstance(shape, Rect):
        corners = f' rx="{_n(shape.radius)}"' if shape.radius else ""
        return (
            f'<rect x="{_n(shape.x)}" y="{_n(shape.y)}" width="{_n(shape.width)}" '
            f'height="{_n(shape.height)}"{corners} {look}/>'
        )
    if isinstance(shape, Polygon):
        points = " ".join(f"{_n(x)},{_n(y)}" for x, y in shape.points)
        return f'<{"polygon" if shape.closed else "polyline"} points="{points}" {look}/>'
    start, *rest = (f"{_n(x)},{_n(y)}" for x, y in shape.points)
    return f'<path d="M{start} C{" ".join(rest)}" {look}/>'


def _look(shape: Rect | Polygon | Curve) -> str:
    parts = [f'fill="{getattr(shape, "fill", None) or "none"}"']
    if shape.stroke is not None:
        parts += [f'stroke="{shape.stroke}"', f'stroke-width="{_n(shape.line)}"']
        if shape.dashed:
            parts.append('stroke-dasharray="1 0.7"')
    return " ".join(parts)


def _inside(text: str) -> str:
    return escape(_printable(text))


def _printable(text: str) -> str:
    """What XML may hold."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _n(value: float) -> str:
    return f"{round(value, 3):g}"
