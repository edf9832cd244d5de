"""Discrete augmentations on words: functions `(words, rate, generator) → words`.

Source: the discrete baselines of Zhu et al. 2024 (SDA), Table 8, after Gao et al. 2021 (SimCSE),
Table 1; word repetition after Wu et al. 2022 (ESimCSE). `edit` and `prefix` are controls of this
course: changes of a rule's size without its grammar.
"""

import math
from collections.abc import Sequence

import numpy as np

from lib.registry import Registry

AUGMENTATIONS = Registry()  # words, rate and generator → words
MASK_TOKEN = "[MASK]"


@AUGMENTATIONS.register("crop")
def crop(words: list[str], rate: float, rng: np.random.Generator) -> list[str]:
    """Keep one contiguous span of ⌈(1 − rate)·n⌉ words, at least one, placed uniformly.

    Example:
        >>> crop("a b c d".split(), 0.25, np.random.default_rng(0))
        ['b', 'c', 'd']
    """
    kept = max(1, math.ceil(round((1 - rate) * len(words), 9)))
    start = rng.integers(0, max(1, len(words) - kept + 1))
    return words[start : start + kept]


@AUGMENTATIONS.register("delete")
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


@AUGMENTATIONS.register("mask")
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


SHORTEST_MASKED = 30


@AUGMENTATIONS.register("mask_span")
def mask_span(
    words: list[str], rate: float, rng: np.random.Generator, span: int = 5, token: str = MASK_TOKEN
) -> list[str]:
    """With probability `rate` replace one span of `span` characters, blanks included, by `token`.

    The span begins at any of the first n − `span` characters; a word that it cuts leaves its rest.
    Sentences of fewer than 30 characters, or of no more than the span, stay as they are.

    Args:
        rate: share of the sentences concerned, in [0, 1].
        span: k, at least 1.

    Raises:
        ValueError: a span below 1.

    Example:
        >>> mask_span("a big red dog sleeps near the house".split(), 1.0, np.random.default_rng(1))
        ['a', 'big', 'red', 'dog', 'sleeps', 'n', '[MASK]', 'he', 'house']

    Source: Liu et al. 2021 (Mirror-BERT), random span masking; their code's `erase_and_mask`, which
        takes the first place in the sentence that reads like the drawn span, and draws it anew in
        every epoch.
    """
    if span < 1:
        raise ValueError(f"span must be at least 1, got {span}")
    text = " ".join(words)
    drawn = rng.random() < rate
    if not drawn or len(text) <= span or len(text) < SHORTEST_MASKED:
        return words
    start = int(rng.integers(len(text) - span))
    return f"{text[:start]} {token} {text[start + span :]}".split()


@AUGMENTATIONS.register("repeat")
def repeat(words: list[str], rate: float, rng: np.random.Generator) -> list[str]:
    """Double k random words in place, k uniform in 0 … max(2, int(rate·n)), never more than n.

    ESimCSE's code repeats sub-words, as its script has it: k is below min(10, int(rate·t)) of the t
    tokens that the cut left, special ones counted but never repeated. Another mode repeats whole
    words: k below min(10, n, max(2, int(rate·n))), never the last. Here k is drawn before the cut.

    Example:
        >>> repeat("a b c d".split(), 0.3, np.random.default_rng(1))
        ['a', 'b', 'c', 'c', 'd']

    Source: Wu et al. 2022 (ESimCSE), word repetition; train.py lines 461-524 of their code.
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


@AUGMENTATIONS.register("punctuate")
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


@AUGMENTATIONS.register("edit")
def edit(words: list[str], rate: float, rng: np.random.Generator) -> list[str]:
    """Make k edits of one word each, k = max(1, round(rate·n)), at different random places: the
    word is left out or doubled, by a coin; one word always stays.

    Example:
        >>> edit("a b c d".split(), 0.5, np.random.default_rng(0))
        ['a', 'b', 'b', 'c', 'd', 'd']
    """
    if rate == 0 or not words:
        return words
    k = min(len(words), max(1, round(rate * len(words))))
    copies = np.ones(len(words), int)
    copies[rng.choice(len(words), k, replace=False)] = rng.choice([0, 2], k)
    if not copies.any():
        copies[rng.integers(len(words))] = 1
    return [word for word, count in zip(words, copies, strict=True) for _ in range(count)]


NEUTRAL = ("It", "is", "said", "that")


@AUGMENTATIONS.register("prefix")
def prefix(words: list[str], rate: float, rng: np.random.Generator) -> list[str]:
    """Put "It is said that" before the words, with probability `rate`: as long as an opener of
    double negation, and it denies nothing. The first word gets a small letter, a name too.

    Example:
        >>> prefix("Dogs bark .".split(), 1.0, np.random.default_rng(0))
        ['It', 'is', 'said', 'that', 'dogs', 'bark', '.']
    """
    if not words or rng.random() >= rate:
        return words
    first = words[0]
    lower = first.lower() if first[1:].islower() or len(first) == 1 else first
    return [*NEUTRAL, "I" if lower == "i" else lower, *words[1:]]


def edit_distance(a: Sequence[str], b: Sequence[str]) -> int:
    """Fewest words that are put in, left out or replaced on the way from `a` to `b`.

    Example:
        >>> edit_distance("he runs fast".split(), "he must run fast".split())
        2

    Source: Levenshtein 1966.
    """
    row = list(range(len(b) + 1))
    for i, word in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            cheapest = min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other))
            diagonal, row[j] = row[j], cheapest
    return row[-1]
