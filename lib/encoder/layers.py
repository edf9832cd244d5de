"""What is changed inside a backbone: the rate of its dropout, LoRA, and what makes it fast.

The last changes only how long a training takes, and may be switched off
(`Encoder.load(…, speedups=False)`):

* Dropout: random numbers that cost little on a CPU, 1.10 times the sentences per second in fp32 and
  1.39 in bf16; on a GPU dropout is torch's own.
* The residual stream: under a CPU's bf16 autocast it is bf16 too, 1.06 times; nothing elsewhere. It
  rounds: vectors of midi-BERT are 0.7 % from those in fp32, 0.4 % without it.
* The first token: with [CLS] pooling the last layer computes its other tokens no further than
  attention, 1.12 times in fp32 and 1.14 in bf16 (one layer of four).
* Attention: a GPU is not asked whether a batch has padding, which it would have to answer before
  the next layer is queued, and no kernel is planned anew for every shape, as cuDNN's are.

The figures are those of `benchmarks/results/speedups-amd-epyc-2-threads.md`.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

# Names under which modules and configurations keep a probability of dropout; p is nn.Dropout's.
DROPOUT_FIELD = re.compile(r"dropout|_pdrop$|^p$")
ATTENTION = "cheap_dropout_unplanned"  # transformers' name of ours
UNPLANNED = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
# Model types whose last layer gives the same first token when the others are left out after its
# attention.
FIRST_TOKEN_ALONE = ("bert", "electra", "roberta", "xlm-roberta")


def rates(holder: Any) -> dict[str, float]:
    """The probabilities of dropout that a configuration or a module of transformers keeps."""
    fields = vars(holder).items()
    return {k: v for k, v in fields if DROPOUT_FIELD.search(k) and type(v) in (int, float)}


def dropouts(backbone: nn.Module) -> list[tuple[nn.Module, str, float]]:
    """(module, attribute, probability) of every dropout: of each `nn.Dropout`, and of modules that
    call the function themselves."""
    return [(m, name, p) for m in backbone.modules() for name, p in rates(m).items()]


@contextmanager
def dropout_of(backbone: nn.Module, p: float) -> Iterator[None]:
    """While open, every dropout inside `backbone` has the probability `p`, in [0, 1).

    Raises:
        ValueError: `p` is outside its range, or the backbone has no dropout and `p` is not 0.

    Source: the two rates of Klein & Nabi 2022 (SCD); their code keeps two dropouts in each layer.

    Example:
        >>> layers = nn.Sequential(nn.Dropout(0.1))
        >>> with dropout_of(layers, 0.5):
        ...     print(layers[0].p)
        0.5
        >>> layers[0].p
        0.1
    """
    before = dropouts(backbone)
    if not 0 <= p < 1 or (p and not before):
        name = type(backbone).__name__
        raise ValueError(f"dropout must be in [0, 1), and 0 if {name} has no dropout, got {p}")
    try:
        for module, name, _ in before:
            setattr(module, name, p)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def add_lora(backbone: nn.Module, rank: int, seed: int = 0) -> None:
    """Freeze `backbone` and give every linear layer of it a low-rank difference that is trained in
    place of its weights.

    A layer `W x` becomes `W x + (α/r) B A x` with α = 2r, A `(r, in)` random and B `(out, r)` zero:
    what the backbone computes does not change yet.

    Args:
        backbone: of `transformers`, changed in place.
        rank: r, at least 1.
        seed: of the random A.

    Raises:
        ImportError: `peft` is not installed.

    Source: Hu et al. 2022 (LoRA), §4.1.
    """
    from peft import LoraConfig, inject_adapter_in_model

    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        inject_adapter_in_model(config, backbone)


def merged_state(backbone: nn.Module) -> dict[str, Tensor]:
    """Weights under their own names, `W + (α/r) B A` where there is LoRA; the backbone stays as it
    is.

    Sums are on the CPU, so that there is no second copy of the model beside the first.
    """
    state = {k: v for k, v in backbone.state_dict().items() if ".lora_" not in k}
    for name in [name for name in state if name.endswith(".base_layer.weight")]:
        layer: Any = backbone.get_submodule(name.removesuffix(".base_layer.weight"))
        state[name] = (state[name] + layer.get_delta_weight("default")).cpu()
    return {name.replace(".base_layer.", "."): weight for name, weight in state.items()}


def cheap_dropout(x: Tensor, p: float) -> Tensor:
    """Zero each element of `x` with probability `p` and scale the others by 1/(1-p).

    y_i = x_i · m_i / (1 - p), m_i ~ Bernoulli(1 - p), with p rounded to a multiple of 2^-16.
    One 64-bit draw of torch's generator decides four elements; `torch.nn.functional.dropout`
    spends a serial draw on each, a third of a small encoder's training step on a CPU.

    Args:
        x: any shape, any floating type.
        p: in [0, 1).

    Example:
        >>> _ = torch.manual_seed(0)
        >>> y = cheap_dropout(torch.ones(100_000), 0.25)
        >>> sorted({round(v, 4) for v in y.tolist()}), round((y == 0).float().mean().item(), 2)
        ([0.0, 1.3333], 0.25)

    Source: Srivastava et al. 2014.
    """
    threshold = min(round(p * 2**16), 2**16 - 1)
    if not threshold:
        return x
    fours = torch.empty(-(-x.numel() // 4), dtype=torch.int64, device=x.device)
    draws = fours.random_(-(2**63), None).view(torch.int16)
    keep = draws[: x.numel()].view(x.shape) >= threshold - 2**15
    return x * keep.to(x.dtype).mul_(2**16 / (2**16 - threshold))


class CheapDropout(nn.Dropout):
    """`torch.nn.Dropout` that draws with `cheap_dropout` on a CPU and as torch does elsewhere."""

    def forward(self, x: Tensor) -> Tensor:
        """Drop in training, the identity in evaluation."""
        cheap = self.training and x.device.type == "cpu"
        return cheap_dropout(x, self.p) if cheap else super().forward(x)


def attention(module: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, **options):
    """Scaled dot-product attention, for transformers' attention interface.

    softmax(Q·Kᵀ·s)·V with Q, K, V of shape `(n, heads, t, d)` and `mask` True where a key may be
    seen; returns `(n, t, heads, d)` and None. Training an encoder on a CPU draws the dropout of
    the weights with `cheap_dropout`; anything else is torch's own attention, on a GPU without
    cuDNN.
    """
    p = options.get("dropout", 0.0) if module.training else 0.0
    causal = options.get("is_causal", getattr(module, "is_causal", False))
    if not p or q.device.type != "cpu" or causal or k.shape[1] != q.shape[1]:
        with sdpa_kernel(UNPLANNED) if q.device.type == "cuda" else nullcontext():
            return sdpa_attention_forward(module, q, k, v, mask, **options)
    scaling = options.get("scaling")
    scaling = q.shape[-1] ** -0.5 if scaling is None else scaling
    scores = q @ k.transpose(2, 3) * scaling  # (n, heads, t, t)
    if mask is not None:
        seen = mask.dtype == torch.bool
        scores = scores.masked_fill(~mask, -torch.inf) if seen else scores + mask
    weights = cheap_dropout(torch.softmax(scores, -1), p).to(v.dtype)
    return (weights @ v).transpose(1, 2).contiguous(), None


def attention_mask(**options: Any) -> Tensor | None:
    """transformers' mask for `attention`; on a GPU it is made whether it hides a token or not."""
    if torch.device(options.get("device", "cpu")).type != "cpu":
        options |= {"allow_is_bidirectional_skip": False, "allow_is_causal_skip": False}
    return sdpa_mask(**options)


AttentionInterface.register(ATTENTION, attention)
AttentionMaskInterface.register(ATTENTION, attention_mask)


def speed_up(model: nn.Module) -> nn.Module:
    """Give a `transformers` model those speedups that lie inside it, in place."""
    for module in model.modules():
        for name, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, name, CheapDropout(child.p))
    if getattr(model.config, "_attn_implementation", None) == "sdpa":
        model.set_attn_implementation(ATTENTION)  # type: ignore[operator]
    embeddings = getattr(getattr(model, "base_model", model), "embeddings", None)
    if isinstance(embeddings, nn.Module):
        embeddings.register_forward_hook(_lowered)
    return model


def _lowered(module: nn.Module, _inputs, output: Tensor) -> Tensor:
    """The embeddings' output in bf16 while a BERT-like backbone trains under a CPU's bf16 autocast,
    and with it the residual stream.

    There autocast adds in fp32 what its matrix products return in bf16, and converts again for
    each of them. On a GPU nothing is changed: its autocast computes each LayerNorm in fp32, after
    which the stream is fp32 anyway.
    """
    lowers = output.device.type == "cpu" and module.training and torch.is_autocast_enabled("cpu")
    return output.bfloat16() if lowers else output
