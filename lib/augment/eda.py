"""EDA, "easy data augmentation": functions `(words, rate, generator[, synonyms]) → words`.

n = max(1, int(rate · words)) words are concerned. A word that punctuation touches ("dog.") has no
synonyms: give tokenised text, or accept that it stays.

The authors' code has a stop list of 127 words; the one here is scikit-learn's, of 318. A synonym
is inserted at any place, also at the end, where their code never inserts.

Source: Wei & Zou 2019, §2.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from lib import paths
from lib.augment.discrete import AUGMENTATIONS
from lib.data.readers import numbered

Synonyms = Callable[[str], list[str]]


@AUGMENTATIONS.register("replace_synonyms")
def replace_synonyms(
    words: list[str], rate: float, rng: np.random.Generator, synonyms: Synonyms
) -> list[str]:
    """Replace n random words that have synonyms by a random one of them, every occurrence alike.

    Example:
        >>> replace_synonyms("a big dog".split(), 0.1, np.random.default_rng(0),
        ...     lambda w: ["large"] * (w == "big"))
        ['a', 'large', 'dog']
    """
    candidates = sorted({w for w in words if w.lower() not in _stop_words() and w.isalpha()})
    changed: dict[str, str] = {}
    for i in rng.permutation(len(candidates)):
        alternatives = synonyms(candidates[i])
        if alternatives and len(changed) < _count(words, rate):
            changed[candidates[i]] = alternatives[int(rng.integers(len(alternatives)))]
    return [word for w in words for word in changed.get(w, w).split(" ")]


@AUGMENTATIONS.register("insert_synonyms")
def insert_synonyms(
    words: list[str], rate: float, rng: np.random.Generator, synonyms: Synonyms
) -> list[str]:
    """n times: insert a random synonym of a random word at a random place.

    Example:
        >>> insert_synonyms("a dog".split(), 0.1, np.random.default_rng(0),
        ...     lambda w: ["hound"] * (w == "dog"))
        ['a', 'dog', 'hound']
    """
    known = [
        alternatives
        for w in words
        if w.lower() not in _stop_words() and (alternatives := synonyms(w))
    ]
    result = list(words)
    for _ in range(_count(words, rate) if known else 0):
        alternatives = known[int(rng.integers(len(known)))]
        position = int(rng.integers(len(result) + 1))
        result[position:position] = alternatives[int(rng.integers(len(alternatives)))].split(" ")
    return result


@AUGMENTATIONS.register("swap")
def swap(words: list[str], rate: float, rng: np.random.Generator) -> list[str]:
    """n times: exchange two random words.

    Example:
        >>> swap("a b".split(), 0.1, np.random.default_rng(0))
        ['b', 'a']
    """
    result = list(words)
    for _ in range(_count(words, rate) if len(words) > 1 else 0):
        i, j = rng.choice(len(result), 2, replace=False)
        result[i], result[j] = result[j], result[i]
    return result


@cache
def _stop_words() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # takes a second to import

    return ENGLISH_STOP_WORDS


def _count(words: list[str], rate: float) -> int:
    return max(1, int(rate * len(words))) if rate > 0 and words else 0


def load_synonyms(source: str) -> Synonyms:
    """Synonyms of a word, in its own letter case and without itself.

    Args:
        source: "wordnet", or a tab-separated file: the word first, its synonyms last, separated by
            commas.

    Raises:
        FileNotFoundError: WordNet's files, or the file, are not there.
    """
    lookup = _wordnet() if source == "wordnet" else _thesaurus(source)

    @cache
    def synonyms(word: str) -> list[str]:
        alternatives = lookup(word.lower())
        return [s.capitalize() for s in alternatives] if word[:1].isupper() else list(alternatives)

    return synonyms


def _wordnet() -> Callable[[str], list[str]]:
    from lib.augment.wordnet import wordnet  # NLTK takes two seconds to import

    return wordnet()


def _thesaurus(source: str) -> Callable[[str], list[str]]:
    path = Path(source) if Path(source).is_file() else paths.ROOT / source
    if not path.is_file():
        raise FileNotFoundError(f"no thesaurus {source!r}: name a tab-separated file, or 'wordnet'")
    entries: dict[str, list[str]] = {}
    for number, line in numbered(path):
        if not line.strip() or line.startswith("#"):
            continue
        word, *_, rest = line.split("\t") if "\t" in line else (line, "")
        alternatives = [s.strip() for s in rest.split(",") if s.strip()]
        if not word.strip() or not alternatives:
            raise ValueError(
                f"{path}, line {number}: expected a word, a tab and its synonyms, got {line!r}"
            )
        entries.setdefault(word.strip().lower(), []).extend(alternatives)
    if not entries:
        raise ValueError(f"{path}: 0 words with synonyms")
    return lambda word: entries.get(word, [])
