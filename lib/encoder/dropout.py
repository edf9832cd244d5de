"""Another dropout for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from lib.encoder.pretrained import DROPOUT_FIELDS


@contextmanager
def dropout_of(backbone: nn.Module, p: float) -> Iterator[None]:
    """While open, every dropout inside `backbone` has the probability `p`, in [0, 1).

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
    before = list(_places(backbone))
    try:
        for module, name, _ in before:
            setattr(module, name, p)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def _places(backbone: nn.Module) -> Iterator[tuple[nn.Module, str, float]]:
    """Where a probability stands: in `nn.Dropout`, and in modules that call the function."""
    for module in backbone.modules():
        names = ("p",) if isinstance(module, nn.Dropout) else DROPOUT_FIELDS
        for name in names:
            value = module.__dict__.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield module, name, value
