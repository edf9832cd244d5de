"""What notebook 03 says of ConSERT's views, of its training text and of over-training."""

from functools import cache

import pandas as pd

from lib import results
from lib.results.statistics import paired_differences
from statements import Statement, mean, paper, rows, signed

VIEWS, EXTREMES, METHODS = "consert_light_grid", "consert_light_extremes", "consert_light"
RATES, LONG = "consert_small_rates", "consert_small_overtraining"
TEST, DEV = "sts7_test_avg", "stsb_dev_spearman"
LAST = f"{TEST}_last"
NONE, VIEWED, RAW = "no view, Wikipedia", "ConSERT-unsup, Wikipedia", "as pre-trained"
DROPPED, ENDS = "no view but dropout 0.1, Wikipedia", ("best", "last")
WITHOUT_DROPOUT = {VIEWED: "SimCSE", NONE: "SimCSE"}


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


def average(row: str, table: str = "consert_ext_table_1") -> float:
    """A row's printed average."""
    return float(paper(table).loc[row, "Avg."])


def best_simclr_head() -> tuple[str, float]:
    """How many heads like SimCLR's the report tries on ConSERT, in words, and what the best adds."""
    name = "consert_ext_table_6"
    printed = paper(name).query("Model == 'ConSERT' and MLP == 'simclr'")["Avg."].astype(float)
    return {5: "five"}[len(printed)], printed.max() - average("consert_none", name)


def times_one() -> tuple[str]:
    """How often the loss by one feature cutoff, on either side, goes into the loss by two."""
    one = min(cell("none", "feature_cutoff"), cell("feature_cutoff", "none"))
    return ({3: "three"}[int(cell("feature_cutoff", "feature_cutoff") / one)],)


def seen(grid: str, row: str) -> tuple[float, float]:
    """How many sentences a training sees, and how many there are."""
    return (
        mean(grid, row, "steps") * mean(grid, row, "batch_size"),
        mean(grid, row, "n_sentences"),
    )


def dev_only_falls() -> str:
    """In how many seeds two large cutoffs never come up to the dev score before training."""
    start = mean(METHODS, "as pre-trained", f"{DEV}_last")
    table = rows(EXTREMES)
    best = table.loc[table["row"] == CUTOFFS, f"{DEV}_best"]
    assert len(best) == 5
    return {5: "all five"}[int((best < start).sum())]


SHUFFLE, CUTOFFS = "none × shuffle", "feature_cutoff × feature_cutoff"
CONSERT, LARGER = "ConSERT-unsup, Wikipedia", "+ embedding aug, Wikipedia"
ON_STS = {
    "none": "no view, STS sentences",
    "views": "ConSERT-unsup, STS sentences",
    "larger": "+ embedding aug, STS sentences",
}


def tests_of_a_rate() -> tuple[float, float]:
    """Tests of midi-BERT at 1e-4, at its best step, the first of the scored ones, and at the last."""
    (best, steps), row = ((50, 300), "ConSERT 1e-4")
    assert mean(RATES, row, "best_step") == best and mean(RATES, row, "steps") == steps
    return mean(RATES, row, f"{TEST}_best"), mean(RATES, row, f"{TEST}_last")


def falls_first() -> list[float]:
    """Best steps of the long trainings with views, and of those without."""
    best = rows(LONG).groupby("row")["best_step"]
    found = [sorted(best.get_group(f"mini-BERT, {row}")) for row in ("ConSERT-unsup", "no view")]
    return found[0] + found[1]


def loss_between(first: int, last: int) -> float:
    """Mean loss at 1e-4 of these steps."""
    history = results.steps(RATES)
    one = history[(history["row"] == "ConSERT 1e-4") & history["step"].between(first, last)]
    return float(one["loss"].mean())


def at_small(metric: str, against: dict[str, str]) -> pd.DataFrame:
    """Paired differences with midi-BERT at the rate that dev chooses, intervals together."""
    by_rate = rows(RATES)[rows(RATES)["row"].str.startswith("ConSERT")].set_index("row")
    assert by_rate[f"{DEV}_best"].idxmax() == "ConSERT 3e-5"
    found = rows("consert_small")
    assert set(found.loc[found["row"] != "SimCSE", "lr"]) == {3e-5}
    return paired_differences(found, metric, against)


