"""What notebook 03 says of ConSERT's views, of its training text and of over-training."""

from functools import cache

from lib.evaluate.statistics import paired_differences, smallest_effect
from statements import Statement, mean, paper, rows

VIEWS, EXTREMES, METHODS = "consert_light_grid", "consert_light_extremes", "consert_light"
LAST, DEV = "sts7_test_avg_last", "stsb_dev_spearman"
NONE = "no view, Wikipedia"


def last(grid: str, row: str) -> float:
    """Mean over the seeds of a row's last scores on the seven tasks."""
    return mean(grid, row, LAST)


def cell(first: str, second: str) -> float:
    """A cell of the map of views, minus no view on either side."""
    return last(VIEWS, f"{first} × {second}") - last(VIEWS, "none × none")


@cache
def mirrored() -> float:
    """The largest difference between two cells of the map that have the same two views."""
    names = ("none", "shuffle", "token_cutoff", "feature_cutoff", "span_cutoff", "dropout")
    return max(abs(cell(a, b) - cell(b, a)) for a in names for b in names)


def with_interval(grid: str, row: str, baseline: str, comparisons: int) -> tuple[float, float]:
    """Size of the mean difference of one row from a baseline, and the half-width of its interval
    among so many."""
    found = paired_differences(rows(grid), LAST, {row: baseline}, comparisons=comparisons)
    return abs(found.loc[row, "mean"]), found.loc[row, "95 % ±"]


def seen(row: str) -> float:
    """The smallest gain over no view that its five seeds would have found."""
    sd = paired_differences(rows(METHODS), LAST, {row: NONE}, comparisons=6).loc[row, "sd"]
    return smallest_effect(5, sd, comparisons=6)


def average(row: str, table: str = "consert_ext_table_1") -> float:
    """A row's printed average."""
    return float(paper(table).loc[row, "Avg."])


def gained_by_training_on() -> float:
    """What the last weights without a view have over the best by dev, on the tests."""
    return last(METHODS, NONE) - mean(METHODS, NONE)


def best_at(grid: str, row: str, step: int) -> str:
    """How many of five seeds have their best dev score at a step, in words."""
    table = rows(grid)
    steps = table.loc[table["row"] == row, "best_step"]
    assert len(steps) == 5
    return {4: "four of five", 5: "all five"}[int((steps == step).sum())]


def times() -> str:
    """By how many times the test sentences' gain exceeds that of ConSERT's views, in words."""
    return {3: "three"}[int(of_text("no view") / with_interval(METHODS, CONSERT, NONE, 6)[0])]


def of_text(row: str) -> float:
    """What training on the STS sentences has over training on Wikipedia."""
    return last(METHODS, f"{row}, STS sentences") - last(METHODS, f"{row}, Wikipedia")


SHUFFLE, CUTOFFS = "none × shuffle", "feature_cutoff × feature_cutoff"
CONSERT, LARGER = "ConSERT-unsup, Wikipedia", "+ embedding aug, Wikipedia"

STATEMENTS = [
    Statement(
        "Larger cuts into the embeddings are worth {:.2f} points there",
        lambda: (average("embedding_aug") - average("consert_unsup"),),
    ),
    Statement(
        "the best cell, {:.2f} ± {:.2f} above no view with five seeds",
        lambda: with_interval(EXTREMES, SHUFFLE, "none × none", 2),
    ),
    Statement(
        "the worst, {:.2f} ± {:.2f} below",
        lambda: with_interval(EXTREMES, CUTOFFS, "none × none", 2),
    ),
    Statement("they differ by {:.2f} at most", lambda: (mirrored(),)),
    Statement(
        "Token cutoff adds {:.2f} here, and that pair {:.2f}.",
        lambda: (cell("none", "token_cutoff"), cell("shuffle", "feature_cutoff")),
    ),
    Statement("adds {:.2f} ± {:.2f} to no view", lambda: with_interval(METHODS, CONSERT, NONE, 6)),
    Statement("cutoff stands at {:.2f} ± {:.2f}", lambda: with_interval(METHODS, LARGER, NONE, 6)),
    Statement("a gain of {:.2f} would most likely have been seen", lambda: (seen(LARGER),)),
    Statement(
        "Against ConSERT it loses {:.2f}, where the report gains {:.2f}.",
        lambda: (
            last(METHODS, CONSERT) - last(METHODS, LARGER),
            average("embedding_aug") - average("consert_unsup"),
        ),
    ),
    Statement(
        "All of them stay below TF-IDF, {:.1f}, and SIF, {:.1f}. So does SimCSE, {:.1f},",
        lambda: tuple(
            last("simcse_light", row) for row in ("TF-IDF", "input embeddings, SIF", "SimCSE")
        ),
    ),
    Statement(
        "hold {:.0f} sentences for ConSERT's {:.0f}, and its rate is {:.0f} times as high",
        lambda: (
            mean("simcse_light", "SimCSE", "batch_size"),
            mean(METHODS, CONSERT, "batch_size"),
            mean("simcse_light", "SimCSE", "lr") / mean(METHODS, CONSERT, "lr"),
        ),
    ),
    Statement(
        "gives {:.1f}, on Wikipedia {:.1f}. These {:.1f} points",
        lambda: (last(METHODS, "no view, STS sentences"), last(METHODS, NONE), of_text("no view")),
    ),
    Statement(
        "ends at {:.1f}, a linear one at {:.1f}, none at {:.1f}",
        lambda: tuple(
            last(METHODS, row)
            for row in ("+ projection head, Wikipedia", "head linear, Wikipedia", LARGER)
        ),
    ),
    Statement(
        "leaves the encoder where it was, at {:.1f}",
        lambda: (last(METHODS, "head SimSiam, Wikipedia"),),
    ),
    Statement(
        "SimCLR's adds {:.2f} to ConSERT",
        lambda: (
            average("consert_hidden_600", "consert_ext_table_6")
            - average("consert_none", "consert_ext_table_6"),
        ),
    ),
    Statement(
        "{:.1f} before training, {:.1f} at step 20, {:.1f} at the end",
        lambda: (
            mean(METHODS, "as pre-trained", f"{DEV}_last"),
            mean(EXTREMES, CUTOFFS, f"{DEV}_best"),
            mean(EXTREMES, CUTOFFS, f"{DEV}_last"),
        ),
    ),
    Statement(
        "the tests rise, from {:.1f} to {:.1f}",
        lambda: (last(METHODS, "as pre-trained"), last(EXTREMES, CUTOFFS)),
    ),
    Statement(
        "pass their best at the first dev score, {} seeds",
        lambda: (best_at(EXTREMES, CUTOFFS, 20),),
    ),
    Statement("dev stops {} seeds at step 20", lambda: (best_at(METHODS, NONE, 20),)),
    Statement(
        "are best at their last step: {} are too few",
        lambda: {(best_at(EXTREMES, SHUFFLE, 60), best_at(METHODS, CONSERT, 60)): (60,)}[
            ("all five", "all five")
        ],
    ),
    Statement("are more than {} times what ConSERT's views add", lambda: (times(),)),
    Statement("they gain {:.2f} on the tests", lambda: (gained_by_training_on(),)),
    Statement(
        "beats it by {:.1f} points; large cutoffs cost up to {:.1f}.",
        lambda: (
            with_interval(EXTREMES, SHUFFLE, "none × none", 2)[0],
            with_interval(EXTREMES, CUTOFFS, "none × none", 2)[0],
        ),
    ),
]
