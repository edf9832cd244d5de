"""Whitening: embeddings with mean 0 and unit covariance."""

from collections.abc import Sequence

import numpy as np

from lib.evaluate.sts import Encode


def whitened_encode(
    encode: Encode, sentences: Sequence[str] | None = None, dim: int | None = None
) -> Encode:
    """Post-process any encoder so that its features are uncorrelated and of variance 1.

    x̃ = (x − μ) U Λ^(−1/2), with mean μ and covariance U Λ Uᵀ; the first `dim` columns belong to
    the largest λ. Directions without variance (λ below 1e-10 of the largest) become 0.

    Args:
        sentences: what μ and covariance are estimated on; None: the sentences of each call, as the
            paper's "target".
        dim: features kept, at most d; None: all.

    Raises:
        ValueError: `dim` is not between 1 and d.

    Source: Su et al. 2021, "Whitening Sentence Representations", Algorithm 1; the row of UNA's
        Table D8.
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

    def whitened(texts: list[str]) -> np.ndarray:
        x = np.asarray(encode(texts), float)
        mean, matrix = known or fit(x)
        return (x - mean) @ matrix

    return whitened
