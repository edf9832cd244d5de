"""What notebook 07 says of the papers' claims."""

from dataclasses import replace
from functools import cache

import pandas as pd

from lib.results import claims
from lib.results.statistics import best_of, paired_differences, power_of, smallest_effect
from statements import Statement, mean, paper, rows, signed
from statements.s05_sda import MEAN, SICK, at_small
from statements.s06_backbones import minilm

NUMBERS = """no one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen twenty"""
WORDS = NUMBERS.split()


@cache
def judged() -> pd.DataFrame:
    """All claims, by what they say and where."""
    return claims.judged(claims.read())


def ours(claim: str) -> pd.Series:
    """The tested line of a claim."""
    table = judged()
    return table[(table["claim"] == claim) & (table["seeds"] > 0)].iloc[0]


def counts() -> tuple[int, ...]:
    """All, tested, and how many hold, fail, are smaller and undecided."""
    found = judged()["verdict"].value_counts()
    tested = len(judged()) - found["not tested"]
    each = [int(found.get(name, 0)) for name in ("holds", "fails", "smaller", "undecided")]
    return len(judged()), int(tested), *each


def in_words() -> tuple[str, ...]:
    """The last four of `counts`."""
    return tuple(WORDS[n] for n in counts()[2:])


def gains_that_hold() -> str:
    """How many claims that something helps hold, in words."""
    signs = pd.Series([claim.sign for claim in claims.read()])
    return WORDS[int(((judged()["verdict"] == "holds") & (signs > 0)).sum())].capitalize()


def ten(column: str = "Paraphrasing & UNA") -> pd.Series:
    """The ten seeds of Table D7, Spearman × 100."""
    return 100 * paper("una_table_d7").drop("mean")[column].astype(float)


def larger_at_42() -> str:
    """How much the difference of seed 42 lies above that of all ten, in words."""
    gap = ten() - ten("SimCSE")
    return {0.5: "half a point"}[round(2 * (gap["seed_42"] - gap.mean())) / 2]


def in_table(claim: str, table: str) -> pd.Series:
    """The tested line of a claim that stands in several tables."""
    found = judged()
    return found[(found["claim"] == claim) & found["where"].str.startswith(table)].iloc[0]


def held() -> tuple[str, str]:
    """How many claims hold, and how many of them are about synonyms; one other, SimSiam's."""
    found = judged()[judged()["verdict"] == "holds"]["claim"]
    synonyms = found[found.str.lower().str.contains("synonyms")]
    assert [name.split()[0] for name in found.drop(synonyms.index)] == ["SimSiam's"]
    return WORDS[len(found)].capitalize(), WORDS[len(synonyms)].capitalize()


def failed() -> str:
    """How many claims fail, if all of them are additions to ConSERT."""
    found = judged()[judged()["verdict"] == "fails"]
    assert set(found["paper"]) == {"consert_ext"} and (found["printed"] > 0).all()
    return WORDS[len(found)].capitalize()


def otherwise(**how) -> pd.Series:
    """Whose verdict is another one if the claims are judged in another way: the old and the new."""
    other = claims.judged(claims.read(), **how)["verdict"]
    changed = other != judged()["verdict"]
    return judged()["verdict"][changed] + " " + other[changed]


def ways() -> list[pd.Series]:
    """`otherwise` for the lines of the table below the verdicts."""
    tested = int((judged()["seeds"] > 0).sum())
    return [otherwise(comparisons=tested), otherwise(comparisons=1), otherwise(checkpoint="last")]


def moved() -> str:
    """Most claims that a way of judging moves between smaller and undecided."""
    pairs = ["smaller undecided", "undecided smaller"]
    return WORDS[max(int(changed.isin(pairs).sum()) for changed in ways())]


def lost() -> str:
    """The claim that holds, but not by the last checkpoint."""
    changed = ways()[2]
    (line,) = changed[changed == "holds undecided"].index
    return str(judged()["claim"][line])


def spared() -> str:
    """The claim that fails, but not as one of all; by the other ways all fail as before."""
    together, *others = ways()
    (line,) = together[together == "fails smaller"].index
    assert not any("fails" in both for way in others for both in way)
    return str(judged()["claim"][line])


def by_unas_schedule() -> tuple[float, float]:
    """SDA's "Synonyms harm" on UNA's rows, which look at dev every 25 steps; trained alike."""
    names = {"EDA synonym replacement": "SimCSE"}
    sda = rows("sda_light").replace({"row": {"synonym replacement": "EDA synonym replacement"}})
    scores = [
        table[table["row"].isin([*names, "SimCSE"])]
        .set_index(["row", "seed"])["sts7_test_avg_last"]
        .sort_index()
        for table in (rows("una_light"), sda)
    ]
    pd.testing.assert_series_equal(*scores)
    many = int(((judged()["paper"] == "sda") & (judged()["seeds"] > 0)).sum())
    found = paired_differences(
        rows("una_light"), "stsb_dev_spearman_best", names, comparisons=many
    ).iloc[0]
    return -float(found["mean"]), float(found["95 % ±"])


