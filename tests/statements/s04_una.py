"""Notebook 04: what UNA's tables say, and our runs on real sentences."""

from functools import cache

import pandas as pd

from lib import data
from lib.augment.tfidf import terms_of
from lib.results.statistics import critical_value, paired_differences, smallest_effect
from statements import Statement, paper, rows, signed
from statements.s07_results import of_una

GRID, METRIC = "una_light", "sts7_test_avg_last"
SHOWN = (
    *("UNA, doubled", "UNA, extra"),
    *("random step 2", "random step 3", "random steps 2 and 3"),
    *("EDA synonym replacement", "EDA random insertion", "EDA random swap", "EDA random deletion"),
)
NOISE = (
    *("MODALS interpolation", "MODALS extrapolation", "MODALS linear sampling"),
    *("MODALS Gaussian noise", "PCA jittering"),
)


def printed(table: str, row: str, column: str = "Avg.") -> float:
    """A figure of one of the paper's tables, in points."""
    return 100 * float(paper(f"una_table_{table}").loc[row, column])


def ten_seeds(column: str) -> pd.Series:
    """Table D7: seed → score, in points."""
    return 100 * paper("una_table_d7").drop("mean")[column].astype(float)


def headline() -> tuple[float, float, float, float]:
    """Paraphrases and UNA minus paraphrases alone; seed 42, which is the best of ten; their mean,
    and this minus paraphrases alone."""
    scores, alone = ten_seeds("Paraphrasing & UNA"), printed("1", "bert_paraphrase")
    assert scores.idxmax() == "seed_42"
    gain = printed("1", "bert_paraphrase_una") - alone
    return gain, scores.max(), scores.mean(), scores.mean() - alone


def with_each_seed() -> tuple[()]:
    """Nothing, if paraphrases and UNA are above SimCSE with every seed."""
    assert (ten_seeds("Paraphrasing & UNA") > ten_seeds("SimCSE")).all()
    return ()


@cache
def sentences_with(word: str) -> int:
    """How many sentences of the mini corpus have a word."""
    return sum(word in terms_of(sentence) for sentence in data.corpus("mini"))


@cache
def gaps(names: tuple[str, ...] = SHOWN, metric: str = METRIC) -> pd.DataFrame:
    """These rows of ours minus SimCSE, their intervals together."""
    return paired_differences(rows(GRID), metric, dict.fromkeys(names, "SimCSE"))


def gap(row: str, metric: str = METRIC) -> tuple[str, str]:
    """Ours: a difference from SimCSE and its half width."""
    mean, half = gaps(metric=metric).loc[row, ["mean", "95 % ±"]]
    return signed(mean), f"{half:.2f}"


def minus_simcse(table: str, row: str, column: str = "Avg.") -> float:
    """The paper's difference from SimCSE on the tests."""
    return printed(table, row, column) - printed("1", "bert_simcse")


def gains_of_table_1() -> tuple[float, float]:
    """The least and the largest of UNA's four gains: two backbones, with paraphrases and without."""
    found = [
        printed("1", f"{backbone}_{row}una") - printed("1", f"{backbone}_{base}")
        for backbone in ("bert", "roberta")
        for row, base in (("", "simcse"), ("paraphrase_", "paraphrase"))
    ]
    assert min(found) > 0
    return min(found), max(found)


def clear(metric: str) -> list[str]:
    """The rows whose intervals leave zero out."""
    found = gaps(metric=metric)
    return list(found.index[found["mean"].abs() > found["95 % ±"]])


def the_clear_rows() -> tuple[str, ...]:
    """The one row that is clear at the last step, the paper's figure, and the two at dev's best."""
    synonyms, inserted, best = (
        "EDA synonym replacement",
        "EDA random insertion",
        "sts7_test_avg_best",
    )
    assert clear(METRIC) == [synonyms] and clear(best) == [synonyms, inserted]
    theirs = signed(minus_simcse("c3", "eda_synonym_replacement"))
    return *gap(synonyms), theirs, *gap(synonyms, best), *gap(inserted, best)


def una() -> tuple[str, str, str, str]:
    """Our interval for UNA, the paper's gain, and what our seeds see four times in five."""
    seen = smallest_effect(5, gaps().loc["UNA, doubled", "sd"], len(SHOWN))
    return *gap("UNA, doubled"), signed(minus_simcse("1", "bert_una")), f"{seen:.1f}"


