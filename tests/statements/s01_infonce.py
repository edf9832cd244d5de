"""Of 01 · InfoNCE: what its evidence says, from the rows and steps of one grid."""

import math
from functools import cache

import pandas as pd

from lib import data, results
from statements import Statement, mean, paper, rows

GRID = "simcse_small"
MASK, RAW, SIF = "one mask for both", "as pre-trained", "input embeddings, SIF"


@cache
def steps() -> pd.DataFrame:
    """The grid's steps."""
    return results.steps(GRID)


def at(step: int, column: str, row: str = "SimCSE") -> float:
    """Mean over the seeds of a row at one step."""
    found = steps()
    return float(found.loc[(found["row"] == row) & (found["step"] == step), column].mean())


def test(row: str) -> float:
    """The average of the seven tests, after the last step."""
    return mean(GRID, row, "sts7_test_avg_last")


def dev(row: str) -> float:
    """The dev score after the last step."""
    return mean(GRID, row, "stsb_dev_spearman_last")


def sd(row: str) -> float:
    """Over the seeds of a row."""
    found = rows(GRID)
    return float(found.loc[found["row"] == row, "sts7_test_avg_last"].std())


def pair(first: str) -> tuple[float, str, str]:
    """Grade and sentences of the shipped dev pair that begins with a sentence."""
    pairs = data.mini_pairs("dev")
    at = pairs.sentence1.index(first)
    return float(pairs.scores[at]), first, pairs.sentence2[at]


def printed(table: str, row: str, column: str = "Avg.") -> float:
    """A cell of a paper's table."""
    return float(paper(table).loc[row, column])


STATEMENTS = [
    Statement(
        "Draw at random two of the course's {:,} sentences, nearly all generated.",
        lambda: (len(data.corpus("mini")),),
    ),
    Statement(
        "| {:.1f} | paraphrase | {} | {} |",
        lambda: pair("Last summer, the judge heard the reluctant defendant before a large public."),
    ),
    Statement(
        "| {:.1f} | detail changed | {} | {} |",
        lambda: pair("An attempt was made by a violinist to tune the harp in the concert hall."),
    ),
    Statement(
        "| {:.1f} | detail changed | {} | {} |",
        lambda: pair('"I secured the evidence in the suburb," said a detective.'),
    ),
    Statement(
        "| {:.1f} | attribute changed | {} | {} |",
        lambda: pair("The sister was sorry that she had built the colourful puppet theatre."),
    ),
    Statement("| {:.1f} | role swapped | {} | {} |", lambda: pair("It was Mei who hired Henry.")),
    Statement(
        "{:,} for development (here) and {:,} for the test (section 14).",
        lambda: tuple(len(data.mini_pairs(part).scores) for part in ("dev", "test")),
    ),
    Statement(
        "stands at 15° from the anchor, a distance of {:.2f};",
        lambda: (2 * math.sin(math.radians(15 / 2)),),
    ),
    Statement(
        "BERT-base, a transformer trained to fill in masked words, scores {:.2f}.",
        lambda: (100 * printed("una_table_d8", "bert_first_last_avg"),),
    ),
    Statement(
        "on unlabelled sentences, scores {:.2f}.", lambda: (printed("sda_table_4", "simcse_bert"),)
    ),
    Statement(
        "The own positive stays where it was, at {:.2f} first and {:.2f} last; the others fall"
        " from {:.2f} to {:.2f}.",
        lambda: (
            at(1, "positive_cosine"),
            at(300, "positive_cosine"),
            at(1, "other_cosine"),
            at(300, "other_cosine"),
        ),
    ),
    Statement(
        "{:.2f} with an accuracy of {:.2f}, against {:.2f} and {:.2f}.",
        lambda: (
            at(1, "loss", MASK),
            at(1, "in_batch_accuracy", MASK),
            at(1, "loss"),
            at(1, "in_batch_accuracy"),
        ),
    ),
    Statement(
        "One mask, too, pushes the others down to {:.2f}: its log looks perfect.",
        lambda: (at(300, "other_cosine", MASK),),
    ),
    Statement(
        "by about {} points: one mask ends at {:.1f} on the seven tests, untrained is {:.1f}, SimCSE"
        " {:.1f} ± {:.1f} (standard deviation of the seeds).",
        lambda: (
            {10: "ten"}[round(test("SimCSE") - test(MASK))],
            test(MASK),
            test(RAW),
            test("SimCSE"),
            sd("SimCSE"),
        ),
    ),
    Statement(
        "has {:.1f} ({:.1f} with weights from 50,000 sentences).",
        lambda: (test("TF-IDF"), mean("simcse_light", "TF-IDF", "sts7_test_avg_last")),
    ),
    Statement(
        "input word vectors less their common direction, has {:.1f}, and on STS-B dev is {} of SimCSE.",
        lambda: (test(SIF), "ahead" if dev(SIF) > dev("SimCSE") else "behind"),
    ),
    Statement(
        "about three passes over {:,} sentences from Wikipedia",
        lambda: (int(rows(GRID).query("row == @MASK")["n_sentences"].iloc[0]),),
    ),
    Statement(
        "a first loss of {:.2f} came with a gain of {} points, one of {:.2f} with {}.",
        lambda: (
            at(1, "loss", MASK),
            {2: "two"}[round(test(MASK) - test(RAW))],
            at(1, "loss"),
            {12: "twelve"}[round(test("SimCSE") - test(RAW))],
        ),
    ),
]
