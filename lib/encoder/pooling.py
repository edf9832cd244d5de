"""Pooling: one vector a sentence from the hidden states of its tokens."""

from collections.abc import Sequence

import torch
from torch import Tensor

POOLINGS = (
    "cls",
    "mean",
    "last2_mean",
    "first_last_mean_embeddings",
    "first_last_mean_layer_1",
    "last_token",
)


def check_pooling(pooling: str) -> str:
    """`pooling` itself.

    Raises:
        ValueError: unknown pooling.
    """
    if pooling not in POOLINGS:
        raise ValueError(f"unknown pooling {pooling!r}: choose one of {', '.join(POOLINGS)}")
    return pooling


def pool(hidden_states: Sequence[Tensor], mask: Tensor, pooling: str) -> Tensor:
    """Sentence vectors `(n, d)` from the hidden states of all layers.

    Args:
        hidden_states: the embeddings' output and every layer's output, each (n, t, d). For `cls`,
            `mean` and `last_token` the last entry alone is enough.
        mask: (n, t), 1 for real tokens, 0 for padding; padding never enters a mean.
        pooling: `cls` first column, so padding has to stand on the right;
            `mean` of the last layer; `last2_mean` of the last two layers;
            `first_last_mean_embeddings` of the embeddings' output and the last layer;
            `first_last_mean_layer_1` of layer 1 and the last layer; `last_token` the last real
            token, whichever side the padding is on.

    Raises:
        ValueError: unknown pooling.

    Example:
        >>> states = [torch.tensor([[[1.0], [3.0], [9.0]]])]
        >>> pool(states, torch.tensor([[1, 1, 0]]), "mean")
        tensor([[2.]])
    """
    last = hidden_states[-1]
    if check_pooling(pooling) == "cls":
        return last[:, 0]
    if pooling == "last_token":
        position = (mask * torch.arange(1, mask.shape[1] + 1, device=mask.device)).argmax(1)
        return last[torch.arange(len(last), device=last.device), position]
    layers = {
        "mean": (-1,),
        "last2_mean": (-1, -2),
        "first_last_mean_embeddings": (0, -1),
        "first_last_mean_layer_1": (1, -1),
    }
    weight = mask[:, :, None].to(last.dtype)  # (n, t, 1)
    total = torch.stack([hidden_states[i] for i in layers[pooling]]).mean(0)  # (n, t, d)
    return (total * weight).sum(1) / weight.sum(1).clamp_min(1)
