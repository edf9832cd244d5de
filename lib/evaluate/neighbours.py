"""The sentences of a collection that an encoder holds nearest to a query."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from lib.evaluate.sts import Encode, unit

BLOCK = 2**22  # cosines that are held at once, 32 MiB
DECIMALS = 12  # equal vectors differ by less in a matrix product


def nearest(
    encode: Encode, queries: Sequence[str], sentences: Sequence[str], k: int = 3, own: bool = False
) -> pd.DataFrame:
    """The k sentences nearest to each query by cosine, nearest first.

    cos(q, s) = qᵀs / (‖q‖ ‖s‖). Sentences of equal cosine stand in the order of `sentences`, of
    which one that stands twice counts once. All texts go through `encode` in one call. A zero
    vector has cosine 0 with every other.

    Args:
        encode: sentences → one row a sentence, dense or sparse.
        sentences: the collection.
        k: sentences a query, at most as many as the collection has beside the query.
        own: whether a query that is in the collection is also found there; it would be its own
            nearest neighbour.

    Returns:
        k rows a query, queries in their order: `query`, `rank` from 1, `sentence`, `cosine` in
        [−1, 1].

    Raises:
        TypeError: one string in place of a list.
        ValueError: `k` below 1 or larger than the collection; `encode` returned another shape than
            (n, d), NaN or infinity.

    Example:
        >>> vectors = {"a": [1.0, 0.0], "b": [0.6, 0.8], "c": [0.8, 0.6]}
        >>> nearest(lambda texts: [vectors[t] for t in texts], ["a"], ["a", "b", "c"], k=2)
          query  rank sentence  cosine
        0     a     1        c     0.8
        1     a     2        b     0.6
    """
    if isinstance(queries, str) or isinstance(sentences, str):
        raise TypeError("queries and sentences must be lists of strings, not one string")
    row_of = {text: i for i, text in enumerate(dict.fromkeys([*sentences, *queries]))}
    texts, n = list(row_of), len(set(sentences))
    rows = as_matrix(encode(texts), len(texts))
    places = [row_of[query] for query in queries]
    left_out = [-1 if own or place >= n else place for place in places]
    found, cosines = top_k(rows[places], rows[:n], k, left_out)
    return pd.DataFrame(
        {
            "query": np.repeat(np.array(queries, object), k),
            "rank": np.tile(np.arange(1, k + 1), len(queries)),
            "sentence": [texts[i] for i in found.ravel()],
            "cosine": cosines.ravel(),
        }
    )


def neighbour_table(
    encoders: Mapping[str, Encode], queries: Sequence[str], sentences: Sequence[str]
) -> pd.DataFrame:
    """What each of some encoders holds nearest to each query, side by side.

    Args:
        encoders: name → encoder, e.g. one as it was before and after training.
        queries, sentences: as `nearest`; a query that is in the collection is not found.

    Returns:
        A row a query: `query`, and under each name the nearest sentence.

    Raises:
        TypeError, ValueError: as `nearest`.

    Example:
        >>> by_length = lambda texts: [[len(t), 1.0] for t in texts]
        >>> by_end = lambda texts: [[t.endswith("!"), t.endswith(".")] for t in texts]
        >>> encoders = {"before": by_length, "after": by_end}
        >>> neighbour_table(encoders, ["Oh!"], ["No.", "Well, well!"]).to_dict("list")
        {'query': ['Oh!'], 'before': ['No.'], 'after': ['Well, well!']}
    """
    found = {
        name: nearest(encode, queries, sentences, k=1)["sentence"].tolist()
        for name, encode in encoders.items()
    }
    return pd.DataFrame({"query": list(queries), **found})


def place_table(
    encoders: Mapping[str, Encode], planted: pd.DataFrame, sentences: Sequence[str]
) -> pd.DataFrame:
    """Where each of some encoders puts sentences that were written for a query: their median place.

    The place of a sentence is 1 + the number of sentences of the collection that are nearer to the
    query, by cosine; an equal one that stands earlier counts as nearer.

    Args:
        encoders: name → encoder, e.g. one as it was before and after training.
        planted: `query`, and a column of sentences for each kind, as `data.planted`.
        sentences: the collection; planted sentences that are not in it join it, queries leave it.

    Returns:
        A row a kind, under each encoder's name the median place over the queries, from 1.

    Raises:
        TypeError, ValueError: as `nearest`.

    Example:
        >>> planted = pd.DataFrame({"query": ["Oh!"], "short": ["No."], "long": ["Well, well!"]})
        >>> by_length = lambda texts: [[len(t), 1.0] for t in texts]
        >>> place_table({"by length": by_length}, planted, ["No.", "Well, well!"])
               by length
        short        1.0
        long         2.0
    """
    queries, kinds = planted["query"].tolist(), planted.columns.drop("query")
    added = [text for kind in kinds for text in planted[kind]]
    collection = [s for s in dict.fromkeys([*sentences, *added]) if s not in set(queries)]
    medians = {}
    for name, encode in encoders.items():
        found = nearest(encode, queries, collection, k=len(collection))
        place = found.set_index(["query", "sentence"])["rank"]
        medians[name] = [
            place.loc[list(zip(queries, planted[kind], strict=True))].median() for kind in kinds
        ]
    return pd.DataFrame(medians, index=list(kinds))


def as_matrix(x: Any, n: int) -> Any:
    """`x` as an array or CSR matrix of `n` rows, in the precision that it has."""
    x = sparse.csr_matrix(x) if sparse.issparse(x) else np.asarray(x)
    if x.ndim != 2 or x.shape[0] != n:
        raise ValueError(f"embeddings of shape {x.shape} where ({n}, d) is expected")
    return x


def top_k(
    queries: Any, rows: Any, k: int, left_out: Sequence[int] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """For each query the numbers of the k rows of largest cosine, largest first, and the cosines.

    The rows are taken block by block, so that a million of them need no matrix of all cosines.
    Cosines are rounded to 12 decimals, and the earlier of two equal ones comes first.

    Args:
        queries, rows: (q, d) and (n, d), dense or CSR, of any length.
        left_out: for each query the number of a row that is not to be found, −1 for none.

    Returns:
        Numbers (q, k) int64 and cosines (q, k) float64.

    Raises:
        ValueError: `k` below 1 or above the rows there are; NaN or infinity.

    Example:
        >>> rows = np.array([[3.0, 0.0], [0.6, 0.8], [0.0, 0.0], [2.0, 0.0]])
        >>> found, cosines = top_k(np.array([[1.0, 0.0]]), rows, 3)
        >>> found.tolist(), cosines.tolist()
        ([[0, 3, 1]], [[1.0, 1.0, 0.6]])
    """
    q, n = queries.shape[0], rows.shape[0]
    masked = np.full(q, -1) if left_out is None else np.asarray(left_out, int)
    most = n - bool((masked >= 0).any())
    if not 1 <= k <= most:
        beside = " beside the query" if most < n else ""
        raise ValueError(f"k={k} neighbours asked for, the collection has {most}{beside}")
    u, size = unit(queries), min(8192, max(1, BLOCK // max(q, 1)))
    found, best = np.empty((q, 0), int), np.empty((q, 0))
    for start in range(0, n, size):
        cosines = _cosines(u, unit(rows[start : start + size]))  # (q, b)
        stop = start + cosines.shape[1]
        inside = np.flatnonzero((start <= masked) & (masked < stop))
        cosines[inside, masked[inside] - start] = -np.inf
        numbers = np.broadcast_to(np.arange(start, stop), cosines.shape)
        found, best = np.hstack([found, numbers]), np.hstack([best, cosines])  # (q, k + b)
        columns = _largest(best, k)
        found, best = (np.take_along_axis(x, columns, 1) for x in (found, best))  # (q, k)
    return found, best


def _cosines(u: Any, v: Any) -> np.ndarray:
    product = u @ v.T
    dense = product.toarray() if sparse.issparse(product) else product
    return np.round(np.clip(dense, -1, 1), DECIMALS) + 0.0  # −0 becomes 0


def _largest(values: np.ndarray, k: int) -> np.ndarray:
    """Columns of the k largest values of each row, largest first, the earlier of equal ones first;
    all columns where there are fewer."""
    k = min(k, values.shape[1])
    least = np.partition(values, -k, axis=1)[:, -k, None]  # (q, 1)
    above, equal = values > least, values == least
    wanted = k - above.sum(1, keepdims=True)
    kept = above | (equal & (np.cumsum(equal, axis=1) <= wanted))
    columns = np.nonzero(kept)[1].reshape(len(values), k)
    order = np.argsort(-np.take_along_axis(values, columns, 1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, 1)
