"""Discrete augmentations on words: functions `(words, rate, generator) → words`.

Source: the discrete baselines of Zhu et al. 2024 (SDA), Table 8, after Gao et al. 2021 (SimCSE),
Table 1; word repetition after Wu et al. 2022 (ESimCSE).
"""

import math

import numpy as np

MASK_TOKEN = "[MASK]"


def crop(words: list[str], rate: float, rng: np.random.Generator) -> list[str]:
    """Keep one contiguous span of ⌈(1 − rate)·n⌉ words, at least one, placed uniformly.

    Example:
        >>> crop("a b c d".split(), 0.25, np.random.default_rng(0))
        ['b', 'c', 'd']
    """
    kept = max(1, math.ceil(round((1 - rate) * len(words), 9)))
    start = rng.integers(0, max(1, len(words) - kept + 1))
    return words[start : start + kept]


def delete(words: list[str], rate: float, rng: np.random.Generator) -> list[str]:
    """Delete each word with probability `rate`; if all would go, one random word stays.

    Example:
        >>> delete("a b c d".split(), 1.0, np.random.default_rng(0))
        ['d']
    """
    if not words:
        return words
    spared = int(rng.integers(len(words)))
    kept = [w for w, drawn in zip(words, rng.random(len(words)), strict=True) if drawn >= rate]
    return kept or [words[spared]]


def mask(
    words: list[str], rate: float, rng: np.random.Generator, token: str = MASK_TOKEN
) -> list[str]:
    """Replace each word by `token` with probability `rate`.

    Example:
        >>> mask("a b".split(), 1.0, np.random.default_rng(0))
        ['[MASK]', '[MASK]']
    """
    drawn = rng.random(len(words))
    return [token if d < rate else w for w, d in zip(words, drawn, strict=True)]


def repeat(words: list[str], rate: float, rng: np.random.Generator) -> list[str]:
    """Double k random words in place, k uniform in 0 … max(2, int(rate·n)), never more than n.

    Example:
        >>> repeat("a b c d".split(), 0.3, np.random.default_rng(1))
        ['a', 'b', 'c', 'c', 'd']
    """
    if rate == 0:
        return words
    most = min(len(words), max(2, int(rate * len(words))))
    doubled = (
        set(rng.choice(len(words), int(rng.integers(0, most + 1)), replace=False).tolist())
        if words
        else set()
    )
    return [w for i, word in enumerate(words) for w in [word] * (1 + (i in doubled))]


MARKS = (".", ";", "?", ":", "!", ",")


def punctuate(words: list[str], rate: float, rng: np.random.Generator) -> list[str]:
    """Insert k random punctuation marks at random places, k uniform in 1 … max(1, int(rate·n)).

    Example:
        >>> punctuate("a b c".split(), 0.3, np.random.default_rng(0))
        ['a', 'b', 'c', ':']

    Source: Karimi et al. 2021 (AEDA).
    """
    result = list(words)
    for _ in range(
        int(rng.integers(1, max(1, int(rate * len(words))) + 1)) if rate > 0 and words else 0
    ):
        result.insert(int(rng.integers(len(result) + 1)), MARKS[int(rng.integers(len(MARKS)))])
    return result
