"""What declared runs say of the primary claims: rates, seeds, verdict."""

import numpy as np
import pandas as pd
import pytest

from tools import primary

DECLARED = pd.read_csv(primary.DECLARED)
ONE = DECLARED[DECLARED["claim"] == "una"]


def trained(arm, rate, seeds, dev, score):
    """Rows of runs, as the grid has them."""
    lines = {"row": f"{arm}, {rate}", "seed": [*seeds], "stsb_dev_spearman_best": dev}
    lines |= {"sts7_test_avg_best": score, "train_seconds": 800.0, "dev_seconds": 100.0}
    return pd.DataFrame(lines)


def tried(arm, devs):
    """Two rate seeds at each of these learning rates."""
    return [trained(arm, rate, primary.RATE_SEEDS, dev, 0.0) for rate, dev in devs.items()]


@pytest.mark.parametrize(("seeds", "verdict"), [(10, "smaller"), (4, "preliminary: smaller")])
def test_a_claim_is_judged_on_the_new_seeds_at_the_chosen_rates(seeds, verdict):
    noise = np.linspace(-0.1, 0.1, seeds)
    parts = [
        *tried("UNA", {"3e-4": 75, "1e-4": 72}),
        *tried("SimCSE, UNA's loss", {"3e-4": 75, "1e-4": 74}),
    ]
    parts += [trained("UNA", "3e-4", primary.SEEDS[:seeds], 75, 66.4 + noise)]
    parts += [trained("UNA", "1e-4", primary.SEEDS[:seeds], 75, 99.0)]
    parts += [trained("SimCSE, UNA's loss", "3e-4", primary.SEEDS[:seeds], 75, 66.0 + noise)]
    found = primary.judged(ONE, pd.concat(parts)).iloc[0]
    assert found["verdict"] == verdict and found["difference"] == pytest.approx(0.4)
    assert (found["rate"], found["seeds"], found["baseline_seeds"]) == ("3e-4", seeds, seeds)


def test_a_collapsed_run_loses_its_rate_and_never_hides():
    runs_of = pd.concat([*tried("UNA", {"3e-4": [77, np.nan], "1e-4": 72, "3e-5": 70})])
    runs_of[["arm", "rate"]] = runs_of["row"].str.rsplit(", ", n=1, expand=True).to_numpy()
    assert primary.chosen_rate(runs_of, "UNA") == "1e-4"
    assert primary.chosen_rate(runs_of[runs_of["rate"] != "3e-5"], "UNA") is None
    parts = [*tried("UNA", {"3e-4": 75, "1e-4": 72})]
    parts += [*tried("SimCSE, UNA's loss", {"3e-4": 75, "1e-4": 74})]
    parts += [trained("UNA", "3e-4", primary.SEEDS, 75, [np.nan] + [66.0] * 9)]
    parts += [trained("SimCSE, UNA's loss", "3e-4", primary.SEEDS, 75, np.linspace(65, 66, 10))]
    assert primary.judged(ONE, pd.concat(parts)).iloc[0]["verdict"] == "collapsed"


def test_the_committed_outcome_is_that_of_the_committed_runs():
    again = primary.outcome().to_csv(index=False)
    assert primary.OUTCOME.read_text(encoding="utf-8") == again
