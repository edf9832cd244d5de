"""Views of a sentence in the encoder's embedding layer, (n, t, d).

ConSERT's shuffle, cutoffs and dropout (Yan et al. 2021, §3.2), a span cutoff (Shen et al. 2020,
§3.1). `length` is a sentence's number of real tokens, [CLS] and [SEP] among them; padding is never
touched and nothing is rescaled. `random` is a generator on the tensors' device (None: torch's own),
or the draws of `draw`, of which each row belongs to one sentence. Views of `x` work in place, as a
copy of a batch costs several times the view: pass `x.clone()` to keep the original.
"""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from lib.checked import Names, Registry

Generator = torch.Generator | None
Random = Generator | Tensor
View = tuple[str, float]
OUTPUT_VIEWS = Registry()  # the output (n, t, d), its mask, rate and generator; in place
VIEWS = Names(("none", "shuffle"), OUTPUT_VIEWS, ("keep_span",))


def draw(shape: Sequence[int], random: Random, device: torch.device | str = "cpu") -> Tensor:
    """Random 32-bit integers of a shape, uniform over all there are; draws are handed through.

    Example:
        >>> draw((2, 3), torch.Generator().manual_seed(0)).dtype
        torch.int32
    """
    if isinstance(random, Tensor):
        return random
    n = torch.Size(shape).numel()
    pairs = torch.empty(-(-n // 2), dtype=torch.int64, device=device)
    pairs.random_(-(2**63), None, generator=random)
    return pairs.view(torch.int32)[:n].view(*shape)


def k_smallest(draws: Tensor, k: Tensor, among: Tensor) -> Tensor:
    """Mark the k_i smallest draws of row i among the eligible ones: a uniformly random subset of
    exactly that size.

    Of equal draws the first ones are taken.

    Args:
        draws: (n, m) int32.
        k: (n,) at most the number of eligible elements of the row.
        among: (n, m) bool, the eligible elements.

    Returns:
        (n, m) bool.

    Example:
        >>> draws = torch.tensor([[30, 10, 20, 0]], dtype=torch.int32)
        >>> k_smallest(draws, torch.tensor([2]), torch.tensor([[True, True, True, False]])).tolist()
        [[False, True, True, False]]
    """
    keys = draws.long().masked_fill(~among, 2**31)
    if keys.device.type == "cpu":
        ordered = torch.from_numpy(np.sort(keys.numpy(), axis=1))  # several times faster than torch
    else:
        ordered = keys.sort(dim=1).values
    last = ordered.gather(1, (k - 1).clamp_min(0)[:, None])  # (n, 1) the k_i-th smallest
    below, equal = keys < last, keys == last
    rest = k - below.sum(1)  # (n,)
    return (below | (equal & (equal.cumsum(1) <= rest[:, None]))) & (k > 0)[:, None]


def _share(rate: float, of: Tensor) -> Tensor:
    return of.double().mul(rate).long()


@OUTPUT_VIEWS.register("token_cutoff")
def token_cutoff(x: Tensor, mask: Tensor, rate: float, random: Random) -> Tensor:
    """Zero int(rate · length) randomly chosen token rows of each sentence.

    Args:
        x: embeddings (n, t, d), changed and returned; contiguous, and no leaf that requires a
            gradient.
        mask: (n, t), 1 for real tokens.
        rate: in [0, 1].
        random: generator, or draws (n, t).

    Example:
        >>> x, mask = torch.ones(1, 4, 2), torch.tensor([[1, 1, 1, 0]])
        >>> int((token_cutoff(x, mask, 0.7, torch.Generator().manual_seed(0))[..., 0] == 0).sum())
        2
    """
    draws = draw(mask.shape, random, x.device)
    cut = k_smallest(draws, _share(rate, mask.sum(1)), mask.bool())  # (n, t)
    return x.masked_fill_(cut[:, :, None], 0)


@OUTPUT_VIEWS.register("feature_cutoff")
def feature_cutoff(x: Tensor, mask: Tensor, rate: float, random: Random) -> Tensor:
    """Zero int(rate · d) columns, drawn for each sentence; arguments as `token_cutoff`, draws (n,
    d).

    Example:
        >>> y = feature_cutoff(torch.ones(1, 3, 4), torch.ones(1, 3), 0.5,
        ...     torch.Generator().manual_seed(0))
        >>> int((y == 0).all(1).sum())
        2
    """
    n, _, d = x.shape
    every = torch.ones(n, d, dtype=torch.bool, device=x.device)
    cut = k_smallest(draw((n, d), random, x.device), _share(rate, every.sum(1)), every)  # (n, d)
    return x.masked_fill_(mask.bool()[:, :, None] & cut[:, None, :], 0)


@OUTPUT_VIEWS.register("span_cutoff")
def span_cutoff(x: Tensor, mask: Tensor, rate: float, random: Random) -> Tensor:
    """Zero one contiguous span of int(rate · length) token rows; arguments as `token_cutoff`, draws
    (n, 1).

    Example:
        >>> draws = torch.zeros(1, 1, dtype=torch.int32)
        >>> span_cutoff(torch.ones(1, 5, 1), torch.ones(1, 5), 0.4, draws).flatten().tolist()
        [1.0, 1.0, 0.0, 0.0, 1.0]
    """
    cut = _span(mask, _share(rate, mask.sum(1)), random)  # (n, t)
    return x.masked_fill_(cut[:, :, None], 0)


@OUTPUT_VIEWS.register("dropout")
def dropout_view(x: Tensor, mask: Tensor, rate: float, random: Random) -> Tensor:
    """Zero exactly int(rate · length · d) elements of each sentence; arguments as `token_cutoff`,
    draws (n, t, d).

    Unlike the dropout inside an encoder the others are not scaled up.

    Example:
        >>> y = dropout_view(torch.ones(1, 2, 8), torch.tensor([[1, 0]]), 0.5,
        ...     torch.Generator().manual_seed(0))
        >>> (y == 0).sum(2).tolist()
        [[4, 0]]
    """
    n, t, d = x.shape
    among = mask.bool()[:, :, None].expand(n, t, d).reshape(n, t * d)
    draws = draw((n, t, d), random, x.device).reshape(n, t * d)
    return x.mul_(~k_smallest(draws, _share(rate, mask.sum(1) * d), among).view(n, t, d))


def shuffle(position_ids: Tensor, mask: Tensor, random: Random) -> Tensor:
    """Permute the position ids (n, t) of each sentence's real tokens; draws (n, t).

    Example:
        >>> positions, mask = torch.tensor([[2, 3, 4, 1]]), torch.tensor([[1, 1, 1, 0]])
        >>> sorted(shuffle(positions, mask, torch.Generator().manual_seed(0))[0, :3].tolist())
        [2, 3, 4]
    """
    draws = draw(mask.shape, random, mask.device).long().masked_fill(mask == 0, 2**40)
    order = mask.argsort(dim=1, descending=True, stable=True)  # real tokens, then padding
    moved = position_ids.gather(1, draws.argsort(1))
    return torch.empty_like(position_ids).scatter_(1, order, moved).where(mask.bool(), position_ids)


def keep_span(input_ids: Tensor, mask: Tensor, rate: float, random: Random, pad_id: int) -> Tensor:
    """The span cutoff of the report's code: every token **outside** one span of max(int((1 − rate)
    · length), 1) tokens becomes [PAD], which stays in attention and pooling. Draws (n, 1).

    Example:
        >>> draws = torch.full((1, 1), -(2**31), dtype=torch.int32)
        >>> keep_span(torch.tensor([[5, 6, 7, 8]]), torch.ones(1, 4, dtype=torch.long), 0.5,
        ...     draws, 0).tolist()
        [[5, 6, 0, 0]]
    """
    length = mask.sum(1)
    kept = _span(mask, _share(1 - rate, length).clamp_min(1), random)
    return input_ids.masked_fill(mask.bool() & ~kept, pad_id)


def _span(mask: Tensor, size: Tensor, random: Random) -> Tensor:
    """(n, t) bool: `size` (n,) neighbouring real tokens from a uniformly drawn start."""
    position = mask.cumsum(1) - 1  # (n, t) number of the real token
    u = draw((len(mask), 1), random, mask.device).double() / 2**32 + 0.5  # (n, 1) in [0, 1)
    start = (u * (mask.sum(1) - size + 1)[:, None]).long()
    return (mask == 1) & (position >= start) & (position < start + size[:, None])


class EmbeddingViews:
    """Gives each part of a batch its own view, through hooks on a backbone's embeddings module.

    The views act on that module's output, after positions, types and LayerNorm, so that a zeroed
    row reaches the first layer as zero (ALBERT's first projects it to the hidden size, with a
    bias); or on its position ids (`shuffle`) or token ids (`keep_span`). Hooks are idle but inside
    `drawn`.

    Args:
        backbone: any with a module `embeddings`: BERT, RoBERTa, ALBERT, DistilBERT, ELECTRA, MPNet.
        views: for each part of the batch the name of a view and its rate, as a recipe has them;
            rows beyond the parts stay as they are.

    Raises:
        ValueError: no embeddings module, or `shuffle` without absolute positions.
    """

    def __init__(self, backbone: nn.Module, views: Sequence[View]):
        kind, module = type(backbone).__name__, getattr(backbone, "embeddings", None)
        if not isinstance(module, nn.Module):
            raise ValueError(f"{kind} has no embeddings module, which views need: take BERT's kind")
        if "shuffle" in dict(views) and getattr(module, "position_embeddings", None) is None:
            raise ValueError(f"{kind} has no absolute positions to shuffle: choose another view")
        self.views, self._module = tuple(views), module
        self._pad_id = getattr(backbone.config, "pad_token_id", None) or 0
        self._now: tuple[Tensor, list[slice], Generator] | None = None
        self._handles = [
            module.register_forward_pre_hook(self._before, with_kwargs=True),
            module.register_forward_hook(self._after),
        ]

    @contextmanager
    def drawn(
        self, mask: Tensor, sizes: Sequence[int], generator: Generator = None
    ) -> Iterator[None]:
        """While open, the next forward passes take views of a batch with this mask (n, t) and parts
        of these sizes."""
        bounds = torch.tensor([0, *sizes]).cumsum(0).tolist()
        self._now = mask, [slice(a, b) for a, b in pairwise(bounds)], generator
        try:
            yield
        finally:
            self._now = None

    def remove(self) -> None:
        """Take the hooks off the backbone."""
        for handle in self._handles:
            handle.remove()

    @torch.compiler.disable
    def _before(self, module: nn.Module, args: tuple, kwargs: dict):
        if self._now is None:
            return None
        named = dict(self.views)
        call = inspect.signature(module.forward).bind(*args, **kwargs)
        inputs, (mask, parts, generator) = call.arguments, self._now
        if "keep_span" in named:
            inputs["input_ids"] = inputs["input_ids"].clone()
        if "shuffle" in named or "keep_span" in named:
            inputs["position_ids"] = self._positions(mask, inputs.get("position_ids"))
        for (name, rate), rows in zip(self.views, parts, strict=False):
            if name == "shuffle":
                positions = inputs["position_ids"]
                positions[rows] = shuffle(positions[rows], mask[rows], generator)
            elif name == "keep_span":
                ids = inputs["input_ids"]
                ids[rows] = keep_span(ids[rows], mask[rows], rate, generator, self._pad_id)
        return call.args, call.kwargs

    def _positions(self, mask: Tensor, position_ids: Tensor | None) -> Tensor | None:
        table = getattr(self._module, "position_embeddings", None)
        if table is None:
            return position_ids
        if position_ids is None and table.padding_idx is None:
            position_ids = torch.arange(mask.shape[1], device=mask.device)
        elif position_ids is None:
            position_ids = mask.long().cumsum(1) * mask.long() + table.padding_idx
        return position_ids.expand(mask.shape).clone()

    @torch.compiler.disable
    def _after(self, module: nn.Module, args: tuple, x: Tensor):
        if self._now is None:
            return None
        mask, parts, generator = self._now
        for (name, rate), rows in zip(self.views, parts, strict=False):
            if name in OUTPUT_VIEWS:
                OUTPUT_VIEWS[name](x[rows], mask[rows], rate, generator)
        return x
