"""Augmentations of sentence embeddings, and negatives that are no sentence.

**Representations** `(z, strength, generator) → z` of a batch (n, d): MODALS (Cheung & Yeung 2021,
§3.2); PCA jitter (Ye et al. 2021, EfficientCL). UNA (Shu & Lampos 2024, appendix C.2) compares them
and prints neither formulas nor strengths; it jitters the embedding layer, here the positive's
vector is jittered.

**Noise**: negatives that are no sentence, random vectors, moved to where the encoder leaves room
(Zhou et al. 2022, DCLR). Their other half, weights of 0 for in-batch negatives that a second,
finished encoder finds too similar, needs that encoder and is not here.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from lib.augment.vectors import Generator
from lib.checked import Registry

REPRESENTATIONS = Registry()  # vectors (n, d), strength and generator → vectors
SMALLEST = 1e-30


@REPRESENTATIONS.register("interpolate")
def interpolate(z: Tensor, strength: float, generator: Generator = None) -> Tensor:
    """Towards the nearest other sample q of the batch: z + λ (q − z), nearest by cosine; a lone
    sample stays.

    UNA's text says "closest", too. The code of MODALS takes, of 5 % of the samples of a class, the
    one of the largest 1 − cosine, which is the farthest.

    Example:
        >>> interpolate(torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]), 0.5)[0]
        tensor([1.0000, 0.0500])
    """
    with torch.no_grad():
        units = F.normalize(z, dim=-1)
        sim = (units @ units.T).fill_diagonal_(-torch.inf)  # (n, n)
    return z + strength * (z[sim.argmax(1)] - z)


@REPRESENTATIONS.register("extrapolate")
def extrapolate(z: Tensor, strength: float, generator: Generator = None) -> Tensor:
    """Away from the batch's centre μ: z + λ (z − μ).

    Example:
        >>> extrapolate(torch.tensor([[0.0], [2.0]]), 0.5).tolist()
        [[-0.5], [2.5]]
    """
    return z + strength * (z - z.mean(0))


@REPRESENTATIONS.register("sample_linearly")
def sample_linearly(z: Tensor, strength: float, generator: Generator = None) -> Tensor:
    """Along the direction between two random samples of the batch: z + λ (z_b − z_c).

    Both are drawn alike, so that they are the same sample in one of n cases, which the code of
    MODALS excludes.

    Example:
        >>> z = torch.eye(3)
        >>> sample_linearly(z, 0.0).equal(z)
        True
    """
    n = len(z)
    b, c = (torch.randint(n, (n,), generator=generator, device=z.device) for _ in range(2))
    return z + strength * (z[b] - z[c])


@REPRESENTATIONS.register("add_gaussian")
def add_gaussian(z: Tensor, strength: float, generator: Generator = None) -> Tensor:
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
def jitter_pca(z: Tensor, strength: float, generator: Generator = None) -> Tensor:
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


def _along_axes(centred: Tensor, generator: Generator) -> Tensor:
    _, singular, axes = torch.linalg.svd(centred, full_matrices=False)  # (k,), (k, d)
    roots = singular / len(centred) ** 0.5
    noise = torch.randn(len(centred), len(roots), generator=generator, device=centred.device)
    return (noise * roots) @ axes  # (n, d)


def _along_sentences(centred: Tensor, generator: Generator) -> Tensor:
    n = len(centred)
    noise = torch.randn(n, n, generator=generator, device=centred.device)
    return noise @ centred / n**0.5  # (n, d)


def gaussian_negatives(like: Tensor, times: float, generator: Generator = None) -> Tensor:
    """⌊`times`·n⌋ vectors, at least one, from N(0, I), of the width of `like` (n, d).

    Example:
        >>> gaussian_negatives(torch.zeros(4, 3), 1.5).shape
        torch.Size([6, 3])
    """
    shape = max(1, int(times * len(like))), like.shape[1]
    return torch.randn(shape, generator=generator, device=like.device, dtype=like.dtype)


def gradient_ascent(noise: Tensor, loss: Callable[[Tensor], Tensor], steps=4, rate=1e-3) -> Tensor:
    """Move each row of `noise` (m, d) up the gradient of `loss`: x ← x + β g/‖g‖, t times.

    Args:
        noise: where the rows begin.
        loss: of the rows, a scalar, the larger the better they serve as negatives.
        steps: t; 0 leaves the rows where they are.
        rate: β, the length of a step. A row without a gradient stays.

    Returns:
        The rows, without a gradient to anything.

    Example:
        >>> gradient_ascent(torch.tensor([[1.0, 2.0]]), lambda x: x[:, 0].sum(), steps=2, rate=0.5)
        tensor([[2., 2.]])

    Source: Zhou et al. 2022 (DCLR), its non-uniformity; simcse/models.py lines 677-696 of its code,
        which sets a row without a gradient to 0.
    """
    for _ in range(steps):
        with torch.enable_grad():
            noise = noise.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(loss(noise), noise)
        noise = noise.detach() + rate * F.normalize(gradient, dim=-1, eps=SMALLEST)
    return noise.detach()
