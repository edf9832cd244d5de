"""Scores of sentence embeddings: semantic textual similarity, kinds of pairs, geometry.

`encode` is any function from a list of sentences to one row a sentence, (n, d): an `Encoder.encode`, a baseline of
this module, or somebody else's model. Similarity is the cosine, agreement with people is Spearman's ρ × 100.
"""

import math
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import ConstantInputWarning, spearmanr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_is_fitted

from lib import data
from lib.data import Pairs

Encode = Callable[[list[str]], Any]
AGGREGATIONS = ("all", "mean", "wmean")
TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
_CHUNK = 1024


# --- similarity --------------------------------------------------------------------------------------------


def _rows(x: Any, n: int | None = None) -> Any:
    """`x` as a float64 matrix (n, d), dense or CSR, checked."""
    x = sparse.csr_matrix(x, dtype=np.float64) if sparse.issparse(x) else np.asarray(x, np.float64)
    if x.ndim != 2 or (n is not None and x.shape[0] != n):
        raise ValueError(f"embeddings of shape {x.shape} where ({'n' if n is None else n}, d) is expected")
    if not np.isfinite(x.data if sparse.issparse(x) else x).all():
        raise ValueError("embeddings hold NaN or infinity: did the training diverge?")
    return x


def _unit(x: Any, n: int | None = None) -> Any:
    """Rows divided by their length; a zero row stays zero, so that its cosine with anything is 0."""
    x = _rows(x, n)
    if sparse.issparse(x):
        length = np.sqrt(np.asarray(x.multiply(x).sum(1)).ravel())
        return sparse.diags_array(1 / np.where(length > 0, length, 1)) @ x
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(length > 0, length, 1)


def remember(encode: Encode, sentences: Iterable[str]) -> Encode:
    """Encode each distinct sentence, all in one call, and return a function that looks unit rows up.

    Several measures of the same sentences then share one encoding.

    Raises:
        ValueError: `encode` returned another shape than (n, d), NaN or infinity.

    Example:
        >>> known = remember(lambda sentences: [[3.0, 4.0] for _ in sentences], ["a", "b", "a"])
        >>> known(["a"]).round(2).tolist()
        [[0.6, 0.8]]
    """
    place = {sentence: i for i, sentence in enumerate(dict.fromkeys(sentences))}
    table = _unit(encode(list(place)), len(place))
    return lambda wanted: table[[place[sentence] for sentence in wanted]]


def similarities(encode: Encode, pairs: Pairs) -> np.ndarray:
    """Cosine of the two sentences of each pair, (n,), in [-1, 1]; each distinct sentence is encoded once.

    A pair with a zero vector has cosine 0.

    Raises:
        ValueError: `encode` returned another shape than (n, d), NaN or infinity.
    """
    known = remember(encode, [*pairs.sentence1, *pairs.sentence2])
    return _cosines(known, pairs)


def _cosines(known: Encode, pairs: Pairs) -> np.ndarray:
    u, v = known(pairs.sentence1), known(pairs.sentence2)
    product = u.multiply(v) if sparse.issparse(u) else u * v
    return np.clip(np.asarray(product.sum(1)).ravel(), -1, 1)


