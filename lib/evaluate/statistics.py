"""Means, intervals and tests over seeds: every ± and every p of the course comes from here."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy import integrate, stats


def mean_sd(values: pd.Series) -> str:
    """`mean ± sd` with two decimals (sd over seeds, n − 1); the value alone for one run, – for
    none.

    Runs without the number collapsed: they are counted, and there is no mean without them.

    Example:
        >>> mean_sd(pd.Series([1.0, 2.0, 3.0])), mean_sd(pd.Series([1.0, 2.0, np.nan]))
        ('2.00 ± 1.00', '– (1 of 3 collapsed)')
    """
    if lost := int(values.isna().sum()):
        return f"– ({lost} of {len(values)} collapsed)"
    if len(values) == 0:
        return "–"
    return f"{values.mean():.2f}" + (f" ± {values.std(ddof=1):.2f}" if len(values) > 1 else "")


def paired_differences(
    collected: pd.DataFrame, metric: str, baseline: str | Mapping[str, str]
) -> pd.DataFrame:
    """Each row minus its baseline, seed by seed: mean, half width of the 95 % interval and p of a
    paired t-test.

    Args:
        collected: as `collect` gives it.
        metric: its column.
        baseline: name of the row that is subtracted, or for each row the name of its own.

    Returns:
        One line a row, indexed by it: `minus`, `seeds` that both have, `mean`, `95 % ±`, `p`; the
        last two are NaN below two seeds or where all differences are equal, all three where a
        seed has no number, such as one that collapsed.

    Raises:
        ValueError: a baseline is not among the rows, or a row has two runs of one seed (choose a
            column first).

    Example:
        >>> runs_of = pd.DataFrame({"row": list("aabb"), "seed": [0, 1, 0, 1],
        ...     "score": [1.0, 2.0, 2.0, 4.0]})
        >>> paired_differences(runs_of, "score", "a").round(2).to_dict("records")
        [{'minus': 'a', 'seeds': 2, 'mean': 1.5, '95 % ±': 6.35, 'p': 0.2}]
    """
    if (twice := collected.duplicated(["row", "seed"])).any():
        raise ValueError(
            f"two runs of one row and seed, {collected.loc[twice, 'row'].iloc[0]!r}: choose a"
            " column first"
        )
    scores = {
        name: part.set_index("seed")[metric] for name, part in collected.groupby("row", sort=False)
    }
    pairs = (
        dict(baseline)
        if isinstance(baseline, Mapping)
        else {row: baseline for row in scores if row != baseline}
    )
    if unknown := {*pairs, *pairs.values()} - set(scores):
        raise ValueError(f"no finished run of {sorted(unknown)}: there are {list(scores)}")
    lines: list[dict[str, object]] = []
    for row, base in pairs.items():
        both = scores[row].index.intersection(scores[base].index)
        difference = scores[row][both] - scores[base][both]
        n = len(difference)
        half, p = np.nan, np.nan
        if n > 1 and difference.std(skipna=False) > 0:
            half = float(stats.sem(difference) * stats.t.ppf(0.975, n - 1))
            p = float(stats.ttest_1samp(difference, 0).pvalue)
        lines.append(
            {
                "row": row,
                "minus": base,
                "seeds": n,
                "mean": difference.mean(skipna=False),
                "95 % ±": half,
                "p": p,
            }
        )
    return pd.DataFrame(lines, columns=["row", "minus", "seeds", "mean", "95 % ±", "p"]).set_index(
        "row"
    )


def best_of(n: int, mean: float, sd: float) -> float:
    """Expected largest of `n` independent normal scores: mean + sd · E[max of n standard normals].

    Example:
        >>> round(best_of(10, 76.98, 0.38), 2)
        77.56

    Source: order statistics; E[max] = ∫ x n φ(x) Φ(x)^(n−1) dx.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")

    def density(x: float) -> float:
        return x * n * stats.norm.pdf(x) * stats.norm.cdf(x) ** (n - 1)

    return mean + sd * float(integrate.quad(density, -10, 10)[0])


def verdict(difference: float, half_width: float) -> str:
    """What an interval says of a claim "greater": `supported`, `contradicted`, or
    `not distinguishable` from zero.

    Args:
        difference: mean over seeds, of the sign that the claim gives it; half_width: of its 95 %
            interval.

    Example:
        >>> verdict(0.5, 0.2), verdict(-0.5, 0.2), verdict(0.1, 0.2), verdict(0.1, float("nan"))
        ('supported', 'contradicted', 'not distinguishable', 'not distinguishable')
    """
    if abs(difference) > half_width:
        return "supported" if difference > 0 else "contradicted"
    return "not distinguishable"
