"""From the states of a sentence's tokens to what the loss sees: pooling and projection heads."""

import re
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lib.checked import Checked, closest, setting

LAYERS = {
    "mean": (-1,),
    "last2_mean": (-1, -2),
    "first_last_mean_embeddings": (0, -1),
    "first_last_mean_layer_1": (1, -1),
}
POOLINGS = ("cls", *LAYERS, "last_token")
BATCH_NORM_HEADS = ("simclr", "bn_mlp", "simsiam", "scd")
DRAWN_HEADS = ("linear", "tanh", "relu", "scd")
HEADS = ("none", "linear", "tanh", "relu", *BATCH_NORM_HEADS)
HEAD_INITS = ("bert", "torch")
SIZES = re.compile(r":[1-9]\d{0,4}:[1-9]\d{0,4}", re.ASCII)


class PoolingSettings(Checked):
    """How the states of a sentence's tokens become its embedding.

    Attributes:
        pooling: in training (`pool`); None: what fits the architecture.
        head: in training (`build_head`), with its initial weights `head_init`.
        eval_pooling: in evaluation; None: the pooling of the training.
        eval_head: the head has a part in the evaluation, too.
        head_per_view: in training the head meets each view by itself, if `forward` is told their
            sizes.
    """

    pooling: str | None = setting(None, among=POOLINGS)
    head: str = "none"
    eval_pooling: str | None = setting(None, among=POOLINGS)
    eval_head: bool = False
    head_init: str = setting("bert", among=HEAD_INITS)
    head_per_view: bool = False


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
    if pooling == "cls":
        return last[:, 0]
    if pooling == "last_token":
        position = (mask * torch.arange(1, mask.shape[1] + 1, device=mask.device)).argmax(1)
        return last[torch.arange(len(last), device=last.device), position]
    if pooling not in LAYERS:
        raise ValueError(f"unknown pooling {pooling!r}: choose one of {', '.join(POOLINGS)}")
    weight = mask[:, :, None].to(last.dtype)  # (n, t, 1)
    total = torch.stack([hidden_states[i] for i in LAYERS[pooling]]).mean(0)  # (n, t, d)
    return (total * weight).sum(1) / weight.sum(1).clamp_min(1)


def check_head(head: str) -> None:
    """Refuse what is no head.

    Raises:
        ValueError: unknown name, or sizes that are not two whole numbers below 100,000.

    Example:
        >>> check_head("simclr:600:512")
    """
    kind, colon, _ = head.partition(":")
    sized = kind in BATCH_NORM_HEADS and SIZES.fullmatch(head.removeprefix(kind))
    if kind not in HEADS or (colon and not sized):
        allowed = f"one of {', '.join(HEADS)}, with sizes as simclr:600:512"
        raise ValueError(f"head must be {allowed}, got {head!r}{closest(kind, HEADS)}")


def build_head(name: str, width: int, std: float = 0.02, init: str = "bert") -> nn.Module:
    """Projection head `(n, width) → (n, out)` used in training.

    Args:
        name: `none`; `linear`; `tanh` or `relu` (linear, then that); `simclr:h:out` (linear to h,
            batch norm, ReLU, linear to out); `bn_mlp:h:out` (the same without biases, and a batch
            norm without weights at its end); `simsiam:h:out` (a `simclr` projection with batch norm
            at its end, then a predictor of the same shape; both outputs side by side, (n, 2·out));
            `scd:h:out` (the vector itself, and beside it the output of a projector: three linear
            layers to h, h and out, batch norm and ReLU between them; (n, width + out)).
            Without `:h:out` both are `width`, but h of `bn_mlp` is 2·`width`.
        width: of the sentence vectors.
        std: of the initial weights of a single layer with `init="bert"`.
        init: of a single layer (`linear`, `tanh`, `relu`) and all of `scd`: `bert` draws N(0, std)
            and has no bias at the start, `torch` is `nn.Linear`'s own.

    Batch norm takes its statistics over all rows that the head is called with.

    Raises:
        ValueError: as `check_head`.

    Example:
        >>> build_head("simclr:600:512", 768)(torch.randn(4, 768)).shape
        torch.Size([4, 512])

    Sources: `tanh` is BERT's pooler and SimCSE's MLP head (Gao et al. 2021, §6.3); Chen et al. 2020
    (SimCLR), §4.2; `bn_mlp` is the head of DiffCSE (Chuang et al. 2022, §4.1 and its code:
    d → 2d → d), which SDA takes over (Zhu et al. 2024, §5.3); Chen & He 2021 (SimSiam), §3, whose
    projection has three layers and whose predictor a narrower hidden one; Klein & Nabi 2022 (SCD),
    scd/models.py lines 116-135 of its code, whose last batch norm the loss computes.
    """
    check_head(name)
    kind, *sizes = name.split(":")
    numbers = [int(size) for size in sizes]
    if kind == "none":
        return nn.Identity()
    hidden, out = numbers or (2 * width if kind == "bn_mlp" else width, width)
    if kind == "simclr":
        return _mlp(width, hidden, out)
    if kind == "bn_mlp":
        end = nn.BatchNorm1d(out, affine=False)
        return nn.Sequential(*_mlp(width, hidden, out, bias=False), end)
    if kind == "simsiam":
        projector = nn.Sequential(*_mlp(width, hidden, out), nn.BatchNorm1d(out))
        return Siamese(projector, _mlp(out, hidden, out))
    if kind == "scd":
        first = nn.Sequential(nn.Linear(width, hidden), nn.BatchNorm1d(hidden), nn.ReLU())
        projector = nn.Sequential(*first, *_mlp(hidden, hidden, out, bias=False))
        return Siamese(nn.Identity(), _drawn(projector, std) if init == "bert" else projector)
    linear = nn.Linear(width, width)
    if init == "bert":
        _drawn(linear, std)
    activation = {"tanh": nn.Tanh, "relu": nn.ReLU}.get(kind)
    return linear if activation is None else nn.Sequential(linear, activation())


def _drawn(head: nn.Module, std: float) -> nn.Module:
    """The head with the weights of its linear layers drawn from N(0, std), their biases 0."""
    for layer in head.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=std)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return head


def _mlp(width: int, hidden: int, out: int, bias: bool = True) -> nn.Sequential:
    first, second = nn.Linear(width, hidden, bias), nn.Linear(hidden, out, bias)
    return nn.Sequential(first, nn.BatchNorm1d(hidden), nn.ReLU(), second)


class Siamese(nn.Module):
    """A projection and what is computed from it, side by side: SimSiam's prediction of the other
    view's, or SCD's features.

    Shapes: (n, width) → (n, out of the one + out of the other).
    """

    def __init__(self, projector: nn.Module, predictor: nn.Module):
        super().__init__()
        self.projector, self.predictor = projector, predictor

    def forward(self, x: Tensor) -> Tensor:
        """[projection; predictor(projection)] of sentence vectors."""
        z = self.projector(x)
        return torch.cat([z, self.predictor(z)], dim=1)
