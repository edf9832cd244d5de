"""UNA: hard negatives by swapping a sentence's heavy words for words of similar weight.

Source: Shu & Lampos 2024, "Unsupervised hard Negative Augmentation for contrastive learning", §3
    and Algorithm 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lib.augment.tfidf import Array, Terms, TfidfModel

SELECT, REPLACE = ("tfidf", "random"), ("window", "uniform")
_PICK, _DRAW, _FORCE = range(3)


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
        if self.select not in SELECT or self.replace not in REPLACE:
            raise ValueError(f"no way to draw is called {self.select!r} or {self.replace!r}")

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
