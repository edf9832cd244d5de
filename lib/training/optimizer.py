"""AdamW with and without bias correction, and the learning rate of every step."""

import math

import torch
from torch import nn

from lib.training.recipe import Recipe


def learning_rate(recipe: Recipe, step: int, total: int) -> float:
    """Learning rate of step `step` (from 0) of `total`: warm-up, then linear decay to 0 or
    constant.

    The warm-up takes the first w = ⌈`warmup` · total⌉ steps. Step s < w has the learning rate
    lr · (s + 1) / w, with `warmup_from_zero` lr · s / w, as
    `transformers.get_linear_schedule_with_warmup` gives it.

    Example:
        >>> from lib.training.recipe import recipe
        >>> [round(learning_rate(recipe("mini_simcse", lr=1.0), s, 4), 2) for s in range(4)]
        [1.0, 0.75, 0.5, 0.25]
    """
    warm = math.ceil(recipe.warmup * total)
    if step < warm:
        return recipe.lr * (step if recipe.warmup_from_zero else step + 1) / warm
    if recipe.schedule == "constant":
        return recipe.lr
    return recipe.lr * (total - step) / max(1, total - warm)


def set_learning_rate(optimizer: torch.optim.Optimizer, lr: float) -> float:
    """Let the next step have the rate `lr`, which is returned."""
    for parameters in optimizer.param_groups:
        parameters["lr"] = lr
    return lr


def make_optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """AdamW as the recipe says; biases and the weights of normalisations are not decayed."""
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    if recipe.bias_correction:
        return torch.optim.AdamW(groups, lr=recipe.lr, eps=recipe.adam_eps, fused=True)
    return UncorrectedAdamW(groups, lr=recipe.lr, eps=recipe.adam_eps)


class UncorrectedAdamW(torch.optim.Optimizer):
    """AdamW whose moments, which begin at 0, are taken as they are: its first steps are longer.

    m ← β₁ m + (1 − β₁) g,   v ← β₂ v + (1 − β₂) g²
    p ← p − lr · m / (√v + ε),   then  p ← p − lr · weight_decay · p

    Args:
        params: parameters or groups of them, as of any optimiser of PyTorch.
        lr, betas, eps, weight_decay: the symbols above.

    Relations:
        `torch.optim.AdamW` divides m by 1 − β₁ᵗ and v by 1 − β₂ᵗ at step t: a first step of lr,
        where this one takes 0.1 / √0.001 = 3.2 times as much.

    Example:
        >>> p = nn.Parameter(torch.zeros(1))
        >>> p.grad = torch.ones(1)
        >>> UncorrectedAdamW([p], lr=1.0).step()
        >>> round(p.item(), 3)
        -3.162

    Source: the optimiser of BERT (Devlin et al. 2019); `correct_bias=False` in ConSERT's code.
    """

    def __init__(
        self,
        params,
        lr: float = 1e-3,
        betas=(0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ):
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )

    @torch.no_grad()
    def step(self, closure=None) -> None:  # type: ignore[override]
        """One step for every parameter that has a gradient."""
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if not parameters:
                continue
            for p in parameters:
                if not self.state[p]:
                    self.state[p] = {
                        "exp_avg": torch.zeros_like(p),
                        "exp_avg_sq": torch.zeros_like(p),
                    }
            gradients = [p.grad for p in parameters]
            first = [self.state[p]["exp_avg"] for p in parameters]
            second = [self.state[p]["exp_avg_sq"] for p in parameters]
            lr, (beta1, beta2) = group["lr"], group["betas"]
            torch._foreach_lerp_(first, gradients, 1 - beta1)
            torch._foreach_mul_(second, beta2)
            torch._foreach_addcmul_(second, gradients, gradients, 1 - beta2)
            denominators = torch._foreach_sqrt(second)
            torch._foreach_add_(denominators, group["eps"])
            torch._foreach_addcdiv_(parameters, first, denominators, -lr)
            torch._foreach_mul_(parameters, 1 - lr * group["weight_decay"])
