"""Embeddings of earlier batches as further negatives."""

import copy
from collections.abc import Mapping

import torch
from torch import Tensor

from lib.encoder import Encoder


class Memory:
    """A queue of embeddings, made by a copy of the encoder that follows it slowly.

    In every step, with θ the backbone's weights and θ′ the copy's:

    θ′ ← m θ′ + (1 − m) θ,   queue ← the newest `rows` of [queue; f_θ′(sentences)]

    The copy begins as the encoder (MoCo), has no dropout and no gradient, and shares its head.

    Args:
        encoder: what is trained, on its device, before anything is hooked to it.
        rows: of the queue, at least 1.
        momentum: m in [0, 1]; 0 is the encoder itself, 1 stays at its first weights.

    Raises:
        ValueError: a number outside its range.

    Example:
        >>> from lib import paths
        >>> memory = Memory(Encoder.load(paths.MINI_BERT).train(), rows=3, momentum=0.995)
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
        if rows < 1:
            raise ValueError(f"rows must be at least 1, got {rows}")
        if not 0 <= momentum <= 1:
            raise ValueError(f"momentum must be in [0, 1], got {momentum}")
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
        self._follow()
        new = self.slow(ids, mask).float()  # (n, d)
        before = new[:0] if self.queue is None else self.queue
        self.queue = torch.cat([before, new])[-self.rows :]
        return before

    def _follow(self) -> None:
        pairs = zip(
            self.slow.backbone.parameters(), self.encoder.backbone.parameters(), strict=True
        )
        for slow, fast in pairs:
            slow.lerp_(fast, 1 - self.momentum)

    def state(self) -> dict[str, Tensor]:
        """What a training is taken up with: the queue, and the copy's weights that move."""
        weights = {
            f"slow.{name}": weight
            for name, weight in self.slow.trained_state().items()
            if name.startswith("backbone.")
        }
        return weights if self.queue is None else weights | {"queue": self.queue}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take up what `state` gave."""
        head = {k: v for k, v in self.slow.trained_state().items() if k.startswith("head.")}
        weights = {k.removeprefix("slow."): v for k, v in state.items() if k.startswith("slow.")}
        self.slow.load_trained_state(weights | head)
        self.queue = state["queue"].to(self.encoder.device) if "queue" in state else None
