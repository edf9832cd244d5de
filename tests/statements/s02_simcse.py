"""What notebook 02 says of midi-BERT's histories, of mini-BERT on real sentences, and of seeds."""

from functools import cache

import pandas as pd
from scipy import stats

from lib import results
from lib.results.statistics import paired_differences
from statements import Statement, mean, rows
from statements.s07_results import any_length

SMALL, LIGHT = "simcse_small", "simcse_light"
TWO, ONE, RAW = "SimCSE", "one mask for both", "as pre-trained"
NONE = "p = 0"
SHARES = (ONE, NONE, "p = 0.05", "p = 0.2")
MEAN, LAST = "SimCSE, trained through the mean", "sts7_test_avg_last"
DEV = "stsb_dev_spearman_best"


@cache
def history(row: str) -> pd.DataFrame:
    """The steps of all seeds of a row."""
    steps = results.steps(SMALL)
    return steps[steps["row"] == row]


def first(row: str, column: str) -> float:
    """A column at step 1, the mean over seeds."""
    steps = history(row)
    return float(steps.loc[steps["step"] == 1, column].mean())


def end(row: str, column: str) -> float:
    """A column over the last ten steps, the mean over steps and seeds."""
    steps = history(row)
    return float(steps.loc[steps["step"] > steps["step"].max() - 10, column].mean())


def largest_end() -> tuple[float]:
    """The largest cosine of two sentences at the end of the five kinds of training."""
    return (max(end(row, "other_cosine") for row in (TWO, *SHARES)),)


def largest_loss(row: str, since: int) -> float:
    """The largest loss of any seed from a step on."""
    steps = history(row)
    return float(steps.loc[steps["step"] >= since, "loss"].max())


def scores(row: str) -> pd.Series:
    """The seven tasks of midi-BERT by seed."""
    table = rows(SMALL)
    return table[table["row"] == row].set_index("seed")["sts7_test_avg_best"]


def alike(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...]:
    """The first of two rows that the text gives one pair of numbers, rounded alike."""
    assert [f"{a:.2f}" for a in one] == [f"{b:.2f}" for b in other]
    return one


def below(
    row: str, metric: str = "sts7_test_avg_best", others: tuple[str, ...] = SHARES
) -> tuple[float, float]:
    """How far a row lies below two masks, as one of `others`, and its interval."""
    found = paired_differences(rows(SMALL), metric, dict.fromkeys(others, TWO))
    return -float(found.loc[row, "mean"]), float(found.loc[row, "95 % ±"])


def without_above_one_mask() -> tuple[float, float, float]:
    """p = 0 minus one mask on the seven tasks: the mean, its interval alone and as one of five."""
    gaps = scores(NONE) - scores(ONE)
    alone, of_five = (
        stats.t.isf(0.025 / together, len(gaps) - 1) * gaps.std(ddof=1) / len(gaps) ** 0.5
        for together in (1, 5)
    )
    assert alone < gaps.mean() < of_five  # of five, the interval contains zero
    return gaps.mean(), alone, of_five


def minutes() -> pd.Series:
    """Of training SimCSE at `small`, a seed each."""
    table = rows(SMALL)
    return table.loc[table["row"] == TWO, "train_seconds"] / 60


def sd(grid: str, row: str, metric: str = "sts7_test_avg_best") -> float:
    """Over the seeds of a row."""
    table = rows(grid)
    return float(table.loc[table["row"] == row, metric].std(ddof=1))


def at_rate(way: str, rate: str, metric: str = "sts7_test_avg_best") -> float:
    """A score of midi-BERT, trained at a rate with seed 42."""
    return float(rows("simcse_small_rates").set_index("row").loc[f"{way} {rate}", metric])


def each_at_its_rate() -> tuple[float, float]:
    """Seven tasks of [CLS] and of the mean, each at the rate that dev chooses of the same four."""
    chosen = {"SimCSE": "3e-4", "through the mean": "1e-4"}
    for way, best in chosen.items():
        dev = {rate: at_rate(way, rate, DEV) for rate in ("3e-5", "1e-4", "3e-4", "6e-4")}
        assert max(dev, key=lambda rate: dev[rate]) == best
    first, second = (at_rate(way, rate) for way, rate in chosen.items())
    return first, second


def ahead_at(rate: str) -> float:
    """The mean minus [CLS] on the seven tasks, both at one rate."""
    return at_rate("through the mean", rate) - at_rate("SimCSE", rate)


def without_dropout_above_simcse() -> tuple[()]:
    """Nothing, if ConSERT's training without a view and dropout ends above SimCSE in every seed."""
    found = rows("consert_small").query("row == 'no view, Wikipedia'")
    assert set(found["dropout"]) == {0.0} and set(found["head"]) == {"none"}
    assert found["sts7_test_avg_best"].min() > scores(TWO).max()
    return ()


