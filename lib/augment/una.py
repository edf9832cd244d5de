"""UNA: hard negatives by swapping a sentence's heavy words for words of similar weight; and TF-IDF
over a corpus as ragged arrays of term numbers, counted in chunks, saved without pickle.

Source: Shu & Lampos 2024, "Unsupervised hard Negative Augmentation for contrastive learning", §3
    and Algorithm 1.
"""

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
_PICK, _DRAW, _FORCE = range(3)
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


@dataclass(frozen=True)
class UNA:
    """Negatives of sentences given as term numbers; draws depend on (seed, epoch, sentence,
    position) alone.

    Step 2, with z_i the TF-IDF score of a token, a_i = z_i − min z, and mean(a) over all tokens:
        p_i = min(β · a_i / mean(a), 1), and 1 for the first token with the largest z.
    Step 3: a token drawn with p_i becomes one of the `radius` terms below and above it in the
    order of s, with probability proportional to s.

    Terms of equal s stand in the order in which the corpus first names them. The authors sort
    from the highest s down, so that equal terms stand the other way round: nearly every window
    then holds other members (here and theirs share all of them in 0.5 % of the windows), with the
    same weights, and the negatives change as often and as far.

    Args:
        model: frequencies and s.
        beta: β ≥ 0, the mean of p where nothing is cut at 1.
        radius: r ≥ 1, terms on either side.
        include_self: True keeps a term in its own window, so that it may "replace" itself, as in
            the authors' code.
        select: "tfidf" is step 2; "random" draws every token with rate β, and one at random where
            none was drawn.
        replace: "window" is step 3; "uniform" draws from the whole vocabulary, as both steps of the
            authors' option `uni` do. Their `--p2_rand` draws step 3 from the 2r + 1 terms around a
            term in the order in which the corpus first names them, which is not here; `uni` also
            leaves sentences of fewer than three tokens alone and need not change a sentence.
        seed: of all draws.

    Raises:
        ValueError: a parameter outside its range.

    Example:
        >>> model = TfidfModel.fit(["a cat sat", "a dog ran", "a bird flew"])
        >>> una = UNA(model, beta=0.5, radius=2)
        >>> model.strings(una(model.encode(["a cat sat"])))[0] != "a cat sat"
        True
    """

    model: TfidfModel
    beta: float = 0.5
    radius: int = 4000
    include_self: bool = False
    select: str = "tfidf"
    replace: str = "window"
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.beta >= 0 or self.radius < 1:
            raise ValueError(f"beta ≥ 0 and radius ≥ 1 are needed: {self.beta} and {self.radius}")

    def probabilities(self, terms: Terms) -> Array:
        """p of every token, (tokens,) in [0, 1]; for `select="random"` the rate β before the
        guarantee."""
        if self.select == "random":
            return np.full(len(terms.ids), min(self.beta, 1.0))
        z, full = self.model.scores(terms), np.flatnonzero(terms.lengths)
        if not len(full):
            return z
        starts, lengths = terms.offsets[full], terms.lengths[full]
        a = z - np.repeat(np.minimum.reduceat(z, starts), lengths)
        mean = np.repeat(np.add.reduceat(a, starts) / lengths, lengths)
        p = np.divide(self.beta * a, mean, out=np.zeros_like(a), where=mean > 0).clip(max=1.0)
        top = np.flatnonzero(z == np.repeat(np.maximum.reduceat(z, starts), lengths))
        _, first = np.unique(terms.rows[top], return_index=True)
        p[top[first]] = 1.0
        return p

    def window(self, term: int) -> tuple[Array, Array]:
        """Terms that may replace `term` of the vocabulary, and their exact probabilities."""
        (first,), (last,) = self._bounds(self.model.rank[[term]], np.ones(1, bool))
        candidates, weights = self.model.order[first:last], self._weights[first:last]
        allowed = (candidates != term) | self.include_self
        weights = weights * allowed if (weights * allowed).any() else allowed.astype(float)
        return candidates, weights / max(weights.sum(), 1e-300)

    def __call__(self, terms: Terms, rows: Sequence[int] | Array | None = None, epoch=0) -> Terms:
        """One negative of every sentence, of the same length.

        An empty sentence stays empty. A sentence of at least one term changes in at least one,
        unless the vocabulary has no other term or `include_self` draws the same.

        Args:
            rows: numbers of the sentences in their corpus, (n,); None: 0 … n − 1. A sentence's
                draws follow from its number: the same in any batch and order.
            epoch: another number, other draws.
        """
        rows = np.arange(len(terms)) if rows is None else np.asarray(rows)
        token_rows = np.repeat(rows, terms.lengths)
        position = np.arange(len(terms.ids)) - np.repeat(terms.offsets[:-1], terms.lengths)
        pick = uniform(self.seed, epoch, token_rows, position, _PICK) < self.probabilities(terms)
        if self.select == "random":
            self._at_least_one(pick, terms, rows, epoch)
        picked = np.flatnonzero(pick)
        draw = uniform(self.seed, epoch, token_rows[picked], position[picked], _DRAW)
        ids = terms.ids.copy()
        ids[picked] = self._replacements(terms, picked, draw)
        return Terms(ids, terms.offsets, terms.unseen)

    def _at_least_one(self, pick: Array, terms: Terms, rows: Array, epoch: int) -> None:
        drawn = np.bincount(terms.rows[pick], minlength=len(terms))
        none = np.flatnonzero((drawn == 0) & (terms.lengths > 0))
        draw = uniform(self.seed, epoch, rows[none], np.zeros(len(none), np.int64), _FORCE)
        where = draw * terms.lengths[none]
        pick[terms.offsets[none] + where.astype(np.int64)] = True

    @cached_property
    def _weights(self) -> Array:
        """Weight of every rank in the order of s: s, or 1 where all are drawn alike. (V,)"""
        ordered = self.model.s[self.model.order]
        return np.ones_like(ordered) if self.replace == "uniform" else ordered

    @cached_property
    def _cumulative(self) -> Array:
        """Prefix sums of the weights, (V + 1,): `_cumulative[i]` is the weight before rank i."""
        return np.concatenate([[0.0], np.cumsum(self._weights)])

    def _bounds(self, rank: Array, known: Array) -> tuple[Array, Array]:
        """The window's first rank and the one behind its last; "uniform" is a window of
        everything."""
        size = len(self.model.terms)
        radius = size if self.replace == "uniform" else self.radius
        return np.maximum(rank - radius, 0), np.minimum(rank + radius + known, size)

    def _replacements(self, terms: Terms, picked: Array, draw: Array) -> Array:
        """Term numbers for the tokens `picked`, each by one binary search in the prefix sums."""
        size, old = len(self.model.terms), terms.ids[picked]
        known = old < size
        rank = self.model.rank[np.minimum(old, size - 1)]
        if not known.all():  # an unseen term stands where its own score would
            ordered = self.model.s[self.model.order]
            rank = np.where(known, rank, np.searchsorted(ordered, self.model.scores(terms)[picked]))
        first, last = self._bounds(rank, known)
        leave_out = known & (not self.include_self)
        own_weight = leave_out * self._weights[np.minimum(rank, size - 1)]
        drawn = _drawn(self._cumulative, rank, first, last, own_weight, draw)
        weightless = self._cumulative[last] - self._cumulative[first] - own_weight <= 1e-12
        if weightless.any():
            alike = _drawn(np.arange(size + 1.0), rank, first, last, leave_out * 1.0, draw)
            drawn = np.where(weightless, alike, drawn)
        beside = np.where(rank + 1 < last, rank + 1, rank - 1)
        drawn = np.where(leave_out & (drawn == rank), beside, drawn)  # by rounding alone
        return self.model.order[np.maximum(drawn, 0)]


def _drawn(sums: Array, rank: Array, first: Array, last: Array, own: Array, draw: Array) -> Array:
    """Ranks in [first, last) by their weight, whose sums are `sums`, less `own` at
    `rank`. All (tokens,)."""
    others = sums[last] - sums[first] - own
    target = sums[first] + draw * others
    target += own * (target >= sums[rank])  # jump over the term itself
    return np.clip(np.searchsorted(sums, target, side="right") - 1, first, last - 1)


def uniform(seed: int, epoch: int, rows: Array, positions: Array, stream: int) -> Array:
    """Uniform numbers in [0, 1), each a function of its five arguments alone (53 bits of a mixed
    counter).

    A generator with a state would give a sentence other draws in another batch; a counter does not.

    Source: the finaliser is SplitMix64's, Steele, Lea & Flood 2014.
    """
    state = _mix(np.array([seed & 0xFFFFFFFFFFFFFFFF], np.uint64))
    for number in (epoch, stream, rows, positions):
        state = _mix(state + np.asarray(number, np.uint64))
    return (state >> np.uint64(11)) * 2.0**-53


def _mix(x: Array) -> Array:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