def minus_random() -> tuple[str | float, ...]:
    """UNA minus both steps random and minus either, three intervals together; then the paper's two rows
    with random steps, whose differences lie outside all three."""
    drops = [
        printed("1", "bert_una") - printed("2", f"ablation_row_{i}", "STS Avg.") for i in (2, 1)
    ]
    without_a_point = 0
    for row in ("random steps 2 and 3", "random step 2", "random step 3"):
        against = {"UNA, doubled": row}
        pair = paired_differences(rows(GRID), METRIC, against, comparisons=3).iloc[0]
        assert abs(pair["mean"]) < pair["95 % ±"] and pair["mean"] + pair["95 % ±"] < min(drops)
        without_a_point += pair["mean"] + pair["95 % ±"] < 1
    assert without_a_point == 2
    return tuple(drops)


@cache
def midi(
    metric: str = "sts7_test_avg_best", comparisons: int = 1, baseline: str = "SimCSE, UNA's loss"
) -> pd.Series:
    """With midi-BERT: UNA minus SimCSE with the same loss."""
    pair = {"UNA, doubled": baseline}
    return paired_differences(rows("una_small"), metric, pair, comparisons=comparisons).iloc[0]


def midi_by_seed() -> tuple[float, ...]:
    """With midi-BERT: by how much UNA is ahead, seed by seed, then by how much behind."""
    table = rows("una_small").pivot(index="seed", columns="row", values="sts7_test_avg_best")
    found = table["UNA, doubled"] - table["SimCSE, UNA's loss"]
    ahead, behind = found[found > 0], -found[found < 0]
    assert (len(ahead), len(behind)) == (3, 2)
    return *ahead.sort_values(ascending=False), *behind.sort_values()


def midi_open() -> tuple[str, float, str, str, str]:
    """With midi-BERT: the interval, which holds zero and the paper's gain; what would have been
    seen; the half width as one of the claims of notebook 07."""
    mean, half, sd = midi()[["mean", "95 % ±", "sd"]]
    theirs = minus_simcse("1", "bert_una")
    assert abs(mean) < half and theirs < mean + half
    of_thirteen = midi(comparisons=of_una())["95 % ±"]
    seen = smallest_effect(5, sd)
    return signed(mean), half, f"{theirs:.2f}", f"{seen:.1f}", f"{of_thirteen:.2f}"


def midi_over_one_way() -> tuple[str, float]:
    """With midi-BERT: UNA minus SimCSE with its own loss, an interval that holds zero and the
    paper's gain."""
    mean, half = midi(baseline="SimCSE")[["mean", "95 % ±"]]
    assert abs(mean) < half and minus_simcse("1", "bert_una") < mean + half
    return signed(mean), half


def batches_before_the_best() -> tuple[int, int]:
    """With midi-BERT: how many batches with negatives came before the step that is judged."""
    found = rows("una_small").query("row == 'UNA, doubled'")
    steps = found["best_step"] / found["every"]
    return int(steps.min()), int(steps.max())


def simcse() -> tuple[float, float]:
    """SimCSE's mean and sd over our seeds."""
    found = rows(GRID).query("row == 'SimCSE'")[METRIC]
    return found.mean(), found.std()


def noise() -> tuple[float, float, float, float]:
    """Table C3's Gaussian noise and interpolation; the strength of ours, and what bounds them."""
    ours = rows(GRID).set_index("row").loc[list(NOISE), "representation_strength"]
    assert gaps(NOISE)["mean"].abs().max() < 0.1 and printed("c3", "modals_gaussian_noise") == (
        printed("1", "bert_una")
    )
    (strength,) = set(ours)
    return (
        printed("c3", "modals_gaussian_noise"),
        printed("c3", "modals_interpolation"),
        strength,
        0.1,
    )


def gain(table: str, row: str, column: str = "UNA") -> float:
    """A setting of Tables C4 to C6 minus the same without negatives, on STS-B dev."""
    return printed(table, row, column) - printed("c4", "alpha_0", column)


def settings(table: str, column: str = "UNA") -> dict[str, float]:
    """The settings of a table with negatives → gain."""
    names = [row for row in paper(f"una_table_{table}").index if row != "alpha_0"]
    return {row: gain(table, row, column) for row in names}


def the_setting_outside() -> tuple[int, str, str]:
    """How many settings of UNA alone there are, the chosen one counted once, and the one that
    leaves the band of two single runs."""
    found = settings("c4") | settings("c5") | settings("c6")
    bar = critical_value(10) * 2**0.5 * ten_seeds("SimCSE").std()
    (row,) = [row for row, value in found.items() if abs(value) > bar]
    return len(found) - 2, row.removeprefix("beta_").replace("_", "."), signed(found[row])


