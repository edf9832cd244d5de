"""One forward pass of a whole batch: precision, views in embedding space, chunks, a queue, one
process or many.

Started by `torchrun` (or, on GPUs, by `accelerate launch`), every process takes its share of each
batch; embeddings and batch-norm statistics are gathered with their gradients, so that all of them
see all candidates.
"""

import copy
import math
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.nn.functional import all_gather
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint as recomputed

from lib.augment.vectors import EmbeddingViews
from lib.encoder import Encoder
from lib.encoder.layers import dropout_of
from lib.training.batches import Batch
from lib.training.recipe import Recipe
from lib.training.seeds import step_generator

LONG = 2_000


def is_main_process() -> bool:
    """True in the process that writes files: rank 0, or the only one."""
    return os.environ.get("RANK", "0") == "0"


class WholeBatchNorm(nn.BatchNorm1d):
    """Batch norm whose statistics in training are those of all processes' rows together."""

    def forward(self, x: Tensor) -> Tensor:
        """Own rows (n / processes, d) of the normalised whole batch (n, d)."""
        if not self.training:
            return super().forward(x)
        whole = super().forward(torch.cat(all_gather(x)))
        return whole.chunk(dist.get_world_size())[dist.get_rank()]


class ProcessGroup:
    """The processes that train together.

    The loss of the gathered batch is the same in every process, and each one back-propagates
    through its own rows. Their gradient is summed over the processes and DDP averages, which makes
    the average the gradient of the whole batch. While the main process evaluates, the others wait
    for it, for days if need be.
    """

    def __init__(self, device: torch.device):
        self.size, self.rank, self.device = self.processes(), 0, device
        self.is_main = is_main_process()
        if self.size == 1:
            return
        self.rank = int(os.environ["RANK"])
        on_gpu = device.type == "cuda"
        if on_gpu:
            self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
            torch.cuda.set_device(self.device)
        if not dist.is_initialized():
            dist.init_process_group("nccl" if on_gpu else "gloo", timeout=timedelta(days=7))

    @staticmethod
    def processes() -> int:
        """How many processes train together."""
        return int(os.environ.get("WORLD_SIZE", "1"))

    def prepare(self, model: nn.Module) -> nn.Module:
        """The model on this process's device.

        Among several, gradients are averaged and batch norm is synchronised.
        """
        model = model.to(self.device)
        if self.size == 1:
            return model
        for module in model.modules():
            if type(module) is nn.BatchNorm1d:
                module.__class__ = WholeBatchNorm
        return DistributedDataParallel(model, [self.device] if self.device.type == "cuda" else None)

    def check(self, sizes: Iterable[int]) -> None:
        """Refuse batches of these sizes if one does not divide among the processes.

        Raises:
            ValueError: one does not.
        """
        for rows in sizes:
            if rows % self.size:
                raise ValueError(f"a batch of {rows} does not divide among {self.size} processes")

    def share(self, rows: np.ndarray) -> np.ndarray:
        """This process's part of a batch."""
        part = len(rows) // self.size
        return rows[self.rank * part : (self.rank + 1) * part]

    def gather(self, views: Sequence[Tensor]) -> list[Tensor]:
        """The whole batch's embeddings (n, d) of each view, with gradients to this process's
        rows."""
        return list(views) if self.size == 1 else [torch.cat(all_gather(z)) for z in views]

    def broadcast(self, flag: bool) -> bool:
        """The main process's `flag`, in every process."""
        if self.size == 1:
            return flag
        sent = torch.tensor([int(flag)], device=self.device)
        dist.broadcast(sent, 0)
        return bool(sent.item())

    def wait(self) -> None:
        """Meet the other processes here."""
        if self.size > 1:
            dist.barrier()


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
            chunks = zip(batch.ids.split(chunk_size), batch.mask.split(chunk_size), strict=True)
            z = torch.cat([recomputed(model, *c, use_reentrant=False).float() for c in chunks])
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

    Raises:
        ValueError: chunks, a second dropout or a queue with several processes.
    """

    def __init__(
        self,
        encoder: Encoder,
        recipe: Recipe,
        group: ProcessGroup,
        seed: int = 42,
        precision: str = "fp32",
        compiled: bool = False,
    ):
        if group.size > 1 and (recipe.chunk_size or recipe.dropout2 or recipe.queue):
            raise ValueError("several processes: set chunk_size=0, dropout2=0 and queue=0")
        self.group, self.encoder, self.recipe = group, encoder, recipe
        self.seed, self.precision = seed, precision
        self.model: Callable[..., Tensor] = group.prepare(encoder)
        rows = max(1, int(recipe.queue * recipe.batch_size))
        self.memory = MomentumQueue(encoder, rows, recipe.queue_momentum) if recipe.queue else None
        self.hooks = EmbeddingViews(encoder.backbone, recipe.views) if recipe.has_views else None
        self.compiled = compiled
        self.graphs = compiled and group.device.type == "cuda"
        self.widths = padded_widths(recipe.max_length) if compiled else ()
        if compiled:
            mode = "reduce-overhead" if self.graphs else None
            self.model = torch.compile(self.model, dynamic=False, mode=mode)

    def __call__(self, batch: Batch, step: int) -> dict[str, Tensor]:
        """Embeddings (N, d) of each role, of the rows of all processes, and (m, d) of the `queue`
        as it was before these anchors joined it; m is 0 at first."""
        if self.graphs:  # what those of the last step hold may be overwritten
            torch.compiler.cudagraph_mark_step_begin()
        device, rank, queue = self.group.device, self.group.rank, {}
        generator = step_generator(self.seed, step, device, rank) if self.hooks else None
        with torch.autocast(device.type, torch.bfloat16, enabled=self.precision == "bf16"):
            batch = batch.to(device)
            z = self._encoded(batch, generator)
            if self.memory is not None:
                anchors = batch.of_roles({"anchor"})
                queue["queue"] = self.memory(anchors.ids, anchors.mask)
        return dict(zip(z, self.group.gather(list(z.values())), strict=True)) | queue

    def _encoded(self, batch: Batch, generator: torch.Generator | None) -> dict[str, Tensor]:
        """All roles in one pass, or the positives in one of their own with their own dropout."""
        if not self.recipe.dropout2:
            return encode_batch(self.model, batch, self.recipe.chunk_size, self.hooks, generator)
        z = encode_batch(self.model, batch.of_roles(batch.sizes.keys() - {"positive"}))
        with dropout_of(self.encoder.backbone, self.recipe.dropout2):
            return z | encode_batch(self.model, batch.of_roles({"positive"}))

    def __enter__(self) -> "Forward":
        return self

    def __exit__(self, *_: object) -> None:
        if self.hooks is not None:
            self.hooks.remove()


class MomentumQueue:
    """A queue of embeddings of earlier batches, made by a copy of the encoder that follows it
    slowly.

    In every step, with θ the backbone's weights and θ′ the copy's:

    θ′ ← m θ′ + (1 − m) θ,   queue ← the newest `rows` of [queue; f_θ′(sentences)]

    The copy begins as the encoder (MoCo), has no dropout and no gradient, and shares its head.

    Args:
        encoder: what is trained, on its device, before anything is hooked to it.
        rows: of the queue, at least 1.
        momentum: m in [0, 1]; 0 is the encoder itself, 1 stays at its first weights.

    Example:
        >>> from lib import paths
        >>> memory = MomentumQueue(Encoder.load(paths.MINI_BERT).train(), rows=3, momentum=0.995)
        >>> ids = torch.tensor([[2, 7, 3], [2, 9, 3]])
        >>> [len(memory(ids, torch.ones_like(ids))) for _ in range(3)]
        [0, 2, 3]

    Relations:
        In ESimCSE's code the copy begins at random weights: it is made before the checkpoint is
        read, and its log lists it as newly initialised. Its queue is emptied after every epoch.

    Source: Wu et al. 2022 (ESimCSE), momentum contrast, after He et al. 2020 (MoCo); their code,
        esimcse/models.py lines 123-163 and 347-354, esimcse/trainers.py lines 452 and 619-636.
    """

    def __init__(self, encoder: Encoder, rows: int, momentum: float = 0.995):
        self.rows, self.momentum = rows, momentum
        shared = (encoder.tokenizer, encoder.head)
        self.encoder = encoder
        self.slow = copy.deepcopy(encoder, {id(part): part for part in shared})
        self.slow.backbone.requires_grad_(False).eval()
        self.slow.training = True  # pooling and head of the training, without dropout
        self.queue: Tensor | None = None

    @torch.no_grad()
    def __call__(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The queue (m, d), which these sentences (n, t) join afterwards; m is 0 at first."""
        fast = self.encoder.backbone.parameters()
        for slow, own in zip(self.slow.backbone.parameters(), fast, strict=True):
            slow.lerp_(own, 1 - self.momentum)
        new = self.slow(ids, mask).float()  # (n, d)
        before = new[:0] if self.queue is None else self.queue
        self.queue = torch.cat([before, new])[-self.rows :]
        return before

    def state(self) -> dict[str, Any]:
        """What a training is taken up with: the copy's weights and the queue."""
        return {"slow": self.slow.backbone.state_dict(), "queue": self.queue}

    def load(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave."""
        self.slow.backbone.load_state_dict(state["slow"])
        queue = state["queue"]
        self.queue = None if queue is None else queue.to(self.encoder.device)
