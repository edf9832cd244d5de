"""One forward pass of a whole batch: precision, views in embedding space, chunks, several
processes."""

from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint as recomputed

from lib.augment.embeddings import EmbeddingViews
from lib.batches import Batch
from lib.distributed import Group
from lib.encoder import Encoder
from lib.objective import step_generator
from lib.recipes import Recipe


def encode_batch(
    model: Callable[..., Tensor],
    batch: Batch,
    chunk_size: int = 0,
    views: EmbeddingViews | None = None,
    generator: torch.Generator | None = None,
) -> dict[str, Tensor]:
    """Embeddings (n, d) of each role, fp32, all in one forward pass.

    With a `chunk_size` the pass goes chunk by chunk: no activations are kept, the backward pass
    computes each chunk's again with the same dropout, and the gradient is that of the whole
    batch.

    Args:
        model: an `Encoder`, or what wraps one.
        views: given to anchors and positives, drawn by `generator`.

    Source: the chunks are Gao et al. 2021 (GradCache), by PyTorch's activation checkpoints.
    """
    sizes = list(batch.sizes.values())
    with nullcontext() if views is None else views.drawn(batch.mask, sizes, generator):
        if chunk_size:
            z = _in_chunks(model, batch, chunk_size)
        else:
            z = model(batch.ids, batch.mask, sizes).float()
    return dict(zip(batch.sizes, z.split(sizes), strict=True))


def _in_chunks(model: Callable[..., Tensor], batch: Batch, chunk_size: int) -> Tensor:
    chunks = zip(batch.ids.split(chunk_size), batch.mask.split(chunk_size), strict=True)
    parts = [recomputed(model, *chunk, use_reentrant=False).float() for chunk in chunks]
    return torch.cat(parts)


class Forward:
    """Embeddings of a training's batches, gathered from all processes; a context that takes its
    hooks off again.

    Args:
        encoder: what is trained; it is moved to the group's device.
        recipe: views in embedding space and chunks.
        group: the processes that train together.
        seed: of the views' draws.
        precision: `fp32` or `bf16`, resolved.
        compiled: let `torch.compile` make one program of the forward pass.
    """

    def __init__(
        self,
        encoder: Encoder,
        recipe: Recipe,
        group: Group,
        seed: int = 42,
        precision: str = "fp32",
        compiled: bool = False,
    ):
        if recipe.batches.chunk_size and group.size > 1:
            raise ValueError("chunk_size works in one process only: set chunk_size=0")
        self.group = group
        self.seed = seed
        self.precision = precision
        self.chunk_size = recipe.batches.chunk_size
        self.views: EmbeddingViews | None = None
        if recipe.views.in_use:
            self.views = EmbeddingViews(encoder.backbone, recipe.views.named)
        self.model: Callable[..., Tensor] = group.prepare(encoder)
        if compiled:
            self.model = torch.compile(self.model, dynamic=True)

    def __call__(self, batch: Batch, step: int) -> dict[str, Tensor]:
        """Embeddings (N, d) of each role, of the rows of all processes."""
        device = self.group.device
        generator = None
        if self.views is not None:
            generator = step_generator(self.seed, step, device, self.group.rank)
        with torch.autocast(device.type, torch.bfloat16, enabled=self.precision == "bf16"):
            z = encode_batch(self.model, batch.to(device), self.chunk_size, self.views, generator)
        return dict(zip(z, self.group.gather(list(z.values())), strict=True))

    def __enter__(self) -> "Forward":
        return self

    def __exit__(self, *_: object) -> None:
        if self.views is not None:
            self.views.remove()