def spearman(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> float:
    """Spearman's rank correlation × 100, in [-100, 100]; ties get their mean rank.

    NaN if one side is constant: there is no ranking to compare. For similarities that means that all embeddings
    are one point, a complete collapse.

    Raises:
        ValueError: different lengths, fewer than two values, NaN or infinity in them.

    Example:
        >>> round(spearman([0.1, 0.5, 0.9], [1, 2, 5]), 6)
        100.0
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    if x.shape != y.shape or x.ndim != 1 or len(x) < 2:
        raise ValueError(f"a rank correlation needs two lists of one length, at least 2: got {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("values to rank hold NaN or infinity")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantInputWarning)
        return 100 * float(spearmanr(x, y).statistic)


def pairs_spearman(encode: Encode, pairs: Pairs) -> float:
    """Spearman × 100 between the cosines and the gold scores of `pairs`.

    Raises:
        ValueError: fewer than two pairs.
    """
    _check_rankable(pairs)
    return spearman(similarities(encode, pairs), pairs.scores)


def _check_rankable(pairs: Pairs) -> None:
    if len(pairs) < 2:
        raise ValueError(f"{pairs.name}: {len(pairs)} scored pairs, a ranking needs at least 2")


def sts_task(encode: Encode, subsets: Mapping[str, Pairs]) -> dict[str, float]:
    """Spearman × 100 of one STS task under the three aggregations, and of each sub-set.

    Returns:
        `all`: one ranking over the concatenated pairs; `mean`: mean of the sub-sets' values; `wmean`: their mean
        weighted by pairs; then every sub-set by its name.

    Relations: SimCSE and what followed report `all`; SentEval prints `mean` and `wmean` (Gao et al. 2021, Appendix B).
    """
    for pairs in subsets.values():
        _check_rankable(pairs)
    known = remember(encode, _sentences(subsets.values()))
    cosines = {name: _cosines(known, pairs) for name, pairs in subsets.items()}
    single = {name: spearman(cosines[name], pairs.scores) for name, pairs in subsets.items()}
    gold = np.concatenate([pairs.scores for pairs in subsets.values()])
    sizes = [len(pairs) for pairs in subsets.values()]
    return {
        "all": spearman(np.concatenate(list(cosines.values())), gold),
        "mean": float(np.mean(list(single.values()))),
        "wmean": float(np.average(list(single.values()), weights=sizes)),
        **single,
    }


def _sentences(sets: Iterable[Pairs]) -> list[str]:
    return [sentence for pairs in sets for sentence in (*pairs.sentence1, *pairs.sentence2)]


def sts7(encode: Encode, data_dir: str | Path | None = None, aggregation: str = "all") -> dict[str, float]:
    """Spearman × 100 on the seven STS test sets and their mean, `avg`.

    All distinct sentences of all tasks go through `encode` in one call.

    Args:
        aggregation: of the sub-sets of a task, `all`, `mean` or `wmean` (see `sts_task`).

    Raises:
        FileNotFoundError: the data is not there; the message names the command that brings it.
        ValueError: unknown aggregation.
    """
    if aggregation not in AGGREGATIONS:
        raise ValueError(f"aggregation must be one of {', '.join(AGGREGATIONS)}, got {aggregation!r}")
    tasks = data.sts_tasks(data_dir)
    known = remember(encode, _sentences(pairs for subsets in tasks.values() for pairs in subsets.values()))
    scores = {task: sts_task(known, subsets)[aggregation] for task, subsets in tasks.items()}
    return {**scores, "avg": float(np.mean(list(scores.values())))}


def by_kind(encode: Encode, pairs: Pairs, reference: str = "paraphrase") -> dict[str, dict[str, float]]:
    """How each kind of pair is scored, kinds in the order in which they appear.

    Returns:
        kind → `n`; `mean_gold` [0, 5]; `mean_cosine` [-1, 1]; `spearman` × 100 within the kind, NaN where its gold
        scores do not vary; `auc_against_<reference>` [0, 1]: the probability that a pair of the reference kind has
        a higher cosine than a pair of this kind, ties counting half. It is 0.5 for a model that does not tell the
        two kinds apart, and NaN for the reference itself.

    Raises:
        ValueError: the pairs have no kinds.
    """
    if pairs.kinds is None:
        raise ValueError(f"{pairs.name} has no kinds")
    cosine, kinds = similarities(encode, pairs), np.array(pairs.kinds)
    table = {}
    for kind in dict.fromkeys(pairs.kinds):
        own = kinds == kind
        either = own | (kinds == reference)
        separable = kind != reference and reference in pairs.kinds
        table[kind] = {
            "n": int(own.sum()),
            "mean_gold": float(pairs.scores[own].mean()),
            "mean_cosine": float(cosine[own].mean()),
            "spearman": spearman(cosine[own], pairs.scores[own]) if own.sum() > 1 else math.nan,
            f"auc_against_{reference}": float(roc_auc_score(~own[either], cosine[either])) if separable else math.nan,
        }
    return table


# --- geometry ----------------------------------------------------------------------------------------------


def alignment(x: np.ndarray, y: np.ndarray, alpha: float = 2) -> float:
    """Mean distance of positive pairs on the unit sphere: mean_i ‖u_i − v_i‖^α, u and v the normalised rows.

    Args:
        x, y: (n, d), row i of the one belongs to row i of the other; normalised inside.

    Returns:
        ≥ 0, with α = 2 at most 4; lower is better. For α = 2 it is 2 − 2 · mean cosine.

    Raises:
        ValueError: different shapes, or no rows.

    Example:
        >>> alignment(np.array([[2.0, 0.0]]), np.array([[0.0, 3.0]]))
        2.0

    Source: Wang & Isola 2020, Equation 1.
    """
    u, v = _unit(x), _unit(y)
    if u.shape != v.shape or len(u) == 0:
        raise ValueError(f"alignment needs pairs: got {u.shape} and {v.shape}")
    return float((((u - v) ** 2).sum(1) ** (alpha / 2)).mean())


def uniformity(x: np.ndarray, t: float = 2, max_rows: int | None = 4000, seed: int = 0) -> float:
    """How evenly points cover the unit sphere: log mean_{i<j} exp(−t ‖u_i − u_j‖²), u the normalised rows.

    Args:
        x: (n, d), normalised inside; n ≥ 2.
        max_rows: exact over all pairs up to so many rows, above them over the pairs of a seeded sample of so many;
            None is always exact. Time grows with n², memory does not.

    Returns:
        ≤ 0, lower is better; 0 if all points are one; not below −4t.

    Example:
        >>> uniformity(np.array([[1.0, 0.0], [-5.0, 0.0]]))
        -8.0

    Source: Wang & Isola 2020, Equation 2.
    """
    u = _unit(x)
    if len(u) < 2:
        raise ValueError(f"uniformity needs at least 2 rows, got {len(u)}")
    if max_rows is not None and len(u) > max_rows:
        u = u[np.random.default_rng(seed).choice(len(u), max_rows, replace=False)]
    square = (u**2).sum(1)
    total = 0.0
    for start in range(0, len(u), _CHUNK):
        rows = u[start : start + _CHUNK]
        distance = square[start : start + _CHUNK, None] + square[start:] - 2 * rows @ u[start:].T  # (chunk, rest)
        later = np.arange(len(u) - start) > np.arange(len(rows))[:, None]
        total += np.exp(-t * distance[later].clip(0)).sum()
    return math.log(total / (len(u) * (len(u) - 1) / 2))


def mean_cosine(x: np.ndarray, n_pairs: int | None = None, seed: int = 0) -> float:
    """Mean cosine of two different rows, in [-1, 1]: near 0 for isotropic embeddings, near 1 for a narrow cone.

    Args:
        x: (n, d), n ≥ 2.
        n_pairs: random pairs to draw (with replacement); None is the exact mean over all pairs, from
            (‖Σ u_i‖² − Σ ‖u_i‖²) / (n (n − 1)).

    Source: Ethayarajh 2019 (average self-similarity as a measure of anisotropy).
    """
    u = _unit(x)
    n = len(u)
    if n < 2:
        raise ValueError(f"a mean over pairs needs at least 2 rows, got {n}")
    if n_pairs is None:
        return float(((u.sum(0) ** 2).sum() - (u**2).sum()) / (n * (n - 1)))
    rng = np.random.default_rng(seed)
    first = rng.integers(n, size=n_pairs)
    second = (first + rng.integers(1, n, size=n_pairs)) % n
    return float((u[first] * u[second]).sum(1).mean())


def singular_values(x: np.ndarray, centre: bool = False) -> np.ndarray:
    """Singular values of the rows as they are, largest first, (min(n, d),); `centre` subtracts the mean row before.

    Without centring the common direction of anisotropic embeddings is the first value; with it the values are those
    of the covariance, s² / n its eigenvalues.
    """
    x = _rows(x)
    return np.linalg.svd(x - x.mean(0) if centre else x, compute_uv=False)


def effective_rank(x: np.ndarray, centre: bool = False) -> float:
    """exp of the entropy of the normalised singular values, exp(−Σ p_i ln p_i) with p_i = s_i / Σ s.

    Returns:
        Between 1 (all rows on one line) and min(n, d) (all directions used alike); NaN if all values are 0.

    Example:
        >>> round(effective_rank(np.eye(3)), 6)
        3.0

    Source: Roy & Vetterli 2007.
    """
    s = singular_values(x, centre)
    if s.sum() == 0:
        return math.nan
    p = s[s > 0] / s.sum()
    return float(np.exp(-(p * np.log(p)).sum()))


def geometry(encode: Encode, pairs: Pairs, threshold: float = 4) -> dict[str, float]:
    """Alignment over the pairs with gold ≥ `threshold`; uniformity, mean cosine, effective rank over all sentences.

    All distinct sentences of `pairs` are encoded in one call; the effective rank is that of the normalised,
    uncentred embeddings.

    Raises:
        ValueError: no pair reaches the threshold.
    """
    distinct = list(dict.fromkeys([*pairs.sentence1, *pairs.sentence2]))
    known = remember(encode, distinct)
    positive = [
        (a, b) for a, b, gold in zip(pairs.sentence1, pairs.sentence2, pairs.scores, strict=True) if gold >= threshold
    ]
    if not positive:
        raise ValueError(f"{pairs.name} has no pair with a gold score of at least {threshold}")
    u = known(distinct)
    return {
        "alignment": alignment(known([a for a, _ in positive]), known([b for _, b in positive])),
        "uniformity": uniformity(u),
        "mean_cosine": mean_cosine(u),
        "effective_rank": effective_rank(u),
    }


# --- baselines ---------------------------------------------------------------------------------------------


def _token_matrix(sentences: Sequence[str], tokenizer: Any, size: int) -> sparse.csr_matrix:
    """Counts (n, size) of token ids, special tokens left out."""
    rows = tokenizer(list(sentences), add_special_tokens=False)["input_ids"] if sentences else []
    lengths = [len(ids) for ids in rows]
    ids = np.fromiter((i for row in rows for i in row), np.int64, sum(lengths))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return sparse.csr_matrix((np.ones(len(ids)), ids, offsets), shape=(len(rows), size))


def token_counts(sentences: Sequence[str], tokenizer: Any) -> np.ndarray:
    """Occurrences of each token id in `sentences`, (vocabulary,), special tokens left out."""
    return np.asarray(_token_matrix(sentences, tokenizer, len(tokenizer)).sum(0)).ravel()


def word_vectors_encode(matrix: np.ndarray, tokenizer: Any, sif: np.ndarray | None = None, a: float = 1e-3) -> Encode:
    """A baseline without context: the mean of static token vectors, optionally weighted (SIF).

    With `sif`, token w has the weight a / (a + p(w)), and the first singular vector of all sentences of a call, their
    common component, is removed from each: v − c cᵀ v. The result then depends on which sentences are encoded
    together; `sts7` passes those of all tasks.

    Args:
        matrix: (vocabulary, d), e.g. an encoder's input embeddings.
        tokenizer: of `transformers`.
        sif: occurrences (or probabilities) of each token id, (vocabulary,), from any corpus (`token_counts`); None is
            the bare mean.
        a: SIF's smoothing parameter.

    Returns:
        encode; a sentence without tokens gets a zero vector.

    Source: Arora, Liang & Ma 2017, Algorithm 1.
    """
    weights = np.ones(len(matrix))
    if sif is not None:
        if len(sif) != len(matrix):
            raise ValueError(f"sif has {len(sif)} frequencies, the matrix {len(matrix)} rows")
        weights = a / (a + np.asarray(sif, float) / np.sum(sif))
    weighted = np.asarray(matrix, float) * weights[:, None]

    def encode(sentences: list[str]) -> np.ndarray:
        counts = _token_matrix(sentences, tokenizer, len(matrix))
        vectors = counts @ weighted / np.maximum(counts.sum(1).A1, 1)[:, None]  # (n, d)
        if sif is not None:
            common = np.linalg.eigh(vectors.T @ vectors)[1][:, -1]  # first right singular vector, (d,)
            vectors = vectors - np.outer(vectors @ common, common)
        return vectors

    return encode


def bag_of_words_encode(vectorizer: Any) -> Encode:
    """A baseline without vectors: scikit-learn's word counts or TF-IDF, as a sparse matrix.

    Args:
        vectorizer: `CountVectorizer`, `TfidfVectorizer`, …; one that is not fitted is fitted anew on the sentences
            of each call (TF-IDF weights then depend on them).
    """

    def encode(sentences: list[str]) -> sparse.csr_matrix:
        try:
            check_is_fitted(vectorizer)
        except NotFittedError:
            return clone(vectorizer).fit_transform(sentences)
        return vectorizer.transform(sentences)

    return encode


def whitened_encode(encode: Encode, sentences: Sequence[str] | None = None, dim: int | None = None) -> Encode:
    """Post-process any encoder so that its features are uncorrelated and of variance 1.

    x̃ = (x − μ) U Λ^(−1/2), with mean μ and covariance U Λ Uᵀ; the first `dim` columns belong to the largest λ.
    Directions without variance (λ below 1e-10 of the largest) become 0.

    Args:
        sentences: what μ and covariance are estimated on; None: the sentences of each call, as the paper's "target".
        dim: features kept, at most d; None: all.

    Raises:
        ValueError: `dim` is not between 1 and d.

    Source: Su et al. 2021, "Whitening Sentence Representations", Algorithm 1; the row of UNA's Table D8.
    """

    def fit(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = x.mean(0)
        values, vectors = np.linalg.eigh((x - mean).T @ (x - mean) / len(x))
        order = np.argsort(values)[::-1][:dim]
        if dim is not None and not 1 <= dim <= len(values):
            raise ValueError(f"dim must be between 1 and {len(values)}, got {dim}")
        kept = values[order] > 1e-10 * values.max()
        return mean, vectors[:, order] * np.where(kept, np.where(kept, values[order], 1) ** -0.5, 0)

    known = None if sentences is None else fit(np.asarray(encode(list(sentences)), float))

    def whitened(given: list[str]) -> np.ndarray:
        x = np.asarray(encode(given), float)
        mean, matrix = known or fit(x)
        return (x - mean) @ matrix

    return whitened


if __name__ == "__main__":
    from workflow.score import main

    sys.exit(main())
