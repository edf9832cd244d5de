"""Augmentations: text to text, aligned line by line. `AUGMENTATIONS` maps a recipe's name to its function."""

from collections.abc import Callable, Sequence

import numpy as np

from lib.augment import discrete

AUGMENTATIONS: dict[str, Callable[[list[str], float, np.random.Generator], list[str]]] = {
    "crop": discrete.crop,
    "delete": discrete.delete,
    "mask": discrete.mask,
    "repeat": discrete.repeat,
}


def augment(name: str, sentences: Sequence[str], rate: float, seed: int = 0) -> list[str]:
    """Apply augmentation `name` to every sentence; line i of the result belongs to sentence i.

    Each sentence has its own generator, seeded by (seed, i): the result does not depend on how a corpus
    is cut into batches.

    Args:
        rate: share of the words concerned, in [0, 1].

    Raises:
        ValueError: unknown name or a rate outside [0, 1].

    Example:
        >>> augment("crop", ["one two three four"], rate=0.5)
        ['three four']
    """
    if name not in AUGMENTATIONS:
        raise ValueError(f"unknown augmentation {name!r}: choose one of {', '.join(AUGMENTATIONS)}")
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be in [0, 1], got {rate}")
    change = AUGMENTATIONS[name]
    return [" ".join(change(s.split(), rate, np.random.default_rng((seed, i)))) for i, s in enumerate(sentences)]