def other_schedule() -> tuple[str, str]:
    """How many claims have rows trained alike in the other paper's grid, and how many verdicts are
    others there."""
    row = {"synonym replacement": "EDA synonym replacement"}
    row |= {"word deletion 10 %": "EDA random deletion"}
    row |= {una: sda for sda, una in row.items()}
    grid = {"una_{}": "sda_{}", "sda_{}": "una_{}"}
    moved = [
        replace(claim, rows=grid[claim.rows], row_ours=row[claim.row_ours])
        if claim.row_ours in row
        else claim
        for claim in claims.read()
    ]
    both = [claim.row_ours in row for claim in moved]
    changed = claims.judged(moved)["verdict"] != judged()["verdict"]
    (line,) = changed[changed].index
    assert judged()["claim"][line] == "Synonyms harm" and judged()["paper"][line] == "sda"
    assert claims.judged(moved)["verdict"][line] == "smaller"
    return WORDS[sum(both)], WORDS[int(changed.sum())]


def looks() -> pd.DataFrame:
    """The rows of the tested claims: grid, row, seed, best step, between which looks, last step."""
    listed = [claim for claim, n in zip(claims.read(), judged()["seeds"], strict=True) if n]
    pairs = {(claim.rows.format("light"), row) for claim in listed for row in claim.pair("light")}
    found = [
        rows(grid)[lambda t, row=row: t["row"] == row].assign(grid=grid) for grid, row in pairs
    ]
    return pd.concat(found)[["grid", "row", "seed", "best_step", "eval_every", "steps"]]


def synonyms_look() -> str:
    """Which look is the best of all rows with synonyms as positives."""
    table = looks()[lambda t: t["row"].str.endswith("synonym replacement")]
    assert len(table) == 10 and (table["best_step"] == table["eval_every"]).all()
    return "first"


def consert_look() -> str:
    """Which step is the best of ConSERT's tested rows, without SimSiam's."""
    table = looks()[lambda t: t["grid"].str.startswith("consert")]
    table = table[table["row"] != "SimSiam's head and loss"]
    assert (table["best_step"] == table["steps"]).all()
    return "last"


def unas_rows(baseline: bool = False) -> pd.DataFrame:
    """The rows that answer UNA's first claim: its own, or those of its baseline."""
    (claim,) = [c for c in claims.read() if c.row_ours == "UNA, doubled" and c.rows]
    grid = ours(claim.claim)["grid"]
    row = claim.pair(grid.removeprefix("una_"))[baseline]
    return rows(grid)[lambda table: table["row"] == row].set_index("seed")


def una_at_the_end() -> tuple[int, float, float]:
    """Batches with negatives, what UNA adds at the last step, and its interval."""
    steps = unas_rows()["steps"]
    index = ours("UNA's negatives add to SimCSE").name
    line = claims.judged(claims.read(), "last").loc[index]
    return int(steps.max()) // 5, -float(line["ours"]), float(line["half_width"])


def unseen() -> str:
    """Whether all undecided claims are printed below what could be seen."""
    part = judged()[judged()["verdict"] == "undecided"]
    return {True: "Every", False: "Not every"}[
        bool((part["printed"] < part["could_be_seen"]).all())
    ]


RULES_HELP = ["Punctuation insertion helps", "Modal verbs help", "Double negation helps"]


def at_midi() -> str:
    """How many claims of SDA's Table 8 are answered by `small`, beside UNA's first."""
    found = judged()[judged()["grid"].fillna("").str.contains("_small")]
    assert list(found["claim"]) == ["UNA's negatives add to SimCSE", *RULES_HELP]
    assert set(found["where"].iloc[1:]) == {"Table 8"}
    return WORDS[len(found) - 1]


def simsiam() -> tuple[float, float]:
    """Seven tasks with SimSiam's head and loss, and of the encoder as it was."""
    trained = rows("consert_light_heads").set_index("row").loc["SimSiam's head and loss"]
    before = rows("consert_light").set_index("row").loc["as pre-trained"]
    return trained["sts7_test_avg_best"].mean(), before["sts7_test_avg_last"].mean()


def unas_scatter() -> float:
    """The sd of UNA minus SimCSE over seeds."""
    una, simcse = (unas_rows(baseline)["sts7_test_avg_best"] for baseline in (False, True))
    return float((una - simcse).std())