def no_zigzag() -> tuple[()]:
    """Nothing, if α = 1 and 3 are lowest and 5 highest in both columns, and UNA's β peaks at 0.5."""
    for column in ("UNA", "Paraphrasing & UNA"):
        found = settings("c4", column)
        order = sorted(found, key=lambda row: found[row])
        assert set(order[:2]) == {"alpha_1", "alpha_3"} and order[-1] == "alpha_5"
    found = [settings("c5")[f"beta_0_{i}"] for i in range(3, 9)]
    assert found[:3] == sorted(found[:3]) and found[2:] == sorted(found[2:], reverse=True)
    return ()


def band_of_the_squares() -> tuple[float, float]:
    """The sd of the ten seeds with paraphrases, and two single runs' band; one setting leaves it."""
    both = "Paraphrasing & UNA"
    sd = ten_seeds(both).std()
    bar = critical_value(10) * 2**0.5 * sd
    found = settings("c4", both) | settings("c5", both) | settings("c6", both)
    assert [row for row, value in found.items() if abs(value) > bar] == ["r_5000"]
    return sd, bar


def zigzag() -> tuple[str, ...]:
    """Table C6 from r = 1,000 to 6,000; its highest point is not the chosen one."""
    found = settings("c6")
    assert max(found, key=lambda row: found[row]) != "r_4000"
    return tuple(signed(found[f"r_{r}000"]) for r in range(1, 7))


def with_paraphrases() -> tuple[str, str]:
    """The least and the largest gain over β and r."""
    both = "Paraphrasing & UNA"
    found = [*settings("c5", both).values(), *settings("c6", both).values()]
    return signed(min(found)), signed(max(found))


def scatter() -> tuple[float, float]:
    """Over our seeds of SimCSE: sd on STS-B dev, and of the mean of the tests."""
    seeds = rows(GRID)[rows(GRID)["row"] == "SimCSE"]
    return seeds["stsb_dev_spearman_last"].std(), seeds[METRIC].std()


def every_batch() -> tuple[str, float, str, float, str, str]:
    """UNA in every batch minus SimCSE on dev and on the seven tests, each with its interval, as one
    of five; the paper's dev difference there and at every fifth. None of ours is clear."""
    table = rows("una_light_curves")
    table = table[table["row"].str.match("SimCSE|alpha|UNA")]
    found = []
    for metric in ("stsb_dev_spearman_best", "sts7_test_avg_best"):
        gaps = paired_differences(table, metric, "SimCSE")
        assert len(gaps) == 5 and (gaps["seeds"] == 5).all()
        assert (gaps["mean"].abs() < gaps["95 % ±"]).all()
        line = gaps.loc["alpha 1"]
        found += [signed(line["mean"]), float(line["95 % ±"])]
    none = printed("c4", "alpha_0", "UNA")
    return *found, *(signed(printed("c4", f"alpha_{a}", "UNA") - none) for a in (1, 5))


def fifth_minus_every() -> tuple[str, float, str]:
    """α = 5 minus α = 1 on dev, alone, its interval, and the paper's."""
    table, metric = rows("una_light_curves"), "stsb_dev_spearman_best"
    line = paired_differences(table, metric, {"UNA as published": "alpha 1"}).iloc[0]
    fifth, every = (printed("c4", f"alpha_{a}", "UNA") for a in (5, 1))
    return signed(line["mean"]), float(line["95 % ±"]), signed(fifth - every)


def the_ends() -> tuple[str, float]:
    """β = 0.3 minus SimCSE on dev, as one of four ends, of which none is clear; the paper's
    difference there is outside. Nor are the paper's choices clear of two ends, whose printed
    differences are outside, too."""
    table, metric = rows("una_light_curves"), "stsb_dev_spearman_best"
    ends = dict.fromkeys(("beta 0.3", "beta 0.8", "r 1000", "r 6000"), "SimCSE")
    found = paired_differences(table, metric, ends)
    assert (found["seeds"] == 5).all() and (found["mean"].abs() < found["95 % ±"]).all()
    low = found.loc["beta 0.3"]
    theirs = printed("c5", "beta_0_3", "UNA") - printed("c4", "alpha_0", "UNA")
    assert theirs < low["mean"] - low["95 % ±"]
    for end, name, row in (("beta 0.8", "c5", "beta_0_8"), ("r 1000", "c6", "r_1000")):
        direct = paired_differences(table, metric, {"UNA as published": end}, comparisons=2).iloc[0]
        gain = printed("c4", "alpha_5", "UNA") - printed(name, row, "UNA")
        assert abs(direct["mean"]) < direct["95 % ±"] < gain - direct["mean"]
    return signed(low["mean"]), float(low["95 % ±"])