CURVES = "simcse_light_curves"


@cache
def turned() -> pd.DataFrame:
    """Each setting of the four knobs minus the usual one, at the last step; all intervals hold
    together."""
    found = paired_differences(rows(CURVES), LAST, "SimCSE")
    assert (found["seeds"] == 5).all()
    return found


def costs() -> tuple[float, ...]:
    """What the smallest batch, the lowest and the highest temperature cost; the batch costs most,
    and with no τ or number of tokens is more gained than lost with the usual one."""
    gap = turned()["mean"]
    assert gap.idxmin() == "batches of 16" and (gap[gap.index.str.startswith("tau")] < 0).all()
    assert gap[gap.index.str.contains("tokens")].abs().max() < 0.25
    return tuple(-float(gap[row]) for row in ("batches of 16", "tau 0.01", "tau 0.2"))


def enough() -> tuple[float, float]:
    """The seven tasks after 320 steps and after 60."""
    return mean(CURVES, "320 steps", LAST), mean(CURVES, "SimCSE", LAST)


def clear_turns() -> tuple[str, float]:
    """How many differences there are, if those of three τ and of 20 steps alone are clear; and the
    interval of the batch of 16."""
    found = turned()
    clear = found.index[found["mean"].abs() > found["95 % ±"]]
    assert set(clear) == {"tau 0.01", "tau 0.02", "tau 0.2", "20 steps"}
    assert found["sd"].idxmax() == "batches of 16"
    return {13: "thirteen"}[len(found)], float(found.loc["batches of 16", "95 % ±"])


def loss_turned_round() -> tuple[()]:
    """Nothing, if the last ten losses rank the three masks the other way round than the tests."""
    history = results.steps(SMALL)
    late = history[history["step"] > history["step"].max() - 10].groupby("row")["loss"].mean()
    names = [TWO, NONE, ONE]
    assert list(late[names].sort_values(ascending=False).index) == names
    assert sorted(names, key=lambda row: -mean(SMALL, row)) == names
    return ()


