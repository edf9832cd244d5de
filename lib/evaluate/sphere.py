"""How embeddings lie on the unit sphere: alignment, uniformity, mean cosine, effective rank."""

import math

import numpy as np

from lib.data import Pairs
from lib.evaluate.sts import Encode, finite_matrix, remember, unit

MEASURES = ("alignment", "uniformity", "mean_cosine", "effective_rank")
CHUNK = 1024  # rows whose distances are held at once


def alignment(x: np.ndarray, y: np.ndarray, alpha: float = 2) -> float:
    """Mean distance of positive pairs on the unit sphere: mean_i ‖u_i − v_i‖^α, u and v the
    normalised rows.

    Args:
        x, y: (n, d), row i of the one belongs to row i of the other; normalised inside.

    Returns:
        ≥ 0, with α = 2 at most 4; lower is better. For α = 2 it is 2 − 2 · mean cosine.

    Example:
        >>> alignment(np.array([[2.0, 0.0]]), np.array([[0.0, 3.0]]))
        2.0

    Source: Wang & Isola 2020, Equation 1.
    """
    u, v = unit(x), unit(y)
    return float((((u - v) ** 2).sum(1) ** (alpha / 2)).mean())


def uniformity(x: np.ndarray, t: float = 2) -> float:
    """How evenly points cover the unit sphere: log mean_{i<j} exp(−t ‖u_i − u_j‖²), u the
    normalised rows.

    Args:
        x: (n, d), normalised inside; n ≥ 2. Time grows with n², memory does not.

    Returns:
        ≤ 0, lower is better; 0 if all points are one; not below −4t.

    Example:
        >>> uniformity(np.array([[1.0, 0.0], [-5.0, 0.0]]))
        -8.0

    Source: Wang & Isola 2020, Equation 2.
    """
    u = unit(x)
    square = (u**2).sum(1)
    total = 0.0
    for start in range(0, len(u), CHUNK):
        rows, own = u[start : start + CHUNK], square[start : start + CHUNK, None]
        distance = own + square[start:] - 2 * rows @ u[start:].T  # (chunk, rest)
        later = np.arange(len(u) - start) > np.arange(len(rows))[:, None]
        total += np.exp(-t * distance[later].clip(0)).sum()
    return math.log(total / (len(u) * (len(u) - 1) / 2))


def mean_cosine(x: np.ndarray) -> float:
    """Mean cosine of two different rows, in [-1, 1]: near 0 for isotropic embeddings, near 1 for a
    narrow cone.

    It is (‖Σ u_i‖² − Σ ‖u_i‖²) / (n (n − 1)), u the normalised rows of x (n, d), n ≥ 2.

    Source: Ethayarajh 2019 (average self-similarity as a measure of anisotropy).
    """
    u = unit(x)
    return float(((u.sum(0) ** 2).sum() - (u**2).sum()) / (len(u) * (len(u) - 1)))


def effective_rank(x: np.ndarray) -> float:
    """exp of the entropy of the normalised singular values, exp(−Σ p_i ln p_i) with p_i = s_i / Σ
    s. The rows (n, d) are taken as they are, so that a common direction of all is the first.

    Returns:
        Between 1 (all rows on one line) and min(n, d) (all directions used alike); NaN if all
        values are 0.

    Example:
        >>> round(effective_rank(np.eye(3)), 6)
        3.0

    Source: Roy & Vetterli 2007.
    """
    s = np.linalg.svd(finite_matrix(x), compute_uv=False)
    if s.sum() == 0:
        return math.nan
    p = s[s > 0] / s.sum()
    return float(np.exp(-(p * np.log(p)).sum()))


def geometry(encode: Encode, pairs: Pairs, threshold: float = 4) -> dict[str, float]:
    """Alignment over the pairs with gold ≥ `threshold`; uniformity, mean cosine, effective rank
    over all sentences.

    All distinct sentences of `pairs` are encoded in one call; the effective rank is that of the
    normalised, uncentred embeddings. Alignment is left out where no pair reaches the threshold
    (SimCSE, footnote 3, takes the pairs above 4).
    """
    distinct = list(dict.fromkeys([*pairs.sentence1, *pairs.sentence2]))
    known = remember(encode, distinct)
    positive = np.flatnonzero(pairs.scores >= threshold)
    u, found = known(distinct), {}
    if len(positive):
        sides = ([side[i] for i in positive] for side in (pairs.sentence1, pairs.sentence2))
        found["alignment"] = alignment(*map(known, sides))
    return found | {
        "uniformity": uniformity(u),
        "mean_cosine": mean_cosine(u),
        "effective_rank": effective_rank(u),
    }
