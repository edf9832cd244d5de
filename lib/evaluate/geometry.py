"""How embeddings lie on the sphere: alignment, uniformity, mean cosine, effective rank."""

import math

import numpy as np

from lib.data import Pairs
from lib.evaluate.sts import Encode, as_rows, remember, unit

_CHUNK = 1024


def alignment(x: np.ndarray, y: np.ndarray, alpha: float = 2) -> float:
    """Mean distance of positive pairs on the unit sphere: mean_i ‖u_i − v_i‖^α, u and v the
    normalised rows.

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
    u, v = unit(x), unit(y)
    if u.shape != v.shape or len(u) == 0:
        raise ValueError(f"alignment needs pairs: got {u.shape} and {v.shape}")
    return float((((u - v) ** 2).sum(1) ** (alpha / 2)).mean())


def uniformity(x: np.ndarray, t: float = 2, max_rows: int | None = 4000, seed: int = 0) -> float:
    """How evenly points cover the unit sphere: log mean_{i<j} exp(−t ‖u_i − u_j‖²), u the
    normalised rows.

    Args:
        x: (n, d), normalised inside; n ≥ 2.
        max_rows: exact over all pairs up to so many rows, above them over the pairs of a seeded
            sample of so many; None is always exact. Time grows with n², memory does not.

    Returns:
        ≤ 0, lower is better; 0 if all points are one; not below −4t.

    Example:
        >>> uniformity(np.array([[1.0, 0.0], [-5.0, 0.0]]))
        -8.0

    Source: Wang & Isola 2020, Equation 2.
    """
    u = unit(x)
    if len(u) < 2:
        raise ValueError(f"uniformity needs at least 2 rows, got {len(u)}")
    if max_rows is not None and len(u) > max_rows:
        u = u[np.random.default_rng(seed).choice(len(u), max_rows, replace=False)]
    square = (u**2).sum(1)
    total = 0.0
    for start in range(0, len(u), _CHUNK):
        rows = u[start : start + _CHUNK]
        distance = (
            square[start : start + _CHUNK, None] + square[start:] - 2 * rows @ u[start:].T
        )  # (chunk, rest)
        later = np.arange(len(u) - start) > np.arange(len(rows))[:, None]
        total += np.exp(-t * distance[later].clip(0)).sum()
    return math.log(total / (len(u) * (len(u) - 1) / 2))


def mean_cosine(x: np.ndarray, n_pairs: int | None = None, seed: int = 0) -> float:
    """Mean cosine of two different rows, in [-1, 1]: near 0 for isotropic embeddings, near 1 for a
    narrow cone.

    Args:
        x: (n, d), n ≥ 2.
        n_pairs: random pairs to draw (with replacement); None is the exact mean over all pairs,
            from (‖Σ u_i‖² − Σ ‖u_i‖²) / (n (n − 1)).

    Source: Ethayarajh 2019 (average self-similarity as a measure of anisotropy).
    """
    u = unit(x)
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
    """Singular values of the rows as they are, largest first, (min(n, d),); `centre` subtracts the
    mean row before.

    Without centring the common direction of anisotropic embeddings is the first value; with it the
    values are those of the covariance, s² / n its eigenvalues.
    """
    x = as_rows(x)
    return np.linalg.svd(x - x.mean(0) if centre else x, compute_uv=False)


def effective_rank(x: np.ndarray, centre: bool = False) -> float:
    """exp of the entropy of the normalised singular values, exp(−Σ p_i ln p_i) with p_i = s_i / Σ
    s.

    Returns:
        Between 1 (all rows on one line) and min(n, d) (all directions used alike); NaN if all
        values are 0.

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
    """Alignment over the pairs with gold ≥ `threshold`; uniformity, mean cosine, effective rank
    over all sentences.

    All distinct sentences of `pairs` are encoded in one call; the effective rank is that of the
    normalised, uncentred embeddings. Alignment is left out where no pair reaches the threshold.
    """
    distinct = list(dict.fromkeys([*pairs.sentence1, *pairs.sentence2]))
    known = remember(encode, distinct)
    positive = [
        (a, b)
        for a, b, gold in zip(pairs.sentence1, pairs.sentence2, pairs.scores, strict=True)
        if gold >= threshold
    ]
    u = known(distinct)
    found = {}
    if positive:
        first, second = (known(list(side)) for side in zip(*positive, strict=True))
        found["alignment"] = alignment(first, second)
    return found | {
        "uniformity": uniformity(u),
        "mean_cosine": mean_cosine(u),
        "effective_rank": effective_rank(u),
    }