STATEMENTS = [
    Statement("The loss ranks them the other way round.", loss_turned_round),
    Statement(
        "16 sentences lose {:.1f} points. (Sixty such batches hold an eighth of the sentences.)"
        " Of τ the paper's 0.05 scores highest; 0.01 costs {:.1f} and 0.2 costs {:.1f}",
        costs,
    ),
    Statement("320 end at {:.1f}, 60 at {:.1f}", enough),
    Statement(
        "As {} differences counted together, τ of 0.01, 0.02 and 0.2 and 20 steps are clear. A batch"
        " of 16 just misses, with ± {:.1f}, as its differences scatter most.",
        clear_turns,
    ),
    Statement("Shuffled, mini-BERT ends {:.1f} ± {:.1f} points lower", lambda: any_length()[:2]),
    Statement(
        "With two masks the loss starts at {:.2f} and is {:.3f} on average over the last ten steps."
        " With one mask it starts at {:.2f} and stays below {:.3f} from step 10 on",
        lambda: (first(TWO, "loss"), end(TWO, "loss"), first(ONE, "loss"), largest_loss(ONE, 10)),
    ),
    Statement(
        "from {:.2f} to {:.2f} with two masks and with one.",
        lambda: alike(*(tuple(f(row, "other_cosine") for f in (first, end)) for row in (TWO, ONE))),
    ),
    Statement(
        "exactly {:.0f} with one mask, {:.2f} at the end with two",
        lambda: (end(ONE, "positive_cosine"), end(TWO, "positive_cosine")),
    ),
    Statement(
        "the encoder has {:.1f} before training. At their best step two masks reach {:.1f} and one"
        " mask {:.1f}, on average",
        lambda: tuple(mean(SMALL, row, DEV) for row in (RAW, TWO, ONE)),
    ),
    Statement(
        "Two masks end at {:.1f} on the seven tasks, one mask at {:.1f}, the encoder as pre-trained"
        " at {:.1f}: the second mask earns {:.1f} of the {:.1f} points. Even the worst seed with two"
        " masks is {:.1f} above the best with one.",
        lambda: (
            *(mean(SMALL, row) for row in (TWO, ONE, RAW)),
            mean(SMALL, TWO) - mean(SMALL, ONE),
            mean(SMALL, TWO) - mean(SMALL, RAW),
            scores(TWO).min() - scores(ONE).max(),
        ),
    ),
    Statement(
        "Two masks are then at {:.1f}, one mask at {:.1f}, the encoder as pre-trained at {:.1f}.",
        lambda: tuple(mean(SMALL, row, "sts7_test_avg_cls_best") for row in (TWO, ONE, RAW)),
    ),
    Statement(
        "Their mean cosine is {:.2f} before training.",
        lambda: (mean(SMALL, RAW, "dev_mean_cosine_best"),),
    ),
    Statement(
        "All trainings spread what they train: others end at a cosine of {:.2f} or less.",
        largest_end,
    ),
    Statement(
        "their mean cosine falls from {:.2f} to {:.2f}. With one mask it is {:.2f}.",
        lambda: tuple(mean(SMALL, row, "dev_mean_cosine_best") for row in (RAW, TWO, ONE)),
    ),
    Statement(
        "Ours (midi-BERT; intervals as in the figure) loses {:.1f} ± {:.1f} with one mask and {:.1f} ± {:.1f} without dropout, tested with the mean.",
        lambda: below(ONE, DEV) + below(NONE, DEV),
    ),
    Statement(
        "(on the way one seed without dropout falls to {:.1f})",
        lambda: (history(NONE)["dev_score"].min(),),
    ),
    Statement(
        "They reach {:.1f} and {:.1f} on the seven tasks (TF-IDF {:.1f} with weights from 50,000"
        " sentences). On STS-B dev SIF is above SimCSE, with {:.1f}.",
        lambda: (
            mean(SMALL, "input embeddings, SIF"),
            mean(SMALL, "TF-IDF"),
            mean(LIGHT, "TF-IDF", LAST),
            mean(SMALL, "input embeddings, SIF", DEV),
        ),
    ),
    Statement(
        "Trained through [CLS] it scores {:.1f}; through the mean {:.1f}, little more than the"
        " {:.1f} of no training. On STS-B dev the mean even ends below no training, {:.1f} against"
        " {:.1f}.",
        lambda: (
            *(mean(LIGHT, row, LAST) for row in (TWO, MEAN, RAW)),
            *(mean(LIGHT, row, "stsb_dev_spearman_last") for row in (MEAN, RAW)),
        ),
    ),
    Statement(
        "(SIF has {:.1f} here, and TF-IDF, with weights from 50,000 sentences, {:.1f}: both are above",
        lambda: tuple(mean(LIGHT, row, LAST) for row in ("input embeddings, SIF", "TF-IDF")),
    ),
    Statement(
        "[CLS] has {:.1f} on the seven tasks (`3e-4`) and the mean {:.1f} (`1e-4`)",
        each_at_its_rate,
    ),
    Statement(
        "At `1e-4` alone the mean would win by {:.1f} points, at `6e-4` [CLS] by {:.1f}.",
        lambda: (ahead_at("1e-4"), -ahead_at("6e-4")),
    ),
    Statement(
        "one without it, through the mean, without a head and at ConSERT's rate, ends above SimCSE",
        without_dropout_above_simcse,
    ),
    Statement(
        "takes {:.0f} to {:.0f} minutes on one CPU core",
        lambda: tuple(f(minutes()) for f in (min, max)),
    ),
    Statement(
        "about three passes over {:,} Wikipedia sentences",
        lambda: (int(rows(SMALL)["n_sentences"].max()),),
    ),
    Statement(
        "In section 6 SimCSE scatters by {:.1f} points (sd) over seeds; the second mask is worth {:.1f}.",
        lambda: (sd(SMALL, TWO), mean(SMALL, TWO) - mean(SMALL, ONE)),
    ),
    Statement(
        "On midi-BERT it earns {:.1f} points on the seven STS tasks, with one mask for both"
        " {:.1f}, without dropout {:.1f} (sd {:.1f} over seeds).",
        lambda: (
            *(mean(SMALL, row) - mean(SMALL, RAW) for row in (TWO, ONE, NONE)),
            sd(SMALL, NONE),
        ),
    ),
    Statement(
        "$p = 0$ costs {:.1f} ± {:.1f} points, one mask {:.1f} ± {:.1f}.",
        lambda: below(NONE) + below(ONE),
    ),
    Statement(
        "its five seeds end between {:.1f} and {:.1f}, those of $p = 0.1$ between {:.1f} and {:.1f}",
        lambda: tuple(f(scores(row)) for row in (NONE, TWO) for f in (min, max)),
    ),
    Statement(
        "0.05 lies {:.2f} ± {:.2f} below, barely clear of zero, 0.2 by {:.2f} ± {:.2f}",
        lambda: below("p = 0.05") + below("p = 0.2"),
    ),
    Statement(
        "on average by {:.1f} points: ± {:.1f} alone, ± {:.1f} counted with the figure's four.",
        without_above_one_mask,
    ),
]
