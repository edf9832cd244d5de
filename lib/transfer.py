"""Beyond cosines: SentEval's transfer tasks, and three looks at why a model ranks pairs as it does.

`encode` is any function from a list of sentences to one row a sentence, as in `lib.evaluate`. Accuracies and overlaps
are in percent.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold

from lib import data
from lib.augment.tfidf import terms_of
from lib.data import Pairs, Transfer
from lib.encoder import POOLINGS, Encoder
from lib.evaluate import Encode, _rows, similarities

C_GRID = tuple(2.0**k for k in range(-2, 4))
C_GRID_INNER_FOLDS = tuple(2.0**k for k in range(-1, 6))
TOLERANCE, MAX_ITERATIONS = 1e-6, 2000

Split = tuple[np.ndarray, np.ndarray]


# --- transfer tasks ----------------------------------------------------------------------------------------


def _embeddings(encode: Encode, sentences: Sequence[str]) -> Any:
    """Rows of `sentences`, (n, d) float64, dense or CSR, each distinct sentence encoded once; checked."""
    place = {sentence: i for i, sentence in enumerate(dict.fromkeys(sentences))}
    x = _rows(encode(list(place)), len(place))
    return x[[place[sentence] for sentence in sentences]]


def _features(encode: Encode, task: Transfer) -> Any:
    """One row a labelled line, all splits one below the other: u (n, d), or of pairs |u − v| beside u ∘ v (n, 2d)."""
    lines = [s for sentences, _ in task.splits.values() for s in sentences]
    if not task.second:
        return _embeddings(encode, lines)
    x = _embeddings(encode, lines + [s for split in task.splits for s in task.second[split]])
    u, v = x[: len(lines)], x[len(lines) :]
    if sparse.issparse(x):
        return sparse.hstack([abs(u - v), u.multiply(v)], format="csr")
    return np.hstack([np.abs(u - v), u * v])


def _splits(task: Transfer, y: np.ndarray, folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray, list[Split]]]:
    """(training rows, test rows, [(rows to fit on, rows to choose C on), …] inside the training rows), …"""
    stops = np.cumsum([len(labels) for _, labels in task.splits.values()])
    rows = dict(zip(task.splits, np.split(np.arange(len(y)), stops[:-1]), strict=True))
    kfold = StratifiedKFold(folds, shuffle=True, random_state=seed)
    inner = lambda train: [(train[fit], train[dev]) for fit, dev in kfold.split(train, y[train])]  # noqa: E731
    if rows.keys() == {"all"}:
        return [(train, test, inner(train)[:1]) for train, test in kfold.split(y, y)]
    if rows.keys() == {"train", "dev", "test"}:
        return [(rows["train"], rows["test"], [(rows["train"], rows["dev"])])]
    if rows.keys() == {"train", "test"}:
        return [(rows["train"], rows["test"], inner(rows["train"]))]
    raise ValueError(f"{task.name}: splits {', '.join(rows)} where all; train, test; or train, dev, test are expected")


def _predictions(x: Any, y: np.ndarray, fit: np.ndarray, ask: np.ndarray, grid: Sequence[float]) -> list[np.ndarray]:
    """Labels predicted for the rows `ask` by regressions on the rows `fit`, one for each C, each begun at the last.

    Subtracting the mean row leaves the optimum where it is, as the intercept is not penalised, and brings the solver
    there in fewer steps.
    """
    shift = 0 if sparse.issparse(x) else x[fit].mean(0)
    x_fit, x_ask = x[fit] - shift, x[ask] - shift
    model = LogisticRegression(tol=TOLERANCE, max_iter=MAX_ITERATIONS, warm_start=True)
    return [model.set_params(C=c).fit(x_fit, y[fit]).predict(x_ask) for c in grid]


def transfer_task(encode: Encode, task: Transfer, folds: int = 10, seed: int = 1111, workers: int = 1) -> dict:
    """Accuracy of a logistic regression on frozen embeddings: how much of a task's answer they hold linearly.

    min over W, b of ½‖W‖² + C Σ_i −log p(y_i | W x_i + b), with p logistic for two classes, softmax for more. C is
    never chosen on what is tested:

    * one split `all` (MR, CR, SUBJ, MPQA): stratified folds, each the test part once; C on a tenth of the rest.
    * `train`, `dev`, `test` (SST2): C on `dev`; the regression sees `train` only.
    * `train`, `test` (TREC, MRPC): C by the mean accuracy over stratified folds of `train`.

    C is one of `C_GRID`, 2^-2 … 2^3, for TREC and MRPC of `C_GRID_INNER_FOLDS`, 2^-1 … 2^5; of equally good ones the
    smallest. The solver is L-BFGS in float64, until no entry of the gradient (of the objective divided by C n) exceeds
    `TOLERANCE`: at scikit-learn's 1e-4 it stops so early on SST2 that a larger C changes nothing.

    Args:
        encode: gets each distinct sentence of the task once, in one call; its rows are taken as they are, neither
            normalised nor scaled, dense or sparse.
        task: of `data.transfer`; with `second` the features of a pair are |u − v| beside u ∘ v.
        folds: outer folds and inner folds, at least 2; each class needs as many members.
        workers: threads over which folds are spread.

    Returns:
        `accuracy`, the mean over the folds' test parts; `dev`, that on what C was chosen on; `C`, the list of what
        was chosen, one a fold; with pairs `f1` of class 1. All but C in percent, in [0, 100].

    Raises:
        ValueError: other splits than these, embeddings of a wrong shape, NaN or infinity in them.

    Relations: SentEval chooses C of MR, CR, SUBJ and MPQA by inner folds, here one split of the same size stands for
    them, a tenth of the work. Its regression was scikit-learn's of 2018, with a penalised intercept and one class
    against the rest; SimCSE's tables come from its PyTorch classifier, trained by Adam.

    Example:
        >>> counts = lambda sentences: [[s.count("!"), s.count("?")] for s in sentences]
        >>> lines = [f"{word}{mark}" for mark in "?!" for word in ("one", "two", "three", "four")]
        >>> transfer_task(counts, Transfer("toy", {"all": (lines, [0] * 4 + [1] * 4)}), folds=2)
        {'accuracy': 100.0, 'dev': 100.0, 'C': [0.25, 0.25]}

    Source: Conneau & Kiela 2018 (SentEval), §3; Zhu et al. 2024 (SDA), §6.2 and Table 5.
    """
    y = np.array([label for _, labels in task.splits.values() for label in labels])
    parts = _splits(task, y, folds, seed)
    grid = C_GRID_INNER_FOLDS if task.splits.keys() == {"train", "test"} else C_GRID
    x = _features(encode, task)
    inner = [split for _, _, splits in parts for split in splits]
    with ThreadPoolExecutor(workers) as pool:
        tried = list(pool.map(lambda rows: _predictions(x, y, rows[0], rows[1], grid), inner))
        scores = np.array([[(p == y[dev]).mean() for p in found] for found, (_, dev) in zip(tried, inner, strict=True)])
        scores = scores.reshape(len(parts), -1, len(grid)).mean(1)  # (outer folds, grid)
        chosen = [grid[i] for i in scores.argmax(1)]
        last = list(pool.map(lambda part, c: _predictions(x, y, part[0], part[1], [c]), parts, chosen))
    tests = [(found[0], y[test]) for found, (_, test, _) in zip(last, parts, strict=True)]
    accuracy = float(100 * np.mean([(predicted == true).mean() for predicted, true in tests]))
    result = {"accuracy": accuracy, "dev": float(100 * scores.max(1).mean()), "C": chosen}
    return result | ({"f1": float(100 * np.mean([f1_score(y, p) for p, y in tests]))} if task.second else {})


def transfer7(
    encode: Encode, data_dir: str | Path | None = None, tasks: Sequence[str] = data.TRANSFER_TASKS, **options: int
) -> dict[str, float]:
    """Accuracy on MR, CR, SUBJ, MPQA, SST2, TREC and MRPC, their mean `avg`, and `MRPC f1`, which is not in it.

    Args:
        tasks: some of the seven; `avg` is then their mean.
        options: `folds`, `seed`, `workers` of `transfer_task`.

    Raises:
        FileNotFoundError: the data is not there; the message names the command that brings it.
        ValueError: unknown task, no task, bad embeddings.

    Example:
        >>> transfer7(lambda sentences: [[len(s)] for s in sentences], tasks=[])
        Traceback (most recent call last):
        ValueError: no task: name at least one of MR, CR, SUBJ, MPQA, SST2, TREC, MRPC

    Source: the columns of Table 5 of Zhu et al. 2024 (SDA).
    """
    read = [data.transfer(name, data_dir) for name in tasks]
    if not read:
        raise ValueError(f"no task: name at least one of {', '.join(data.TRANSFER_TASKS)}")
    found = {task.name: transfer_task(encode, task, **options) for task in read}
    accuracy = {name: result["accuracy"] for name, result in found.items()}
    f1 = {f"{name} f1": result["f1"] for name, result in found.items() if "f1" in result}
    return {**accuracy, "avg": float(np.mean(list(accuracy.values()))), **f1}


# --- overlap and ranks -------------------------------------------------------------------------------------


def jaccard(first: str, second: str, tokens: Callable[[str], Iterable] = terms_of) -> float:
    """Overlap of two sentences' sets of tokens in percent, 100 · |A ∩ B| / |A ∪ B|, in [0, 100].

    Two sentences without tokens are equal: 100.

    Args:
        tokens: the tokens of a sentence; default: lower-cased words and punctuation marks. `list` takes characters,
            a tokenizer's method word pieces.

    Example:
        >>> jaccard("A dog barks.", "a dog sleeps.")
        60.0

    Source: Jaccard 1912; Zhu et al. 2024 (SDA), §6.3.
    """
    a, b = set(tokens(first)), set(tokens(second))
    return 100 * len(a & b) / len(a | b) if a | b else 100.0


def mean_jaccard(pairs: Pairs, tokens: Callable[[str], Iterable] = terms_of) -> float:
    """Mean of `jaccard` over the pairs, in [0, 100].

    Raises:
        ValueError: no pairs.

    Relations: SDA prints 47.39 for the STS series and 57.24 for SICK-R and does not name its tokens. On SentEval's
    files, as the mean of the six STS tasks, the default gives 39.97 and 49.06; letter case, punctuation, pooling of the
    pairs and unscored pairs change little. BERT's uncased word pieces, with the [CLS] and [SEP] that all sentences
    share, give 47.04 and 56.01, the nearest plain reading: the overlap of a model's input, not of words. None of some
    thirty readings gives both numbers within 0.3.

    Example:
        >>> mean_jaccard(Pairs("toy", ["a b", "a"], ["b", "c"], np.array([3.0, 0.0])))
        25.0

    Source: Zhu et al. 2024 (SDA), §6.3.
    """
    if not len(pairs):
        raise ValueError(f"{pairs.name} has no pairs")
    each = zip(pairs.sentence1, pairs.sentence2, strict=True)
    return float(np.mean([jaccard(first, second, tokens) for first, second in each]))


def rank_changes(encode_a: Encode, encode_b: Encode, pairs: Pairs) -> pd.DataFrame:
    """Which pairs model b ranks nearer to the gold ranking than model a does.

    improvement = |rank_a − rank_gold| − |rank_b − rank_gold|. Rank 1 is the least similar pair, ties have their mean
    rank.

    Returns:
        A row a pair, the index its number in `pairs`: `sentence1`, `sentence2`, `gold` [0, 5], `similarity_a`,
        `similarity_b` [-1, 1], `rank_gold`, `rank_a`, `rank_b` [1, n], `improvement` (-n, n); the largest improvement
        first, equal ones in the order of `pairs`.

    Relations: Spearman's ρ falls with the mean of the squared distances (rank − rank_gold)².

    Example:
        >>> pairs = Pairs("toy", ["a", "a", "a"], ["a", "b", "c"], np.array([5.0, 0.0, 3.0]))
        >>> axes = {"a": [1, 0], "b": [0, 1], "c": [1, 1], "d": [-1, 0]}
        >>> good = lambda sentences: [axes[s] for s in sentences]
        >>> bad = lambda sentences: [axes["dab"["cab".index(s)]] for s in sentences]
        >>> rank_changes(bad, good, pairs)[["gold", "rank_a", "rank_b", "improvement"]].values.tolist()
        [[0.0, 2.0, 1.0, 1.0], [3.0, 1.0, 2.0, 1.0], [5.0, 3.0, 3.0, 0.0]]

    Source: Zhu et al. 2024 (SDA), §6.6 and Figure 4.
    """
    table = pd.DataFrame({"sentence1": pairs.sentence1, "sentence2": pairs.sentence2, "gold": pairs.scores})
    table["similarity_a"], table["similarity_b"] = similarities(encode_a, pairs), similarities(encode_b, pairs)
    ranks = table[["gold", "similarity_a", "similarity_b"]].rank().set_axis(["rank_gold", "rank_a", "rank_b"], axis=1)
    distance = ranks.sub(ranks["rank_gold"], axis=0).abs()
    table = table.join(ranks).assign(improvement=distance["rank_a"] - distance["rank_b"])
    return table.sort_values("improvement", ascending=False, kind="stable")


# --- attention ---------------------------------------------------------------------------------------------


@torch.inference_mode()
def attention_to_words(encoder: Encoder, sentence: str, position: str | None = None) -> list[tuple[str, float]]:
    """How much of the last layer's attention each word gets from the token that becomes the sentence's embedding.

    a_j = mean over heads of softmax(q_i · k_j / √d)_j, i that token; summed over a word's pieces, divided by the sum
    over all words, so that [CLS] and [SEP], which often get most of it, are left out.

    Args:
        position: a pooling, whose tokens' attention it is: `cls` the first token's, `last_token` the last one's, any
            other the mean of all tokens', special ones included; None: the encoder's `eval_pooling`.

    Returns:
        (word as written, weight) in the order of the sentence, weights in [0, 1] that sum to 1; words are those of the
        tokenizer, which takes a punctuation mark for one. Empty if the sentence has no word.

    Raises:
        ValueError: unknown position, or the backbone does not show its attention.

    Example:
        >>> from lib import paths
        >>> weights = attention_to_words(Encoder.load(paths.MINI_BERT), "No dog barks.")
        >>> [word for word, _ in weights], round(sum(weight for _, weight in weights), 6)
        (['No', 'dog', 'barks', '.'], 1.0)

    Source: Zhu et al. 2024 (SDA), §6.6 and Figure 4.
    """
    position = position or encoder.settings["eval_pooling"]
    if position not in POOLINGS:
        raise ValueError(f"position must be one of {', '.join(POOLINGS)}, got {position!r}")
    batch = encoder.tokenizer(sentence, return_tensors="pt", truncation=True, max_length=encoder.longest_input())
    ids, mask = (batch[name].to(encoder.device) for name in ("input_ids", "attention_mask"))
    backbone, was_training = encoder.backbone, encoder.training
    implementation = backbone.config._attn_implementation
    encoder.eval()
    backbone.set_attn_implementation("eager")  # the fast implementations never form the weights
    try:
        layers = backbone(input_ids=ids, attention_mask=mask, output_attentions=True).attentions
    finally:
        backbone.set_attn_implementation(implementation)
        encoder.train(was_training)
    if not layers:
        raise ValueError(f"{type(backbone).__name__} does not show its attention")
    last = layers[-1][0].double().mean(0)  # (t, t)
    weight = {"cls": last[0], "last_token": last[-1]}.get(position, last.mean(0))  # (t,)
    words: dict[int, float] = {}
    for word, share in zip(batch.word_ids(), weight.tolist(), strict=True):
        if word is not None:
            words[word] = words.get(word, 0) + share
    spans = {word: batch.word_to_chars(word) for word in words}
    return [(sentence[slice(*spans[word])].strip(), share / sum(words.values())) for word, share in words.items()]