def seeds_for_una(comparisons: int) -> int:
    """Seeds that find UNA's printed gain four times in five."""
    size, sd = float(ours("UNA's negatives add to SimCSE")["printed"]), unas_scatter()
    return next(n for n in range(2, 99) if power_of(size, n, sd, comparisons=comparisons) >= 0.8)


def of_una() -> int:
    """UNA's tested claims."""
    return int(((judged()["paper"] == "una") & (judged()["seeds"] > 0)).sum())


def judged_after(table: pd.DataFrame) -> tuple[int, ...]:
    """First and last best step of UNA's rows, and batches with negatives before them."""
    first, last = (int(step) for step in table["best_step"].agg(["min", "max"]))
    return first, last, first // 5, last // 5


def una_at_light() -> tuple[float, float, int, int]:
    """UNA minus SimCSE with mini-BERT and its interval; batches with negatives before the checkpoint."""
    table = rows("una_light")
    pair = {"UNA, doubled": "SimCSE"}
    line = paired_differences(table, "sts7_test_avg_best", pair, comparisons=of_una()).iloc[0]
    batches = judged_after(table[table["row"] == "UNA, doubled"])[2:]
    return -float(line["mean"]), float(line["95 % ±"]), *batches


def rules_at_small() -> tuple[float, ...]:
    """The gains of SDA's three rules and of their ensemble with midi-BERT, and the ensemble's
    interval; then the losses on SICK-R that are clear, of the ensemble and of DN."""
    found, sick = (at_small(metric) for metric in (MEAN, SICK))
    assert set(sick.index[-sick["mean"] > sick["95 % ±"]]) == {"DN", "ensemble"}
    lost = (x for r in ("ensemble", "DN") for x in (-sick["mean"][r], sick["95 % ±"][r]))
    return *found["mean"], found["95 % ±"]["ensemble"], *lost


def held_alone() -> str:
    """How many more hold by an interval of their own."""
    return WORDS[int(ways()[1].str.endswith("holds").sum())]


def spread() -> float:
    """The sd of a printed difference from seed to seed, Table D7."""
    return float((ten() - ten("SimCSE")).std())


def beyond_our_interval() -> pd.Series:
    """How far the printed size of each smaller claim lies beyond our interval's end."""
    part = judged()[judged()["verdict"] == "smaller"]
    return part["printed"] - part["ours"] - part["half_width"]


def beyond() -> tuple[str, str, str]:
    """How many smaller claims are printed within two sd of our interval's end, of how many; and
    the others."""
    part = judged()[judged()["verdict"] == "smaller"]
    far = part[beyond_our_interval() > 2 * spread()]
    assert far["where"].value_counts().to_dict() == {"Table 8": 3, "Table C4": 1}
    names = [name.split()[0].lower() for name in far["claim"][far["where"] == "Table 8"]]
    few = WORDS[len(part) - len(far)].capitalize()
    return few, WORDS[len(part)], ", ".join(names[:-1]) + " and " + names[-1]


def alone(claim: str) -> tuple[float, float]:
    """Ours and its interval where the claim is judged by itself."""
    line = claims.judged(claims.read(), comparisons=1).loc[ours(claim).name]
    assert line["verdict"] == "holds"
    return float(line["ours"]), float(line["half_width"])


@cache
def head(text: str) -> tuple[float, float]:
    """What a head adds to heavier cutoff, as one of four comparisons."""
    names = [f"{row}, {text}" for row in ("+ projection head", "+ embedding aug")]
    found = paired_differences(
        rows("consert_light"), "sts7_test_avg_best", {names[0]: names[1]}, comparisons=4
    ).loc[names[0]]
    return float(found["mean"]), float(found["95 % ±"])


def seeds_for_one_point() -> str:
    """Seeds that find one point among a dozen others four times in five."""
    found = next(n for n in range(2, 99) if power_of(1.0, n, spread(), comparisons=13) >= 0.8)
    return WORDS[found]


def synonyms_at_the_end() -> float:
    """What synonyms cost UNA's SimCSE at the last step."""
    last = rows("una_light").groupby("row")["sts7_test_avg_last"].mean()
    return float(last["SimCSE"] - last["EDA synonym replacement"])


def seen() -> tuple[int, ...]:
    """Tested claims whose printed size five seeds could have seen: how many, of how many; and how
    many of them hold, fail, are smaller, and how many could not be seen."""
    tested = judged()[judged()["seeds"] > 0]
    could = tested["verdict"][tested["printed"] > tested["could_be_seen"]].value_counts()
    assert could.sum() == could[["holds", "fails", "smaller"]].sum()
    each = [int(could[name]) for name in ("holds", "fails", "smaller")]
    return int(could.sum()), len(tested), *each, len(tested) - int(could.sum())


