"""Notebook 04: what UNA's tables say, and our runs on real sentences."""

from functools import cache

import pandas as pd

from lib.evaluate.statistics import critical_value, paired_differences, smallest_effect
from statements import Statement, paper, rows

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


def signed(number: float) -> str:
    """A number as the prose has it."""
    return f"{number:+.2f}".replace("-", "−")


def printed(table: str, row: str, column: str = "Avg.") -> float:
    """A figure of one of the paper's tables, in points."""
    return 100 * float(paper(f"una_table_{table}").loc[row, column])


def ten_seeds(column: str) -> pd.Series:
    """Table D7: seed → score, in points."""
    return 100 * paper("una_table_d7").drop("mean")[column].astype(float)


def headline() -> tuple[float, float]:
    """Seed 42 of paraphrases and UNA, which is the best of ten, and their mean."""
    scores = ten_seeds("Paraphrasing & UNA")
    assert scores.idxmax() == "seed_42"
    return scores.max(), scores.mean()


@cache
def gaps(names: tuple[str, ...] = SHOWN) -> pd.DataFrame:
    """These rows of ours minus SimCSE, their intervals together."""
    return paired_differences(rows(GRID), METRIC, dict.fromkeys(names, "SimCSE"))


def gap(row: str) -> tuple[str, str]:
    """Ours: a difference from SimCSE and its half width."""
    mean, half = gaps().loc[row, ["mean", "95 % ±"]]
    return signed(mean), f"{half:.2f}"


def minus_simcse(table: str, row: str, column: str = "Avg.") -> float:
    """The paper's difference from SimCSE on the tests."""
    return printed(table, row, column) - printed("1", "bert_simcse")


def the_clear_row() -> tuple[str, str, str]:
    """The one row whose interval leaves zero out, and the paper's figure."""
    (row,) = gaps().index[gaps()["mean"].abs() > gaps()["95 % ±"]]
    assert row == "EDA synonym replacement"
    return *gap(row), f"{-minus_simcse('c3', 'eda_synonym_replacement'):.2f}"


def una() -> tuple[str, str, str, str]:
    """Our interval for UNA, the paper's gain, and what our seeds would have seen."""
    seen = smallest_effect(5, gaps().loc["UNA, doubled", "sd"], len(SHOWN))
    return *gap("UNA, doubled"), signed(minus_simcse("1", "bert_una")), f"{seen:.1f}"


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


STATEMENTS = [
    Statement(
        "UNA alone gains {:.2f}, with one seed. SimCSE's ten seeds have a standard deviation of"
        " {:.2f}.",
        lambda: (minus_simcse("1", "bert_una"), ten_seeds("SimCSE").std()),
    ),
    Statement(
        "The headline, {:.2f}, is the best of its ten seeds; their mean is {:.2f}.", headline
    ),
    Statement(
        "One: synonyms in the positive harm, by {} ± {} here and by {} in the paper.", the_clear_row
    ),
    Statement(
        "UNA is undecided: {} ± {}, where the paper has {}. A difference of {} points"
        " would have been seen four times in five.",
        una,
    ),
    Statement(
        "Nor does counting beat drawing at random: with both steps random we get {} ± {}, where the paper falls by {}.",
        lambda: (
            *gap("random steps 2 and 3"),
            f"{-minus_simcse('2', 'ablation_row_1', 'STS Avg.'):.2f}",
        ),
    ),
    Statement(
        "Gaussian noise has the same average, {:.2f}, and interpolation {:.2f}. Our five rows of"
        " that kind are left out: at strength {} they move the mean by less than {} point",
        noise,
    ),
    Statement("Of UNA's {} settings one leaves the band: β = {}, with {}.", the_setting_outside),
    Statement("Look at $r$ from 1,000 to 6,000: {}, {}, {}, {}, {}, {}.", zigzag),
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
        " points.",
        lambda: (una()[2], ten_seeds("SimCSE").std(), una()[3]),
    ),
]
