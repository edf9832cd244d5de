"""What an encoder tells apart: how much nearer an anchor's paraphrase is than a sentence that says
something else."""

import pandas as pd

from lib.data import Triplets
from lib.evaluate.sts import Encode, cosines_of, remember
from lib.results.statistics import mean_interval


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
        ValueError: an anchor without a sentence of the reference kind; no other kind; `encode`
            returned another shape than (n, d), NaN or infinity.

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
    cosines = _cosines(encode, triplets)
    if reference not in cosines:
        raise ValueError(f"{triplets.name}: no sentence of the kind {reference!r}")
    if len(lacking := cosines.index[cosines[reference].isna()]):
        raise ValueError(f"{triplets.name}: no {reference} of the anchor {lacking[0]!r}")
    others = cosines.drop(columns=reference)
    if others.shape[1] == 0:
        raise ValueError(f"{triplets.name}: no kind but {reference!r}")
    return others.rsub(cosines[reference], axis=0)


def _cosines(encode: Encode, triplets: Triplets) -> pd.DataFrame:
    """Cosine of each anchor with its sentence of each kind, anchors × kinds."""
    known = remember(encode, [*triplets.anchors, *triplets.sentences])
    cosine = cosines_of(known, triplets.anchors, triplets.sentences)
    long = pd.DataFrame({"anchor": triplets.anchors, "kind": triplets.kinds, "cosine": cosine})
    wide = long.pivot(index="anchor", columns="kind", values="cosine")
    return wide.loc[list(dict.fromkeys(triplets.anchors)), list(dict.fromkeys(triplets.kinds))]


def margin_table(
    found: pd.DataFrame, resamples: int = 2000, level: float = 0.95, seed: int = 0
) -> pd.DataFrame:
    """Margins by kind: their mean, its interval over anchors, and how many are above 0.

    x̄ₖ = Σₐ m(a, k) / nₖ over the anchors that have the kind, and |{a: m(a, k) > 0}| / nₖ. Two
    encoders are compared by the table of `after - before`, whose interval is that of the change:
    the two intervals side by side are wider than that.

    Args:
        found: of `margins`, or the difference of two.
        resamples, level, seed: as `statistics.mean_interval`.

    Returns:
        kind → `n`, `mean_margin`, `low`, `high`, `share_above_0` in [0, 1].

    Raises:
        ValueError: a kind that no anchor has; as `mean_interval`.

    Example:
        >>> found = pd.DataFrame({"negated": [0.1, 0.1, -0.05, float("nan")]})
        >>> margin_table(found).round(2).loc["negated"].tolist()
        [3.0, 0.05, -0.05, 0.1, 0.67]

    Source: as `statistics.mean_interval`.
    """
    rows = {}
    for kind, column in found.items():
        values = column.dropna().to_numpy(float)
        if len(values) == 0:
            raise ValueError(f"no anchor has a sentence of the kind {kind!r}")
        mean = mean_interval(values, resamples, level, seed)
        rows[kind] = (len(values), *mean, float((values > 0).mean()))
    columns = ["n", "mean_margin", "low", "high", "share_above_0"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("kind")