def seen_gains() -> tuple[str, str]:
    """How many claims that something helps could have been seen at their printed size, and how
    many of these hold."""
    signs = pd.Series([claim.sign for claim in claims.read()])
    could = judged()[(signs > 0) & (judged()["printed"] > judged()["could_be_seen"])]
    return WORDS[len(could)].capitalize(), {0: "none"}[int((could["verdict"] == "holds").sum())]


def printed_inside() -> tuple[str, str, str]:
    """How many hold, how many of them with the printed size in the interval, and which."""
    part = judged()[judged()["verdict"] == "holds"].set_index("claim")
    off = part["printed"] - part["ours"]
    inside = part.index[off.abs() <= part["half_width"]]
    above = off[off < -part["half_width"]].index
    assert [name.split()[0] for name in above] == ["SimSiam's"]
    (claim,) = inside
    return WORDS[len(part)], WORDS[len(inside)], claim.removesuffix(" harm").lower()


def close_verdicts() -> tuple[float, ...]:
    """Printed gain and distance from our interval's end, outside and inside."""
    found = []
    for claim, sign in (("Interpolated vectors help", 1), ("Vectors moved along a line help", -1)):
        line = ours(claim)
        gap = sign * (line["printed"] - line["ours"] - line["half_width"])
        assert 0 < gap < 0.1
        found += [float(line["printed"]), float(gap)]
    return tuple(found)


def table_6(head: str) -> float:
    """A cell of the report's Table 6, on ConSERT's own views."""
    return float(paper("consert_ext_table_6").loc[f"consert_{head}", "Avg."])


def edits_of_table_8() -> tuple[float, float]:
    """Synonyms' harm and its half width; of the three other edits zero is inside, the paper not."""
    for claim in (
        "Deleting 10 % of the words harms",
        "Cropping 10 % harms",
        "Masking 15 % of the words harms",
    ):
        line = ours(claim)
        assert abs(line["ours"]) < line["half_width"] < line["printed"] - line["ours"]
    return tuple(in_table("Synonyms harm", "Table 8")[["ours", "half_width"]])


def una_printed() -> float:
    """UNA's average with BERT in Table 1, in points."""
    return 100 * float(paper("una_table_1").loc["bert_una", "Avg."])


def simcse_printed() -> float:
    """SimCSE's there."""
    return 100 * float(paper("una_table_1").loc["bert_simcse", "Avg."])


def quoted_on_dev() -> tuple[str, str, str]:
    """STS-B dev of SimCSE in SDA's Table 8, and as UNA's paper quotes it for both encoders."""
    quoted = paper("una_text_stsb_dev").iloc[:, -1]
    of_sda = paper("sda_table_8").loc["none", "STS-B"]
    return of_sda, quoted["simcse_bert_reported"], quoted["simcse_roberta_reported"]


def consert_at_small() -> tuple[str, float, float]:
    """Seeds, seven tasks of ConSERT's views, which no view rounds to as well, and of SimCSE."""
    found = rows("consert_small").groupby("row")["sts7_test_avg_best"].agg(["mean", "size"])
    views, none = found.loc["ConSERT-unsup, Wikipedia"], found.loc["no view, Wikipedia"]
    assert views["size"] == none["size"] and f"{views['mean']:.1f}" == f"{none['mean']:.1f}"
    same = rows("consert_small").query("row == 'no view, Wikipedia'")["seed"]
    simcse = rows("consert_small").query("row == 'SimCSE'")
    simcse = simcse[simcse["seed"].isin(same)]["sts7_test_avg_best"].mean()
    return WORDS[int(views["size"])], views["mean"], simcse


def above_what_trains_nothing() -> tuple[float, float]:
    """SimCSE minus TF-IDF and minus SIF at `small`; at `light` it is below both."""
    found = [mean("simcse_small", "SimCSE") - mean("simcse_small", row) for row in ("TF-IDF", SIF)]
    light = [mean("simcse_light", row, "sts7_test_avg_last") for row in ("TF-IDF", SIF)]
    assert mean("simcse_light", "SimCSE") < min(light)
    return tuple(found)


def above_tfidf_of_more() -> tuple[str, float]:
    """SimCSE at `small` minus TF-IDF with the weights of `light`'s sentences, and how many."""
    table = rows("simcse_light").set_index("row")
    (count,) = table.loc[["TF-IDF"], "n_sentences"]
    words = float(table.loc["TF-IDF", "sts7_test_avg_last"])
    return f"{count:,.0f}", mean("simcse_small", "SimCSE") - words


