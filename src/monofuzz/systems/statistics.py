"""Is one mean larger than another? Many comparisons of noisy logarithms at once.

Nothing here knows about budgets. Groups are in an order, and for each pair of them the question is
whether the later one is larger by more than a margin. docs/notes/measured.md says why the
comparisons are made this way.
"""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from monofuzz.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

__all__ = [
    "Comparisons",
    "Groups",
    "compare",
    "failures_rise",
    "paired",
    "require_scipy",
    "runs_to_tell",
    "shares",
    "unpaired",
]

MAX_PAIRS = 200_000
"""With more groups than that allows, groups that are far apart are not compared."""

_CAUTION = 1.5  # standard errors by which the spread of the variances is taken to be larger
_TINY = 1e-9
_KNOWN = 1e9  # degrees of freedom of a known variance; not all versions of SciPy take infinity
_MAX_WORK = 100_000_000


@dataclass(frozen=True, slots=True)
class Groups:
    """What is known of each pair ``low < high`` of groups before anything is tested.

    ``rise`` is the difference of the means, ``spread`` the variance of that difference times
    ``repeats``, the runs behind it (the harmonic mean if the two have different numbers), and
    ``freedom`` the degrees of freedom of ``spread``.
    """

    low: Indices
    high: Indices
    distance: Indices
    rise: Floats
    spread: Floats
    repeats: Floats
    freedom: Floats


@dataclass(frozen=True, slots=True)
class Comparisons:
    """The verdict on each pair, with a family-wise error rate of ``alpha``.

    ``p`` is corrected for the number of comparisons: a pair with ``p <= alpha`` rises. ``least`` is
    the lower end of the rise, all of them true at once with probability ``1 - alpha``; ``lower``
    and ``upper`` are the ends of an interval of the same confidence for this pair alone.
    ``detectable`` is the rise that is found with probability ``power``.
    """

    pairs: Groups
    share: Floats
    p: Floats
    least: Floats
    lower: Floats
    upper: Floats
    detectable: Floats

    def repeats_needed(self, alpha: float, power: float, margin: Floats) -> Floats:
        """Runs of both groups that find the rises seen, were they the true ones."""
        from scipy import special

        wanted = -special.ndtri(alpha * self.share) + special.ndtri(power)
        above = self.pairs.rise - margin
        with np.errstate(divide="ignore", invalid="ignore"):
            runs = np.where(above > 0, self.pairs.spread * wanted**2 / above**2, np.inf)
        # Two more make up for the variance having to be estimated.
        needed: Floats = np.ceil(runs) + 2
        return needed


def require_scipy() -> None:
    """Raise `UsageError` unless SciPy is there."""
    if importlib.util.find_spec("scipy") is None:
        raise UsageError('this needs SciPy: pip install "monofuzz[stats]"')


def unpaired(values: Floats, group: Indices, count: int, *, noise: float | None) -> Groups:
    """All pairs of ``count`` groups of independent values; ``group`` says which is whose.

    ``noise``: the standard deviation of a single value, if it is known.
    """
    runs = np.bincount(group, minlength=count).astype(float)
    means = np.bincount(group, values, minlength=count) / runs
    if noise is None:
        squares = np.bincount(group, (values - means[group]) ** 2, minlength=count)
        # Equal values have a mean that is rounded; they differ by nothing.
        squares[_all_equal(values, group, count)] = 0.0
        variance, freedom = _moderated(squares / (runs - 1), runs - 1, count)
    else:
        variance, freedom = np.full(count, noise**2), np.full(count, _KNOWN)
    low, high = _pairs(count)
    a, b = variance[low] / runs[low], variance[high] / runs[high]
    repeats = 2 / (1 / runs[low] + 1 / runs[high])
    with np.errstate(divide="ignore", invalid="ignore"):
        welch = (a + b) ** 2 / (a**2 / freedom[low] + b**2 / freedom[high])
    welch = np.where(a + b > 0, welch, freedom[low] + freedom[high])
    if noise is None:
        welch = np.minimum(welch, np.sum(runs - 1))
    return Groups(
        low, high, high - low, means[high] - means[low], (a + b) * repeats, repeats, welch
    )


def paired(values: Floats, *, noise: float | None) -> Groups:
    """The pairs of rows of a matrix with a column a sweep, NaN where a sweep has no value.

    Only sweeps that have both groups say anything about a pair, and pairs that share fewer than two
    (with known noise: fewer than one) are left out.
    """
    count, sweeps = values.shape
    lows: list[Indices] = [np.zeros(0, np.intp)]
    distances: list[Indices] = [np.zeros(0, np.intp)]
    moments: list[Floats] = [np.zeros((3, 0))]
    for distance in range(1, _farthest(count, sweeps) + 1):
        difference = values[distance:] - values[:-distance]
        there = ~np.isnan(difference)
        repeats = there.sum(axis=1).astype(float)
        kept = np.flatnonzero(repeats >= (2 if noise is None else 1))
        difference, there, repeats = difference[kept], there[kept], repeats[kept]
        rise = np.where(there, difference, 0.0).sum(axis=1) / repeats
        squares = (np.where(there, difference - rise[:, None], 0.0) ** 2).sum(axis=1)
        lows.append(kept)
        distances.append(np.full(len(kept), distance))
        moments.append(np.stack((rise, squares, repeats)))
    low, apart = np.concatenate(lows), np.concatenate(distances)
    rise, squares, repeats = np.concatenate(moments, axis=1)
    if noise is None:
        squares[squares < _TINY**2] = 0.0
        spread, freedom = _moderated(squares / (repeats - 1), repeats - 1, count - 1)
    else:
        spread, freedom = np.full(len(low), 2 * noise**2), np.full(len(low), _KNOWN)
    return Groups(low, low + apart, apart, rise, spread, repeats, freedom)


