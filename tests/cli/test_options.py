"""What options understand."""

from __future__ import annotations

import click
import pytest

from monofuzz.cli import options


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("1.5h", 5400),
        ("10min", 600),
        ("10 m", 600),
        ("250ms", 0.25),
        (".5", 0.5),
    ],
)
def test_duration(text: str, seconds: float) -> None:
    assert options.duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1", "soon", "1 day", "1e9999", "nan", "inf", "1h30"])
def test_no_duration(text: str) -> None:
    with pytest.raises(click.BadParameter):
        options.duration(text)


@pytest.mark.parametrize(
    ("text", "limit"), [("60", 60.0), ("60x", 60.0), ("1", 1.0), ("none", None), ("None", None)]
)
def test_limit(text: str, limit: float | None) -> None:
    assert options.limit(text) == limit


@pytest.mark.parametrize(("text", "share"), [("0", 0.0), ("0.1", 0.1), ("10%", 0.1)])
def test_share(text: str, share: float) -> None:
    assert options.share(text) == pytest.approx(share)


@pytest.mark.parametrize(("text", "factor"), [("1.25", 1.25), ("2x", 2.0)])
def test_factor(text: str, factor: float) -> None:
    assert options.factor(text) == factor
