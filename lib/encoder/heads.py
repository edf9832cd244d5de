"""Projection heads: what stands between the pooled vector and the loss."""

import torch
from torch import Tensor, nn

from lib.checked import closest

HEADS = ("none", "linear", "tanh", "relu", "simclr", "bn_mlp", "simsiam", "scd")
SIZED_HEADS = ("simclr", "bn_mlp", "simsiam", "scd")
DRAWN_HEADS = ("linear", "tanh", "relu", "scd")
BATCH_NORM_HEADS = ("simclr", "bn_mlp", "simsiam", "scd")
HEAD_INITS = ("bert", "torch")
LARGEST_LAYER = 65_536


def check_head(head: str) -> None:
    """Refuse what is no head.

    Raises:
        ValueError: unknown name, or sizes that are not two whole numbers.

    Example:
        >>> check_head("simclr:600:512")
    """
    kind, *sizes = head.split(":")
    if kind not in HEADS:
        raise ValueError(
            f"head must be one of {', '.join(HEADS)}, got {head!r}{closest(kind, HEADS)}"
        )
    numbers = [int(size) for size in sizes if size.isascii() and size.isdecimal()]
    if sizes and (kind not in SIZED_HEADS or len(numbers) != 2 or len(sizes) != 2):
        raise ValueError(
            f"head {head!r}: sizes are written as in simclr:600:512 or simsiam:600:512"
        )
    if not all(1 <= number <= LARGEST_LAYER for number in numbers):
        raise ValueError(f"head {head!r}: sizes must be whole numbers in [1, {LARGEST_LAYER}]")


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
        ValueError: unknown head or init, or sizes that are not two positive numbers.

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
    if init not in HEAD_INITS:
        raise ValueError(f"head_init must be 'bert' or 'torch', got {init!r}")
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