def gap_at_small(row: str, baseline: str, clear: bool) -> tuple[float, float]:
    """Size of a difference on the seven tasks and its half width, three seeds; whether it leaves
    zero out."""
    found = at_small(f"{TEST}_best", {row: baseline}).loc[row]
    assert found["seeds"] == 3 and (abs(found["mean"]) > found["95 % ±"]) == clear
    return abs(found["mean"]), found["95 % ±"]


def views_minus_none() -> tuple[str, float, str, float]:
    """Views minus no view and its half width on the seven tasks, where zero is inside, and on dev,
    where it is not."""
    on_test, on_dev = (
        at_small(f"{metric}_best", {VIEWED: NONE}).loc[VIEWED] for metric in (TEST, DEV)
    )
    assert on_test["seeds"] == 3 and abs(on_test["mean"]) < on_test["95 % ±"]
    assert -on_dev["mean"] > on_dev["95 % ±"]
    return signed(on_test["mean"]), on_test["95 % ±"], signed(on_dev["mean"]), on_dev["95 % ±"]


def above_simcse() -> tuple[float, float, float, float, float]:
    """Least and most that both are above SimCSE, and the wider half width; at the last step, where
    they are equal to a tenth, how far and the wider half width."""
    found, last = (at_small(f"{TEST}_{step}", WITHOUT_DROPOUT) for step in ("best", "last"))
    assert (found["mean"] > found["95 % ±"]).all() and set(found["seeds"]) == {3}
    low, high = last["mean"].min(), last["mean"].max()
    assert f"{low:.1f}" == f"{high:.1f}"
    widest = last["95 % ±"].max()
    return found["mean"].min(), found["mean"].max(), found["95 % ±"].max(), low, widest


def below_on_dev() -> tuple[()]:
    """Nothing, if on dev both means are below SimCSE's and both intervals hold zero."""
    found = at_small(f"{DEV}_best", WITHOUT_DROPOUT)
    assert (found["mean"] < 0).all() and (found["mean"].abs() < found["95 % ±"]).all()
    return ()


def dropout_costs() -> tuple[float, float]:
    """What dropout costs without a view, and the half width."""
    assert mean("consert_small", DROPPED, f"{TEST}_best") < mean(
        "consert_small", NONE, f"{TEST}_best"
    )
    return gap_at_small(DROPPED, NONE, clear=True)


def no_dropout_by_simcse() -> tuple[float, float]:
    """What SimCSE with midi-BERT loses without dropout, and the interval among notebook 02's four."""
    others = ("p = 0.2", "p = 0.05", "p = 0", "one mask for both")
    found = paired_differences(
        rows("simcse_small"), f"{TEST}_best", dict.fromkeys(others, "SimCSE")
    )
    return -found.loc["p = 0", "mean"], found.loc["p = 0", "95 % ±"]


def dropout_above_simcse() -> tuple[float, float]:
    """How far no view with dropout is above SimCSE, and the half width."""
    assert at_small(f"{TEST}_best", {DROPPED: "SimCSE"}).loc[DROPPED, "mean"] > 0
    return gap_at_small(DROPPED, "SimCSE", clear=False)


def below_no_training() -> tuple[float, ...]:
    """Dev at 3e-4, at its best, and before training; the tests at that step, and before."""
    (best, raw), (tests, raw_tests) = (
        (mean(RATES, "ConSERT 3e-4", f"{m}_best"), mean("consert_small", RAW, f"{m}_last"))
        for m in (DEV, TEST)
    )
    assert best < raw and tests > raw_tests
    return best, raw, tests, raw_tests


def mild_collapse() -> tuple[float, ...]:
    """Alignment at 1e-4, best and last, and at 3e-5, whose tests are the best."""
    tests = rows(RATES).set_index("row")[f"{TEST}_best"]
    assert tests.idxmax() == "ConSERT 3e-5"
    columns = ("dev_alignment_best", "dev_alignment_last")
    first, second = (mean(RATES, "ConSERT 1e-4", column) for column in columns)
    return first, second, mean(RATES, "ConSERT 3e-5", columns[0])


