"""Augmentations: text to text, aligned line by line. `AUGMENTATIONS` maps a recipe's name to its
function."""

from collections.abc import Sequence

import numpy as np

from lib.augment import eda
from lib.augment.discrete import AUGMENTATIONS

NEED_SYNONYMS = ("replace_synonyms", "insert_synonyms")


def augment(
    name: str,
    sentences: Sequence[str],
    rate: float,
    seed: int = 0,
    synonyms: str = "wordnet",
    first: int = 0,
    **more: object,
) -> list[str]:
    """Apply augmentation `name` to every sentence; line i of the result belongs to sentence i.

    Each sentence has its own generator, seeded by (seed, i): the result does not depend on how a
    corpus is cut into batches.

    Args:
        rate: share of the words concerned, in [0, 1]; of the sentences for `mask_span`.
        synonyms: source of `replace_synonyms` and `insert_synonyms`, as `eda.load_synonyms`.
        first: number of the first sentence in its corpus.
        more: what the augmentation takes beside them: `span`, the characters of `mask_span`.

    Raises:
        ValueError: unknown name, a rate outside [0, 1] or a negative seed.

    Example:
        >>> augment("crop", ["one two three four"], rate=0.5)
        ['three four']
    """
    if name not in AUGMENTATIONS:
        raise ValueError(f"unknown augmentation {name!r}: choose one of {', '.join(AUGMENTATIONS)}")
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be in [0, 1], got {rate}")
    if seed < 0:
        raise ValueError(f"seed must not be negative, got {seed}")
    change = AUGMENTATIONS[name]
    if name in NEED_SYNONYMS:
        more["synonyms"] = eda.load_synonyms(synonyms)
    return [
        " ".join(change(s.split(), rate, np.random.default_rng((seed, i)), **more))
        for i, s in enumerate(sentences, first)
    ]
