"""Sentence vectors without training: counts of words, TF-IDF, word vectors, SIF and whitening."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from lib.evaluate.sts import Encode


def _token_matrix(sentences: Sequence[str], tokenizer: Any, size: int) -> sparse.csr_matrix:
    """Counts (n, size) of token ids, special tokens left out."""
    rows = tokenizer(list(sentences), add_special_tokens=False)["input_ids"] if sentences else []
    lengths = [len(ids) for ids in rows]
    ids = np.fromiter((i for row in rows for i in row), np.int64, sum(lengths))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return sparse.csr_matrix((np.ones(len(ids)), ids, offsets), shape=(len(rows), size))


def word_vectors_encode(
    matrix: np.ndarray, tokenizer: Any, sif: Sequence[str] | None = None, a: float = 1e-3
) -> Encode:
    """A baseline without context: the mean of static token vectors, optionally weighted (SIF).

    With `sif`, token w has the weight a / (a + p(w)), and the first singular vector of all
    sentences of a call, their common component, is removed from each: v − c cᵀ v. The result then
    depends on which sentences are encoded together; `sts7` passes those of all tasks.

    Args:
        matrix: (vocabulary, d), e.g. an encoder's input embeddings.
        tokenizer: of `transformers`.
        sif: sentences of any corpus, in which the frequency of a token is p; None is the bare mean.
        a: SIF's smoothing parameter.

    Returns:
        encode; a sentence without tokens gets a zero vector.

    Source: Arora, Liang & Ma 2017, Algorithm 1.
    """
    weights = np.ones(len(matrix))
    if sif is not None:
        occurrences = _token_matrix(sif, tokenizer, len(matrix)).sum(0).A1
        weights = a / (a + occurrences / occurrences.sum())
    weighted = np.asarray(matrix, float) * weights[:, None]

    def encode(sentences: list[str]) -> np.ndarray:
        counts = _token_matrix(sentences, tokenizer, len(matrix))
        vectors = counts @ weighted / np.maximum(counts.sum(1).A1, 1)[:, None]  # (n, d)
        if sif is not None:
            # the first right singular vector, (d,)
            common = np.linalg.eigh(vectors.T @ vectors)[1][:, -1]
            vectors = vectors - np.outer(vectors @ common, common)
        return vectors

    return encode


def bag_of_words_encode(vectorizer: Any) -> Encode:
    """A baseline without vectors: scikit-learn's word counts or TF-IDF, as a sparse matrix.

    Args:
        vectorizer: `CountVectorizer`, `TfidfVectorizer`, …; one that is not fitted is fitted anew
            on the sentences of each call (TF-IDF weights then depend on them).
    """

    def encode(sentences: list[str]) -> sparse.csr_matrix:
        try:
            return vectorizer.transform(sentences)
        except NotFittedError:
            return clone(vectorizer).fit_transform(sentences)

    return encode


def whitened_encode(encode: Encode, sentences: Sequence[str] | None = None) -> Encode:
    """Post-process any encoder so that its features are uncorrelated and of variance 1.

    x̃ = (x − μ) U Λ^(−1/2), with mean μ and covariance U Λ Uᵀ; the first columns belong to the
    largest λ. Directions without variance (λ below 1e-10 of the largest) become 0.

    Args:
        sentences: what μ and covariance are estimated on; None: the sentences of each call, as the
            paper's "target"; `sts7` encodes its seven test sets in one call, so together.

    Source: Su et al. 2021, "Whitening Sentence Representations", Algorithm 1. The rows of UNA's
        Table D8 take μ and covariance from NLI sentences (Gao et al. 2021, SimCSE, Table 5).
    """

    def fit(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = x.mean(0)
        values, vectors = np.linalg.eigh((x - mean).T @ (x - mean) / len(x))
        largest_first = np.argsort(values)[::-1]
        values, vectors = values[largest_first], vectors[:, largest_first]
        kept = values > 1e-10 * values[0]
        scale = np.zeros(len(values))
        scale[kept] = values[kept] ** -0.5
        return mean, vectors * scale

    known = None if sentences is None else fit(np.asarray(encode(list(sentences)), float))

    def whitened(texts: list[str]) -> np.ndarray:
        x = np.asarray(encode(texts), float)
        mean, matrix = known or fit(x)
        return (x - mean) @ matrix

    return whitened
