"""Augmentations: text to text, aligned line by line. `AUGMENTATIONS` maps a recipe's name to its
function."""

from collections.abc import Iterable, Sequence

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
    numbers: Iterable[int] | None = None,
    span: int = 5,
) -> list[str]:
    """Apply augmentation `name` to every sentence; line i of the result belongs to sentence i.

    Each sentence has its own generator, seeded by (seed, i): the result does not depend on how a
    corpus is cut into batches.

    Args:
        rate: share of the words concerned, in [0, 1]; of the sentences for `mask_span`.
        synonyms: source of `replace_synonyms` and `insert_synonyms`, as `eda.load_synonyms`.
        numbers: number of each sentence in its corpus; None: 0, 1, 2 …
        span: characters of `mask_span`.

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
    more: tuple = (eda.load_synonyms(synonyms),) if name in NEED_SYNONYMS else ()
    if name == "mask_span":
        more = (span,)
    numbered = zip(range(len(sentences)) if numbers is None else numbers, sentences, strict=True)
    return [
        " ".join(change(s.split(), rate, np.random.default_rng((seed, i)), *more))
        for i, s in numbered
    ]
