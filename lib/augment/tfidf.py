"""TF-IDF of a corpus as ragged arrays of term numbers, counted in chunks, saved without pickle."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice, pairwise
from pathlib import Path

import numpy as np
from nltk.tokenize import NLTKWordTokenizer

from lib.data.files import load_arrays, save_arrays

Array = np.ndarray
CHUNK = 10_000
_TOKENIZER = NLTKWordTokenizer()
_QUOTE = re.compile("[«“‘„`\"'»”’]")
_TWO_WORDS = ("cannot", "gimme", "gımme", "gonna", "gotta", "lemme", "wanna")
_LAST_PERIOD = re.compile(r"([^\.])(\.)([\]\)}> ]*+)\s*$")
_COMMA, _LAST_COMMA = re.compile(r"([:,])([^\d])"), re.compile(r"([:,])$")
_MARK = re.compile(r"\.{2,}|[;@#$%&\u2012-\u2015?!*\]\[(){}<>]|--")


def terms_of(sentence: str) -> list[str]:
    """Lower-cased words and punctuation marks, as NLTK's word tokenizer cuts them.

    Its thirty regular expressions are needed where there is a quotation mark, an apostrophe or a
    contraction without one; elsewhere the five that are left give the same (tested) in less than
    half of the time.

    A line is cut as one sentence. NLTK's `word_tokenize`, which the authors of UNA call, has Punkt
    split it into sentences before, so that a period within a line may be cut off its word: 7 of
    11,548 Wikipedia lines differ.

    Example:
        >>> terms_of("He hasn't sold it, yet.")
        ['he', 'has', "n't", 'sold', 'it', ',', 'yet', '.']
    """
    text = sentence.lower()
    if _QUOTE.search(text) or any(word in text for word in _TWO_WORDS):
        return _TOKENIZER.tokenize(text)
    text = _LAST_PERIOD.sub(r"\1 \2 \3 ", text)
    if "," in text or ":" in text:
        text = _LAST_COMMA.sub(r" \1 ", _COMMA.sub(r" \1 \2", text))
    return _MARK.sub(r" \g<0> ", text).split()


@dataclass(frozen=True)
class Terms:
    """Sentences as term numbers: sentence i is `ids[offsets[i]:offsets[i + 1]]`.

    Attributes:
        ids: (tokens,) int32; `offsets`: (n + 1,) int64.
        unseen: terms that the model's vocabulary lacks; the k-th of them has the number
            `len(model.terms) + k`.
    """

    ids: Array
    offsets: Array
    unseen: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Array:
        """Tokens of every sentence, (n,)."""
        return np.diff(self.offsets)

    @property
    def rows(self) -> Array:
        """Sentence of every token, (tokens,)."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def __getitem__(self, rows: Sequence[int] | Array) -> "Terms":
        """The sentences `rows`, in that order."""
        rows = np.asarray(rows, np.int64)
        lengths = self.lengths[rows]
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        where = np.arange(bounds[-1]) + np.repeat(self.offsets[rows] - bounds[:-1], lengths)
        return Terms(self.ids[where], bounds, self.unseen)

    def counts(self) -> Array:
        """How often each token's term occurs in its sentence, (tokens,)."""
        key = self.rows * (int(self.ids.max(initial=0)) + 1) + self.ids
        _, group, counts = np.unique(key, return_inverse=True, return_counts=True)
        return counts[group]


