"""What notebook 05 says of SDA on real data, and where it stands."""

import math
import re

import numpy as np
import pandas as pd

from lib import paths
from lib.results.statistics import dunnett_differences, paired_differences, smallest_effect
from statements import Statement, paper, rows, signed

GRID, MEAN, SICK = "sda_light", "sts7_test_avg_best", "SICK-R_test_spearman_best"
RULES = ("PI", "MV", "DN", "ensemble")
HEAD = "SimCSE, SDA's head"
CHANCE = ("random punctuation", "word repetition", "word deletion 10 %", "mask 15 %")
EDITS = tuple(f"random edits {rate} %" for rate in (10, 20, 30, 50))
CONTROLS = (*EDITS, "said-that prefix")
DRAWN = ("SimCSE", *RULES, *CHANCE, "cropping 10 %", "synonym replacement")


def gains(metric: str = MEAN) -> pd.DataFrame:
    """The rows of the forest minus SimCSE."""
    table = rows(GRID)
    return paired_differences(table[table["row"].isin(DRAWN)], metric, "SimCSE")


def clear(table: pd.DataFrame) -> list[str]:
    """Rows whose interval leaves zero out."""
    return list(table.index[table["mean"].abs() > table["95 % ±"]])


def gain(*names: str, metric: str = MEAN) -> tuple[float, ...]:
    """Gain and half interval of each row."""
    table = gains(metric)
    return tuple(x for name in names for x in table.loc[name, ["mean", "95 % ±"]])


def at_the_last_step() -> tuple[float, ...]:
    """Gains of DN, MV, PI and the ensemble at the last step, and what synonyms lose there."""
    found = gains("sts7_test_avg_last")
    assert clear(found) == clear(gains())
    return *found["mean"][["DN", "MV", "PI", "ensemble"]], -found["mean"]["synonym replacement"]


def lost_alone() -> tuple[float]:
    """What synonyms lose, the one row that stands clear of SimCSE."""
    assert clear(gains()) == ["synonym replacement"]
    return (-gains().loc["synonym replacement", "mean"],)


def last_in_the_paper() -> tuple:
    """No number: DN is the lowest of the three on both backbones."""
    average = paper("sda_table_4")["Avg."].astype(float)
    for backbone in ("bert", "roberta"):
        assert average[f"dn_{backbone}"] < min(average[f"{m}_{backbone}"] for m in ("pi", "mv"))
    return ()


def minus_marks() -> pd.DataFrame:
    """The three rules minus random punctuation, as three of 18 comparisons."""
    pairs = dict.fromkeys(("PI", "MV", "DN"), "random punctuation")
    return paired_differences(rows(GRID), MEAN, pairs, comparisons=18)


def with_controls(*names: str) -> pd.DataFrame:
    """The runs of rows of the evidence and of its controls."""
    table = pd.concat([rows(GRID), rows("sda_light_controls")]).drop_duplicates(["row", "seed"])
    return table[table["row"].isin(names)]


def pooled() -> tuple[float, float]:
    """The least and the largest sd of the ten rows' differences. Pooled, DN, the ensemble and
    synonyms are clear; of one spread every other table has a larger ratio of sds."""
    table = rows(GRID)[rows(GRID)["row"].isin(DRAWN)]
    found = dunnett_differences(table, MEAN, "SimCSE")
    assert set(clear(found)) == {"DN", "ensemble", "synonym replacement"}
    low, high = found["sd"].min(), found["sd"].max()
    scores = np.random.default_rng(0).standard_normal((20_000, 5, len(found) + 1))
    drawn = (scores[..., 1:] - scores[..., :1]).std(axis=1, ddof=1)
    larger = (drawn.max(1) / drawn.min(1) > high / low).mean()
    assert 0.45 < larger < 0.55
    return low, high


def beside_size() -> tuple[float, float]:
    """The most that random edits gain, at 30 %, and what DN of that size does; no interval of the
    figure's thirteen leaves zero out."""
    names = {"SimCSE", "PI", "MV", "DN", *CHANCE, "cropping 10 %", *CONTROLS}
    found = paired_differences(with_controls(*names), MEAN, "SimCSE")
    assert len(found) == 13 and not clear(found)
    edits = found["mean"][list(EDITS)]
    assert edits.idxmax() == "random edits 30 %"
    shares = wikipedia("share")
    assert abs(shares["DN, version 2"] - shares["random edits 30 %"]) < 0.02
    return edits.max(), found["mean"]["DN"]