def dev_and_tests_disagree() -> tuple[float, ...]:
    """Dev and tests of the views at the last step, each beside no training; on dev the views trail
    no view at the best and the last step."""
    viewed, none = "mini-BERT, ConSERT-unsup", "mini-BERT, no view"
    assert all(mean(LONG, viewed, f"{DEV}_{at}") < mean(LONG, none, f"{DEV}_{at}") for at in ENDS)
    dev, tests = (
        (mean(LONG, viewed, f"{m}_last"), mean(METHODS, RAW, f"{m}_last")) for m in (DEV, TEST)
    )
    assert dev[0] < dev[1] and tests[0] > tests[1]
    return *dev, *tests


STATEMENTS = [
    Statement(
        "Larger cuts into the embeddings are worth {:.2f} points there",
        lambda: (average("embedding_aug") - average("consert_unsup"),),
    ),
    Statement(
        "{:.0f} steps of {:.0f} sentences at `2e-5`. That is little: {:,.0f} of the {:,.0f} sentences"
        " of Wikipedia, and no view rises from {:.1f} to {:.1f}",
        lambda: (
            mean(METHODS, CONSERT, "steps"),
            mean(METHODS, CONSERT, "batch_size"),
            *seen(METHODS, CONSERT),
            last(METHODS, "as pre-trained"),
            last(METHODS, NONE),
        ),
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
        "Token cutoff adds {:.2f} here, shuffle × feature cutoff {:.2f}.",
        lambda: (cell("none", "token_cutoff"), cell("shuffle", "feature_cutoff")),
    ),
    Statement(
        "ends at {:.1f}, a linear one at {:.1f}, none at {:.1f}",
        lambda: tuple(
            last(METHODS, row)
            for row in ("+ projection head, Wikipedia", "head linear, Wikipedia", LARGER)
        ),
    ),
    Statement("the best of {} like SimCLR's adds {:.2f} to ConSERT", best_simclr_head),
    Statement(
        "leaves the encoder where it was, at {:.1f}",
        lambda: (last(METHODS, "head SimSiam, Wikipedia"),),
    ),
    Statement(
        "Two shuffles, {:+.2f}, are worth less than one, {:+.2f}.",
        lambda: (cell("shuffle", "shuffle"), cell("none", "shuffle")),
    ),
    Statement(
        "Our span cutoff takes none to {} tokens",
        lambda: ({3: "three"}[int(0.05 * mean(VIEWS, "none × span_cutoff", "max_length"))],),
    ),
    Statement("two feature cutoffs cost more than {} times what one costs", times_one),
    Statement(
        "On Wikipedia ConSERT's views add {:.2f} ± {:.2f} to no view; on the STS sentences hardly"
        " anything, {:.2f} ± {:.2f}.",
        lambda: (
            *with_interval(METHODS, CONSERT, NONE, 4),
            *with_interval(METHODS, ON_STS["views"], ON_STS["none"], 4),
        ),
    ),
    Statement(
        "The larger cutoff loses on both, {:.2f} and {:.2f}, where the report gains {:.2f}.",
        lambda: (
            last(METHODS, CONSERT) - last(METHODS, LARGER),
            last(METHODS, ON_STS["views"]) - last(METHODS, ON_STS["larger"]),
            average("embedding_aug") - average("consert_unsup"),
        ),
    ),
    Statement(
        "training on them gives {:.1f}, on Wikipedia {:.1f}.",
        lambda: (last(METHODS, ON_STS["none"]), last(METHODS, NONE)),
    ),
    Statement(
        "see {:,.0f} of the {:,.0f} sentences. So the test sentences themselves can hardly explain"
        " these {:.1f} points",
        lambda: (
            *seen(METHODS, ON_STS["none"]),
            last(METHODS, ON_STS["none"]) - last(METHODS, NONE),
        ),
    ),
    Statement("ConSERT ends at {:.1f}.", lambda: (last(METHODS, CONSERT),)),
    Statement(
        "60 steps on the same text, reaches {:.1f}.", lambda: (last("simcse_light", "SimCSE"),)
    ),
    Statement(
        "TF-IDF with {:.1f} and SIF, a weighted mean of word vectors, with {:.1f}.",
        lambda: (last("simcse_light", "TF-IDF"), last("simcse_light", "input embeddings, SIF")),
    ),
    Statement(
        "hold {:.0f} sentences for ConSERT's {:.0f}, its learning rate is {:.0f} times as high",
        lambda: (
            mean("simcse_light", "SimCSE", "batch_size"),
            mean(METHODS, CONSERT, "batch_size"),
            mean("simcse_light", "SimCSE", "lr") / mean(METHODS, CONSERT, "lr"),
        ),
    ),
    Statement(
        "through the mean as ConSERT is, it ends at {:.1f}.",
        lambda: (last("simcse_light", "SimCSE, trained through the mean"),),
    ),
    Statement("Notebook 02 gave TF-IDF {:.1f} points", lambda: (last("simcse_small", "TF-IDF"),)),
    Statement(
        "There it has {:,.0f} sentences, here {:,.0f}.",
        lambda: tuple(mean(g, "TF-IDF", "n_sentences") for g in ("simcse_small", "simcse_light")),
    ),
    Statement(
        "dev only falls, in {} seeds, from {:.1f} to {:.1f}",
        lambda: (
            dev_only_falls(),
            mean(METHODS, "as pre-trained", f"{DEV}_last"),
            mean(EXTREMES, CUTOFFS, f"{DEV}_last"),
        ),
    ),
    Statement(
        "the tests rise, from {:.1f} to {:.1f}",
        lambda: (last(METHODS, "as pre-trained"), last(EXTREMES, CUTOFFS)),
    ),
    Statement(
        "beats it by {:.1f} points; large cutoffs cost up to {:.1f}.",
        lambda: (
            with_interval(EXTREMES, SHUFFLE, "none × none", 2)[0],
            with_interval(EXTREMES, CUTOFFS, "none × none", 2)[0],
        ),
    ),
    Statement(
        "At `1e-4` dev loses {:.1f} points after step {:.0f}, and the tests go with it, from {:.1f} to"
        " {:.1f}",
        lambda: (
            mean(RATES, "ConSERT 1e-4", f"{DEV}_best") - mean(RATES, "ConSERT 1e-4", f"{DEV}_last"),
            mean(RATES, "ConSERT 1e-4", "best_step"),
            *tests_of_a_rate(),
        ),
    ),
    Statement(
        "at `1e-4` from {:.2f} around step 50 to {:.2f}",
        lambda: (loss_between(45, 55), loss_between(291, 300)),
    ),
    Statement(
        "Paired over three seeds (the table has five of SimCSE): ConSERT's views minus no view"
        " {} ± {:.2f}, on dev {} ± {:.2f}.",
        views_minus_none,
    ),
    Statement(
        "Both are {:.1f} to {:.1f} points above SimCSE, ± {:.1f} at most (last step {:.1f}, ± {:.1f}).",
        above_simcse,
    ),
    Statement("It costs a point on the seven tasks: {:.2f} ± {:.2f}, three seeds.", dropout_costs),
    Statement("that costs {:.1f} ± {:.1f} points", no_dropout_by_simcse),
    Statement("On dev both means are *below* SimCSE's, neither clear of it.", below_on_dev),
    Statement("With dropout the lead is {:.1f} ± {:.1f}.", dropout_above_simcse),
    Statement(
        "At `3e-4` dev's best, {:.1f}, is below no training, {:.1f}; its tests, {:.1f}, are above,"
        " {:.1f}.",
        below_no_training,
    ),
    Statement(
        "from {:.2f} to {:.2f} in alignment; but that alone tells little: `3e-5`, which dev chooses,"
        " has the best tests at {:.2f}",
        mild_collapse,
    ),
    Statement(
        "But at `1e-4`, through the mean, ConSERT itself has {:.1f} after 50 to 100 steps",
        lambda: (mean(LONG, "mini-BERT, ConSERT-unsup", f"{TEST}_best"),),
    ),
    Statement(
        "At the last step the views' dev is below the encoder as pre-trained, {:.1f} to {:.1f}, their"
        " tests above it, {:.1f} to {:.1f}.",
        dev_and_tests_disagree,
    ),
    Statement(
        "its dev score falls after step {:.0f} or {:.0f}. Without a view dev rises for {:.0f} and {:.0f}"
        " steps",
        falls_first,
    ),
    Statement(
        "On the tests the views lead at dev's best step, {:.1f} to {:.1f}, and trail at the last,"
        " {:.1f} to {:.1f}",
        lambda: tuple(
            mean(LONG, f"mini-BERT, {row}", f"{TEST}_{at}")
            for at in ("best", "last")
            for row in ("ConSERT-unsup", "no view")
        ),
    ),
    Statement(
        "midi-BERT's tests fall from {:.1f} at step 50 to {:.1f} at step 300", tests_of_a_rate
    ),
]
