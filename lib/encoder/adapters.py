"""LoRA: train a low-rank difference to every linear layer of a backbone and leave its own weights
as they are.

A layer `W x` becomes `W x + (α/r) B A x` with A `(r, in)` random and B `(out, r)` zero at the
start; only A and B are trained. Needs the package `peft` (extra `cluster`).

Source: Hu et al. 2022 (LoRA), §4.1.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn


def add_lora(backbone: nn.Module, rank: int, seed: int = 0) -> None:
    """Give every linear layer of `backbone` a difference of rank `rank`, α = 2r, and freeze all
    else, in place.

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
        message = "LoRA needs the package peft: `pip install peft`, or the extra `cluster`"
        raise ImportError(message) from error
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        inject_adapter_in_model(config, backbone)


def has_lora(backbone: nn.Module) -> bool:
    """True after `add_lora`."""
    return hasattr(backbone, "peft_config")


def adapter_state(backbone: nn.Module) -> dict[str, Tensor]:
    """The A and B of all layers, which are all that `add_lora` lets a training change: r·(in + out)
    numbers a layer.

    The tensors are the model's own, as those of `state_dict`.
    """
    from peft import get_peft_model_state_dict

    return get_peft_model_state_dict(backbone)


def load_adapter_state(backbone: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Put what `adapter_state` gave into a backbone with LoRA of the same rank.

    Raises:
        ValueError: the names or shapes are not those of this backbone's adapters.
    """
    from peft import set_peft_model_state_dict

    here = {name: weight.shape for name, weight in adapter_state(backbone).items()}
    if here != {name: weight.shape for name, weight in state.items()}:
        rank = backbone.peft_config["default"].r  # type: ignore[union-attr, index]
        raise ValueError(
            f"these adapters are of another model or rank: {len(here)} tensors of rank {rank} "
            f"are needed, {len(state)} were given"
        )
    set_peft_model_state_dict(backbone, dict(state))


def merged_state(backbone: nn.Module) -> dict[str, Tensor]:
    """Weights under their own names, `W + (α/r) B A` where there is LoRA; the backbone stays as it
    is.

    Sums are on the CPU, so that there is no second copy of the model beside the first.
    """
    state = {}
    for name, weight in backbone.state_dict().items():
        if ".lora_" in name:
            continue
        layer = name.removesuffix(".base_layer.weight")
        if layer != name:
            difference = backbone.get_submodule(layer).get_delta_weight("default")  # type: ignore[operator]
            weight = (weight + difference).cpu()
        state[name.replace(".base_layer.", ".")] = weight
    return state