def dn_minus_controls() -> tuple[float, float, float, float]:
    """DN minus edits of its size and minus random punctuation with pooled spreads, at the best step:
    one is clear, one not. With its own spread, as one of six, DN is clear of all but the first at
    both steps; PI, as one of 18, of none."""
    without = ("random punctuation", *CONTROLS)
    for metric in (MEAN, "sts7_test_avg_last"):
        table = with_controls("DN", "PI", *without)
        own = {
            w: paired_differences(table, metric, {"DN": w}, comparisons=len(without)).iloc[0]
            for w in without
        }
        assert all(line["mean"] > 0 for line in own.values())
        assert {w for w, line in own.items() if line["mean"] < line["95 % ±"]} == {
            "random edits 30 %"
        }
        for w in without:
            assert not clear(paired_differences(table, metric, {"PI": w}, comparisons=18))
    pooled = dunnett_differences(with_controls("DN", *without), MEAN, "DN")
    assert set(pooled.index) - set(clear(pooled)) == {"random punctuation"}
    assert set(rows("sda_light_controls").query("row == 'DN'")["rules"]) == {2}
    edits, marks = (pooled.loc[w] for w in ("random edits 30 %", "random punctuation"))
    return -edits["mean"], edits["95 % ±"], -marks["mean"], marks["95 % ±"]


def negations(metric: str) -> pd.DataFrame:
    """What negations add to each rule, to the ensemble and to SimCSE."""
    pairs = {f"{rule} + negation": rule for rule in RULES} | {"negation": "SimCSE"}
    return paired_differences(rows(GRID), metric, pairs)


def added() -> tuple[float]:
    """The most that negations move the mean of a row; no interval leaves zero out."""
    assert not clear(negations(MEAN)) and not clear(negations(SICK))
    return (negations(MEAN)["mean"].abs().max(),)


def at_most() -> tuple[float, ...]:
    """Where the interval of what negations add to MV ends on the mean, and what they add in Table 6;
    what all intervals on SICK-R stay below, and what they add there in Table 6."""
    mean, sick = (found["mean"] + found["95 % ±"] for found in map(negations, (MEAN, SICK)))
    printed = paper("sda_table_6")[["Avg.", "SICK-R"]].astype(float)
    added = printed.loc["mv_roberta"] - printed.loc["mv_roberta_no_negation"]
    assert sick.max() < 1.9
    return mean["MV + negation"], added["Avg."], 1.9, added["SICK-R"]


def sick_and_sts15() -> tuple[float, ...]:
    """The ensemble's loss on SICK-R, where DN and MV lose within their intervals; the share of
    one-sided pairs of STS15, where DN and the ensemble gain, and by how much."""
    metric = "STS15_test_spearman_best"
    sick, sts15 = (gains(name).loc[list(RULES)] for name in (SICK, metric))
    assert (sick["mean"][["DN", "MV"]] < 0).all() and clear(sick) == ["ensemble"]
    assert set(clear(sts15)) == {"DN", "ensemble"} and (sts15["mean"] > 0).all()
    wider = overlap("gold_others") - overlap("gold_one_sided")
    assert wider["STS15"] > wider["SICK-R"]
    change, half = gain("ensemble", metric=SICK)
    return -change, half, overlap("one_sided")["STS15"], *gain("DN", "ensemble", metric=metric)


def tested_at_40(ending: str = "") -> tuple[int, int]:
    """How many trainings are tested at step 40, and of how many; those of rows with this ending."""
    found = rows(GRID)[rows(GRID)["row"].str.endswith(ending)]
    return int((found["best_step"] == 40).sum()), len(found)


def marks_in_the_paper() -> tuple[float, str, float]:
    """PI minus random punctuation: Table 9, ours, and our half width as one of 18."""
    average = paper("sda_table_9")["avg. STS"].astype(float)
    mean, half = minus_marks().loc["PI", ["mean", "95 % ±"]]
    assert abs(mean) < half
    return average["pi"] - average["random_insertion"], f"{mean:.2f}".replace("-", "−"), half


def positives_alone() -> tuple[float, float]:
    """What MV without negations adds in Table 6, on the mean and on SICK-R."""
    table = paper("sda_table_6")[["Avg.", "SICK-R"]].astype(float)
    added = table.loc["mv_roberta_no_negation"] - table.loc["simcse_roberta"]
    return added["Avg."], added["SICK-R"]


