"""The colours of what a map shows: the same in figures and on pages.

From Okabe and Ito's palette: told apart with any kind of colour vision, and in grey by lightness.
On dark ground each is lightened until it stands out as its counterpart does on white.
"""

from __future__ import annotations

from typing import Final

LIGHT: Final = {
    "ok": "#0072B2",
    "hole": "#D55E00",
    "thrashed": "#CC79A7",
    "timeout": "#E69F00",
    "oom": "#8A8A8A",
    "gap": "#CCCCCC",
    "cliff": "#222222",
    "text": "#222222",
    "faint": "#666666",
    "grid": "#E4E4E4",
}
DARK: Final = {
    "ok": "#56B4E9",
    "hole": "#FF8A3D",
    "thrashed": "#E59AC6",
    "timeout": "#F2C14E",
    "oom": "#8D939C",
    "gap": "#5A6270",
    "cliff": "#F0F2F5",
    "text": "#E6E8EB",
    "faint": "#9AA3AE",
    "grid": "#2B313A",
}