SIF = "input embeddings, SIF"
QUOTED = {"ESimCSE": "ESimCSE", "ArcCSE": "ArcCSE, angular margin", "DCLR": "DCLR, noise negatives"}
QUOTED |= {"SCD": "SCD", "Mirror-BERT": "Mirror-BERT"}


def quoted(score: str = "best") -> pd.DataFrame:
    """The five quoted methods minus SimCSE, by their short names; intervals hold together."""
    table, names = rows("quoted_light"), ["SimCSE", *QUOTED.values()]
    found = paired_differences(
        table[table["row"].isin(names)], f"sts7_test_avg_{score}", "SimCSE"
    ).loc[names[1:]]
    assert (found["seeds"] == 5).all()
    return found.set_axis(list(QUOTED))[["mean", "95 % ±"]]


def quoted_printed(method: str) -> float:
    """A quoted method's own figure for BERT, minus SimCSE's."""
    simcse = float(paper("sda_table_4").loc["simcse_bert", "Avg."])
    if method in ("ESimCSE", "ArcCSE"):
        return float(paper("sda_table_4").loc[f"{method.lower()}_bert", "Avg."]) - simcse
    row = f"bert_{method.split('-')[0].lower()}"
    return 100 * float(paper("una_table_d8").loc[row, "Avg."]) - simcse


def quoted_read() -> tuple[float | str, ...]:
    """Of all five the difference, its interval and the printed one, which only that of the first
    holds; only the last is clear of zero, and below."""
    found, printed = quoted(), {method: quoted_printed(method) for method in QUOTED}
    inside = [m for m in QUOTED if abs(printed[m] - found["mean"][m]) < found["95 % ±"][m]]
    clear = [m for m in QUOTED if abs(found["mean"][m]) > found["95 % ±"][m]]
    assert inside == ["ESimCSE"] and clear == ["Mirror-BERT"]
    first, *others, last = (tuple(found.loc[method]) for method in QUOTED)
    own = [signed(last[0]), last[1], printed["ESimCSE"], *first]
    for method, (mean_gap, half) in zip(("ArcCSE", "DCLR", "SCD"), others, strict=True):
        own += [signed(mean_gap), half, signed(printed[method])]
    return tuple(own)


def beside_unas_simcse() -> tuple[float, float]:
    """UNA's own SimCSE, and how far DCLR is printed above it; Mirror-BERT is within 0.1 of it."""
    simcse = 100 * float(paper("una_table_1").loc["bert_simcse", "Avg."])
    above = float(paper("sda_table_4").loc["simcse_bert", "Avg."]) - simcse
    assert abs(quoted_printed("Mirror-BERT") + above) < 0.1
    return simcse, quoted_printed("DCLR") + above


def quoted_order() -> str:
    """Which of the five are printed above SimCSE, and by how much."""
    above = [method for method in QUOTED if quoted_printed(method) > 0]
    assert all(0.95 < quoted_printed(method) < 2 for method in above)
    return ", ".join(above[:-1]) + " and " + above[-1]


@cache
def parts(score: str) -> pd.DataFrame:
    """ESimCSE's parts, and batches of any length, each beside its own baseline."""
    plain, mixed = "SimCSE", "SimCSE, batches of any length"
    pairs = {"ESimCSE, queue alone": plain, "ESimCSE, word repetition alone": plain}
    pairs |= {mixed: plain, "ESimCSE, batches of any length": mixed}
    return paired_differences(rows("quoted_light"), f"sts7_test_avg_{score}", pairs)


def any_length() -> tuple[float, ...]:
    """SimCSE in batches of any length minus SimCSE, and ESimCSE there minus SimCSE there."""
    found = parts("best")
    assert (found["mean"].abs() < found["95 % ±"]).all()
    lines = found.loc[["SimCSE, batches of any length", "ESimCSE, batches of any length"]]
    (cost, half), (back, other) = lines[["mean", "95 % ±"]].to_numpy()
    return -cost, half, back, other


def queue_at_the_end() -> tuple[float, float]:
    """What the queue alone costs by the last step; it alone is clear there."""
    found = parts("last")
    clear = found.index[found["mean"].abs() > found["95 % ±"]]
    assert list(clear) == ["ESimCSE, queue alone"]
    line = found.loc["ESimCSE, queue alone"]
    return -line["mean"], line["95 % ±"]