def at_small(metric: str) -> pd.DataFrame:
    """The three rules and the ensemble minus their baseline with midi-BERT, four together."""
    table = rows("sda_small")
    table = table[table["row"].isin([HEAD, *RULES])]
    assert set(table["steps"]) == {300} and set(table["dropout"]) == {0.1}
    assert set(table["rules"].dropna()) == {3} and set(table["batch_size"]) == {128}
    found = paired_differences(table, metric, HEAD)
    assert set(found["seeds"]) == {5}
    return found.loc[list(RULES)]


def gains_at_small() -> tuple[float, float, float, float]:
    """Least and most that they gain on the mean with midi-BERT, none clear, and with mini-BERT,
    which the intervals of midi-BERT hold."""
    found, light = at_small(MEAN), gains()["mean"][list(RULES)]
    assert (found["mean"] > 0).all() and not clear(found)
    assert ((light - found["mean"]).abs() < found["95 % ±"]).all()
    return found["mean"].min(), found["mean"].max(), light.min(), light.max()


def sick_at_small() -> tuple[float, ...]:
    """The losses on SICK-R of the ensemble, DN, MV and PI with midi-BERT, the rules' in the order
    of their size; the first two clear, MV at the last step or pooled."""
    found, last = (at_small(metric) for metric in (SICK, SICK.replace("best", "last")))
    shares = wikipedia("share")
    assert shares["PI"] < shares["MV"] < shares["DN"]
    for table in (found, last):
        assert table["mean"][["DN", "MV", "PI"]].is_monotonic_increasing
        assert (table["mean"] < 0).all()
    assert set(clear(found)) == {"DN", "ensemble"} and set(clear(last)) == {"MV", "DN", "ensemble"}
    table = rows("sda_small")
    pooled = dunnett_differences(table[table["row"].isin([HEAD, *RULES])], SICK, HEAD)
    assert set(clear(pooled)) == {"MV", "DN", "ensemble"}
    order = ["ensemble", "DN", "MV", "PI"]
    return tuple(x for r in order for x in (-found["mean"][r], found["95 % ±"][r]))


def sick_in_table_6() -> tuple[str, str]:
    """The paper's SICK-R of MV without and with negations."""
    found = paper("sda_table_6")["SICK-R"]
    return found["mv_roberta_no_negation"], found["mv_roberta"]


PLAIN, ENDS = "SimCSE, p = 0.1", {"mean": "sts7_test_avg_last", "sick": "SICK-R_test_spearman_last"}


def pushed(test: str) -> pd.DataFrame:
    """Negations at dropout 0.1 minus SimCSE at the last step, all deltas together."""
    table = rows("sda_light_negation")
    table = table[table["row"].str.endswith("p = 0.1")]
    found = paired_differences(table, ENDS[test], PLAIN)
    assert set(found["seeds"]) == {5} and set(table["dropout"]) == {0.1}
    return found


def learnt(row: str) -> float:
    """Percent of the anchors whose paraphrase is nearer than their negation, at the last step."""
    table = pd.read_csv(paths.DATA / "sda" / "learnt.csv")
    table = table[(table["checkpoint"] == "last") & (table["kind"] == "negated")]
    return table.groupby("row")["nearer"].mean()[row]


def taught() -> tuple[str | float, ...]:
    """What delta 0.3 teaches, beside SimCSE, and what it gains on SICK-R; 0.5 gains nothing."""
    sick, half = pushed("sick").loc["delta 0.3, p = 0.1", ["mean", "95 % ±"]]
    assert sick > half and "delta 0.5, p = 0.1" not in clear(pushed("sick"))
    assert abs(learnt("delta 0.5, p = 0.1") - learnt(PLAIN)) < 3
    return learnt("delta 0.3, p = 0.1"), learnt(PLAIN), signed(sick), half


def costs() -> tuple[str | float, ...]:
    """The mean of seven at delta 0.3, where six tests fall, and at 0; no delta gains."""
    found = pushed("mean")
    assert not (found["mean"] > found["95 % ±"]).any() and (found["mean"] < 0.3).all()
    table = rows("sda_light_negation")
    for task in ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B"):
        by_row = table.groupby("row")[f"{task}_test_spearman_last"].mean()
        assert by_row["delta 0.3, p = 0.1"] < by_row[PLAIN]
    lines = (found.loc[f"delta {d}, p = 0.1", ["mean", "95 % ±"]] for d in ("0.3", "0.0"))
    printed = paper("sda_table_6")[["SICK-R", "Avg."]].astype(float)
    added = printed.loc["mv_roberta"] - printed.loc["mv_roberta_no_negation"]
    return *(x for m, half in lines for x in (signed(m), half)), *added


