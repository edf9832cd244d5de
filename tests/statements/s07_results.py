"""What notebook 07 says of the papers' claims."""

from functools import cache

import pandas as pd

from lib import claims
from lib.evaluate.statistics import best_of, smallest_effect
from statements import Statement, paper

WORDS = [
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
]


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


STATEMENTS = [
    Statement("We list {} differences that", lambda: counts()[:1]),
    Statement("test {} of them on real data with small encoders", lambda: counts()[1:2]),
    Statement("{} hold: all of them say", lambda: (in_words()[0].capitalize(),)),
    Statement("{} fails.", lambda: (in_words()[1].capitalize(),)),
    Statement("{} are smaller here than printed", lambda: (in_words()[2].capitalize(),)),
    Statement("For {} our intervals are too wide", lambda: in_words()[3:]),
    Statement("{} gain of a paper's own method", lambda: (gains_that_hold(),)),
    Statement(
        "Of {} claims {} were tested with small encoders: {} hold, {} fails, {} are smaller here"
        " than printed, {} are undecided.",
        counts,
    ),
    Statement(
        "Synonyms and inserted synonyms harm, as the paper says, by {:.2f} and {:.2f} points",
        lambda: (
            ours("Synonyms as positives harm")["ours"],
            ours("Inserted synonyms harm")["ours"],
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
        "That two random steps lose {:.2f} points against it is excluded here",
        lambda: (ours("UNA beats two random steps")["printed"],),
    ),
    Statement(
        "Heavier feature cutoff costs {:.2f} points where the report gains {:.2f}: it fails",
        lambda: (
            -(line := ours("Heavier feature cutoff adds to ConSERT"))["ours"],
            line["printed"],
        ),
    ),
    Statement(
        "Masking 15 % of the words costs the paper {:.2f} points and us {:.2f} ± {:.2f}",
        lambda: tuple(ours("Masking 15 % of the words harms")[["printed", "ours", "half_width"]]),
    ),
    Statement(
        "lie {:.2f} and {:.2f} points above SimCSE, but {} intervals that hold together",
        lambda: (
            ours("Double negation with negations adds to SimCSE")["ours"],
            ours("The ensemble with negations adds to SimCSE")["ours"],
            WORDS[int(((judged()["paper"] == "sda") & (judged()["seeds"] > 0)).sum())],
        ),
    ),
    Statement(
        "Deleting 10 % of the words moves {:.2f} points here, and the paper's {:.2f} are excluded",
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
    Statement("At the published seed it is {} larger", lambda: (larger_at_42(),)),
    Statement(
        "Five seeds and fifteen comparisons find {:.2f} points",
        lambda: (smallest_effect(5, sd=0.7, comparisons=15),),
    ),
]
