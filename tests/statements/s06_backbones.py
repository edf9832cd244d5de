"""What notebook 06 says of its siblings."""

from functools import cache

import pandas as pd

from lib import papers
from lib.results.statistics import paired_differences, smallest_effect
from statements import Statement, mean, paper, rows

GRID, SCORE, LAST = "backbones_light", "sts7_test_avg_best", "sts7_test_avg_last"
SIBLINGS = ("BERT", "ALBERT", "RoBERTa", "Llama")
SHOWN_TOGETHER = 7  # intervals of the figure


@cache
def repeated() -> pd.DataFrame:
    """The grid's runs, an untrained encoder once for each seed."""
    real = rows(GRID)
    raw = real["row"].str.endswith(", raw")
    return pd.concat([real[~raw], *(real[raw].assign(seed=s) for s in papers.SEEDS)])


def minus(row: str, base: str) -> pd.Series:
    """A row's difference from another, with the figure's interval."""
    return paired_differences(repeated(), SCORE, {row: base}, SHOWN_TOGETHER).loc[row]


def gain(sibling: str) -> tuple[float, float]:
    """What SimCSE adds, and half its interval."""
    found = minus(sibling, f"{sibling}, raw")
    return found["mean"], found["95 % ±"]


def last_gains() -> tuple[float, ...]:
    """What SimCSE adds at the last step to ALBERT, BERT and RoBERTa, and what it takes from Llama."""
    pairs = {s: f"{s}, raw" for s in SIBLINGS}
    found = paired_differences(repeated(), LAST, pairs)["mean"]
    return *found[["ALBERT", "BERT", "RoBERTa"]], -found["Llama"]


def below(sibling: str) -> tuple[float, float, float]:
    """How far below BERT a sibling is after SimCSE, half the interval, and how far before."""
    found = minus(sibling, "BERT")
    before = mean(GRID, "BERT, raw") - mean(GRID, f"{sibling}, raw")
    return -found["mean"], found["95 % ±"], before


def lead() -> tuple[float, float]:
    """ALBERT's gain less BERT's; the untrained encoders have no spread."""
    return gain("ALBERT")[0] - gain("BERT")[0], minus("ALBERT", "BERT")["95 % ±"]


def seen(row: str, base: str) -> float:
    """The smallest difference that would be found four times in five."""
    return smallest_effect(5, minus(row, base)["sd"], SHOWN_TOGETHER)


def lighter() -> float:
    """Share of BERT's parameters that ALBERT does without, by the notebook's counts."""
    return 1 - 1_151_616 / 2_860_032


def falls() -> list[float]:
    """By how much the mean cosine falls, sibling by sibling."""
    column = "dev_mean_cosine_best"
    return [mean(GRID, f"{s}, raw", column) - mean(GRID, s, column) for s in SIBLINGS]


def ranks() -> tuple[float, float]:
    """BERT's effective rank: by how much it falls, and from where."""
    column = "dev_effective_rank_best"
    before = mean(GRID, "BERT, raw", column)
    return before - mean(GRID, "BERT", column), before


def slides() -> pd.DataFrame:
    """The slides' scores, a row a model."""
    table = paper("backbones_table_1")
    return table[[name for name in table if f"{name}_sd" in table]].astype(float)


def above(model: str, other: str = "bert_base") -> int:
    """Tasks of the slides in which a model is above another."""
    scores = slides()
    return int((scores.loc[model] > scores.loc[other]).sum())


def larger(family: str) -> float:
    """By how much the large encoder of a family is above its base one in the slides' mean."""
    means = slides().mean(axis=1)
    return means[f"{family}_large"] - means[f"{family}_base"]


def by_own_rate(sibling: str, rate: str) -> float:
    """What a rate adds to the common one on STS-B dev, with the seed that chose."""
    column = "stsb_dev_spearman_best"
    found = rows("backbones_light_rates").set_index("row")[column]
    return found[f"{sibling} {rate}"] - found[f"{sibling} 5e-4"]


def whitened(sibling: str) -> float:
    """What whitening alone reaches on the seven tests, with midi-BERT and mini-BERT's siblings."""
    return mean("backbones_small", f"{sibling}, whitened", LAST)