def sunk() -> tuple[str]:
    """How far SICK-R's one-sided pairs sink at delta 0.3, and whether all of the 100 most improved
    are of this kind; neither part gains Spearman."""
    table = pd.read_csv(paths.DATA / "sda" / "sick.csv").groupby("row").mean(numeric_only=True)
    found = table.loc["delta 0.3, p = 0.1"]
    for part in ("one_sided", "others"):
        assert found[f"pushed_{part}"] < found[f"plain_{part}"] + 0.3
    assert found["top"] == 100
    return (f"{-found['moved']:.0f}",)


def transfer() -> tuple[float, float]:
    """Least and most that the rows with rules lie below SimCSE on the transfer tasks."""
    table = paired_differences(rows("sda_light_transfer"), "avg_transfer_best", "SimCSE")
    assert not clear(table) and set(table["seeds"]) == {3}
    return -table["mean"].max(), -table["mean"].min()


def printed_gains(baseline: float) -> tuple[float, float]:
    """Least and most that SDA's rows of Table 5 lie above a baseline."""
    average = paper("sda_table_5")["Avg."].astype(float)
    ours = [average[f"{m}_roberta"] - baseline for m in ("pi", "mv", "dn", "ensemble")]
    return min(ours), max(ours)


def erratum() -> tuple[float, float, float]:
    """The average of SimCSE-RoBERTa, and the gains from it."""
    told = (paths.PAPERS / "errata.csv").read_text(encoding="utf-8")
    (average,) = re.findall(r"its RoBERTa has (\d+\.\d+)", told)
    return float(average), *printed_gains(float(average))


def overlap(column: str) -> pd.Series:
    """A column of the table of the test pairs."""
    return pd.read_csv(paths.DATA / "sda" / "overlap.csv", index_col="task")[column]


def jaccard() -> tuple[float, ...]:
    """SICK-R's overlap, the mean of the other six tasks, their gap and the one of the paper."""
    found = overlap("jaccard")
    sick, others = found["SICK-R"], found.drop("SICK-R").mean()
    assert 7 < min(57.24 - sick, 47.39 - others) < max(57.24 - sick, 47.39 - others) < 8.5
    return sick, others, sick - others, 57.24 - 47.39


def wikipedia(column: str) -> pd.Series:
    """A column of what the rules change in Wikipedia's sentences."""
    return pd.read_csv(paths.DATA / "sda" / "changed.csv", index_col="version")[column]


def changed() -> tuple[float, float, float]:
    """Percent of Wikipedia's sentences that MV and DN change; and of the paper's, for both."""
    ours = wikipedia("changed")
    theirs = paper("sda_table_2")["Augmented %"].str.rstrip("%").astype(float)
    (both,) = {round(percent) for percent in theirs[["mv", "dn"]]}
    return ours["MV"], ours["DN"], both


def halves() -> tuple[float, float]:
    """The cosine at which a negation outweighs 63 in-batch negatives at 0.2, for δ = 0 and 0.5."""
    crowd = 0.2 + 0.05 * math.log(63)
    return crowd, crowd + 0.5


