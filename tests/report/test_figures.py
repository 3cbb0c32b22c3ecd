"""Pictures of maps: complete, deterministic, and with everything that matters visible."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monofuzz.errors import UsageError
from monofuzz.report.figures import check_drawable, plot_map, plot_maps
from monofuzz.search.regimes import Map, Origin
from tests.report.maps import PEAK, all_kinds, map_of

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("matplotlib.image")

ORANGE, PINK = (213, 94, 0), (204, 121, 167)


def many(count: int, holes: int) -> Map:
    """A map of many regimes, some of them holes of a few bytes."""
    random = np.random.default_rng(1)
    cuts = np.unique(random.integers(10**8 + 1, PEAK, count - 1))
    edges = [10**8, *cuts.tolist(), PEAK]
    failing = set(np.linspace(1, len(cuts) - 1, holes, dtype=int).tolist())
    regimes = []
    for number, (lo, hi) in enumerate(pairwise(edges)):
        status = "oom" if number in failing else "ok"
        regimes.append((lo, hi, status, PEAK / lo * (1 + 0.2 * random.random())))
    return map_of(*regimes)


MAPS = {
    "one regime": map_of((10**8, PEAK, "ok", 1.5)),
    "one byte": map_of((5, 6, "ok", 1.0)),
    "nothing feasible": map_of((10**8, PEAK, "oom", 1.0)),
    "nothing known": map_of((10**8, 10**8 + 1, "timeout", 1.0), between=(10**8, PEAK)),
    "all kinds": all_kinds(),
    "no compute": map_of((1, 5, "ok", 0.0), (5, 9, "ok", 1.0)),
    "many": many(3000, 5),
}


@pytest.mark.parametrize("name", MAPS)
def test_every_map_can_be_drawn(name: str, tmp_path: Path) -> None:
    plot_map(MAPS[name], tmp_path / "map.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["map.svg"]


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_a_map_always_looks_the_same(kind: str, tmp_path: Path) -> None:
    first, second = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
    plot_map(MAPS["all kinds"], first)
    plot_map(MAPS["all kinds"], second)
    assert first.read_bytes() == second.read_bytes()


def test_the_same_in_another_process(tmp_path: Path) -> None:
    import subprocess
    import sys

    found = tmp_path / "map"
    MAPS["all kinds"].save(found)
    code = (
        "import sys; from monofuzz.search.regimes import Map; "
        "from monofuzz.report.figures import plot_map; plot_map(Map.load(sys.argv[1]), sys.argv[2])"
    )
    here, there = tmp_path / "here.svg", tmp_path / "there.svg"
    plot_map(MAPS["all kinds"], here)
    subprocess.run([sys.executable, "-c", code, found, there], check=True, timeout=120)
    assert here.read_bytes() == there.read_bytes()


def pixels(found: Map, tmp_path: Path) -> Any:
    from matplotlib.image import imread

    file = tmp_path / "map.png"
    plot_map(found, file)
    return np.rint(imread(io.BytesIO(file.read_bytes()))[..., :3] * 255).astype(int)


def columns_like(image: Any, colour: tuple[int, int, int]) -> list[int]:
    """The columns of a picture that show a colour just under the upper edge of the axes."""
    band = image[: image.shape[0] // 3]
    near = np.abs(band - np.array(colour)).sum(axis=2) < 40
    return [int(column) for column in np.flatnonzero(near.any(axis=0))]


def test_a_hole_of_one_byte_is_visible(tmp_path: Path) -> None:
    middle = PEAK // 2
    found = map_of(
        (10**8, middle, "ok", 2.0), (middle, middle + 1, "oom", 2.0), (middle + 1, PEAK, "ok", 1.0)
    )
    assert columns_like(pixels(found, tmp_path), ORANGE)


def test_no_hole_is_lost_in_a_crowd(tmp_path: Path) -> None:
    found = many(100_000, 7)
    shown = columns_like(pixels(found, tmp_path), ORANGE)
    marks = 1 + sum(b - a > 3 for a, b in pairwise(shown))
    assert marks == len(found.holes) == 7


def test_thrashed_regimes_are_marked(tmp_path: Path) -> None:
    assert columns_like(pixels(MAPS["all kinds"], tmp_path), PINK)


def test_a_crowd_makes_no_large_file(tmp_path: Path) -> None:
    file = tmp_path / "map.svg"
    plot_map(many(100_000, 7), file)
    assert file.stat().st_size < 500_000


@pytest.mark.parametrize("name", ["map.bmp", "map", "png", "map.png.txt"])
def test_other_formats_are_refused(name: str, tmp_path: Path) -> None:
    for draw in (check_drawable, lambda path: plot_map(MAPS["one regime"], path)):
        with pytest.raises(UsageError, match=r"\.png, \.svg, \.pdf"):
            draw(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'monofuzz\[plot\]'"):
        check_drawable(tmp_path / "map.png")


def test_names_are_not_read_as_formulas(tmp_path: Path) -> None:
    found = map_of((10**8, PEAK, "ok", 1.5))
    found.origin = Origin("test", r"$\nonsense_{", "dtr", PEAK)
    plot_map(found, tmp_path / "map.png")


def test_several_maps_share_their_axes(tmp_path: Path) -> None:
    maps = [all_kinds(trace, policy) for policy in ("dtr", "lru") for trace in ("one", "two")]
    plot_maps(maps, tmp_path / "grid.png")
    plot_maps(maps[:2], tmp_path / "stack.png")
    grid, stack = (matplotlib.image.imread(tmp_path / f"{name}.png") for name in ("grid", "stack"))
    # Two traces under one policy stand below each other, two policies more beside each other.
    assert grid.shape[1] > grid.shape[0] * 0.9
    assert stack.shape[1] > stack.shape[0] * 1.5


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_several_maps_always_look_the_same(kind: str, tmp_path: Path) -> None:
    maps = [MAPS["many"], MAPS["all kinds"], MAPS["nothing feasible"]]
    first, second = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
    plot_maps(maps, first)
    plot_maps(maps, second)
    assert first.read_bytes() == second.read_bytes()


def test_nothing_of_a_set_is_lost(tmp_path: Path) -> None:
    """Each panel shows its holes: a column of orange in each row of the picture's panels."""
    plot_maps([MAPS["many"], MAPS["all kinds"]], tmp_path / "maps.png")
    picture = matplotlib.image.imread(tmp_path / "maps.png")[:, :, :3] * 255
    orange = (np.abs(picture - ORANGE).max(axis=2) < 2).any(axis=1)
    runs = np.flatnonzero(np.diff(orange.astype(int)) == 1)
    assert len(runs) >= 2


@pytest.mark.parametrize("count", [0, 2])
def test_sets_without_a_common_scale_are_refused(count: int, tmp_path: Path) -> None:
    maps = [MAPS["many"], map_of((1, 9, "ok", 1.0), peak=None)][:count]
    with pytest.raises(UsageError):
        plot_maps(maps, tmp_path / "maps.png")
    assert not list(tmp_path.iterdir())