def whitening_of_llama() -> tuple[float]:
    """What whitening adds to Llama, the most of the four, which two measures do not foretell."""
    added = {s: whitened(s) - mean("backbones_small", f"{s}, raw", LAST) for s in SIBLINGS}
    ranks = {s: mean(GRID, f"{s}, raw", "dev_effective_rank_best") for s in SIBLINGS}
    assert max(added, key=added.__getitem__) == max(ranks, key=ranks.__getitem__) == "Llama"
    return (added["Llama"],)


def sif_above(encoder: str) -> float:
    """How far SIF over an encoder's own input embeddings is above the encoder after SimCSE."""
    after = ("simcse_small", "SimCSE") if encoder == "midi-BERT" else (GRID, encoder)
    return mean("backbones_small", f"{encoder}, input embeddings, SIF", LAST) - mean(*after)


def sif_and_siblings() -> tuple[float, float]:
    """Least and most that SIF is above the siblings after SimCSE; mini-BERT is below it, too."""
    found = [sif_above(s) for s in SIBLINGS]
    assert sif_above("mini-BERT") > 0
    return min(found), max(found)


def bare_means() -> tuple[float, float, str]:
    """Least and most of the bare means of input embeddings; sentences that give SIF's frequencies.
    What SIF adds to each is more than the layers and SimCSE add."""
    encoders = (*SIBLINGS, "mini-BERT", "midi-BERT", "MiniLM")
    found = [mean("backbones_small", f"{e}, input embeddings", LAST) for e in encoders]
    assert all(sif_above(e) > 0 for e in (*SIBLINGS, "mini-BERT"))
    (sentences,) = rows("backbones_small").query("row == 'ALBERT, input embeddings, SIF'")[
        "n_sentences"
    ]
    return min(found), max(found), f"{sentences:,.0f}"


def sif_below() -> tuple[float, str]:
    """How far midi-BERT after SimCSE is above its SIF, and MiniLM as it was trained above its own."""
    table = mean("backbones_small", "MiniLM, input embeddings, SIF", LAST)
    above = mean("backbones_small", "MiniLM, raw", LAST) - table
    return -sif_above("midi-BERT"), f"{above:.0f}"


def within() -> tuple[float]:
    """How far apart the whitened siblings are; none is below where SimCSE left it."""
    scores = [whitened(s) for s in SIBLINGS]
    assert all(score > mean(GRID, s) for s, score in zip(SIBLINGS, scores, strict=True))
    return (max(scores) - min(scores),)


def minilm() -> tuple[float, ...]:
    """What SimCSE adds to MiniLM at the rate that dev chose with seed 42, and takes at the siblings',
    over the other seeds; both intervals leave zero out."""
    by_rate = rows("backbones_light_rates").set_index("row")["stsb_dev_spearman_best"]
    assert by_rate[by_rate.index.str.startswith("MiniLM")].idxmax() == "MiniLM 3e-5"
    own = rows(GRID).query("row == 'MiniLM, own rate'")
    assert set(own["lr"]) == {3e-5} and set(own["best_step"]) == {160} and len(own) == 5
    unseen = repeated()[repeated()["seed"] != 42]
    added = dict.fromkeys(("MiniLM, own rate", "MiniLM"), "MiniLM, raw")
    found = paired_differences(unseen, SCORE, added)
    gain, loss = (found.loc[row, ["mean", "95 % ±"]] for row in added)
    assert gain.iloc[0] > gain.iloc[1] and -loss.iloc[0] > loss.iloc[1]
    return *gain, -loss.iloc[0], loss.iloc[1]


