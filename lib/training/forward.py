"""One forward pass of a whole batch: precision, views in embedding space, chunks, a queue, several
processes."""

import math
from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint as recomputed

from lib.augment.vectors import EmbeddingViews
from lib.encoder import Encoder
from lib.encoder.layers import dropout_of
from lib.training.batches import Batch
from lib.training.distributed import Group
from lib.training.memory import Memory
from lib.training.objective import step_generator
from lib.training.recipe import Recipe

LONG = 2_000


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
    batch. Dropout masks are drawn chunk by chunk: without dropout the size changes no number.

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


def padded_widths(max_length: int) -> tuple[int, ...]:
    """Widths of compiled batches: a quarter of the longest sentence, a half, and all of it.

    Example:
        >>> padded_widths(32), padded_widths(67)
        ((8, 16, 32), (24, 40, 67))
    """
    parts = (8 * math.ceil(max_length / part / 8) for part in (4, 2))
    return tuple(sorted({min(width, max_length) for width in (*parts, max_length)}))


def compiles(
    asked: bool | None, device: torch.device, steps: int, recipe: Recipe, processes: int = 1
) -> bool:
    """Whether a training is compiled: as asked, or if nothing was, where that is quicker.

    Compiling takes about a minute a shape, so it pays in long trainings, on a GPU; not with views
    in the embedding layer, at which the program is cut, nor in chunks or with two dropouts.

    Example:
        >>> from lib.training.recipe import recipe
        >>> compiles(None, torch.device("cuda"), 15_625, recipe("paper_simcse_bert"))
        True
        >>> compiles(None, torch.device("cpu"), 15_625, recipe("paper_simcse_bert"))
        False
    """
    if asked is not None:
        return asked
    whole = not (recipe.has_views or recipe.chunk_size or recipe.dropout2) and processes == 1
    return device.type == "cuda" and steps >= LONG and whole


def _in_chunks(model: Callable[..., Tensor], batch: Batch, chunk_size: int) -> Tensor:
    chunks = zip(batch.ids.split(chunk_size), batch.mask.split(chunk_size), strict=True)
    parts = [recomputed(model, *chunk, use_reentrant=False).float() for chunk in chunks]
    return torch.cat(parts)


class Forward:
    """Embeddings of a training's batches, gathered from all processes; a context that takes its
    hooks off again.

    Args:
        encoder: what is trained; it is moved to the group's device.
        recipe: views in embedding space, chunks, the positives' dropout, the queue.
        group: the processes that train together.
        seed: of the views' draws.
        precision: `fp32` or `bf16`, resolved.
        compiled: let `torch.compile` make programs of the forward and the backward pass, one for
            each shape; on a GPU each is a CUDA graph, whose thousand kernels start at once.
            Batches then come in a few `widths` only.

    Attributes:
        say: is told, before a new shape is compiled, that this takes a while.

    Raises:
        ValueError: chunks, a second dropout or a queue with several processes.
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
        for name in ("chunk_size", "dropout2", "queue"):
            if getattr(recipe, name) and group.size > 1:
                raise ValueError(f"{name} works in one process only: set {name}=0")
        self.group, self.encoder, self.recipe = group, encoder, recipe
        self.seed = seed
        self.precision = precision
        self.model: Callable[..., Tensor] = group.prepare(encoder)
        self.memory: Memory | None = None
        if recipe.queue:
            rows = max(1, int(recipe.queue * recipe.batch_size))
            self.memory = Memory(encoder, rows, recipe.queue_momentum)
        self.views: EmbeddingViews | None = None
        if recipe.has_views:
            self.views = EmbeddingViews(encoder.backbone, recipe.views)
        self.widths: tuple[int, ...] = ()
        self.compiled = compiled
        self.say: Callable[[str], object] = lambda text: None
        self.shapes: set[tuple[int, ...]] = set()
        if compiled:
            self.widths = padded_widths(recipe.max_length)
            mode = "reduce-overhead" if group.device.type == "cuda" else None
            self.model = torch.compile(self.model, dynamic=False, mode=mode)

    def __call__(self, batch: Batch, step: int) -> dict[str, Tensor]:
        """Embeddings (N, d) of each role, of the rows of all processes, and the `queue` (m, d) once
        there is one."""
        if self.compiled:
            self._begin(tuple(batch.ids.shape))
        device = self.group.device
        generator = None
        if self.views is not None:
            generator = step_generator(self.seed, step, device, self.group.rank)
        with torch.autocast(device.type, torch.bfloat16, enabled=self.precision == "bf16"):
            batch = batch.to(device)
            z = self._encoded(batch, generator)
            queue = self._queue(batch)
        return dict(zip(z, self.group.gather(list(z.values())), strict=True)) | queue

    def _encoded(self, batch: Batch, generator: torch.Generator | None) -> dict[str, Tensor]:
        """All roles in one pass, or the positives in one of their own with their own dropout."""
        if not self.recipe.dropout2:
            return encode_batch(self.model, batch, self.recipe.chunk_size, self.views, generator)
        others = batch.of_roles(batch.sizes.keys() - {"positive"})
        z = encode_batch(self.model, others)
        with dropout_of(self.encoder.backbone, self.recipe.dropout2):
            return z | encode_batch(self.model, batch.of_roles({"positive"}))

    def _queue(self, batch: Batch) -> dict[str, Tensor]:
        """What the memory held before these anchors joined it, if it held anything."""
        if self.memory is None:
            return {}
        anchors = batch.of_roles({"anchor"})
        queue = self.memory(anchors.ids, anchors.mask)
        return {"queue": queue} if len(queue) else {}

    def _begin(self, shape: tuple[int, ...]) -> None:
        """A new step, in which what the last one's graphs hold may be overwritten."""
        if shape not in self.shapes:
            self.shapes.add(shape)
            self.say(f"compiling for {shape[0]} × {shape[1]} tokens")
        if self.group.device.type == "cuda":
            torch.compiler.cudagraph_mark_step_begin()

    def __enter__(self) -> "Forward":
        return self

    def __exit__(self, *_: object) -> None:
        if self.views is not None:
            self.views.remove()
