"""What notebook 07 says of the papers' claims."""

from functools import cache

import pandas as pd

from lib import claims
from lib.evaluate.statistics import best_of, paired_differences, power_of, smallest_effect
from statements import Statement, paper, rows

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


def synonyms_alone() -> str:
    """How many claims hold, if all of them are about synonyms."""
    held = judged()[judged()["verdict"] == "holds"]["claim"]
    return WORDS[int(held.str.lower().str.contains("synonyms").sum())].capitalize()


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
    assert not any("fails" in both for way in ways() for both in way)
    return str(judged()["claim"][line])


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


def closely() -> tuple[str, float]:
    """How many of these lie within two sd of a printed difference, and the farthest of them."""
    near = beyond_our_interval()[lambda gap: gap <= 2 * spread()]
    return WORDS[len(near)], float(near.max())


def beyond() -> tuple[str, str, str]:
    """How many smaller claims are printed within two sd of our interval's end, of how many; and
    the others."""
    part = judged()[judged()["verdict"] == "smaller"]
    far = part["claim"][beyond_our_interval() > 2 * spread()]
    assert part["where"][far.index].eq("Table 8").all()
    names = [name.split()[0].lower() for name in far]
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


STATEMENTS = [
    Statement("We list {} differences that", lambda: counts()[:1]),
    Statement("We test {} of them on real data", lambda: counts()[1:2]),
    Statement("{} hold: all of them say that synonyms harm", lambda: (synonyms_alone(),)),
    Statement("{} hold: all of them", lambda: (in_words()[0].capitalize(),)),
    Statement("{} fails.", lambda: (in_words()[1].capitalize(),)),
    Statement("{} are smaller here than printed", lambda: (in_words()[2].capitalize(),)),
    Statement("which is itself one run, {} times by no more than {:.1f} points", closely),
    Statement("For {} our intervals are too wide", lambda: in_words()[3:]),
    Statement("{} gain of a paper's own method", lambda: (gains_that_hold(),)),
    Statement("among a dozen others needs {} seeds", lambda: (seeds_for_one_point(),)),
    Statement(
        "Of {} claims {} were tested with a small encoder: {} hold, {} fails, {} are smaller here"
        " than printed, {} are undecided.",
        counts,
    ),
    Statement('By the last checkpoint "{}" is undecided', lambda: (lost(),)),
    Statement("Alone, {} more hold", lambda: (held_alone(),)),
    Statement("up to {} claims move", lambda: (moved(),)),
    Statement("vary with an sd of {:.2f}", lambda: (spread(),)),
    Statement('{} of the {} "smaller" lie within two such sd', lambda: beyond()[:2]),
    Statement("Clearly beyond are {}, all of SDA's Table 8", lambda: beyond()[2:]),
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
        "the printed {:.2f} lies {:.2f} beyond our interval",
        lambda: (
            (line := ours("Vectors moved along a line help"))["printed"],
            line["printed"] - line["ours"] - line["half_width"],
        ),
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
    Statement("nothing clear ({:.2f} ± {:.2f})", lambda: head("Wikipedia")),
    Statement(
        "Synonyms do, by {:.2f} ± {:.2f}.",
        lambda: tuple(in_table("Synonyms harm", "Table 8")[["ours", "half_width"]]),
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
        "Deleting 10 % of the words moves {:.2f} points, and the paper's {:.2f} are excluded",
        lambda: tuple(ours("Deleting 10 % of the words harms")[["ours", "printed"]]),
    ),
    Statement(
        "Five seeds find a difference of {:.1f} times its own standard deviation; as one of fifteen"
        " it must be {:.1f} times",
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
]
