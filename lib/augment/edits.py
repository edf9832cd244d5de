"""Augmentations on words: functions `(words, rate, generator[, synonyms]) → words`, and `augment`,
which applies one to every line of a text.

Discrete edits: the baselines of Zhu et al. 2024 (SDA), Table 8, after Gao et al. 2021 (SimCSE),
Table 1, where BERT fills in what `mask` leaves as [MASK]; word repetition after Wu et al. 2022
(ESimCSE). `edit` and `prefix` are controls of this course: changes of a rule's size without its
grammar.

EDA, "easy data augmentation" (Wei & Zou 2019, §2), concerns n = max(1, int(rate · words)) words. A
word that punctuation touches ("dog.") has no synonyms: give tokenised text, or accept that it
stays. The authors' code has a stop list of 127 words; the one here is scikit-learn's, of 318. A
synonym is inserted at any place, also at the end, where their code never inserts.
"""

import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lib import paths
from lib.checked import Registry, closest
from lib.data.readers import numbered

Rng = np.random.Generator
Synonyms = Callable[[str], list[str]]
AUGMENTATIONS = Registry()  # words, rate and generator → words
NEED_SYNONYMS = ("replace_synonyms", "insert_synonyms")
MASK_TOKEN = "[MASK]"
SHORTEST_MASKED = 30
MARKS = (".", ";", "?", ":", "!", ",")
NEUTRAL = ("It", "is", "said", "that")
_OF_WORDNET = re.compile(r"(data|index)\.(noun|verb|adj|adv)|(noun|verb|adj|adv)\.exc|lexnames")


def augment(
    name: str,
    sentences: Sequence[str],
    rate: float,
    seed=0,
    synonyms="wordnet",
    first=0,
    **more: Any,
) -> list[str]:
    """Apply augmentation `name` to every sentence; line i of the result belongs to sentence i.

    Each sentence has its own generator, seeded by (seed, i): the result does not depend on how a
    corpus is cut into batches.

    Args:
        rate: share of the words concerned, in [0, 1]; of the sentences for `mask_span`.
        synonyms: source of `replace_synonyms` and `insert_synonyms`, as `load_synonyms`.
        first: number of the first sentence in its corpus.
        more: what the augmentation takes beside them: `span`, the characters of `mask_span`.

    Raises:
        ValueError: unknown name, a rate outside [0, 1] or a negative seed.

    Example:
        >>> augment("crop", ["one two three four"], rate=0.5)
        ['three four']
    """
    if name not in AUGMENTATIONS:
        raise ValueError(f"unknown augmentation {name!r}{closest(name, AUGMENTATIONS)}")
    if not 0 <= rate <= 1 or seed < 0:
        raise ValueError(f"rate must be in [0, 1] and seed not negative, got {rate} and {seed}")
    if name in NEED_SYNONYMS:
        more["synonyms"] = load_synonyms(synonyms)
    change = AUGMENTATIONS[name]
    return [
        " ".join(change(s.split(), rate, np.random.default_rng((seed, i)), **more))
        for i, s in enumerate(sentences, first)
    ]


@AUGMENTATIONS.register("crop")
def crop(words: list[str], rate: float, rng: Rng) -> list[str]:
    """Keep one contiguous span of ⌈(1 − rate)·n⌉ words, at least one, placed uniformly.

    Example:
        >>> crop("a b c d".split(), 0.25, np.random.default_rng(0))
        ['b', 'c', 'd']
    """
    kept = max(1, math.ceil(round((1 - rate) * len(words), 9)))
    start = rng.integers(0, max(1, len(words) - kept + 1))
    return words[start : start + kept]


@AUGMENTATIONS.register("delete")
def delete(words: list[str], rate: float, rng: Rng) -> list[str]:
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
def mask(words: list[str], rate: float, rng: Rng) -> list[str]:
    """Replace each word by `MASK_TOKEN` with probability `rate`.

    Example:
        >>> mask("a b".split(), 1.0, np.random.default_rng(0))
        ['[MASK]', '[MASK]']
    """
    drawn = rng.random(len(words))
    return [MASK_TOKEN if d < rate else w for w, d in zip(words, drawn, strict=True)]


