"""Means, intervals and power: every interval and every verdict of the course comes from here.

Two kinds of chance, two intervals. `paired_differences` asks what other *seeds* would have given,
`mean_interval` what other *test sentences* would have given the very same weights. Neither speaks
of another corpus, encoder or budget.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import integrate, optimize, stats


def best_of(n: int, mean: float, sd: float) -> float:
    """Expected largest of `n` independent normal scores: mean + sd · E[max of n standard normals].

    Example:
        >>> round(best_of(10, 76.98, 0.38), 2)
        77.56

    Source: order statistics; E[max] = ∫ x n φ(x) Φ(x)^(n−1) dx.
    """

    def density(x: float) -> float:
        return x * n * stats.norm.pdf(x) * stats.norm.cdf(x) ** (n - 1)

    return mean + sd * float(integrate.quad(density, -10, 10)[0])


def critical_value(n: int, comparisons: int = 1) -> float:
    """How many standard errors a mean of `n` paired differences must lie from zero to count as one
    of several comparisons: the quantile 1 − 0.05 / (2 · comparisons) of Student's t with n − 1
    degrees of freedom.

    All comparisons together then call a zero difference clear with a probability of at most 5 %,
    whatever their variances and however they depend on each other.

    Raises:
        ValueError: fewer than two differences or no comparison.

    Example:
        >>> round(critical_value(5), 3), round(critical_value(5, comparisons=10), 3)
        (2.776, 5.598)

    Source: O. J. Dunn, *Multiple Comparisons among Means*, JASA 56 (1961): Bonferroni's inequality.
    """
    if n < 2 or comparisons < 1:
        raise ValueError(f"{n} differences, {comparisons} comparisons: 2 and 1 are the fewest")
    return float(stats.t.isf(0.05 / (2 * comparisons), n - 1))


def paired_differences(
    collected: pd.DataFrame,
    metric: str,
    baseline: str | Mapping[str, str],
    comparisons: int | None = None,
) -> pd.DataFrame:
    """Each row minus its baseline, seed by seed, with 95 % intervals that hold *together*.

    mean ± t · sd / √n over the n seeds that both have, t the `critical_value` of so many
    comparisons: with 95 % probability or more no interval of the table misses its true difference.

    Each row has the sd of its own differences. Dunnett's intervals, narrower with few seeds, pool
    one variance over all rows and assume that every row resembles the baseline equally. Here one sd
    can be ten times another (vector noise shares the draws of its baseline, a collapsing method
    shares nothing), rows may have other seeds or another baseline, and a pooled interval would be
    too narrow just where a row scatters most. What is assumed: seeds are independent, and
    differences about normal.

    Args:
        collected: as `collect` gives it.
        metric: its column.
        baseline: name of the row that is subtracted, or for each row the name of its own.
        comparisons: intervals that shall hold together; the rows of this table if not given. One
            that stands alone has 1, a claim that is one of nine in several tables 9.

    Returns:
        One line a row, indexed by it: `minus`, `seeds` that both have, `mean`, `sd` of the
        differences, `95 % ±`. The interval is NaN below two seeds and where all differences are
        equal to nine decimals; all three are where a seed has no number, as one that collapsed.

    Raises:
        ValueError: a baseline is not among the rows, a row has two runs of one seed (choose a
            column first), or fewer comparisons than rows.

    Example:
        >>> runs_of = pd.DataFrame({"row": list("aabb"), "seed": [0, 1, 0, 1],
        ...     "score": [1.0, 2.0, 2.0, 4.0]})
        >>> paired_differences(runs_of, "score", "a").round(2).to_dict("records")
        [{'minus': 'a', 'seeds': 2, 'mean': 1.5, 'sd': 0.71, '95 % ±': 6.35}]

    Source: as `critical_value`; C. W. Dunnett, *A Multiple Comparison Procedure for Comparing
        Several Treatments with a Control*, JASA 50 (1955), for what is not done here.
    """
    if (twice := collected.duplicated(["row", "seed"])).any():
        row = collected.loc[twice, "row"].iloc[0]
        raise ValueError(f"two runs of one row and seed, {row!r}: choose a column first")
    by_row = collected[["row", "seed", metric]].groupby("row", sort=False)
    scores = {str(name): part.set_index("seed")[metric] for name, part in by_row}
    if isinstance(baseline, str):
        baseline = {row: baseline for row in scores if row != baseline}
    if unknown := {*baseline, *baseline.values()} - set(scores):
        raise ValueError(f"no finished run of {sorted(unknown)}: there are {list(scores)}")
    together = len(baseline) if comparisons is None else comparisons
    if together < len(baseline):
        raise ValueError(f"{len(baseline)} rows are more than {together} comparisons")
    lines = [
        {"row": row, "minus": base, **_difference(scores[row], scores[base], together)}
        for row, base in baseline.items()
    ]
    columns = ["row", "minus", "seeds", "mean", "sd", "95 % ±"]
    return pd.DataFrame(lines, columns=columns).set_index("row")


def _difference(row: pd.Series, base: pd.Series, comparisons: int) -> dict[str, object]:
    """`seeds`, `mean`, `sd` and `95 % ±` of one row minus another."""
    both = row.index.intersection(base.index)
    difference = (row[both] - base[both]).to_numpy(float)
    n, half = len(difference), math.nan
    sd = float(np.std(difference, ddof=1)) if n > 1 else math.nan
    if n > 1 and np.ptp(difference) > 1e-9:
        half = critical_value(n, comparisons) * sd / math.sqrt(n)
    mean = float(np.mean(difference)) if n else math.nan
    return {"seeds": n, "mean": mean, "sd": sd, "95 % ±": half}


def welch(above: ArrayLike, below: ArrayLike, comparisons: int = 1) -> dict[str, float]:
    """Difference of two means, its interval, and the size of the first sample: the two may scatter
    differently.

    Args:
        above, below: independent scores, at least two each.
        comparisons: for how many the 95 % hold together (Bonferroni).

    Returns:
        `mean`, of `above` minus that of `below`; `half` of the interval; `n` of `above`. NaN where
        a score is NaN.

    Example:
        >>> {name: round(value, 2) for name, value in welch([1, 2, 3], [0, 1, 2]).items()}
        {'mean': 1.0, 'half': 2.27, 'n': 3}

    Source: B. L. Welch, *The generalization of "Student's" problem*, Biometrika 34 (1947).
    """
    one, two = np.asarray(above, float), np.asarray(below, float)
    found = stats.ttest_ind(one, two, equal_var=False).confidence_interval(1 - 0.05 / comparisons)
    half = float(found.high - found.low) / 2
    return {"mean": float(one.mean() - two.mean()), "half": half, "n": len(one)}


def called(mean: float, half: float, printed: float = math.nan) -> str:
    """The word of `data/papers/primary.csv` for mean ± half, where a paper prints a difference or
    none (NaN).

    Raises:
        ValueError: mean or half is NaN.

    Example:
        >>> called(4.2, 0.9, 3.6), called(1.0, 0.5, 3.6), called(0.1, 0.5, 3.6), called(0.1, 5, 3.6)
        ('confirmed', 'smaller', 'not found at the printed size', 'undecided')
    """
    if math.isnan(mean + half):
        raise ValueError(f"no verdict on {mean} ± {half}: a run without a score, or too few runs")
    sign = -1 if printed < 0 else 1
    low, high = sign * mean - half, sign * mean + half
    size = 0 if math.isnan(printed) else abs(printed)
    if low > 0:
        return "confirmed" if high >= size else "smaller"
    if high < 0:
        return "reversed"
    return "undecided" if high >= size else "not found at the printed size"


def power_of(effect: float, n: int, sd: float, comparisons: int = 1) -> float:
    """Probability that the interval of one row leaves zero out where its true difference is
    `effect`.

    P(|T| > t), T noncentral t with n − 1 degrees of freedom and noncentrality effect · √n / sd, t
    the `critical_value`: exact for normal differences, for each of the comparisons alone.

    Args:
        effect: true mean difference.
        n: seeds; sd: of the differences from seed to seed, not of one row's scores.
        comparisons: intervals that hold together.

    Raises:
        ValueError: as `critical_value`; an sd that is not above zero.

    Example:
        >>> round(power_of(1.0, n=10, sd=1.0), 3), round(power_of(1.0, 10, 1.0, comparisons=10), 3)
        (0.803, 0.377)

    Source: J. Cohen, *Statistical Power Analysis for the Behavioral Sciences*, 2nd ed. (1988),
        chapter 2; the values are those of G*Power, "difference between two dependent means".
    """
    if not sd > 0:
        raise ValueError(f"the sd of the differences must be above zero, got {sd}")
    bar, shift = critical_value(n, comparisons), abs(effect) * math.sqrt(n) / sd
    above, below = stats.nct.sf(bar, n - 1, shift), stats.nct.cdf(-bar, n - 1, shift)
    return float(above + np.nan_to_num(below))  # scipy: NaN where it is next to nothing


def minimum_detectable_effect(n: int, sd: float, comparisons: int = 1, power: float = 0.8) -> float:
    """The smallest true difference that `n` seeds would tell from zero with this power: the
    `effect` at which `power_of` is `power`.

    An sd that comes from the same few seeds is itself uncertain, and this figure with it: with
    five, the 95 % interval of the true sd runs from 0.6 to 2.9 times the one seen.

    Args:
        as `power_of`; power: between the level of one comparison and 1.

    Raises:
        ValueError: as `power_of`; a power outside that range.

    Example:
        >>> [round(minimum_detectable_effect(5, 1.0, comparisons=k), 2) for k in (1, 10)]
        [1.68, 3.16]

    Source: as `power_of`.
    """
    upper = sd * critical_value(n, comparisons)
    if not 0.05 / comparisons < power < 1:
        raise ValueError(f"power must be between {0.05 / comparisons:g} and 1, got {power}")

    def missing(effect: float) -> float:
        return power_of(effect, n, sd, comparisons) - power

    while missing(upper) < 0:
        upper *= 2
    return float(optimize.brentq(missing, 0, upper))


class Interval(NamedTuple):
    """A figure, and the ends of its interval."""

    value: float
    low: float
    high: float


def mean_interval(
    values: ArrayLike, resamples: int = 2000, level: float = 0.95, seed: int = 0
) -> Interval:
    """A mean with a percentile interval over what was measured.

    x̄ = Σ xᵢ / n. Of the n values n are drawn with replacement, again and again; the ends are the
    (1 ± level) / 2 quantiles of the means. Values on the same items with the same seed are drawn
    alike; for the difference of two measurements give the differences. With few values it is too
    narrow: of normal ones it covers 83 % with five, 91 % with twelve, 95 % from fifty on; one has
    none.

    Args:
        values: (n,), each counted as independent of the others.
        resamples: how many are drawn.
        seed: of the draws.

    Raises:
        ValueError: no values, NaN or infinity in them.

    Example:
        >>> [round(end, 2) for end in mean_interval([0.0, 1.0] * 50)]
        [0.5, 0.41, 0.6]

    Source: B. Efron, R. Tibshirani, *An Introduction to the Bootstrap* (1993), section 13.3.
    """
    x = np.asarray(values, float)
    if x.ndim != 1 or len(x) == 0 or not np.isfinite(x).all():
        raise ValueError(f"no mean: values of shape {x.shape}, empty or with NaN or infinity")
    each = np.full(len(x), 1 / len(x))
    counts = np.random.default_rng(seed).multinomial(len(x), each, size=resamples)
    low, high = np.quantile(counts @ x / len(x), [(1 - level) / 2, (1 + level) / 2])
    if len(x) == 1:
        low = high = math.nan
    return Interval(float(x.mean()), float(low), float(high))
