"""Negatives that are no sentence: random vectors, moved to where the encoder leaves room.

Source: Zhou et al. 2022 (DCLR), noise-based negatives. Their other half, weights of 0 for in-batch
negatives that a second, finished encoder finds too similar, needs that encoder and is not here.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

SMALLEST = 1e-30


def gaussian_negatives(
    like: Tensor, times: float, generator: torch.Generator | None = None
) -> Tensor:
    """⌊`times`·n⌋ vectors, at least one, from N(0, I), of the width of `like` (n, d).

    Example:
        >>> gaussian_negatives(torch.zeros(4, 3), 1.5).shape
        torch.Size([6, 3])
    """
    rows = max(1, int(times * len(like)))
    return torch.randn(
        rows, like.shape[1], generator=generator, device=like.device, dtype=like.dtype
    )


def climb(
    noise: Tensor, loss: Callable[[Tensor], Tensor], steps: int = 4, rate: float = 1e-3
) -> Tensor:
    """Move each row of `noise` (m, d) up the gradient of `loss`: x ← x + β g/‖g‖, t times.

    Args:
        noise: where the rows begin.
        loss: of the rows, a scalar, the larger the better they serve as negatives.
        steps: t; 0 leaves the rows where they are.
        rate: β, the length of a step. A row without a gradient stays.

    Returns:
        The rows, without a gradient to anything.

    Example:
        >>> climb(torch.tensor([[1.0, 2.0]]), lambda x: x[:, 0].sum(), steps=2, rate=0.5)
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