@AUGMENTATIONS.register("mask_span")
def mask_span(words: list[str], rate: float, rng: Rng, span: int = 5) -> list[str]:
    """With probability `rate` one span of `span` characters, blanks included, becomes `MASK_TOKEN`.

    The span begins at any of the first n − `span` characters; a word that it cuts leaves its rest.
    Sentences of fewer than 30 characters, or of no more than the span, stay as they are.

    Args:
        rate: share of the sentences concerned, in [0, 1].
        span: k, at least 1.

    Example:
        >>> mask_span("a big red dog sleeps near the house".split(), 1.0, np.random.default_rng(1))
        ['a', 'big', 'red', 'dog', 'sleeps', 'n', '[MASK]', 'he', 'house']

    Source: Liu et al. 2021 (Mirror-BERT), random span masking; their code's `erase_and_mask`, which
        takes the first place in the sentence that reads like the drawn span, and draws it anew in
        every epoch.
    """
    text = " ".join(words)
    drawn = rng.random() < rate
    if not drawn or len(text) <= span or len(text) < SHORTEST_MASKED:
        return words
    start = int(rng.integers(len(text) - span))
    return f"{text[:start]} {MASK_TOKEN} {text[start + span :]}".split()


@AUGMENTATIONS.register("repeat")
def repeat(words: list[str], rate: float, rng: Rng) -> list[str]:
    """Double k random words in place, k uniform in 0 … max(2, int(rate·n)), never more than n.

    ESimCSE's code repeats sub-words, as its script has it: k is below min(10, int(rate·t)) of the t
    tokens that the cut left, special ones counted but never repeated. Another mode repeats whole
    words: k below min(10, n, max(2, int(rate·n))), never the last. Here k is drawn before the cut.

    Example:
        >>> repeat("a b c d".split(), 0.3, np.random.default_rng(1))
        ['a', 'b', 'c', 'c', 'd']

    Source: Wu et al. 2022 (ESimCSE), word repetition; train.py lines 461-524 of their code.
    """
    if rate == 0 or not words:
        return words
    most = min(len(words), max(2, int(rate * len(words))))
    copies = np.ones(len(words), int)
    copies[rng.choice(len(words), int(rng.integers(0, most + 1)), replace=False)] = 2
    return _copied(words, copies)


@AUGMENTATIONS.register("punctuate")
def punctuate(words: list[str], rate: float, rng: Rng) -> list[str]:
    """Insert k random punctuation marks at random places, k uniform in 1 … max(1, int(rate·n)).

    Example:
        >>> punctuate("a b c".split(), 0.3, np.random.default_rng(0))
        ['a', 'b', 'c', ':']

    Source: Karimi et al. 2021 (AEDA).
    """
    result = list(words)
    most = _concerned(words, rate)
    for _ in range(int(rng.integers(1, most + 1)) if most else 0):
        result.insert(int(rng.integers(len(result) + 1)), MARKS[int(rng.integers(len(MARKS)))])
    return result


@AUGMENTATIONS.register("edit")
def edit(words: list[str], rate: float, rng: Rng) -> list[str]:
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
    return _copied(words, copies)


def _copied(words: list[str], copies: np.ndarray) -> list[str]:
    return [word for word, n in zip(words, copies, strict=True) for _ in range(n)]


def _with_content(words: list[str]) -> list[str]:
    """The words that are no stop words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # takes a second to import

    return [word for word in words if word.lower() not in ENGLISH_STOP_WORDS]


def _concerned(words: list[str], rate: float) -> int:
    """EDA's n."""
    return max(1, int(rate * len(words))) if rate > 0 and words else 0


@AUGMENTATIONS.register("prefix")
def prefix(words: list[str], rate: float, rng: Rng) -> list[str]:
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


@AUGMENTATIONS.register("replace_synonyms")
def replace_synonyms(words: list[str], rate: float, rng: Rng, synonyms: Synonyms) -> list[str]:
    """Replace n random words that have synonyms by a random one of them, every occurrence alike.

    Example:
        >>> replace_synonyms("a big dog".split(), 0.1, np.random.default_rng(0),
        ...     lambda w: ["large"] * (w == "big"))
        ['a', 'large', 'dog']
    """
    candidates = sorted({word for word in _with_content(words) if word.isalpha()})
    changed: dict[str, str] = {}
    for i in rng.permutation(len(candidates)):
        alternatives = synonyms(candidates[i])
        if alternatives and len(changed) < _concerned(words, rate):
            changed[candidates[i]] = alternatives[int(rng.integers(len(alternatives)))]
    return [word for w in words for word in changed.get(w, w).split(" ")]


