"""Where a backbone drops activations, and another probability there for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

# Names under which configurations and modules of transformers keep a probability.
DROPOUT_FIELDS = (
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "embedding_dropout",
    "mlp_dropout",
    "hidden_dropout",
    "attn_pdrop",
    "embd_pdrop",
    "resid_pdrop",
    "dropout_rate",
)


def dropouts(backbone: nn.Module) -> Iterator[tuple[nn.Module, str, float]]:
    """(module, attribute, probability) of every dropout: of each `nn.Dropout`, and of modules that
    call the function themselves."""
    for module in backbone.modules():
        names = ("p",) if isinstance(module, nn.Dropout) else DROPOUT_FIELDS
        for name in names:
            value = module.__dict__.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield module, name, value


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
    if not 0 <= p < 1:
        raise ValueError(f"dropout must be in [0, 1), got {p}")
    before = list(dropouts(backbone))
    if p and not before:
        raise ValueError(f"{type(backbone).__name__} has no dropout that could be {p}")
    try:
        for module, name, _ in before:
            setattr(module, name, p)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