STATEMENTS = [
    Statement(
        "At the last step ALBERT gains {:.1f}, BERT {:.1f}, RoBERTa {:.1f}, and Llama loses {:.1f}.",
        last_gains,
    ),
    Statement("Llama, by {:.1f} points.", whitening_of_llama),
    Statement("For all four, by {:.1f} to {:.1f} points.", sif_and_siblings),
    Statement(
        "The bare mean has {:.0f} to {:.0f}. SIF weighs words by frequency (of {} Wikipedia sentences)",
        bare_means,
    ),
    Statement(
        "midi-BERT, trained for 300 steps, passes its SIF by {:.1f}. MiniLM, which others trained on a"
        " billion pairs, is {} points above its own.",
        sif_below,
    ),
    Statement("Whitened, the four lie within {:.1f} points", within),
    Statement(
        "Whitened by the tested sentences, the four siblings lie within {:.1f} points", within
    ),
    Statement(
        "midi-BERT whitened has {:.1f}, after 300 steps of SimCSE {:.1f}",
        lambda: (whitened("midi-BERT"), mean("simcse_small", "SimCSE", SCORE)),
    ),
    Statement(
        "ALBERT, by {:.1f} ± {:.1f}, next to BERT's {:.1f} ± {:.1f}: a lead of {:.1f} ± {:.1f} "
        "({:.2f} − {:.2f})",
        lambda: (*gain("ALBERT"), *gain("BERT"), *lead(), gain("ALBERT")[0], gain("BERT")[0]),
    ),
    Statement("RoBERTa ends {:.1f} ± {:.1f} below BERT", lambda: below("RoBERTa")[:2]),
    Statement("RoBERTa gains {:.1f} ± {:.1f}", lambda: gain("RoBERTa")),
    Statement(
        "Llama moves by {:.1f} ± {:.1f}; only an effect of {:.1f} would have been seen",
        lambda: (*gain("Llama"), seen("Llama", "Llama, raw")),
    ),
    Statement(
        "RoBERTa is {:.1f} ± {:.1f} below BERT, and {:.1f} of it were there before",
        lambda: below("RoBERTa"),
    ),
    Statement(
        "ALBERT is {:.1f} ± {:.1f} below BERT, with {:.0f} % fewer weights. A difference of {:.1f}",
        lambda: (*below("ALBERT")[:2], 100 * lighter(), seen("ALBERT", "BERT")),
    ),
    Statement(
        "Llama is {:.1f} ± {:.1f} below BERT; {:.1f} of it were there before",
        lambda: below("Llama"),
    ),
    Statement(
        "The mean cosine falls in all four, by {:.2f} to {:.2f}",
        lambda: (min(falls()), max(falls())),
    ),
    Statement("by {:.1f} of {:.0f} in BERT", ranks),
    Statement(
        "a mean cosine of {:.2f} before SimCSE, the BERT {:.2f}",
        lambda: tuple(mean(GRID, f"{s}, raw", "dev_mean_cosine_best") for s in ("Llama", "BERT")),
    ),
    Statement("It stands at {:.1f}, far above all of ours", lambda: (mean(GRID, "MiniLM, raw"),)),
    Statement(
        "that adds {:.2f} ± {:.2f}, best at the last of 160 steps each time. The siblings' 5e-4 takes"
        " {:.2f} ± {:.2f}",
        minilm,
    ),
    Statement(
        "makes of MiniLM's gain of {:.1f} a loss of {:.1f}", lambda: (minilm()[0], minilm()[2])
    ),
    Statement(
        "For ALBERT 1e-3, at the edge of the four, was better by {:.2f} points, for Llama 2e-4 by {:.1f}",
        lambda: (by_own_rate("ALBERT", "1e-3"), by_own_rate("Llama", "2e-4")),
    ),
    Statement(
        "RoBERTa-large is above BERT-large in {}, and {:.1f} points above in the mean",
        lambda: (
            {6: "six"}[above("roberta_large", "bert_large")],
            slides().mean(axis=1)["roberta_large"] - slides().mean(axis=1)["bert_large"],
        ),
    ),
    Statement(
        "BERT-large is {:.1f} below BERT-base, RoBERTa-large {:.1f} above RoBERTa-base",
        lambda: (-larger("bert"), larger("roberta")),
    ),
    Statement(
        "Gemma-7B has {:.1f} billion, {:.0f} GB",  # 8,537,680,896 weights, of two bytes
        lambda: (8_537_680_896 / 1e9, 2 * 8_537_680_896 / 1e9),
    ),
    Statement("RoBERTa-base is above it in {}", lambda: ({2: "two"}[above("roberta_base")],)),
    Statement(
        "ALBERT is below BERT-base in {} of the seven tests",
        lambda: ({0: "each"}[above("albert_base")],),
    ),
]
