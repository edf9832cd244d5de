"""What the declared runs say of the primary claims: `results/primary.csv`.

`data/papers/primary.csv` declares each claim before its runs: two arms, the learning rates among
which STS-B dev chooses for each arm alone, the seeds, the test. The runs are those of two grids,
`primary_rates` and `primary_rates_translation`. `python -m tools.primary` (`make table`) judges
what there is; a claim with fewer than ten seeds an arm is preliminary, one without runs says so.
Beside it stands what runs from before the declaration say, where both arms have some.
"""

import math
from typing import Any

import pandas as pd

from lib import paths, results
from lib.data.files import write_text
from lib.results.statistics import called, welch

DECLARED = paths.PAPERS / "primary.csv"
OUTCOME = paths.RESULTS / "primary.csv"
GRIDS = ("primary_rates", "primary_rates_translation")
DEV = "stsb_dev_spearman_best"
RATE_SEEDS = (101, 102)
SEEDS = range(201, 211)
OLDER = {  # claim → grid of midi-BERT's runs from before the declaration, and its two rows
    "simcse_two_masks": ("simcse_small", "SimCSE", "one mask for both"),
    "consert_views": ("consert_small", "ConSERT-unsup, Wikipedia", "no view, Wikipedia"),
    "una": ("una_small", "UNA, doubled", "SimCSE, UNA's loss"),
    "sda_ensemble": ("sda_small", "ensemble", "SimCSE, SDA's head"),
}


def chosen_rate(runs_of: pd.DataFrame, arm: str) -> str | None:
    """The learning rate that STS-B dev chooses for an arm, by the mean of its two rate seeds; None
    while a rate that the declaration asks for has not been run.

    3e-4 and 1e-4 are tried, and 3e-5 where 1e-4 is the better of the two.

    Args:
        runs_of: one line a run, with `arm`, `rate`, `seed` and the score on STS-B dev.

    Example:
        >>> runs_of = pd.DataFrame({"arm": ["UNA"] * 4, "rate": ["3e-4", "3e-4", "1e-4", "1e-4"],
        ...     "seed": [101, 102] * 2, DEV: [75.0, 76.0, 72.0, 73.0]})
        >>> chosen_rate(runs_of, "UNA"), chosen_rate(runs_of.iloc[:3], "UNA")
        ('3e-4', None)
    """
    tried = runs_of[(runs_of["arm"] == arm) & runs_of["seed"].isin(RATE_SEEDS)]
    means = {
        rate: part[DEV].fillna(-math.inf).mean()  # a rate at which a run collapsed is not chosen
        for rate, part in tried.groupby("rate")
        if len(part) == 2
    }
    if not {"3e-4", "1e-4"} <= means.keys():
        return None
    if means["1e-4"] > means["3e-4"] and "3e-5" not in means:
        return None
    return max(means, key=lambda rate: means[rate])


def judged(declared: pd.DataFrame, runs_of: pd.DataFrame) -> pd.DataFrame:
    """One line a declared claim: printed and measured difference, interval, rates, seeds, hours.

    Args:
        declared: `data/papers/primary.csv`.
        runs_of: the committed rows of the grid, as `lib.results.rows` gives them.
    """
    runs_of = runs_of.copy()
    runs_of[["arm", "rate"]] = runs_of["row"].str.rsplit(", ", n=1, expand=True).to_numpy()
    families = declared[declared["kind"] == "secondary"].groupby("paper").size()
    lines = []
    for one in declared.itertuples():
        comparisons = 1 if one.kind == "primary" else int(families[one.paper])
        lines.append(_line(one, runs_of, comparisons))
    return pd.DataFrame(lines)


def _line(claim: Any, runs_of: pd.DataFrame, comparisons: int) -> dict[str, object]:
    arms = (claim.row, claim.baseline)
    rates = [chosen_rate(runs_of, arm) for arm in arms]
    found = [
        runs_of[(runs_of["arm"] == arm) & (runs_of["rate"] == rate) & runs_of["seed"].isin(SEEDS)]
        for arm, rate in zip(arms, rates, strict=True)
    ]
    scores = [part[f"{claim.metric}_best"].to_numpy(float) for part in found]
    spent = runs_of.loc[runs_of["arm"].isin(arms), ["train_seconds", "dev_seconds"]].to_numpy()
    line = {name: getattr(claim, name) for name in ("claim", "kind", "paper", "says", "printed")}
    line |= {"rate": rates[0] or "", "baseline_rate": rates[1] or ""}
    line |= {"seeds": len(scores[0]), "baseline_seeds": len(scores[1])}
    line |= {"difference": math.nan, "half_width": math.nan}
    line |= {"hours": round(float(spent.sum()) / 3600, 1), "verdict": "not run"}
    if min(map(len, scores)) >= 2:
        one = welch(scores[0], scores[1], comparisons)
        collapsed = math.isnan(one["half"])
        word = "collapsed" if collapsed else called(one["mean"], one["half"], claim.printed)
        line |= {"difference": round(one["mean"], 4), "half_width": round(one["half"], 4)}
        whole = min(map(len, scores)) == len(SEEDS)
        line["verdict"] = word if whole else f"preliminary: {word}"
    elif spent.size:
        line["verdict"] = "begun"
    return line


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """The outcome as a table to read: what is run, by claim."""
    arms = {"rate": "baseline_rate", "seeds": "baseline_seeds"}
    both = {
        one: table[one].astype(str) + " / " + table[two].astype(str) for one, two in arms.items()
    }
    size = table["difference"].map("{:+.2f}".format) + table["half_width"].map(" ± {:.2f}".format)
    told = pd.DataFrame(
        {
            "claim": table["says"] + " (" + table["kind"] + ")",
            "printed": table["printed"].map("{:+.2f}".format).replace("+nan", "–"),
            "ours": size.replace("+nan ± nan", "–"),
            "learning rates": both["rate"]
            .replace(" / ", "–")
            .str.replace(r"^ /", "– /", regex=True)
            .str.replace(r"/ $", "/ –", regex=True),
            "seeds": both["seeds"],
            "hours": table["hours"],
            "verdict": table["verdict"],
        }
    )
    return told.replace(r"^-", "−", regex=True)


def older() -> pd.DataFrame:
    """What runs from before the declaration say: difference, half of its interval, seeds of each
    arm."""
    metrics = pd.read_csv(DECLARED, index_col="claim")["metric"]
    lines = []
    for claim, (grid, row, baseline) in OLDER.items():
        scores = results.rows(grid).groupby("row")[f"{metrics[claim]}_best"]
        one = welch(scores.get_group(row), scores.get_group(baseline))
        line = {"claim": claim, "older_difference": round(one["mean"], 4)}
        lines.append(line | {"older_half_width": round(one["half"], 4), "older_seeds": one["n"]})
    return pd.DataFrame(lines).astype({"older_seeds": "Int64"})


def outcome() -> pd.DataFrame:
    """What the committed runs say of the declared claims."""
    told = judged(pd.read_csv(DECLARED), pd.concat([results.rows(grid) for grid in GRIDS]))
    return told.merge(older(), on="claim", how="left")


def write() -> pd.DataFrame:
    """Write `results/primary.csv`."""
    table = outcome()
    write_text(OUTCOME, table.to_csv(index=False))
    return table


if __name__ == "__main__":
    write()