STATEMENTS = [
    Statement(
        "Only the ensemble has a spread (five runs): ± {} and ± {}.",
        lambda: tuple(paper("sda_table_4").loc[["ensemble_bert", "ensemble_roberta"], "Avg._sd"]),
    ),
    Statement("(RoBERTa: {} with MV positives alone, {} with negations, Table 6)", sick_in_table_6),
    Statement(
        "because its pairs share more words, {} % against {} % elsewhere",
        lambda: tuple(paper("sda_text_jaccard").iloc[:, -1].str.rstrip("%")),
    ),
    Statement("The ten sds run from {:.2f} to {:.2f}.", pooled),
    Statement(
        "Random edits do not rise with their size: {:.1f} at most, and that at 30 %. DN, of that size,"
        " has {:.1f}.",
        beside_size,
    ),
    Statement(
        "Pooled spreads swap two rows: at the best step 30 % is clear, {:.2f} ± {:.2f}, and random"
        " punctuation is not, {:.2f} ± {:.2f}.",
        dn_minus_controls,
    ),
    Statement(
        "At the last step it is the same picture: DN {:+.1f}, MV {:+.1f}, PI {:+.1f}, the ensemble"
        " {:+.1f}; synonyms lose {:.1f}.",
        at_the_last_step,
    ),
    Statement("at {:.2f} without δ, at {:.2f} with the paper's δ = 0.5", halves),
    Statement(
        "DN gains {:.1f} ± {:.1f} points, MV {:.1f} ± {:.1f}, PI {:.1f} ± {:.1f}, "
        "the ensemble of the three {:.1f} ± {:.1f}",
        lambda: gain("DN", "MV", "PI", "ensemble"),
    ),
    Statement("of all ten rows only synonyms do, which lose {:.1f}", lost_alone),
    Statement("The paper has DN last of the three", last_in_the_paper),
    Statement(
        "with DN's spread five seeds show a gain of {:.1f} four times in five",
        lambda: (smallest_effect(5, gains().loc["DN", "sd"], comparisons=10),),
    ),
    Statement(
        "On Wikipedia MV changes {:.0f} % of the sentences and DN {:.0f} %, in the paper both {} %",
        changed,
    ),
    Statement(
        "On Wikipedia it is PI {:.0f} %, MV {:.0f} %, DN {:.0f} % and the prefix {:.0f} %",
        lambda: tuple(100 * wikipedia("share")[["PI", "MV", "DN", "said-that prefix"]]),
    ),
    Statement("No row moves by more than {:.1f} on the mean", added),
    Statement(
        "MV's ends at +{:.2f}, where the paper gains {:.2f} (Table 6); on SICK-R all end below"
        " +{:.1f}, where it gains {:.2f}",
        at_most,
    ),
    Statement("(step 40 in {} of {} runs)", tested_at_40),
    Statement(
        "The paper's Table 9 (RoBERTa, no spread printed) has PI {:.2f} above random punctuation; ours,"
        " {} ± {:.2f}, is open.",
        marks_in_the_paper,
    ),
    Statement("lie {:.1f} to {:.1f} below SimCSE, three seeds each", transfer),
    Statement(
        "It prints gains of {:.2f} to {:.2f}",
        lambda: printed_gains(float(paper("sda_table_5").loc["simcse_roberta", "Avg."])),
    ),
    Statement("from RoBERTa's own {:.2f} they are {:.2f} to {:.2f}", erratum),
    Statement(
        "We find {:.2f} % against a mean of {:.2f} %: seven to eight points below the paper's "
        "(which does not name its tokens), and a gap of {:.1f} where the paper has {:.1f}",
        jaccard,
    ),
    Statement(
        "in {:.1f} % of SICK-R's pairs a negative word stands on one side only",
        lambda: (overlap("one_sided")["SICK-R"],),
    ),
    Statement(
        "Our ensemble loses {:.1f} ± {:.1f} on SICK-R; DN and MV lose too, within their"
        " intervals. But STS15, with {:.1f} % and a wider gap in gold, gains: DN {:.1f} ± {:.1f}, the"
        " ensemble {:.1f} ± {:.1f}.",
        sick_and_sts15,
    ),
    Statement("MV positives alone add {:.2f} to the mean, {:.2f} to SICK-R", positives_alone),
    Statement(
        "On the mean all four lie above SimCSE, by {:.1f} to {:.1f}, none clear of it, and mini-BERT's"
        " gains of {:.1f} to {:.1f} are inside these intervals too",
        gains_at_small,
    ),
    Statement(
        "On SICK-R all four means fall, the rules' in the order of their size: the ensemble by {:.2f} ±"
        " {:.2f}, DN by {:.2f} ± {:.2f}, MV by {:.2f} ± {:.2f} (clear at the last step, or pooled). PI,"
        ' which writes no "not", falls by {:.2f} ± {:.2f}',
        sick_at_small,
    ),
    Statement(
        'At δ = 0.3 it teaches "not": for {:.0f} % of the anchors the paraphrase is nearer than the'
        " negation (SimCSE: {:.0f} %), and SICK-R gains {} ± {:.2f}.",
        taught,
    ),
    Statement(
        "the mean gains nowhere: {} ± {:.2f} at 0.3, where the other six tests fall, and {} ± {:.2f} at"
        " δ = 0. The paper (RoBERTa) gains {:.2f} on SICK-R and {:.2f} on the mean.",
        costs,
    ),
    Statement(
        "At δ = 0.3 they sink by {} of 4,927 ranks, and all of the 100 pairs that come nearest to"
        " their gold rank are of this kind",
        sunk,
    ),
]
