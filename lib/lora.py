"""LoRA: train a low-rank difference to every linear layer of a backbone and leave its own weights as they are.

A layer `W x` becomes `W x + (α/r) B A x` with A `(r, in)` random and B `(out, r)` zero at the start; only A and B are
trained. Needs the package `peft` (extra `cluster`).

Source: Hu et al. 2022 (LoRA), §4.1.
"""

import torch
from torch import Tensor, nn


def add_lora(backbone: nn.Module, rank: int, seed: int = 0) -> None:
    """Give every linear layer of `backbone` a difference of rank `rank`, α = 2r, and freeze all else, in place.

    Args:
        backbone: of `transformers`; what it computes does not change yet, since B is zero.
        rank: r, at least 1.
        seed: of the random A.

    Raises:
        ValueError: `rank` is below 1.
        ImportError: `peft` is not installed.
    """
    if rank < 1:
        raise ValueError(f"the rank of LoRA must be at least 1, got {rank}")
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise ImportError("LoRA needs the package peft: `pip install peft`, or the extra `cluster`") from error
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        inject_adapter_in_model(LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear"), backbone)


def merged_state(backbone: nn.Module) -> dict[str, Tensor]:
    """Weights of `backbone` under their own names, `W + (α/r) B A` where there is LoRA; the backbone stays as it is."""
    state = {}
    for name, weight in backbone.state_dict().items():
        if ".lora_" in name:
            continue
        layer = name.removesuffix(".base_layer.weight")
        if layer != name:
            weight = weight + backbone.get_submodule(layer).get_delta_weight("default")  # type: ignore[operator]
        state[name.replace(".base_layer.", ".")] = weight
    return state