def changes_of_sign() -> tuple[str, str]:
    """Of the nine differences asked of both encoders, how many change their sign clear of zero as
    nine together; and how many verdicts are mini-BERT's."""
    nine = {"comparisons": 9}
    large = paired_differences(
        rows("consert_small"), MEAN, {"no view, Wikipedia": "SimCSE"}, **nine
    )
    alone = paired_differences(rows("consert_small"), MEAN, {"no view, Wikipedia": "SimCSE"})
    gain = alone["mean"].item()
    assert alone["95 % ±"].item() < gain < large["95 % ±"].item()
    for words in ("TF-IDF", SIF):
        for grid, sign in (("simcse_light", -1), ("simcse_small", 1)):
            table = rows(grid)
            same = table[table["row"] == words]
            score = same["sts7_test_avg_last"].item()
            repeated = pd.concat([same.assign(seed=s, **{MEAN: score}) for s in (42, 0, 1, 11, 15)])
            table = pd.concat([table[table["row"] == "SimCSE"], repeated])
            found = paired_differences(table, MEAN, {"SimCSE": words}, **nine).iloc[0]
            assert sign * found["mean"] > found["95 % ±"]
    verdicts = judged()["grid"].fillna("")
    return "two", str(int(verdicts.str.contains("_light").sum()))


def dn_at_midi() -> tuple[float, float, float]:
    """DN's gain with mini-BERT; with midi-BERT, and its interval as one of four."""
    light = paired_differences(rows("sda_light"), MEAN, {"DN": "SimCSE"})["mean"].item()
    found = at_small(MEAN).loc["DN"]
    return light, found["mean"], found["95 % ±"]