def compare(pairs: Groups, margin: Floats, *, alpha: float, power: float) -> Comparisons:
    """Test for each pair whether its rise exceeds its margin."""
    from scipy import special

    share = shares(pairs.distance)
    error = np.sqrt(pairs.spread / pairs.repeats)
    above = pairs.rise - margin
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = above / error
    certain = np.where(above > 0, 0.0, 1.0)
    alone = np.where(error > 0, special.stdtr(pairs.freedom, -statistic), certain)
    critical = -special.stdtrit(pairs.freedom, alpha * share)
    either = -special.stdtrit(pairs.freedom, alpha / 2)
    return Comparisons(
        pairs=pairs,
        share=share,
        p=np.minimum(1.0, alone / share),
        least=pairs.rise - critical * error,
        lower=pairs.rise - either * error,
        upper=pairs.rise + either * error,
        detectable=margin + (critical + special.stdtrit(pairs.freedom, power)) * error,
    )


def shares(distance: Indices) -> Floats:
    """Each comparison's share of the error rate: most for neighbours; they add up to 1.

    Those at one distance share alike, and a distance gets its inverse square.
    """
    if not len(distance):
        return np.zeros(0)
    weight = 1.0 / (distance.astype(float) ** 2 * np.bincount(distance)[distance])
    total: Floats = weight / weight.sum()
    return total


def failures_rise(
    ok: Indices, failed: Indices, *, alpha: float
) -> tuple[Indices, Indices, Floats, Floats]:
    """For all pairs in order: is failure likelier in the later group? ``(low, high, p, share)``.

    Boschloo's exact test, corrected for the number of comparisons. Where Fisher's test, which is
    never smaller by much, is far from ``alpha``, it stands in for it.
    """
    from scipy import stats

    low, high = _pairs(len(ok))
    runs = ok + failed
    share = shares(high - low)
    alone = stats.hypergeom.sf(
        failed[high] - 1, runs[low] + runs[high], failed[low] + failed[high], runs[high]
    )
    near = np.flatnonzero((alone <= 8 * alpha * share) & (alone > 0))
    known: dict[tuple[int, ...], float] = {}
    for pair in near.tolist():
        i, j = low[pair], high[pair]
        table = (int(failed[j]), int(failed[i]), int(ok[j]), int(ok[i]))
        if table not in known:
            found = stats.boschloo_exact(np.reshape(table, (2, 2)), alternative="greater")
            known[table] = float(found.pvalue)
        alone[pair] = min(alone[pair], known[table])
    return low, high, np.minimum(1.0, alone / share), share


def runs_to_tell(low: float, high: float, *, alpha: float, power: float) -> float:
    """Runs of each of two groups that show that one fails more often: ``high`` against ``low``."""
    from scipy import special

    middle = (low + high) / 2
    spread = float(special.ndtri(1 - alpha)) * math.sqrt(2 * middle * (1 - middle))
    spread += float(special.ndtri(power)) * math.sqrt(low * (1 - low) + high * (1 - high))
    # Even the clearest outcome, all against none, has probability 1/4 a run if failing is chance.
    return math.ceil(max((spread / (high - low)) ** 2, math.log(1 / alpha) / math.log(4)))


def _moderated(variance: Floats, freedom: Floats, independent: int) -> tuple[Floats, Floats]:
    """Variances that borrow from one another as far as they are alike, and their freedom.

    Each is drawn towards the common variance by as many degrees of freedom as the spread of all of
    them, cautiously estimated, allows (Smyth 2004), and none is believed to be below the median.
    ``independent``: how many of them are.
    """
    from scipy import special

    common = float(np.sum(freedom * variance) / np.sum(freedom)) if len(variance) else 0.0
    if len(variance) < 2 or independent < 2 or common == 0:
        return variance, freedom
    half = freedom / 2
    logs = np.log(np.maximum(variance, common * _TINY)) - special.digamma(half) + np.log(half)
    expected = special.polygamma(1, half)
    around = 2 * expected**2 * independent / (independent - 1) + special.polygamma(3, half)
    excess = np.var(logs, ddof=1) - np.mean(expected)
    excess += _CAUTION * math.sqrt(float(np.mean(around)) / independent)
    prior = min(2 * _inverse_trigamma(excess), float(np.mean(freedom)) * independent)
    drawn = (prior * common + freedom * variance) / (prior + freedom)
    return np.maximum(drawn, np.median(variance)), prior + freedom


def _inverse_trigamma(value: float) -> float:
    from scipy import special

    if value < 1e-6:
        return 1e6
    x = 0.5 + 1 / value
    for _ in range(50):  # Newton's method from below; it converges for every value
        trigamma = float(special.polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(special.polygamma(2, x))
        x += step
        if abs(step) < 1e-8 * x:
            break
    return x


def _all_equal(values: Floats, group: Indices, count: int) -> NDArray[np.bool_]:
    least, largest = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, group, values)
    np.maximum.at(largest, group, values)
    equal: NDArray[np.bool_] = least == largest
    return equal


def _pairs(count: int) -> tuple[Indices, Indices]:
    """All pairs of groups that are compared, nearest first."""
    farthest = _farthest(count)
    if farthest < 1:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    low = np.concatenate([np.arange(count - d) for d in range(1, farthest + 1)])
    distance = np.repeat(np.arange(1, farthest + 1), count - np.arange(1, farthest + 1))
    return low, low + distance


def _farthest(count: int, values: int = 1) -> int:
    """How far apart groups with so many values each may be, to be compared."""
    if count < 2:
        return 0
    return min(count - 1, max(1, min(MAX_PAIRS // count, _MAX_WORK // (count * values))))
