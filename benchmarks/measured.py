"""How often are measured curves judged wrongly? Simulated ones, of which the truth is known.

    python -m benchmarks.measured [--curves 1000] [--out reports/measured.md]

Monotone curves of several shapes under several kinds of noise: the share that is refuted must stay
below the promised 5%. Curves with one rise by 10% under 5% noise, up to eight budgets measured ten
times each: at least 90% must be refuted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from monofuzz.systems.curve import check_measured
from monofuzz.trace.files import write_atomically

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int, int], Floats]

ALPHA = 0.05
WANTED = 0.9


def flat(budgets: int) -> Floats:
    """More memory changes nothing: the hardest of all monotone curves."""
    return np.full(budgets, 100.0)


def falling(budgets: int) -> Floats:
    """Each budget 5% cheaper than the one before."""
    return 100 * 0.95 ** np.arange(budgets)


def stairs(budgets: int) -> Floats:
    """Long flat pieces between sudden improvements."""
    return 100 * 0.6 ** (np.arange(budgets) // 4)


SHAPES = {"flat": flat, "falling": falling, "stairs": stairs}


def _uneven(deviations: Callable[[int], Floats]) -> Noise:
    def noise(random: np.random.Generator, budgets: int, repeats: int) -> Floats:
        return np.exp(random.standard_normal((budgets, repeats)) * deviations(budgets)[:, None])

    return noise


NOISES: dict[str, Noise] = {
    "normal, 5%": lambda r, k, n: np.maximum(1 + 0.05 * r.standard_normal((k, n)), 0.01),
    "lognormal, 20%": lambda r, k, n: np.exp(0.2 * r.standard_normal((k, n))),
    "heavy tails (Student, 2 degrees)": lambda r, k, n: np.exp(0.05 * r.standard_t(2, (k, n))),
    "skewed (exponential, mean 20%)": lambda r, k, n: 1 + 0.2 * r.exponential(size=(k, n)),
    "outliers (1 in 20 twice as slow)": lambda r, k, n: (
        np.exp(0.03 * r.standard_normal((k, n))) * (1 + (r.random((k, n)) < 0.05))
    ),
    "two modes (half are 35% slower)": lambda r, k, n: (
        np.exp(0.01 * r.standard_normal((k, n))) * (1 + 0.35 * (r.random((k, n)) < 0.5))
    ),
    "uneven (2% up to 20% with the budget)": _uneven(lambda k: np.geomspace(0.02, 0.2, k)),
    "uneven (20% down to 2% with the budget)": _uneven(lambda k: np.geomspace(0.2, 0.02, k)),
    "uneven (one budget 20%, others 4%)": _uneven(
        lambda k: np.where(np.arange(k) == k // 2, 0.2, 0.04)
    ),
}


def step(budgets: int, random: np.random.Generator) -> Floats:
    """Flat, 10% dearer from somewhere on."""
    at = int(random.integers(1, budgets))
    return 100 * np.where(np.arange(budgets) >= at, 1.1, 1.0)


def bump(budgets: int, random: np.random.Generator) -> Floats:
    """Flat, one budget 10% dearer."""
    at = int(random.integers(1, budgets))
    return 100 * np.where(np.arange(budgets) == at, 1.1, 1.0)


def tooth(budgets: int, random: np.random.Generator) -> Floats:
    """Falling by 10% each, but one budget 10% dearer than the one before: one pair shows it."""
    at = int(random.integers(1, budgets))
    factor = np.full(budgets, 0.9)
    factor[0], factor[at] = 1.0, 1.1
    return 100 * np.cumprod(factor)


INVERSIONS = {"step": step, "bump": bump, "tooth": tooth}


def refuted(cost: Floats, random: np.random.Generator, noise: Noise, repeats: int) -> bool:
    """Whether a table of noisy runs on that curve is refuted."""
    runs = cost[:, None] * noise(random, len(cost), repeats)
    rows = [
        {"budget": f"{(i + 1) / len(cost):.4f}", "time": repr(float(time))}
        for i, times in enumerate(runs)
        for time in times
    ]
    (judged,) = check_measured(rows, claims=("cost",), alpha=ALPHA)
    return judged.verdict == "refuted"


def false_alarms(
    shape: str, noise: str, budgets: int, repeats: int, curves: int, seed: int = 0
) -> float:
    """The share of monotone curves that are refuted."""
    random = np.random.default_rng([seed, budgets, repeats])
    cost = SHAPES[shape](budgets)
    return sum(refuted(cost, random, NOISES[noise], repeats) for _ in range(curves)) / curves


def detected(inversion: str, budgets: int, repeats: int, curves: int, seed: int = 0) -> float:
    """The share of curves with one inversion, under 5% normal noise, that are refuted."""
    random = np.random.default_rng([seed, budgets, repeats])
    make, noise = INVERSIONS[inversion], NOISES["normal, 5%"]
    return (
        sum(refuted(make(budgets, random), random, noise, repeats) for _ in range(curves)) / curves
    )


def report(curves: int) -> tuple[str, bool]:
    """The report, and whether everything promised holds."""
    lines = [
        "# Measured curves: false alarms and power",
        "",
        "Made by `python -m benchmarks.measured --out reports/measured.md`: each number is a share",
        f"of {curves:,} simulated curves, under the promise of at most {ALPHA:.0%} false alarms.",
        "",
        "## Monotone curves that are refuted",
        "",
    ]
    plans = [("flat", 5, 5), ("flat", 10, 10), ("flat", 10, 3), ("falling", 10, 10)]
    plans += [("stairs", 12, 5)]
    heads = [f"{shape}, {k} budgets x {n}" for shape, k, n in plans]
    lines += ["| noise | " + " | ".join(heads) + " |", "|---|" + "---|" * len(plans)]
    worst = 0.0
    for noise in NOISES:
        rates = [false_alarms(shape, noise, k, n, curves) for shape, k, n in plans]
        worst = max([worst, *(r for r, (_, _, n) in zip(rates, plans, strict=True) if n >= 5)])
        lines.append(f"| {noise} | " + " | ".join(f"{rate:.1%}" for rate in rates) + " |")
        print(lines[-1], flush=True)
    lines += [
        "",
        "## Curves with one rise by 10%, under 5% of noise, that are refuted",
        "",
        "`step`: flat, dearer from somewhere on. `bump`: flat, one budget dearer. `tooth`: falling",
        "by 10% from budget to budget, once rising by 10%, so that a single pair shows it. Wanted",
        "are 90% with ten runs each of up to eight budgets; more budgets are more comparisons.",
        "",
    ]
    sizes = [(5, 10), (8, 10), (10, 10), (20, 10), (10, 5), (10, 3)]
    lines += ["| curve | " + " | ".join(f"{k} budgets x {n}" for k, n in sizes) + " |"]
    lines += ["|---|" + "---|" * len(sizes)]
    least = 1.0
    for inversion in INVERSIONS:
        rates = [detected(inversion, k, n, curves) for k, n in sizes]
        least = min([least, *rates[:2]])
        lines.append(f"| {inversion} | " + " | ".join(f"{rate:.1%}" for rate in rates) + " |")
        print(lines[-1], flush=True)
    # Three standard errors of a share near 5%.
    allowed = ALPHA + 3 * (ALPHA * (1 - ALPHA) / curves) ** 0.5
    return "\n".join([*lines, ""]), worst <= allowed and least >= WANTED


def main() -> None:
    """Simulate, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--curves", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    text, good = report(given.curves)
    if given.out is not None:
        write_atomically(given.out, text.encode())
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
