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


def test_each_arm_has_its_own_rate_and_the_third_is_asked_for_where_the_declaration_says():
    runs_of = pd.concat(tried("a", {"3e-4": 75, "1e-4": 72}) + tried("b", {"3e-4": 70, "1e-4": 72}))
    runs_of[["arm", "rate"]] = runs_of["row"].str.split(", ", expand=True).to_numpy()
    assert primary.chosen_rate(runs_of, "a") == "3e-4"
    assert primary.chosen_rate(runs_of, "b") is None, "3e-5 has not been run"
    third = runs_of[runs_of["arm"] == "b"].assign(rate="3e-5", stsb_dev_spearman_best=71)
    assert primary.chosen_rate(pd.concat([runs_of, third.iloc[:2]]), "b") == "1e-4"


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


def test_without_runs_nothing_is_said():
    found = primary.judged(ONE, trained("SimCSE", "3e-4", [101], 75, 60)).iloc[0]
    assert found["verdict"] == "not run" and np.isnan(found["difference"])


def test_the_committed_outcome_is_that_of_the_committed_runs():
    again = primary.outcome().to_csv(index=False)
    assert primary.OUTCOME.read_text(encoding="utf-8") == again