STATEMENTS = [
    Statement("Nothing: {} ± {:.2f} on dev, which leaves the paper's −3.63 out;", the_ends),
    Statement(
        "Every fifth minus every batch, seed by seed: {} ± {:.2f} on dev, in the paper {}",
        fifth_minus_every,
    ),
    Statement(
        "{} ± {:.2f} on dev at its best step, and there {} ± {:.2f} on the seven tests. The paper's dev score has {} there,"
        " and {} with every fifth batch",
        every_batch,
    ),
    Statement(
        "UNA alone gains {:.2f}, with one seed. SimCSE's ten seeds have a standard deviation of"
        " {:.2f}.",
        lambda: (minus_simcse("1", "bert_una"), ten_seeds("SimCSE").std()),
    ),
    Statement(
        "On top of paraphrases it gains {:.2f}. But {:.2f}, the headline, is the best of its ten"
        " seeds. Their mean is {:.2f}, which is {:.2f} above the one run with paraphrases alone.",
        headline,
    ),
    Statement(
        "all four gains of UNA in Table 1, with BERT and RoBERTa, are above zero, from {:.2f} to {:.2f}.",
        gains_of_table_1,
    ),
    Statement(
        "with each of the ten seeds, paraphrases and UNA together beat SimCSE.", with_each_seed
    ),
    Statement(
        '"Skirt" is in {} sentences, "home" in {};',
        lambda: (sentences_with("skirt"), sentences_with("home")),
    ),
    Statement("SimCSE ends at {:.1f} ± {:.1f} (mean and sd).", simcse),
    Statement(
        "One: synonyms for words in the positive harm, {} ± {}. The paper has {}, at the step that is"
        " best on dev; there ours is {} ± {}, and inserted synonyms harm as well, {} ± {}.",
        the_clear_rows,
    ),
    Statement(
        "UNA is undecided: {} ± {}, where the paper has {}. The last column is the smallest true"
        " difference that five seeds would see in four tries of five: {} points for UNA.",
        una,
    ),
    Statement(
        "No sign of it here. In the paper's Table 2 UNA is {:.2f} and {:.2f} above two rows with random"
        " steps, outside all three intervals, which hold together.",
        minus_random,
    ),
    Statement(
        "In three of five, by {:.2f}, {:.2f} and {:.2f}. In the other two it is behind, by {:.2f} and"
        " {:.2f}.",
        midi_by_seed,
    ),
    Statement(
        "Open here, too: {} ± {:.2f} (each interval alone), with zero and the paper's {} inside. Five seeds would have seen"
        " {} points. (In 07 it is one of thirteen claims, hence ± {}.)",
        midi_open,
    ),
    Statement(
        "Beside plain SimCSE, whose loss is one-way, it is open as well: {} ± {:.2f}.",
        midi_over_one_way,
    ),
    Statement(
        "the best steps came after {} to {} batches with negatives;", batches_before_the_best
    ),
    Statement(
        "Gaussian noise has the same average, {:.2f}, and interpolation {:.2f}. The paper prints no"
        " strength. Our five rows of that kind are left out: at strength {} they move the last step's mean by less than {} point",
        noise,
    ),
    Statement("$t$ = {:.2f} because ten seeds", lambda: (critical_value(10),)),
    Statement(
        "Of UNA's {} settings (the paper's choice stands in all three panels) one leaves the band:"
        " β = {}, with {}.",
        the_setting_outside,
    ),
    Statement(
        "$r$ zigzags, as single seeds do. From 1,000 to 6,000: {}, {}, {}, {}, {}, {}.", zigzag
    ),
    Statement(
        "in both colours α = 1 and 3 are lowest and 5 highest; over β, UNA alone peaks at 0.5.",
        no_zigzag,
    ),
    Statement(
        "with the sd of their own ten seeds, {:.2f}, it would be ± {:.1f}, and $r$ = 5,000 alone"
        " would leave it.",
        band_of_the_squares,
    ),
    Statement("With paraphrases all β and $r$ lie between {} and {}.", with_paraphrases),
    Statement("the dev set scatters no less (sd {:.2f}) than that mean ({:.2f}).", scatter),
    Statement(
        "The dev score of β = 0.3, {:.2f}, is to the last digit that of a row of Table 2",
        lambda: (
            (printed("2", "ablation_row_1", "STS-B dev."),)
            if printed("2", "ablation_row_1", "STS-B dev.") == printed("c5", "beta_0_3", "UNA")
            else ()
        ),
    ),
    Statement(
        "The paper's {} is one seed against an sd of {:.2f}; our five seeds would have seen {}"
        " points (midi-BERT: {}). Over random words we exclude 2.30, and one point in"
        " two of three.",
        lambda: (una()[2], ten_seeds("SimCSE").std(), una()[3], midi_open()[3]),
    ),
]
