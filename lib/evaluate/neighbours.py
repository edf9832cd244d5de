"""The sentences of a collection that an encoder holds nearest to a query, and how much nearer to an
anchor than a sentence that says something else."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from lib.data import Triplets
from lib.evaluate.sts import Encode, as_matrix, cosines_of, remember, unit
from lib.results.statistics import mean_interval

BLOCK = 2**22  # cosines that are held at once, 32 MiB
DECIMALS = 12  # equal vectors differ by less in a matrix product


def neighbour_table(
    encoders: Mapping[str, Encode], queries: Sequence[str], sentences: Sequence[str]
) -> pd.DataFrame:
    """What each of some encoders holds nearest to each query by cosine, side by side.

    All texts go through an encoder in one call. Of sentences of equal cosine the first is found; a
    zero vector has cosine 0 with every other. A query in the collection does not find itself.

    Args:
        encoders: name → encoder, e.g. one as it was before and after training.
        queries, sentences: what is looked for, and where.

    Returns:
        A row a query: `query`, and under each name the nearest sentence.

    Raises:
        TypeError: one string in place of a list.
        ValueError: nothing is there to be found beside a query; an encoder returned another shape
            than (n, d), NaN or infinity.

    Example:
        >>> by_length = lambda texts: [[len(t), 1.0] for t in texts]
        >>> by_end = lambda texts: [[t.endswith("!"), t.endswith(".")] for t in texts]
        >>> encoders = {"before": by_length, "after": by_end}
        >>> neighbour_table(encoders, ["Oh!"], ["No.", "Well, well!"]).to_dict("list")
        {'query': ['Oh!'], 'before': ['No.'], 'after': ['Well, well!']}
    """
    if isinstance(queries, str) or isinstance(sentences, str):
        raise TypeError("queries and sentences must be lists of strings, not one string")
    distinct = set(sentences)
    if empty := [query for query in queries if distinct <= {query}]:
        raise ValueError(f"no sentence in which to look for {empty[0]!r}")
    row_of = {text: i for i, text in enumerate(dict.fromkeys([*sentences, *queries]))}
    texts, n = list(row_of), len(distinct)
    places = [row_of[query] for query in queries]
    found = {}
    for name, encode in encoders.items():
        rows = as_matrix(encode(texts), len(texts))
        nearest, _ = top_k(rows[places], rows[:n], 2)  # a query may be its own nearest
        found[name] = [
            next(texts[i] for i in candidates if i != query)
            for query, candidates in zip(places, nearest, strict=True)
        ]
    return pd.DataFrame({"query": list(queries), **found})


def place_table(
    encoders: Mapping[str, Encode], planted: pd.DataFrame, sentences: Sequence[str]
) -> pd.DataFrame:
    """Where each of some encoders puts the sentences that were written for each query.

    The place of a sentence is 1 + the number of sentences of the collection that are nearer to the
    query, by cosine; an equal one that stands earlier counts as nearer.

    Args:
        encoders: name → encoder, e.g. one as it was before and after training.
        planted: `query`, and a column of sentences for each kind, as `data.planted`.
        sentences: the collection; planted sentences that are not in it join it, queries leave it.

    Returns:
        A row for each query (its number in `planted`) and kind, under each encoder's name the
        place, from 1. `.groupby("kind").median()` gives one row a kind.

    Raises:
        ValueError: as `neighbour_table`.

    Example:
        >>> planted = pd.DataFrame({"query": ["Oh!"], "short": ["No."], "long": ["Well, well!"]})
        >>> by_length = lambda texts: [[len(t), 1.0] for t in texts]
        >>> place_table({"by length": by_length}, planted, ["No.", "Well, well!"]).loc[0, "short"]
        by length    1
        Name: (0, short), dtype: int64
    """
    queries, kinds = planted["query"].tolist(), planted.columns.drop("query")
    added = [text for kind in kinds for text in planted[kind]]
    collection = [s for s in dict.fromkeys([*sentences, *added]) if s not in set(queries)]
    n, row_of = len(collection), {text: i for i, text in enumerate(collection)}
    places = {}
    for name, encode in encoders.items():
        rows = as_matrix(encode([*collection, *queries]), n + len(queries))
        found, _ = top_k(rows[n:], rows[:n], n)
        place = found.argsort(axis=1) + 1  # (queries, n)
        own = [[row_of[text] for text in texts] for texts in planted[kinds].to_numpy()]
        places[name] = np.take_along_axis(place, np.array(own), axis=1).ravel()
    return pd.DataFrame(
        places, pd.MultiIndex.from_product([planted.index, kinds], names=["query", "kind"])
    )


def top_k(queries: Any, rows: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """For each query the numbers of the k rows of largest cosine, largest first, and the cosines;
    of all rows where there are fewer.

    The rows are taken block by block, so that a million of them need no matrix of all cosines.
    Cosines are rounded to 12 decimals, and the earlier of two equal ones comes first.

    Args:
        queries, rows: (q, d) and (n, d), dense or CSR, of any length.

    Returns:
        Numbers (q, k) int64 and cosines (q, k) float64.

    Raises:
        ValueError: NaN or infinity.

    Example:
        >>> rows = np.array([[3.0, 0.0], [0.6, 0.8], [0.0, 0.0], [2.0, 0.0]])
        >>> found, cosines = top_k(np.array([[1.0, 0.0]]), rows, 3)
        >>> found.tolist(), cosines.tolist()
        ([[0, 3, 1]], [[1.0, 1.0, 0.6]])
    """
    q, n = queries.shape[0], rows.shape[0]
    u, size = unit(queries), min(8192, max(1, BLOCK // max(q, 1)))
    found, best = np.empty((q, 0), int), np.empty((q, 0))
    for start in range(0, n, size):
        product = u @ unit(rows[start : start + size]).T  # (q, b)
        dense = product.toarray() if sparse.issparse(product) else product
        cosines = np.round(np.clip(dense, -1, 1), DECIMALS) + 0.0  # −0 becomes 0
        numbers = np.broadcast_to(np.arange(start, start + cosines.shape[1]), cosines.shape)
        found, best = np.hstack([found, numbers]), np.hstack([best, cosines])  # (q, k + b)
        columns = np.argsort(-best, axis=1, kind="stable")[:, :k]
        found, best = (np.take_along_axis(x, columns, 1) for x in (found, best))  # (q, k)
    return found, best


def margins(encode: Encode, triplets: Triplets, reference: str = "paraphrase") -> pd.DataFrame:
    """Margin of each anchor against its sentence of each kind.

    m(a, k) = cos(a, p) − cos(a, s), p the anchor's sentence of the reference kind, s its sentence
    of kind k. It is 0 for an encoder that does not tell s from p, and has no floor near which a
    small change would be lost: it moves both ways. Each distinct sentence is encoded once; a zero
    vector has cosine 0.

    Args:
        encode: sentences → one row a sentence.
        triplets: as `lib.data.mini_triplets` reads them; an anchor may lack a kind.
        reference: the kind that should be nearest.

    Returns:
        A row an anchor and a column a kind, both in the order in which they appear, in [−2, 2]; NaN
        where the anchor lacks the kind.

    Raises:
        KeyError: no sentence of the reference kind.
        ValueError: `encode` returned another shape than (n, d), NaN or infinity.

    Example:
        >>> toy = Triplets("toy", ["a", "a"], ["paraphrase", "negated"], ["b", "c"])
        >>> vectors = {"a": [1.0, 0.0], "b": [0.6, 0.8], "c": [0.8, 0.6]}
        >>> found = margins(lambda sentences: [vectors[s] for s in sentences], toy)
        >>> found.round(2).to_dict()
        {'negated': {'a': -0.2}}

    Source: accuracy on triplets as E. Hoffer, N. Ailon, *Deep Metric Learning Using Triplet
        Network* (2015); kinds of change on shared anchors as X. Zhu, T. Li, G. de Melo, *Exploring
        Semantic Properties of Sentence Embeddings*, ACL 2018.
    """
    known = remember(encode, [*triplets.anchors, *triplets.sentences])
    cosine = cosines_of(known, triplets.anchors, triplets.sentences)
    long = pd.DataFrame({"anchor": triplets.anchors, "kind": triplets.kinds, "cosine": cosine})
    wide = long.pivot(index="anchor", columns="kind", values="cosine")  # anchors × kinds
    wide = wide.loc[list(dict.fromkeys(triplets.anchors)), list(dict.fromkeys(triplets.kinds))]
    return wide.drop(columns=reference).rsub(wide[reference], axis=0)


def margin_table(found: pd.DataFrame) -> pd.DataFrame:
    """Margins by kind: their mean, its interval over anchors, and how many are above 0.

    x̄ₖ = Σₐ m(a, k) / nₖ over the anchors that have the kind, and |{a: m(a, k) > 0}| / nₖ. Two
    encoders are compared by the table of `after - before`, whose interval is that of the change:
    the two intervals side by side are wider than that.

    Args:
        found: of `margins`, or the difference of two.

    Returns:
        kind → `n`, `mean_margin`, `low`, `high`, `share_above_0` in [0, 1].

    Raises:
        ValueError: a kind that no anchor has.

    Example:
        >>> found = pd.DataFrame({"negated": [0.1, 0.1, -0.05, float("nan")]})
        >>> margin_table(found).round(2).loc["negated"].tolist()
        [3.0, 0.05, -0.05, 0.1, 0.67]

    Source: as `statistics.mean_interval`.
    """
    rows = {}
    for kind, column in found.items():
        values = column.dropna().to_numpy(float)
        rows[kind] = (len(values), *mean_interval(values), float((values > 0).mean()))
    columns = ["n", "mean_margin", "low", "high", "share_above_0"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("kind")
