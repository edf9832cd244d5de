"""Augmentations of sentence embeddings: functions `(z, strength, generator) → z` on a batch
`(n, d)`.

Source: MODALS, Cheung & Yeung 2021, §3.2; PCA jitter, Ye et al. 2021 (EfficientCL). UNA (Shu &
Lampos 2024, appendix C.2) compares them and prints neither formulas nor strengths.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from lib.registry import Registry

REPRESENTATIONS = Registry()  # vectors (n, d), strength and generator → vectors


@REPRESENTATIONS.register("interpolate")
def interpolate(z: Tensor, strength: float, generator: torch.Generator | None = None) -> Tensor:
    """Towards the nearest other sample q of the batch: z + λ (q − z), nearest by cosine.

    UNA's text says "closest", too. The code of MODALS takes, of 5 % of the samples of a class, the
    one of the largest 1 − cosine, which is the farthest.

    Raises:
        ValueError: a batch of one has no other sample.

    Example:
        >>> interpolate(torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]), 0.5)[0]
        tensor([1.0000, 0.0500])
    """
    _at_least(z, 2, "interpolate")
    with torch.no_grad():
        units = F.normalize(z, dim=-1)
        sim = (units @ units.T).fill_diagonal_(-torch.inf)  # (n, n)
    return z + strength * (z[sim.argmax(1)] - z)


@REPRESENTATIONS.register("extrapolate")
def extrapolate(z: Tensor, strength: float, generator: torch.Generator | None = None) -> Tensor:
    """Away from the batch's centre μ: z + λ (z − μ).

    Example:
        >>> extrapolate(torch.tensor([[0.0], [2.0]]), 0.5).tolist()
        [[-0.5], [2.5]]
    """
    return z + strength * (z - z.mean(0))


@REPRESENTATIONS.register("sample_linearly")
def sample_linearly(z: Tensor, strength: float, generator: torch.Generator | None = None) -> Tensor:
    """Along the direction between two random samples of the batch: z + λ (z_b − z_c).

    Both are drawn alike, so that they are the same sample in one of n cases, which the code of
    MODALS excludes.

    Example:
        >>> z = torch.eye(3)
        >>> sample_linearly(z, 0.0).equal(z)
        True
    """
    draw = partial(torch.randint, len(z), (len(z),), generator=generator, device=z.device)
    b, c = draw(), draw()
    return z + strength * (z[b] - z[c])


@REPRESENTATIONS.register("add_gaussian")
def add_gaussian(z: Tensor, strength: float, generator: torch.Generator | None = None) -> Tensor:
    """Noise of each feature's own size: z + λ ε ⊙ σ, ε ~ N(0, I), σ the batch's standard deviation
    per feature.

    Example:
        >>> z = torch.ones(4, 2)
        >>> add_gaussian(z, 0.3).equal(z)
        True
    """
    noise = torch.randn(z.shape, generator=generator, device=z.device, dtype=z.dtype)
    return z + strength * noise * z.std(0, correction=0).detach()


@REPRESENTATIONS.register("jitter_pca")
def jitter_pca(z: Tensor, strength: float, generator: torch.Generator | None = None) -> Tensor:
    """Noise along the batch's principal axes: z + λ V (ε ⊙ √eigenvalues), V and eigenvalues of the
    covariance.

    Its covariance is λ² times that of the batch. A decomposition makes a GPU wait for the host;
    there Xᵀε / √n with n normal draws ε for each sentence, X the centred batch, takes its place: a
    sum of normal variables with the same covariance XᵀX / n, without axes.

    Example:
        >>> z = torch.tensor([[0.0, 5.0], [2.0, 5.0]])
        >>> bool((jitter_pca(z, 0.5)[:, 1] == 5).all())
        True
    """
    with torch.no_grad():
        centred = (z - z.mean(0)).float()
        along = _along_axes if z.device.type == "cpu" else _along_sentences
        shift = along(centred, generator)
    return z + strength * shift.to(z.dtype)


def _along_axes(centred: Tensor, generator: torch.Generator | None) -> Tensor:
    _, singular, axes = torch.linalg.svd(centred, full_matrices=False)  # (k,), (k, d)
    roots = singular / len(centred) ** 0.5
    noise = torch.randn(len(centred), len(roots), generator=generator, device=centred.device)
    return (noise * roots) @ axes  # (n, d)


def _along_sentences(centred: Tensor, generator: torch.Generator | None) -> Tensor:
    n = len(centred)
    noise = torch.randn(n, n, generator=generator, device=centred.device)
    return noise @ centred / n**0.5  # (n, d)


def _at_least(z: Tensor, n: int, name: str) -> None:
    if len(z) < n:
        raise ValueError(f"{name} needs a batch of at least {n} sentences, got {len(z)}")