@AUGMENTATIONS.register("insert_synonyms")
def insert_synonyms(words: list[str], rate: float, rng: Rng, synonyms: Synonyms) -> list[str]:
    """n times: insert a random synonym of a random word at a random place.

    Example:
        >>> insert_synonyms("a dog".split(), 0.1, np.random.default_rng(0),
        ...     lambda w: ["hound"] * (w == "dog"))
        ['a', 'dog', 'hound']
    """
    known = [alternatives for word in _with_content(words) if (alternatives := synonyms(word))]
    result = list(words)
    for _ in range(_concerned(words, rate) if known else 0):
        alternatives = known[int(rng.integers(len(known)))]
        position = int(rng.integers(len(result) + 1))
        result[position:position] = alternatives[int(rng.integers(len(alternatives)))].split(" ")
    return result


@AUGMENTATIONS.register("swap")
def swap(words: list[str], rate: float, rng: Rng) -> list[str]:
    """n times: exchange two random words.

    Example:
        >>> swap("a b".split(), 0.1, np.random.default_rng(0))
        ['b', 'a']
    """
    result = list(words)
    for _ in range(_concerned(words, rate) if len(words) > 1 else 0):
        i, j = rng.choice(len(result), 2, replace=False)
        result[i], result[j] = result[j], result[i]
    return result


def load_synonyms(source: str) -> Synonyms:
    """Synonyms of a word, in its own letter case and without itself.

    Args:
        source: "wordnet", or a tab-separated file: the word first, its synonyms last, separated by
            commas.

    Raises:
        FileNotFoundError: WordNet's files, or the file, are not there.
        ValueError: the file has a line of another form, or none.
    """
    lookup = _wordnet() if source == "wordnet" else _thesaurus(source)

    @cache
    def synonyms(word: str) -> list[str]:
        alternatives = lookup(word.lower())
        return [s.capitalize() for s in alternatives] if word[:1].isupper() else list(alternatives)

    return synonyms


def _thesaurus(source: str) -> Synonyms:
    (path,) = synonym_files(source)
    entries: dict[str, list[str]] = {}
    for number, line in numbered(path):
        if not line.strip() or line.startswith("#"):
            continue
        word, *_, rest = line.split("\t") if "\t" in line else (line, "")
        alternatives = [s.strip() for s in rest.split(",") if s.strip()]
        if not word.strip() or not alternatives:
            raise ValueError(f"{path}, line {number}: expected a word, a tab, synonyms: {line!r}")
        entries.setdefault(word.strip().lower(), []).extend(alternatives)
    if not entries:
        raise ValueError(f"{path}: 0 words with synonyms")
    return lambda word: entries.get(word, [])


def wordnet_folder() -> Path:
    """The folder with WordNet's `data.noun`: NLTK's download, unpacked.

    Raises:
        FileNotFoundError: there is none; the message names the command that brings it.
    """
    import nltk.data  # takes two seconds

    for path in nltk.data.path:
        folder = Path(path) / "corpora/wordnet"
        if (folder / "data.noun").exists():
            return folder
    remedy = "`python -m nltk.downloader wordnet`, unpacked, or --synonyms data/mini/thesaurus.tsv"
    raise FileNotFoundError(f"WordNet is not here: take {remedy}")


def synonym_files(source: str) -> list[Path]:
    """The files that `load_synonyms` reads.

    Raises:
        FileNotFoundError: they are not there.
    """
    if source == "wordnet":
        return sorted(
            file for file in wordnet_folder().iterdir() if _OF_WORDNET.fullmatch(file.name)
        )
    path = Path(source) if Path(source).is_file() else paths.ROOT / source
    if not path.is_file():
        raise FileNotFoundError(f"no thesaurus {source!r}: name a tab-separated file, or 'wordnet'")
    return [path]


@cache
def _wordnet() -> Synonyms:
    """Lower-case synonyms of a lower-case word, in WordNet's order and without the word itself."""
    wordnet_folder()
    from nltk.corpus import wordnet

    def lookup(word: str) -> list[str]:
        lemmas = (name for synset in wordnet.synsets(word) for name in synset.lemma_names())
        names = dict.fromkeys(name.replace("_", " ").lower() for name in lemmas)
        return [name for name in names if name != word and re.fullmatch(r"[a-z' -]+", name)]

    return lookup
