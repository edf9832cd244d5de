"""Semantic textual similarity: Spearman's correlation of cosines with people's grades, × 100."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import ConstantInputWarning, spearmanr
from sklearn.preprocessing import normalize

from lib import data
from lib.data import Pairs

Encode = Callable[[list[str]], Any]


def as_matrix(x: Any, n: int | None = None) -> Any:
    """`x` as an array or CSR matrix (n, d), in the precision that it has."""
    x = sparse.csr_matrix(x) if sparse.issparse(x) else np.asarray(x)
    if x.ndim != 2 or n not in (None, x.shape[0]):
        raise ValueError(f"embeddings of shape {x.shape} where ({n or 'n'}, d) is expected")
    return x


def finite_matrix(x: Any, n: int | None = None) -> Any:
    """`x` as a float64 matrix (n, d), dense or CSR, checked."""
    x = as_matrix(x, n).astype(np.float64)
    if not np.isfinite(x.data if sparse.issparse(x) else x).all():
        raise ValueError("embeddings hold NaN or infinity: did the training diverge?")
    return x


def unit(x: Any, n: int | None = None) -> Any:
    """Rows divided by their length; a zero row stays zero, so that its cosine with anything is
    0."""
    x = finite_matrix(x, n)
    return normalize(x) if 0 not in x.shape else x


def remember(encode: Encode, sentences: Iterable[str], rows: Callable = unit) -> Encode:
    """Encode each distinct sentence, all in one call, and return a function that looks unit rows
    up.

    Several measures of the same sentences then share one encoding.

    Args:
        rows: what is made of the matrix: `unit`, or `finite_matrix` for rows as they are.

    Raises:
        ValueError: `encode` returned another shape than (n, d), NaN or infinity.

    Example:
        >>> known = remember(lambda sentences: [[3.0, 4.0] for _ in sentences], ["a", "b", "a"])
        >>> known(["a"]).round(2).tolist()
        [[0.6, 0.8]]
    """
    row_of = {sentence: i for i, sentence in enumerate(dict.fromkeys(sentences))}
    table = rows(encode(list(row_of)), len(row_of))
    return lambda subset: table[[row_of[sentence] for sentence in subset]]


def similarities(encode: Encode, pairs: Pairs) -> np.ndarray:
    """Cosine of the two sentences of each pair, (n,), in [-1, 1]; each distinct sentence is encoded
    once.

    A pair with a zero vector has cosine 0.

    Raises:
        ValueError: `encode` returned another shape than (n, d), NaN or infinity.
    """
    known = remember(encode, [*pairs.sentence1, *pairs.sentence2])
    return cosines_of(known, pairs.sentence1, pairs.sentence2)


def cosines_of(known: Encode, first: list[str], second: list[str]) -> np.ndarray:
    """Cosine of each first sentence with its second, (n,), in [-1, 1]; `known` gives unit rows, as
    `remember` returns it."""
    u, v = known(first), known(second)
    product = u.multiply(v) if sparse.issparse(u) else u * v
    return np.clip(np.asarray(product.sum(1)).ravel(), -1, 1)


def spearman(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> float:
    """Spearman's rank correlation × 100, in [-100, 100]; ties get their mean rank.

    NaN if one side is constant: there is no ranking to compare. For similarities that means that
    all embeddings are one point, a complete collapse.

    Raises:
        ValueError: different lengths, fewer than two values, NaN or infinity in them.

    Example:
        >>> round(spearman([0.1, 0.5, 0.9], [1, 2, 5]), 6)
        100.0
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    if x.shape != y.shape or x.ndim != 1 or len(x) < 2 or not np.isfinite([x, y]).all():
        needs = "two lists of finite numbers, of equal length and at least 2"
        raise ValueError(f"a rank correlation needs {needs}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantInputWarning)
        return 100 * float(spearmanr(x, y).statistic)


def pairs_spearman(encode: Encode, pairs: Pairs) -> float:
    """Spearman × 100 between the cosines and the gold scores of `pairs`.

    Raises:
        ValueError: fewer than two pairs, or one score for all.
    """
    check_rankable(pairs)
    return spearman(similarities(encode, pairs), pairs.scores)


def check_rankable(pairs: Pairs) -> None:
    """Refuse a set by which nothing can be ranked.

    Raises:
        ValueError: fewer than two scored pairs, or the same score for all of them.
    """
    if len(set(pairs.scores.tolist())) < 2:
        raise ValueError(f"{pairs.name}: {len(pairs)} pairs need two different scores to be ranked")


def sts_task(encode: Encode, subsets: Mapping[str, Pairs]) -> float:
    """Spearman × 100 of one STS task: one ranking over the pairs of all its sub-sets.

    SimCSE and what followed report this; SentEval prints the mean of the sub-sets' own values,
    which differs (Gao et al. 2021, Appendix B).
    """
    for pairs in subsets.values():
        check_rankable(pairs)
    known = remember(encode, sentences_of(subsets.values()))
    cosines = [cosines_of(known, p.sentence1, p.sentence2) for p in subsets.values()]
    gold = [pairs.scores for pairs in subsets.values()]
    return spearman(np.concatenate(cosines), np.concatenate(gold))


def sentences_of(sets: Iterable[Pairs]) -> list[str]:
    """All sentences of some sets, first ones and second ones."""
    return [sentence for pairs in sets for sentence in (*pairs.sentence1, *pairs.sentence2)]


def sts7(encode: Encode, data_dir: str | Path | None = None) -> dict[str, float]:
    """Spearman × 100 on the seven STS test sets and their mean, `avg`.

    All distinct sentences of all tasks go through `encode` in one call; each task is one
    ranking, as `sts_task` says.

    Raises:
        FileNotFoundError: the data is not there; the message names the command that brings it.
    """
    tasks = data.sts_tasks(data_dir)
    every = [pairs for subsets in tasks.values() for pairs in subsets.values()]
    known = remember(encode, sentences_of(every))
    scores = {task: sts_task(known, subsets) for task, subsets in tasks.items()}
    return {**scores, "avg": float(np.mean(list(scores.values())))}