@dataclass(frozen=True)
class TfidfModel:
    """Inverse document frequencies and highest TF-IDF scores of a corpus's terms.

    tf(t, d) = ln(1 + n_t / n),  idf(t) = −ln(N_t / N),  z = tf · idf,  s_t = max_d z(t, d)

    with n_t of the n tokens of sentence d being term t, and N_t of N sentences containing it.

    Attributes:
        terms: the vocabulary, in order of first occurrence.
        idf, s: (V,) float64, in nats; s is what "relevance" is sorted by.
        n_sentences: N.

    Example:
        >>> model = TfidfModel.fit(["a cat", "a dog", "a dog sat"])
        >>> model.terms, model.idf.round(3).tolist()
        (['a', 'cat', 'dog', 'sat'], [0.0, 1.099, 0.405, 1.099])

    Source: Shu & Lampos 2024 (UNA), Eq. 2 and step 3.
    """

    terms: list[str]
    idf: Array
    s: Array
    n_sentences: int

    @classmethod
    def fit(cls, corpus: Iterable[str]) -> "TfidfModel":
        """Count a corpus, read once.

        An empty sentence counts as one of the N.

        Raises:
            ValueError: the corpus has no term.
        """
        index: dict[str, int] = {}
        documents, highest, n = np.zeros(0), np.zeros(0), 0
        for terms in _chunks(corpus, lambda term: index.setdefault(term, len(index))):
            room = (0, len(index) - len(documents))
            documents, highest = np.pad(documents, room), np.pad(highest, room)
            counts = terms.counts()
            documents += np.rint(np.bincount(terms.ids, 1 / counts, len(index)))
            np.maximum.at(highest, terms.ids, counts / np.repeat(terms.lengths, terms.lengths))
            n += len(terms)
        if not index:
            raise ValueError("no terms to count: the corpus is empty")
        idf = np.maximum(-np.log(documents / n), 0.0)
        return cls(list(index), idf, np.log1p(highest) * idf, n)

    @cached_property
    def index(self) -> dict[str, int]:
        """Term → number."""
        return {term: i for i, term in enumerate(self.terms)}

    @cached_property
    def order(self) -> Array:
        """Term numbers by ascending s; equal scores stay in vocabulary order. (V,)"""
        return np.argsort(self.s, kind="stable")

    @cached_property
    def rank(self) -> Array:
        """Place of every term in `order`, (V,)."""
        rank = np.empty(len(self.terms), np.int64)
        rank[self.order] = np.arange(len(self.terms))
        return rank

    def encode(self, sentences: Iterable[str]) -> Terms:
        """Term numbers of sentences, those of the vocabulary and new ones for unseen terms."""
        index, unseen, seen = self.index, dict[str, int](), len(self.terms)

        def number(term: str) -> int:
            known = index.get(term)
            return unseen.setdefault(term, seen + len(unseen)) if known is None else known

        chunks = list(_chunks(sentences, number))
        ids = np.concatenate([np.zeros(0, np.int32), *(terms.ids for terms in chunks)])
        lengths = np.concatenate([np.zeros(1, np.int64), *(terms.lengths for terms in chunks)])
        return Terms(ids, np.cumsum(lengths), list(unseen))

    def strings(self, terms: Terms) -> list[str]:
        """The sentences, terms joined by single blanks."""
        known, seen = self.terms, len(self.terms)
        words = [known[i] if i < seen else terms.unseen[i - seen] for i in terms.ids.tolist()]
        return [" ".join(words[a:b]) for a, b in pairwise(terms.offsets.tolist())]

    def scores(self, terms: Terms) -> Array:
        """z of every token in its sentence, (tokens,) float64; an unseen term has the largest
        idf."""
        idf = np.append(self.idf, self.idf.max())[np.minimum(terms.ids, len(self.idf))]
        return np.log1p(terms.counts() / np.repeat(terms.lengths, terms.lengths)) * idf

    def save(self, path: str | Path) -> None:
        """Write one `.npz` file, complete or not at all."""
        text = np.frombuffer("\n".join(self.terms).encode(), np.uint8)
        n = np.array(self.n_sentences)
        save_arrays({"terms": text, "idf": self.idf, "s": self.s, "n_sentences": n}, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> "TfidfModel":
        """Read what `save` wrote.

        Raises:
            ValueError: the file is none of `save`'s.
        """
        text, idf, s, n = load_arrays(Path(path), ("terms", "idf", "s", "n_sentences")).values()
        return cls(text.tobytes().decode().split("\n"), idf, s, int(n))


def _chunks(corpus: Iterable[str], number: Callable[[str], int]) -> Iterator[Terms]:
    """The corpus as term numbers, some sentences at a time, so that a large one fits into
    memory."""
    sentences = iter(corpus)
    while chunk := list(islice(sentences, CHUNK)):
        lists = [terms_of(sentence) for sentence in chunk]
        ids = np.fromiter(map(number, chain.from_iterable(lists)), np.int32)
        yield Terms(ids, np.cumsum([0, *map(len, lists)]))
