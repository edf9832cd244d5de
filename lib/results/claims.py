"""What the papers claim, what their tables print for it, and what our committed runs say.

`data/papers/claims.csv` has one claim a line: where it stands, the two printed cells whose
difference it is about, and the two rows of our grids that measure the same.
"""

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from lib import paths
from lib.results.committed import rows as rows_of_grid
from lib.results.statistics import called, minimum_detectable_effect, paired_differences

VERDICTS: tuple[str, ...] = ("confirmed", "smaller", "reversed")
VERDICTS += ("not found at the printed size", "undecided", "not tested")
SIZES = ("small", "light")
SEEDS = {"small": 5, "light": 2}  # fewest that answer: two of `small` say less than five of `light`


class Claim(NamedTuple):
    """A difference that a paper prints, and the rows of ours that answer it.

    Two rows of ours answer it where they differ in what the paper's two rows differ in, and stand
    on what those stand on: the family of the encoder, the kind of text, the other augmentations.
    What else differs, the rate of dropout among it, is the profile's.

    Attributes:
        paper, where: short name of the text, and its table.
        claim: in our words, such that the difference times `sign` is above zero where it holds.
        table: file of `data/papers/`; row, baseline: `row_id` of its two cells, after a colon their
            column if it is not `column` (`avg`: the mean of all columns of tasks).
        sign: −1 where the claim says "harms".
        rows: our grids, `{}` in the place of the profile: `una_{}` is `una_small` or `una_light`;
            row_ours, baseline_ours: two rows; baseline_small: the second at `small`, where SimCSE
            alone has another loss or head; metric: what is compared, without the checkpoint.
        full: grid that tests the claim in the paper's own setting.
        untested: what a test would need that we lack; empty where there are rows.
    """

    paper: str
    where: str
    claim: str
    table: str
    row: str
    baseline: str
    column: str
    sign: int
    rows: str
    row_ours: str
    baseline_ours: str
    baseline_small: str
    metric: str
    full: str
    untested: str


def read(path: Path = paths.PAPERS / "claims.csv") -> list[Claim]:
    """The claims in the order of the file."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False).astype({"sign": int})
    return [Claim(**line) for line in table.to_dict("records")]


def pair(claim: Claim, size: str) -> tuple[str, str]:
    """Our two rows at `small` or `light`."""
    small = claim.baseline_small if size == "small" else ""
    return claim.row_ours, small or claim.baseline_ours


def printed(claim: Claim) -> float:
    """The paper's difference in points (Spearman or accuracy × 100), times the claim's sign.

    Raises:
        KeyError: the table has no such row or column.

    Example:
        >>> round(printed(read()[0]), 2)  # UNA − SimCSE, BERT-base
        0.82
    """
    index = pd.read_csv(paths.PAPERS / "index.csv").set_index("file")
    factor = float(index.loc[f"{claim.table}.csv", "factor"])
    table = pd.read_csv(paths.PAPERS / f"{claim.table}.csv", dtype=str).set_index("row_id")
    above = _cell(table, claim.row, claim.column)
    below = _cell(table, claim.baseline, claim.column)
    return claim.sign * factor * (above - below)


def _cell(table: pd.DataFrame, name: str, column: str) -> float:
    row, _, own = name.partition(":")
    if own == "avg":
        tasks = [c for c in table.columns if f"{c}_sd" in table.columns]
        return float(table.loc[row, tasks].astype(float).mean())
    return float(table.loc[row, own or column])


def grid_of(claim: Claim, rows: Mapping[str, pd.DataFrame]) -> str | None:
    """The grid whose committed rows answer the claim: `small` if its two rows share five seeds,
    else `light` if they share two; None where neither does.

    Args:
        rows: the committed rows of each of its grids.
    """
    for size in SIZES if claim.rows else ():
        name = claim.rows.format(size)
        measured = rows[name].reindex(columns=["row", "seed", f"{claim.metric}_last"]).dropna()
        shared = [set(measured.loc[measured["row"] == row, "seed"]) for row in pair(claim, size)]
        if len(set.intersection(*shared)) >= SEEDS[size]:
            return name
    return None


def judged(
    claims: list[Claim], checkpoint: str = "best", comparisons: int | None = None
) -> pd.DataFrame:
    """One line a claim: the paper's difference, ours, and the verdict.

    The verdict is `statistics.called` with the paper's difference, one of `VERDICTS`.

    Args:
        checkpoint: best (on STS-B dev) or last.
        comparisons: for how many the intervals hold together; None: for all claims of the same
            paper that have runs.

    Returns:
        Columns paper, where, claim, printed, ours, half_width, could_be_seen, seeds, grid, verdict,
        full, untested. `could_be_seen` is the `minimum_detectable_effect` at the scatter of our
        difference. A claim without runs, or whose runs collapsed, has NaN and "not tested".
    """
    names = {claim.rows.format(size) for claim in claims if claim.rows for size in SIZES}
    rows = {name: rows_of_grid(name) for name in sorted(names)}
    grids = [grid_of(claim, rows) for claim in claims]
    together = Counter(c.paper for c, g in zip(claims, grids, strict=True) if g)
    lines = []
    for claim, grid in zip(claims, grids, strict=True):
        line: dict[str, object] = {"paper": claim.paper, "where": claim.where, "claim": claim.claim}
        line |= {"printed": printed(claim), "ours": math.nan, "half_width": math.nan}
        line |= {"could_be_seen": math.nan, "seeds": 0, "grid": "", "verdict": "not tested"}
        line |= {"full": claim.full, "untested": claim.untested}
        if grid:
            metric, many = f"{claim.metric}_{checkpoint}", comparisons or together[claim.paper]
            line |= {"grid": grid, **_ours(claim, rows[grid], grid, metric, many)}
        lines.append(line)
    return pd.DataFrame(lines)


def _ours(
    claim: Claim, rows: pd.DataFrame, grid: str, metric: str, comparisons: int
) -> dict[str, object]:
    """Our difference, its interval and the verdict."""
    row, baseline = pair(claim, grid.split("_")[1])
    found = paired_differences(rows, metric, {row: baseline}, comparisons=comparisons).loc[row]
    ours, half, n = claim.sign * found["mean"], found["95 % ±"], int(found["seeds"])
    seen = math.nan if math.isnan(half) else minimum_detectable_effect(n, found["sd"], comparisons)
    said = "not tested" if math.isnan(half) else called(ours, half, printed(claim))
    return {"ours": ours, "half_width": half, "could_be_seen": seen, "seeds": n, "verdict": said}