STATEMENTS = [
    Statement("At the rate that dev chose it adds {:.2f}.", lambda: minilm()[:1]),
    Statement(
        "Of nine questions asked of both encoders {} change their sign for sure; {} of the 29 verdicts"
        " are mini-BERT's.",
        changes_of_sign,
    ),
    Statement("DN gains {:.1f}. With midi-BERT {:.2f} ± {:.2f}.", dn_at_midi),
    Statement(
        '"UNA\'s negatives add to SimCSE" is {:.2f} − {:.2f} = {:.2f} points',
        lambda: (una_printed(), simcse_printed(), una_printed() - simcse_printed()),
    ),
    Statement(
        "(The paper prints their mean as {:.2f}.)",
        lambda: (100 * float(paper("una_table_d7").loc["mean", "Paraphrasing & UNA"]),),
    ),
    Statement(
        "Its SimCSE, {}, fits the {} that UNA's paper quotes for BERT (for RoBERTa {})",
        quoted_on_dev,
    ),
    Statement(
        "SimCSE is above what trains nothing, by {:.1f} and {:.1f}", above_what_trains_nothing
    ),
    Statement("over those of {} SimCSE leads by {:.1f}.", above_tfidf_of_more),
    Statement(
        "Mirror-BERT alone is clearly below ({} ± {:.2f}). ESimCSE has its printed {:.2f} inside"
        " {:.2f} ± {:.2f}. The others exclude theirs: ArcCSE {} ± {:.2f} (printed {}), DCLR {} ±"
        " {:.2f} ({}), SCD {} ± {:.2f} ({})",
        quoted_read,
    ),
    Statement(
        "beside the {} of SimCSE's paper, {} are one to two points above SimCSE",
        lambda: (paper("sda_table_4").loc["simcse_bert", "Avg."], quoted_order()),
    ),
    Statement(
        "is about as low at this rate ({:.1f}, notebook",
        lambda: (mean("simcse_light", "SimCSE, trained through the mean", "sts7_test_avg_last"),),
    ),
    Statement(
        "still gains {:.1f} points over no training",
        lambda: (mean("quoted_light", "SCD") - simsiam()[1],),
    ),
    Statement(
        "at the last step it moves the mean by {:.2f} ± {:.2f}",
        lambda: tuple(quoted("last").loc["DCLR"].abs()),
    ),
    Statement("by the last step the queue is {:.2f} ± {:.2f} below", queue_at_the_end),
    Statement("SimCSE is at −{:.2f} ± {:.2f}, and ESimCSE {:.2f} ± {:.2f} above that", any_length),
    Statement(
        "Against {:.2f}, the SimCSE of UNA's own table, DCLR is {:.2f} above", beside_unas_simcse
    ),
    Statement(
        "the last step ArcCSE is {:.2f} ± {:.2f} below",
        lambda: tuple(quoted("last").loc["ArcCSE"].abs()),
    ),
    Statement("We list {} differences that four texts print", lambda: counts()[:1]),
    Statement("We could test {} of the {} listed claims", lambda: (counts()[1], counts()[0])),
    Statement("We test {} of them on real data", lambda: counts()[1:2]),
    Statement(
        "UNA's first claim and SDA's {} of rules alone with midi-BERT, all others with mini-BERT",
        lambda: (at_midi(),),
    ),
    Statement("today in UNA's first claim and in {} of SDA's Table 8.", lambda: (at_midi(),)),
    Statement("{} hold. {} say that synonyms harm: two of these test one edit", held),
    Statement("{} fail, all of them additions to ConSERT", lambda: (failed(),)),
    Statement("{} are smaller here than printed", lambda: (in_words()[2].capitalize(),)),
    Statement("For {} our intervals are too wide", lambda: in_words()[3:]),
    Statement(
        "Counted with its other claims, {} paper's own method is clearly above SimCSE",
        lambda: (gains_that_hold().lower(),),
    ),
    Statement("among a dozen others needs {} seeds", lambda: (seeds_for_one_point(),)),
    Statement("UNA's 0.82 on midi-BERT would need {}", lambda: (seeds_for_una(of_una()),)),
    Statement('With all claims counted together "{}" no longer fails', lambda: (spared(),)),
    Statement("SDA's \"Synonyms harm\" is {:.2f} ± {:.2f} by UNA's, smaller", by_unas_schedule),
    Statement("So {} verdicts can be redone on the other schedule, and {} changes", other_schedule),
    Statement("Synonyms are best at the {} look, each time", lambda: (synonyms_look(),)),
    Statement("the best step is the {}", lambda: (consert_look(),)),
    Statement("after {} such batches, it is −{:.2f} ± {:.2f}", una_at_the_end),
    Statement("{} undecided claim prints less than could be seen", lambda: (unseen(),)),
    Statement("They leave the encoder where it was, at {:.2f}; untrained it has {:.2f}", simsiam),
    Statement(
        "are steps {} to {}, after {} to {} batches with negatives",
        lambda: judged_after(unas_rows()),
    ),
    Statement(
        "find four times in five (section 10): {:.1f} points for UNA",
        lambda: (smallest_effect(5, unas_scatter(), comparisons=of_una()),),
    ),
    Statement(
        "Its {:.2f} would need {} seeds as one of thirteen claims, {} alone",
        lambda: (
            ours("UNA's negatives add to SimCSE")["printed"],
            seeds_for_una(of_una()),
            seeds_for_una(1),
        ),
    ),
    Statement(
        "UNA has {:.2f} and SimCSE with UNA's loss {:.2f}, with an sd of {:.2f} and {:.2f}",
        lambda: tuple(
            float(unas_rows(baseline)["sts7_test_avg_best"].agg(how))
            for how in ("mean", "std")
            for baseline in (False, True)
        ),
    ),
    Statement("−{:.2f} ± {:.2f}, with checkpoints after {} to {} batches", una_at_light),
    Statement(
        "a linear one costs {:.2f} ± {:.2f} points, one with a ReLU {:.2f} ± {:.2f},"
        " where the report gains {:.2f} and {:.2f}",
        lambda: (
            -(linear := ours("A linear head is better than no head"))["ours"],
            linear["half_width"],
            -(relu := ours("A head with a ReLU is better than no head"))["ours"],
            relu["half_width"],
            linear["printed"],
            relu["printed"],
        ),
    ),
    Statement(
        "SimSiam's head and loss lie {:.2f} ± {:.2f} below no head, as claimed, and by more than its"
        " {:.2f}",
        lambda: tuple(
            ours("SimSiam's head and loss are worse than no head")[
                ["ours", "half_width", "printed"]
            ]
        ),
    ),
    Statement(
        "PI lies {:.2f} above SimCSE with SDA's head, MV {:.2f}, DN {:.2f}, the ensemble {:.2f} ± {:.2f}"
        " (four together): a gain or a loss of two points stays open. Clearer is SICK-R, which"
        " mini-BERT's rows had singled out: the ensemble loses {:.2f} ± {:.2f}, DN {:.2f} ± {:.2f}",
        rules_at_small,
    ),
    Statement(
        "At `small`, with the same {} seeds, ConSERT has {:.1f} with or without views, SimCSE {:.1f}",
        consert_at_small,
    ),
    Statement('By the last checkpoint "{}" is undecided', lambda: (lost(),)),
    Statement("Alone, {} more hold", lambda: (held_alone(),)),
    Statement("up to {} claims move", lambda: (moved(),)),
    Statement("vary with an sd of {:.2f}", lambda: (spread(),)),
    Statement('{} of the {} "smaller" lie within two such sd', lambda: beyond()[:2]),
    Statement("Clearly beyond are {} of SDA's Table 8, and UNA's α.", lambda: beyond()[2:]),
    Statement(
        "Synonyms and inserted synonyms harm, as the paper says, by {:.2f} and {:.2f} points",
        lambda: (
            ours("Synonyms as positives harm")["ours"],
            ours("Inserted synonyms harm")["ours"],
        ),
    ),
    Statement("has {:.2f} for synonyms: it reads the last step", lambda: (synonyms_at_the_end(),)),
    Statement(
        "the noise is less than half, too: ± {:.2f} against ± {:.2f}",
        lambda: (
            ours("Synonyms as positives harm")["half_width"],
            ours("UNA's negatives add to SimCSE")["half_width"],
        ),
    ),
    Statement(
        "reaches from −{:.2f} to +{:.2f} and holds both zero and the paper's {:.2f}",
        lambda: (
            (line := ours("UNA's negatives add to SimCSE"))["half_width"] - line["ours"],
            line["half_width"] + line["ours"],
            line["printed"],
        ),
    ),
    Statement(
        'for "interpolated vectors" the printed {:.2f} lies {:.2f} beyond our interval, for "vectors'
        ' moved along a line" {:.2f} is {:.2f} inside',
        close_verdicts,
    ),
    Statement(
        "Heavier feature cutoff costs {:.2f} points where the report gains {:.2f}: it fails",
        lambda: (
            -(line := ours("Heavier feature cutoff adds to ConSERT"))["ours"],
            line["printed"],
        ),
    ),
    Statement(
        "it costs {:.2f} ± {:.2f} on STS sentences",
        lambda: (-head("STS sentences")[0], head("STS sentences")[1]),
    ),
    Statement("on Wikipedia its effect is open ({:.2f} ± {:.2f})", lambda: head("Wikipedia")),
    Statement(
        "Synonyms do, by {:.2f} ± {:.2f}; of the other three none clears zero, and their printed sizes"
        " are excluded.",
        edits_of_table_8,
    ),
    Statement(
        "Modal verbs with negations ({:.2f} ± {:.2f}), the ensemble with negations ({:.2f} ± {:.2f})"
        " and cropping ({:.2f} ± {:.2f})",
        lambda: (
            *alone("Modal verbs with negations add to SimCSE"),
            *alone("The ensemble with negations adds to SimCSE"),
            *alone("Cropping 10 % harms"),
        ),
    ),
    Statement(
        "Masking 15 % of the words costs the paper {:.2f} points and us {:.2f} ± {:.2f}",
        lambda: tuple(ours("Masking 15 % of the words harms")[["printed", "ours", "half_width"]]),
    ),
    Statement(
        "lie {:.2f} and {:.2f} points above SimCSE, but {} intervals that hold together are wide:"
        " ± {:.1f} in both",
        lambda: (
            (dn := ours("Double negation with negations adds to SimCSE"))["ours"],
            (both := ours("The ensemble with negations adds to SimCSE"))["ours"],
            WORDS[int(((judged()["paper"] == "sda") & (judged()["seeds"] > 0)).sum())],
            (dn["half_width"] + both["half_width"]) / 2,
        ),
    ),
    Statement(
        "Deleting 10 % of the words moves {:.2f} points, in the paper {:.2f}.",
        lambda: tuple(ours("Deleting 10 % of the words harms")[["ours", "printed"]]),
    ),
    Statement(
        "Five seeds find, four times in five, a difference of {:.1f} of its sd over seeds; as one of"
        " fifteen, of {:.1f}.",
        lambda: (smallest_effect(5, sd=1), smallest_effect(5, sd=1, comparisons=15)),
    ),
    Statement(
        "the best of ten is {:.2f} standard deviations above the mean, {:.2f} points",
        lambda: (best_of(10, 0, 1), best_of(10, 0, float(ten().std()))),
    ),
    Statement("at the published seed it is {} larger", lambda: (larger_at_42(),)),
    Statement(
        "What UNA adds to paraphrases, {:.2f} points in Table 1",
        lambda: (claims.printed(next(c for c in claims.read() if "UNA adds" in c.claim)),),
    ),
    Statement(
        "Five seeds and fifteen comparisons find {:.2f} points",
        lambda: (smallest_effect(5, sd=0.7, comparisons=15),),
    ),
    Statement(
        "{} of the {} at their printed size: {} hold, {} fail, {} are smaller. The other {} are printed"
        " too small for five seeds",
        lambda: tuple(n if i < 2 else WORDS[n] for i, n in enumerate(seen())),
    ),
    Statement(
        "{} printed gains were large enough for our five seeds to see: {} came out", seen_gains
    ),
    Statement("Of the {} that hold, {} has the printed size in its interval: {}", printed_inside),
    Statement(
        "noise of a tenth hardly moves the score (−{:.2f} ± {:.2f})",
        lambda: (-(line := ours("Noise on the vectors helps"))["ours"], line["half_width"]),
    ),
    Statement(
        "has a hidden layer and gains {:.2f}; we have no row",
        lambda: (table_6("hidden_600") - table_6("none"),),
    ),
    Statement("the report's reaches {:.2f}", lambda: (table_6("simsiam"),)),
]
